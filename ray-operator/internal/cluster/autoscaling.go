package cluster

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol"
	scaleclient "github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol/client"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster/scaler"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll/nodes"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/scale"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// youngest is how old a worker is at least when it is given back: an autoscaler that lies
// cannot have pods made over and over.
const youngest = 10 * time.Second

// untilGivenBack returns after how long a worker is given back, false if the autoscaler does not name it.
func untilGivenBack(s situation, worker Pod) (time.Duration, bool) {
	if !isAutoscaled(s.cluster) || !s.seen.Scaler.HasGivenBack(worker.UID, worker.isReady()) {
		return 0, false
	}
	return worker.CreationTimestamp.Add(youngest).Sub(s.now), true
}

// eventOfScaling returns the event for another size of a group, nil where it keeps its size.
func eventOfScaling(s situation, group *v1beta1.WorkerGroup, size Size) *telemetry.Event {
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
	answer, ok := o.scale.Last(client.ObjectKeyFromObject(cluster), head.UID)
	if !ok {
		return nil
	}
	seen.Scaler = scaler.State{Heard: !answer.At.IsZero(), Connected: answer.Connected, Since: answer.FailingSince, Decision: answer.Decision}
	if answer.Err != nil {
		seen.Scaler.Failure = answer.Err.Error()
	}
	return nil
}

// untilScalerIsMissed returns when the autoscaler has been out of reach for so long that people must be told, 0 where it
// is not.
func untilScalerIsMissed(b basis) time.Duration {
	if wait, isAway := b.seen.Scaler.UntilUnreachable(b.now); isAway && isAutoscaled(b.cluster) {
		return wait
	}
	return 0
}

// snapshotFor returns what the autoscaler beside the head must know, nil where there is none.
func snapshotFor(b basis, sizes map[string]Size) *protocol.Snapshot {
	if !isAutoscaled(b.cluster) || b.head == nil || b.head.isTerminating() || !pod.HasAutoscaler(b.head.Pod) {
		return nil
	}
	var groups []scaler.Group
	for i := range b.cluster.Spec.WorkerGroups {
		group := scaler.Group{WorkerGroup: &b.cluster.Spec.WorkerGroups[i]}
		group.Bounds, group.Priority = boundsOf(group.WorkerGroup), priorityOf(group.WorkerGroup)
		if size := sizes[group.Name]; size.Rolled { // other groups serve what waits meanwhile, and nobody is drained here
			group.Bounds.Min, group.Bounds.Max = size.Alive, size.Alive
		}
		groups = append(groups, group)
	}
	var workers []scaler.Worker
	for _, worker := range b.seen.Pods {
		if group := naming.FindGroup(b.cluster, worker.At.Group); group != nil && b.hasPod(worker) {
			workers = append(workers, scaler.Worker{
				Pod: worker.Pod, Group: group, Slot: worker.At.Slot,
				IsReady: worker.isReady(), IsLeaving: worker.isTerminating() || worker.isDraining() || worker.hasFinished(),
				Architecture: b.seen.Nodes[worker.Spec.NodeName].Architecture, Events: b.seen.Events[worker.UID],
			})
		}
	}
	return scaler.Snapshot(b.site.Under(b.cluster), b.head.Pod, groups, workers, b.now)
}

// takeBackWorkers returns the removals of workers that the autoscaler gives back: they were drained already.
func takeBackWorkers(b basis, m *members, size Size, given []scale.Slot) []Removal {
	event := eventOfScaling(b.situation, m.group, size)
	var removals []Removal
	for _, slot := range given {
		worker := m.bySlot[slot.Index]
		if b.seen.Scaler.IsLate(worker.UID) {
			removals = append(removals, Removal{Pod: worker, Why: "it is late to join", Event: eventOfLate(b.situation, worker)})
			continue
		}
		removals = append(removals, Removal{Pod: worker, Why: "the autoscaler gives it back", Event: event})
		event = nil // once for all of them
	}
	return removals
}

// eventOfLate returns the event of a worker that is replaced because it does not join.
func eventOfLate(s situation, worker Pod) *telemetry.Event {
	why := "it has not joined Ray for 15 minutes"
	if finding, found := s.seen.diagnose(worker, s.now); found && finding.Severity() == reason.Warning {
		why += ": " + finding.Text
	}
	return &telemetry.Event{Finding: reason.WorkerFailed.Of(worker.Name, why), Related: worker.Pod, Action: "Replace", Warning: true}
}
