package cluster

import (
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/scale"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// Roll is a rolling replacement of an autoscaled group. Its size is fixed when it begins: what the autoscaler wants
// meanwhile follows from workers that come and go for the sake of the replacement.
type Roll struct {
	Group string `json:"group"`
	// Size is how many replicas the group has meanwhile.
	Size int `json:"size"`
}

// mirroredRoll returns the roll as the status tells of it.
func mirroredRoll(status v1beta1.ComputeClusterStatus) Roll {
	if status.Autoscaling == nil {
		return Roll{}
	}
	for _, target := range status.Autoscaling.Groups {
		if target.Rolled {
			return Roll{Group: target.Name, Size: int(target.Target)}
		}
	}
	return Roll{}
}

const rollReason = "the size is kept while workers are replaced"

// isRolled reports whether the record's roll is that of a group, and not at its end.
func isRolled(b basis, group string) bool {
	if b.seen.Record.Roll.Group != group || !b.isRolling() {
		return false
	}
	for _, worker := range b.seen.Pods {
		if worker.At.Group != group || !b.hasPod(worker) {
			continue
		}
		exits := worker.isDraining() && worker.plannedExit().Why == exitRolling
		if exits || worker.isStaying() && b.intents.isOld(worker) && !b.intents.canGrow(worker) {
			return true
		}
	}
	return false
}

// canKeepRoll reports whether the record can say what is rolled before the first worker goes. One that is only written
// once the head is known comes too late.
func canKeepRoll(b basis, roll Roll) bool {
	noted := !b.seen.RecordMissing && b.seen.Record.HeadUID != ""
	return !isAutoscaled(b.cluster) || noted || b.records || roll.Group != ""
}

// rolledSize returns the size of an autoscaled group that is rolled from now on, which is fixed then. The record says so
// before the first worker goes.
func rolledSize(m *members, size Size) Size {
	if !size.Rolled {
		size.Replicas = min(size.Replicas+len(m.exiting), boundsOf(m.group).Max)
		size.Rolled, size.Reason = true, rollReason
	}
	return size
}

// paceOf returns how fast a group is rolled. With autoscaling, what is there beyond its size stays within its maximum
// and the cluster's; where nothing may be missing, one replica may be beyond them, since nothing could be replaced
// otherwise.
func paceOf(s situation, sizes map[string]Size, group *v1beta1.WorkerGroup) scale.RollPace {
	pace := scale.RollPace{Wanted: sizes[group.Name].Replicas, Unavailable: 1}
	if rolling := s.cluster.Spec.UpgradeStrategy.RollingWorkers; rolling != nil {
		pace.Unavailable = replicasOf(rolling.MaxUnavailable, 1, pace.Wanted, false)
		pace.Surge = replicasOf(rolling.MaxSurge, 0, pace.Wanted, true)
		if pace.Surge == 0 { // a percentage of few replicas is rounded down to none
			pace.Unavailable = max(pace.Unavailable, 1)
		}
	}
	if s.seen.Queue.Queue != "" { // which has given quota for no pod beyond its sizes
		return scale.RollPace{Wanted: pace.Wanted, Unavailable: max(pace.Unavailable, 1)}
	}
	if !isAutoscaled(s.cluster) {
		return pace
	}
	least := 0
	if pace.Unavailable == 0 {
		least = 1
	}
	beyond := boundsOf(group).Max - pace.Wanted
	if room, limited := nodesLeft(s.cluster, sizes, func(size Size) int { return max(size.Replicas, size.Staying) }); limited {
		own := sizes[group.Name] // whose workers beyond its size take up this room already
		beyond = min(beyond, room/pod.Hosts(group)+max(0, own.Staying-own.Replicas))
	}
	pace.Surge = min(pace.Surge, max(beyond, least))
	return pace
}

// replicasOf returns a number or percentage of replicas as a number.
func replicasOf(amount *intstr.IntOrString, otherwise int32, all int, roundUp bool) int {
	given := ptr.Deref(amount, intstr.FromInt32(otherwise))
	number, err := intstr.GetScaledValueFromIntOrPercent(&given, all, roundUp)
	if err != nil { // the schema admits numbers and percentages alone
		return int(otherwise)
	}
	return number
}

// chooseRolledGroup returns the group that a rolling replacement is at, and what it does or waits for, nil if there is
// none: the first that has old workers or misses some, while the head itself is up to date. One that has begun, if any,
// is rolled to the end.
func chooseRolledGroup(b basis, sizes map[string]Size, begun string, all []*members) (*members, *reason.Finding) {
	if !b.isRolling() || b.head == nil {
		return nil, nil
	}
	old := b.intents.outdatedPods(b.seen.Pods, b.Incarnation)
	if len(old) > 0 && b.intents.isOld(*b.head) {
		blocked := reason.HeadOutdated.Of(len(old), countStaying(b.seen.Pods), listNames(old))
		return nil, &blocked
	}
	for _, m := range all {
		left, complete := m.countProgress()
		wanted := sizes[m.group.Name].Replicas
		switch {
		case begun != "" && begun != m.group.Name:
		case left > 0:
			under := reason.RollingOut.Of(wanted-left+len(m.exiting), wanted, m.group.Name)
			return m, &under
		case complete < wanted && len(old) > 0: // those that came last have to join before the next group is touched
			waits := reason.RollWaiting.Of(len(old), countStaying(b.seen.Pods), m.group.Name, complete, wanted)
			return nil, &waits
		}
	}
	return nil, nil
}

// rollGroup marks the replicas of a group that a rolling replacement retires now, and returns the size that the group
// must have meanwhile.
func rollGroup(m *members, pace scale.RollPace) int {
	var replicas []scale.RollReplica
	for index, old := range m.old {
		replicas = append(replicas, scale.RollReplica{Index: index, Old: old, Ready: m.joined[index]})
	}
	step := scale.PlanRoll(pace, len(m.exiting), replicas)
	for _, index := range step.Retire {
		for i := range m.slots {
			m.slots[i].Retire = m.slots[i].Retire || m.slots[i].Index/m.hosts == index
		}
	}
	return step.Size
}
