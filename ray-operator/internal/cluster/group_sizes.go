package cluster

import (
	"maps"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/scale"
)

// RecordedSize is what the record keeps of a group that is or was scaled: the replicas of its spec
// at the time, below zero where it gave none, and once autoscaling is off, the size that it
// keeps until they are edited.
type RecordedSize []int32

// size returns the size that is kept, false while autoscaling is on.
func (h RecordedSize) size() (int, bool) {
	if len(h) < 2 {
		return 0, false
	}
	return int(h[1]), true
}

// isAutoscaled reports whether a cluster's groups have the sizes that Ray needs.
func isAutoscaled(cluster *v1beta1.ComputeCluster) bool { return cluster.Spec.Autoscaling != nil }

// boundsOf returns those of a group's size. Where nothing is scaled, replicas is within them.
func boundsOf(group *v1beta1.WorkerGroup) scale.Bounds {
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

// recordReplicas returns replicas of a spec as the record has them: below zero where the spec does not give them.
func recordReplicas(given *int32) int32 { return ptr.Deref(given, -1) }

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

// measureGroups plans the size of each group, and what the record keeps of them.
func measureGroups(p *planner) {
	p.Sizes, p.Scaled, p.Roll = map[string]Size{}, map[string]RecordedSize{}, Roll{}
	b := p.basis()
	for i := range p.cluster.Spec.WorkerGroups {
		group := &p.cluster.Spec.WorkerGroups[i]
		size, wake := sizeOf(b, group)
		size.Replicas = min(size.Replicas, maxSize) // a CRD older than the operator may let a group have more
		p.Sizes[group.Name] = limitToQuota(p.situation, group, size)
		p.wakeIn(wake)
	}
	limitNodes(p.cluster, p.Sizes)
	for i := range p.cluster.Spec.WorkerGroups {
		group := &p.cluster.Spec.WorkerGroups[i]
		size := p.Sizes[group.Name]
		if held := heldOf(b, group, size); held != nil {
			p.Scaled[group.Name] = held
		}
		if ptr.Deref(group.Suspend, false) {
			size.Replicas = 0
		}
		p.Sizes[group.Name] = size
		if size.Rolled {
			p.Roll = Roll{Group: group.Name, Size: size.Replicas}
		}
	}
}

// sizeOf returns the size that a group must have if it is not suspended, and after how long that may be another.
func sizeOf(b basis, group *v1beta1.WorkerGroup) (size Size, wake time.Duration) {
	size = Size{Replicas: pod.Replicas(b.cluster, group), Target: -1}
	held, known := b.seen.Record.Scaled[group.Name]
	if !known && !isAutoscaled(b.cluster) {
		return size, 0
	}
	var slots []scale.Slot
	for _, worker := range b.seen.Pods {
		if worker.At.Group == group.Name && b.hasPod(worker) {
			slot, wait := slotOf(b, worker)
			slots, wake = append(slots, slot), reconcile.Soonest(wake, wait)
		}
	}
	alive := scale.Alive(pod.Hosts(group), slots)
	there := slices.Clone(slots)
	for i := range there {
		there[i].Given = false
	}
	size.Alive, size.Staying = scale.Alive(pod.Hosts(group), there), alive
	kept, off := held.size()
	switch within := boundsOf(group); {
	case isAutoscaled(b.cluster):
		begins := scale.Follow(size.Replicas, 0, within)
		size.Target, size.Reason = b.seen.Scaler.Target(group.Name)
		size.Replicas = scale.Follow(size.Target, alive, within)
		if size.Begins = !known && alive < begins; size.Begins {
			size.Replicas = max(size.Replicas, begins)
		}
		if isRolled(b, group.Name) {
			size.Replicas, size.Rolled, size.Reason = scale.Follow(b.seen.Record.Roll.Size, 0, within), true, rollReason
		}
	case held[0] != recordReplicas(group.Replicas): // edited since
	case off:
		size.Replicas = scale.Follow(kept, 0, within)
	default:
		size.Replicas = scale.Follow(-1, alive, within)
	}
	return size, wake
}

// heldOf returns what the record must keep of a group, nil for nothing.
func heldOf(b basis, group *v1beta1.WorkerGroup, size Size) RecordedSize {
	replicas := recordReplicas(group.Replicas)
	held, known := b.seen.Record.Scaled[group.Name]
	_, off := held.size()
	switch {
	case size.Begins:
		return nil
	case isAutoscaled(b.cluster):
		return RecordedSize{replicas}
	case !known || held[0] != replicas:
		return nil
	case off || b.Session != b.seen.Record.recordedIncarnation().Session: // sizes of a new session are not those of the moment
		return held
	case ptr.Deref(group.Suspend, false) || ptr.Deref(b.cluster.Spec.Suspend, false) || b.seen.Record.Suspended.Cause != "":
		return nil
	default:
		return RecordedSize{replicas, int32(size.Replicas)}
	}
}

// recordFacts plans to record what must be kept of groups, rules and the idle policy, where the record differs and a new
// head's does not come anyway.
func (p *Plan) recordFacts(was Record) {
	same := maps.EqualFunc(p.Scaled, was.Scaled, slices.Equal[RecordedSize]) && p.Roll == was.Roll &&
		slices.Equal(p.Accepted, was.Accepted) && p.Policy == was.Policy
	switch {
	case p.Record != nil:
		p.Record.Scaled, p.Record.Roll = p.Scaled, p.Roll
		p.Record.Accepted, p.Record.Policy = p.Accepted, p.Policy
	case !same && !p.NoteHead:
		record := was
		record.Scaled, record.Roll = p.Scaled, p.Roll
		record.Accepted, record.Policy = p.Accepted, p.Policy
		p.Record = &record
	}
}

// wantedReplicas returns how many replicas a group must have.
func (p Plan) wantedReplicas(group *v1beta1.WorkerGroup) int { return p.Sizes[group.Name].Replicas }

// hasStartedUp reports whether the head is ready, and as many workers of each group as it must have.
func hasStartedUp(b basis, sizes map[string]Size) bool {
	if b.head == nil || !b.head.isReady() {
		return false
	}
	ready := map[string]int{}
	for _, worker := range b.seen.Pods {
		if b.hasPod(worker) && worker.isReady() {
			ready[worker.At.Group]++
		}
	}
	for i := range b.cluster.Spec.WorkerGroups {
		group := &b.cluster.Spec.WorkerGroups[i]
		least := sizes[group.Name].Replicas
		if isAutoscaled(b.cluster) {
			least = boundsOf(group).Min
		}
		if !ptr.Deref(group.Suspend, false) && ready[group.Name] < least*pod.Hosts(group) {
			return false
		}
	}
	return true
}
