package cluster

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/diagnose"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/headwatch"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/scale"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/scalelink"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/scalelink/steer"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// Scaler is what the autoscaler beside the head says.
type Scaler struct {
	// Heard tells that it has spoken, Connected that it is listened to now: without that
	// its last word counts for nothing.
	Heard, Connected bool
	// Failure says why nobody listens to it, since when.
	Failure string
	Since   time.Time
	Word    scalelink.Word
}

// target is how many replicas it wants of a group, below zero where nothing is known.
func (s Scaler) target(group string) (int, string) {
	for _, target := range s.Word.Targets {
		if s.Heard && s.Connected && target.Group == group {
			return target.Replicas, target.Reason
		}
	}
	return -1, ""
}

// youngest is how old a worker is at least that is given back: an autoscaler that lies
// cannot have pods made over and over.
const youngest = 10 * time.Second

// given reports whether a worker is given back now.
func (p *planner) given(worker Pod) bool {
	if !autoscaled(p.cluster) || !p.seen.Scaler.gives(worker) {
		return false
	}
	wait := worker.CreationTimestamp.Add(youngest).Sub(p.now)
	p.wakeIn(wait)
	return wait <= 0
}

// gives reports whether a worker is named as given back: Ray says that nothing runs there and
// nothing will, or it never was a node of Ray's.
func (s Scaler) gives(worker Pod) bool {
	return s.Heard && s.Connected && slices.ContainsFunc(s.Word.Leaving, func(l scalelink.Leaver) bool {
		return l.Pod == string(worker.UID) && l.Drained && (l.Node != "" || !worker.ready())
	})
}

// late reports whether a worker is given back because it never joined, or not for long.
func (s Scaler) late(worker Pod) bool {
	return slices.ContainsFunc(s.Word.Leaving, func(l scalelink.Leaver) bool {
		return l.Pod == string(worker.UID) && l.Reason == scalelink.Late
	})
}

// Held is what the record keeps of a group that is or was scaled: the replicas of its spec
// at the time, below zero where it gave none, and once autoscaling is off, the size that it
// keeps until they are edited.
type Held []int32

// size is the size that is kept, false while autoscaling is on.
func (h Held) size() (int, bool) {
	if len(h) < 2 {
		return 0, false
	}
	return int(h[1]), true
}

// autoscaled reports whether a cluster's groups have the sizes that Ray needs.
func autoscaled(cluster *v1alpha1.ComputeCluster) bool { return cluster.Spec.Autoscaling != nil }

// bounds are those of a group's size. Where nothing is scaled, replicas is within them.
func bounds(group *v1alpha1.WorkerGroup) scale.Bounds {
	within := scale.Bounds{Max: maxSize}
	if group.MinReplicas != nil {
		within.Min = int(*group.MinReplicas)
	}
	if group.MaxReplicas != nil {
		within.Max = int(*group.MaxReplicas)
	}
	return within
}

// maxSize is more than the schema lets a group have.
const maxSize = 10000

// given are the replicas as the spec gives them, below zero where it does not.
func given(group *v1alpha1.WorkerGroup) int32 {
	if group.Replicas == nil {
		return -1
	}
	return *group.Replicas
}

// Size is how many replicas a group must have.
type Size struct {
	Replicas int
	// Alive is how many there are, those that are given back included, and Staying how many without them. Target is
	// what the autoscaler wants (below zero: it said nothing), Reason why it wants that.
	Alive, Staying, Target int
	Reason                 string
	// Begins tells of a new group that has not had yet what it is to begin with.
	Begins bool
	// Rolled reports that the group is being rolled, and keeps its size meanwhile.
	Rolled bool
}

// measure finds the size of each group, and what the record is to keep of them.
func (p *planner) measure() {
	p.Sizes, p.Scaled, p.Roll = map[string]Size{}, map[string]Held{}, Roll{}
	for i := range p.cluster.Spec.WorkerGroups {
		group := &p.cluster.Spec.WorkerGroups[i]
		p.Sizes[group.Name] = p.inQuota(group, p.sized(group))
	}
	p.limitNodes()
	for i := range p.cluster.Spec.WorkerGroups {
		group := &p.cluster.Spec.WorkerGroups[i]
		size := p.Sizes[group.Name]
		if held := p.hold(group, size); held != nil {
			p.Scaled[group.Name] = held
		}
		if group.Suspend {
			size.Replicas = 0
		}
		p.Sizes[group.Name] = size
		if size.Rolled {
			p.Roll = Roll{Group: group.Name, Size: size.Replicas}
		}
	}
}

