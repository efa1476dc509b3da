package cluster

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"k8s.io/utils/ptr"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/decision"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol"
	scaleclient "github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol/client"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/diagnose"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll/nodes"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/scale"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// Scaler is what the autoscaler beside the head says.
type Scaler struct {
	// Heard tells that it has spoken, Connected that it is listened to now: without that
	// its last decision counts for nothing.
	Heard, Connected bool
	// Failure says why nobody listens to it, since when.
	Failure  string
	Since    time.Time
	Decision protocol.Decision
}

// target returns how many replicas it wants of a group, below zero where nothing is known.
func (s Scaler) target(group string) (int, string) {
	for _, target := range s.Decision.Targets {
		if s.Heard && s.Connected && target.Group == group {
			return target.Replicas, target.Reason
		}
	}
	return -1, ""
}

// youngest is how old a worker is at least when it is given back: an autoscaler that lies
// cannot have pods made over and over.
const youngest = 10 * time.Second

// untilGivenBack returns after how long a worker is given back, false if the autoscaler does not name it.
func untilGivenBack(s *situation, worker Pod) (time.Duration, bool) {
	if !isAutoscaled(s.cluster) || !s.seen.Scaler.hasGivenBack(worker) {
		return 0, false
	}
	return worker.CreationTimestamp.Add(youngest).Sub(s.now), true
}

// hasGivenBack reports whether a worker is named as given back: Ray says that nothing runs there and
// nothing will, or it never was a node of Ray's.
func (s Scaler) hasGivenBack(worker Pod) bool {
	return s.Heard && s.Connected && slices.ContainsFunc(s.Decision.Removals, func(l protocol.Removal) bool {
		return l.Pod == string(worker.UID) && l.Drained && (l.Node != "" || !worker.isReady())
	})
}

// isLate reports whether a worker is given back because it never joined, or not for long.
func (s Scaler) isLate(worker Pod) bool {
	return slices.ContainsFunc(s.Decision.Removals, func(l protocol.Removal) bool {
		return l.Pod == string(worker.UID) && l.Reason == protocol.Late
	})
}

// eventOfScaling returns the event for another size of a group, nil where it keeps its size.
func eventOfScaling(s *situation, group *v1beta1.WorkerGroup, size Size) *telemetry.Event {
	if !isAutoscaled(s.cluster) || size.Replicas == size.Alive || size.Target < 0 || size.Rolled {
		return nil
	}
	why := size.Reason
	switch within := boundsOf(group); {
	case size.Replicas == within.Max && size.Target > within.Max, size.Alive > within.Max:
		why = fmt.Sprintf("maximum of %d", within.Max)
	case size.Replicas == within.Min && size.Target < within.Min:
		why = fmt.Sprintf("minimum of %d", within.Min)
	}
	finding := reason.Scaled.Of(group.Name, size.Alive, size.Replicas, why)
	return &telemetry.Event{Finding: finding, Action: "Scale " + group.Name}
}

// steerScaler sends the snapshot to the autoscaler beside the head. It is reached by the address of the pod that is
// ours.
func (r *Reconciler) steerScaler(cluster *v1beta1.ComputeCluster, seen Seen, plan Plan) {
	name, head := client.ObjectKeyFromObject(cluster), headOf(seen.Pods, plan.Epoch)
	if plan.Snapshot == nil || head == nil || string(head.UID) != plan.Snapshot.Head || !head.hasAddress() {
		r.Scale.Forget(name)
		return
	}
	target := scaleclient.Target{
		Head: head.UID, Address: net.JoinHostPort(head.Status.PodIP, strconv.Itoa(naming.PortScale)), Snapshot: *plan.Snapshot,
		Trust: nodes.TrustOf(r.Live, head.Pod),
	}
	if secret := pod.TokenSecret(cluster); secret != "" {
		target.Token = nodes.TokenFrom(r.Live, types.NamespacedName{Namespace: cluster.Namespace, Name: secret})
	}
	r.Scale.Want(name, target)
}

// seeScaler recalls what the autoscaler beside the head that is there now said last.
func (o observer) seeScaler(_ context.Context, cluster *v1beta1.ComputeCluster, seen *Seen) error {
	head := headOf(seen.Pods, seen.Record.Epoch)
	if head == nil || !isAutoscaled(cluster) {
		return nil
	}
	answer, ok := o.Scale.Last(client.ObjectKeyFromObject(cluster), head.UID)
	if !ok {
		return nil
	}
	seen.Scaler = Scaler{Heard: !answer.At.IsZero(), Connected: answer.Connected, Since: answer.FailingSince, Decision: answer.Decision}
	if answer.Err != nil {
		seen.Scaler.Failure = answer.Err.Error()
	}
	return nil
}

// orderScaler plans the snapshot for the autoscaler, and wakes the cluster when it has been out of reach for so long that
// people must be told.
func orderScaler(p *planner) {
	p.Snapshot = snapshotFor(p.basis(), p.Sizes)
	if scaler := p.seen.Scaler; isAutoscaled(p.cluster) && !scaler.Connected && !scaler.Since.IsZero() {
		p.wakeIn(scaler.Since.Add(patience).Sub(p.now))
	}
}