// sized is the size that a group must have if it is not suspended.
func (p *planner) sized(group *v1alpha1.WorkerGroup) Size {
	size := Size{Replicas: pod.Replicas(p.cluster, group), Target: -1}
	held, known := p.seen.Record.Scaled[group.Name]
	if !known && !autoscaled(p.cluster) {
		return size
	}
	var slots []scale.Slot
	for _, worker := range p.seen.Pods {
		if worker.At.Group == group.Name && p.has(worker) {
			slots = append(slots, p.slot(worker))
		}
	}
	alive := scale.Alive(pod.Hosts(group), slots)
	there := slices.Clone(slots)
	for i := range there {
		there[i].Given = false
	}
	size.Alive, size.Staying = scale.Alive(pod.Hosts(group), there), alive
	kept, off := held.size()
	switch within := bounds(group); {
	case autoscaled(p.cluster):
		begins := scale.Follow(size.Replicas, 0, within)
		size.Target, size.Reason = p.seen.Scaler.target(group.Name)
		size.Replicas = scale.Follow(size.Target, alive, within)
		if size.Begins = !known && alive < begins; size.Begins {
			size.Replicas = max(size.Replicas, begins)
		}
		if p.rolls(group.Name) {
			size.Replicas, size.Rolled, size.Reason = scale.Follow(p.seen.Record.Roll.Size, 0, within), true, rollReason
		}
	case held[0] != given(group): // edited since
	case off:
		size.Replicas = scale.Follow(kept, 0, within)
	default:
		size.Replicas = scale.Follow(-1, alive, within)
	}
	return size
}

// hold is what the record is to keep of a group, nil for nothing.
func (p *planner) hold(group *v1alpha1.WorkerGroup, size Size) Held {
	replicas := given(group)
	held, known := p.seen.Record.Scaled[group.Name]
	_, off := held.size()
	switch {
	case size.Begins:
		return nil
	case autoscaled(p.cluster):
		return Held{replicas}
	case !known || held[0] != replicas:
		return nil
	case off || p.Session != p.seen.Record.turn().Session: // sizes of a new session are not those of the moment
		return held
	case group.Suspend || p.cluster.Spec.Suspend || p.seen.Record.Suspended.Cause != "":
		return nil
	default:
		return Held{replicas, int32(size.Replicas)}
	}
}

// keep has the record say what it is to keep of groups, where it does not yet and a new
// head's does not come anyway.
func (p *planner) keep() {
	same := maps.EqualFunc(p.Scaled, p.seen.Record.Scaled, slices.Equal[Held]) && p.Roll == p.seen.Record.Roll &&
		slices.Equal(p.Accepted, p.seen.Record.Accepted)
	switch {
	case p.Record != nil:
		p.Record.Scaled, p.Record.Roll = p.Scaled, p.Roll
		p.Record.Accepted = p.Accepted
	case !same && !p.NoteHead:
		record := p.seen.Record
		record.Scaled, record.Roll, record.Accepted = p.Scaled, p.Roll, p.Accepted
		p.Record = &record
	}
}

// wanted is how many replicas a group must have.
func (p Plan) wanted(group *v1alpha1.WorkerGroup) int { return p.Sizes[group.Name].Replicas }

// scaled says that the autoscaler gives a group another size, nil where it does not.
func (p *planner) scaled(m *members) *telemetry.Event {
	size := p.Sizes[m.group.Name]
	if !autoscaled(p.cluster) || size.Replicas == size.Alive || size.Target < 0 || size.Rolled {
		return nil
	}
	why := size.Reason
	switch within := bounds(m.group); {
	case size.Replicas == within.Max && size.Target > within.Max, size.Alive > within.Max:
		why = fmt.Sprintf("maximum of %d", within.Max)
	case size.Replicas == within.Min && size.Target < within.Min:
		why = fmt.Sprintf("minimum of %d", within.Min)
	}
	finding := reason.Scaled.Of(m.group.Name, size.Alive, size.Replicas, why)
	return &telemetry.Event{Finding: finding, Action: "Scale " + m.group.Name}
}

// seeScaler recalls what the autoscaler beside the head that is there now said last.
func (r *Reconciler) seeScaler(_ context.Context, cluster *v1alpha1.ComputeCluster, seen *Seen) error {
	head := headOf(seen.Pods, seen.Record.Epoch)
	if head == nil || !autoscaled(cluster) {
		return nil
	}
	answer, ok := r.Scale.Last(client.ObjectKeyFromObject(cluster), head.UID)
	if !ok {
		return nil
	}
	seen.Scaler = Scaler{Heard: !answer.At.IsZero(), Connected: answer.Connected, Since: answer.FailingSince, Word: answer.Word}
	if answer.Err != nil {
		seen.Scaler.Failure = answer.Err.Error()
	}
	return nil
}

// steer says what the autoscaler beside the head is to work with. It is reached by the
// address of the pod that is ours.
func (r *Reconciler) steer(cluster *v1alpha1.ComputeCluster, seen Seen, plan Plan) {
	name, head := client.ObjectKeyFromObject(cluster), headOf(seen.Pods, plan.Epoch)
	if plan.Orders == nil || head == nil || string(head.UID) != plan.Orders.Head || !head.hasAddress() {
		r.Scale.Forget(name)
		return
	}
	target := steer.Target{
		Head: head.UID, Address: net.JoinHostPort(head.Status.PodIP, strconv.Itoa(pod.PortScale)), Orders: *plan.Orders,
		Trust: headwatch.TrustOf(r.Live, head.Pod),
	}
	if secret := pod.TokenSecret(cluster); secret != "" {
		target.Token = headwatch.TokenFrom(r.Live, types.NamespacedName{Namespace: cluster.Namespace, Name: secret})
	}
	r.Scale.Want(name, target)
}

// order says what the autoscaler is to work with, and looks again when it was out of reach
// for so long that people must be told.
func (p *planner) order() {
	p.Orders = p.orders()
	if scaler := p.seen.Scaler; autoscaled(p.cluster) && !scaler.Connected && !scaler.Since.IsZero() {
		p.wakeIn(scaler.Since.Add(patience).Sub(p.now))
	}
}

// orders are what the autoscaler beside the head is to work with: the spec's bounds and
// shapes, and the workers that are there.
func (p *planner) orders() *scalelink.Orders {
	spec := p.cluster.Spec.Autoscaling
	if spec == nil || p.head == nil || p.head.leaving() || !pod.HasAutoscaler(p.head.Pod) {
		return nil
	}
	all := scalelink.Orders{Head: string(p.head.UID), Pace: cmp.Or(spec.Pace, v1alpha1.PaceDefault)}
	if spec.MaxNodes != nil {
		all.MaxNodes = int(*spec.MaxNodes)
	}
	for i := range p.cluster.Spec.WorkerGroups {
		group := ordersOf(pod.Under(p.cluster, p.site.PodDefaults), &p.cluster.Spec.WorkerGroups[i])
		if size := p.Sizes[group.Name]; size.Rolled { // other groups serve what waits meanwhile, and nobody is drained here
			group.Min, group.Max = size.Alive, size.Alive
		}
		all.Groups = append(all.Groups, group)
	}
	for _, worker := range p.seen.Pods {
		group := pod.FindGroup(p.cluster, worker.At.Group)
		if group == nil || !p.has(worker) {
			continue
		}
		hosts := pod.Hosts(group)
		one := scalelink.Pod{
			UID: string(worker.UID), Group: group.Name, Replica: worker.At.Slot / hosts, Host: worker.At.Slot % hosts,
			Since: worker.CreationTimestamp.Time,
		}
		one.Stage, one.Why = p.stage(worker)
		all.Pods = append(all.Pods, one)
	}
	return &all
}

func ordersOf(cluster *v1alpha1.ComputeCluster, group *v1alpha1.WorkerGroup) scalelink.Group {
	within := bounds(group)
	one := scalelink.Group{
		Name: group.Name, Min: within.Min, Max: within.Max, Hosts: pod.Hosts(group), Suspended: group.Suspend,
		IdleTimeout:     seconds(group.IdleTimeoutSeconds, seconds(cluster.Spec.Autoscaling.IdleTimeoutSeconds, defaultIdle)),
		CapacityTimeout: seconds(group.CapacityTimeoutSeconds, 0),
	}
	one.Priority = priority(group)
	one.Resources, one.Labels = pod.GroupShape(cluster, group)
	return one
}

// defaultIdle is the schema's default.
const defaultIdle = time.Minute

func seconds(given *int32, otherwise time.Duration) time.Duration {
	if given == nil {
		return otherwise
	}
	return time.Duration(*given) * time.Second
}

// stage is how far a worker has come, and what it waits for, or how it fails to start.
func (p *planner) stage(worker Pod) (scalelink.Stage, string) {
	switch {
	case worker.leaving(), worker.draining(), worker.finished():
		return scalelink.Leaving, ""
	case worker.ready():
		return scalelink.Ready, ""
	case worker.Spec.NodeName == "":
		why := ""
		if finding, found := diagnose.Pod(worker.Pod, nil, worker.CreationTimestamp.Time); found {
			why = finding.Code
		}
		return scalelink.Waiting, why
	default:
		finding, found := diagnose.Pod(worker.Pod, p.seen.Events[worker.UID], p.now)
		if found && finding.Severity() == reason.Warning {
			return scalelink.Starting, finding.Code
		}
		return scalelink.Starting, ""
	}
}