// snapshotFor returns what the autoscaler must know beside the head: the spec's bounds and shapes, and the workers that
// are there.
func snapshotFor(b basis, sizes map[string]Size) *protocol.Snapshot {
	spec := b.cluster.Spec.Autoscaling
	if spec == nil || b.head == nil || b.head.isTerminating() || !pod.HasAutoscaler(b.head.Pod) {
		return nil
	}
	all := protocol.Snapshot{Head: string(b.head.UID), Pace: decision.Pace(cmp.Or(spec.Pace, v1beta1.PaceDefault))}
	if spec.MaxNodes != nil {
		all.MaxNodes = int(*spec.MaxNodes)
	}
	for i := range b.cluster.Spec.WorkerGroups {
		group := snapshotOf(b.site.Under(b.cluster), &b.cluster.Spec.WorkerGroups[i])
		if size := sizes[group.Name]; size.Rolled { // other groups serve what waits meanwhile, and nobody is drained here
			group.Min, group.Max = size.Alive, size.Alive
		}
		all.Groups = append(all.Groups, group)
	}
	for _, worker := range b.seen.Pods {
		group := naming.FindGroup(b.cluster, worker.At.Group)
		if group == nil || !b.hasPod(worker) {
			continue
		}
		hosts := pod.Hosts(group)
		one := protocol.Pod{
			UID: string(worker.UID), Group: group.Name, Replica: worker.At.Slot / hosts, Host: worker.At.Slot % hosts,
			Since: worker.CreationTimestamp.Time,
		}
		one.Stage, one.Why = stageOf(b.situation, worker)
		all.Pods = append(all.Pods, one)
	}
	return &all
}

// snapshotOf returns one group of a snapshot.
func snapshotOf(cluster *v1beta1.ComputeCluster, group *v1beta1.WorkerGroup) protocol.Group {
	within := boundsOf(group)
	one := protocol.Group{
		Name: group.Name, Min: within.Min, Max: within.Max, Hosts: pod.Hosts(group), Suspended: ptr.Deref(group.Suspend, false),
		IdleTimeout:     secondsOr(group.IdleTimeoutSeconds, secondsOr(cluster.Spec.Autoscaling.IdleTimeoutSeconds, defaultIdle)),
		CapacityTimeout: secondsOr(group.CapacityTimeoutSeconds, 0),
	}
	one.Priority = priorityOf(group)
	one.Resources, one.Labels = pod.GroupShape(cluster, group)
	one.DetectsGPUs = pod.DetectsGPUs(cluster, group)
	return one
}

// defaultIdle is the schema's default.
const defaultIdle = time.Minute

// secondsOr returns a time that is given in seconds, or the default.
func secondsOr(given *int32, otherwise time.Duration) time.Duration {
	if given == nil {
		return otherwise
	}
	return time.Duration(*given) * time.Second
}

// stageOf returns how far a worker has come, and what it waits for, or how it fails to start.
func stageOf(s *situation, worker Pod) (protocol.Stage, string) {
	switch {
	case worker.isTerminating(), worker.isDraining(), worker.hasFinished():
		return protocol.Leaving, ""
	case worker.isReady():
		return protocol.Ready, ""
	case worker.Spec.NodeName == "":
		why := ""
		if finding, found := diagnose.Pod(worker.Pod, nil, worker.CreationTimestamp.Time); found {
			why = finding.Code
		}
		return protocol.Waiting, why
	default:
		finding, found := s.seen.diagnose(worker, s.now)
		if found && finding.Severity() == reason.Warning {
			return protocol.Starting, finding.Code
		}
		return protocol.Starting, ""
	}
}

// takeBackWorkers deletes workers that the autoscaler gives back: they were drained already.
func takeBackWorkers(p *planner, m *members, given []scale.Slot) {
	event := eventOfScaling(p.situation, m.group, p.Sizes[m.group.Name])
	for _, slot := range given {
		worker := m.bySlot[slot.Index]
		if p.seen.Scaler.isLate(worker) {
			p.Delete = append(p.Delete, Removal{Pod: worker, Why: "it is late to join", Event: eventOfLate(p.situation, worker)})
			continue
		}
		p.Delete = append(p.Delete, Removal{Pod: worker, Why: "the autoscaler gives it back", Event: event})
		event = nil // once for all of them
	}
}

// eventOfLate returns the event of a worker that is replaced because it does not join.
func eventOfLate(s *situation, worker Pod) *telemetry.Event {
	why := "it has not joined Ray for 15 minutes"
	if finding, found := s.seen.diagnose(worker, s.now); found && finding.Severity() == reason.Warning {
		why += ": " + finding.Text
	}
	return &telemetry.Event{Finding: reason.WorkerFailed.Of(worker.Name, why), Related: worker.Pod, Action: "Replace", Warning: true}
}
