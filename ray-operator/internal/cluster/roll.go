package cluster

import (
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
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
func mirroredRoll(status v1alpha1.ComputeClusterStatus) Roll {
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
func canKeepRoll(p *planner) bool {
	noted := !p.seen.RecordMissing && p.seen.Record.HeadUID != ""
	return !isAutoscaled(p.cluster) || noted || p.Record != nil || p.Roll.Group != ""
}

// beginRoll fixes the size of an autoscaled group that is rolled from now on. The record says so before the first
// worker goes.
func beginRoll(p *planner, m *members) {
	if m == nil || !isAutoscaled(p.cluster) {
		return
	}
	size := p.Sizes[m.group.Name]
	if !size.Rolled {
		size.Replicas = min(size.Replicas+len(m.exiting), boundsOf(m.group).Max)
		size.Rolled, size.Reason = true, rollReason
		p.Sizes[m.group.Name] = size
	}
	p.Roll = Roll{Group: m.group.Name, Size: size.Replicas}
}

// paceOf returns how fast a group is rolled. With autoscaling, what is there beyond its size stays within its maximum
// and the cluster's; where nothing may be missing, one replica may be beyond them, since nothing could be replaced
// otherwise.
func paceOf(p *planner, group *v1alpha1.WorkerGroup) scale.RollPace {
	pace := scale.RollPace{Wanted: p.wantedReplicas(group), Unavailable: 1}
	if rolling := p.cluster.Spec.UpgradeStrategy.Rolling; rolling != nil {
		pace.Unavailable, pace.Surge = int(rolling.MaxUnavailable), int(rolling.MaxSurge)
	}
	if p.seen.Queue.Queue != "" { // which has given quota for no pod beyond its sizes
		return scale.RollPace{Wanted: pace.Wanted, Unavailable: max(pace.Unavailable, 1)}
	}
	if !isAutoscaled(p.cluster) {
		return pace
	}
	least := 0
	if pace.Unavailable == 0 {
		least = 1
	}
	beyond := boundsOf(group).Max - pace.Wanted
	if room, limited := nodesLeft(p.cluster, p.Sizes, func(size Size) int { return max(size.Replicas, size.Staying) }); limited {
		own := p.Sizes[group.Name] // whose workers beyond its size take up this room already
		beyond = min(beyond, room/pod.Hosts(group)+max(0, own.Staying-own.Replicas))
	}
	pace.Surge = min(pace.Surge, max(beyond, least))
	return pace
}

// chooseRolledGroup returns the group that a rolling replacement is at, nil if there is none: the first
// that has old workers or misses some, while the head itself is up to date.
func chooseRolledGroup(p *planner, all []*members) *members {
	if !p.isRolling() || p.head == nil || !canKeepRoll(p) {
		return nil
	}
	old := p.intents.outdatedPods(p.seen.Pods, p.Turn)
	if len(old) > 0 && p.intents.isOld(*p.head) {
		blocked := reason.HeadOutdated.Of(len(old), countStaying(p.seen.Pods), listNames(old))
		p.Rolling = &blocked
		return nil
	}
	for _, m := range all {
		left, complete := m.countProgress()
		if p.Roll.Group != "" && p.Roll.Group != m.group.Name {
			continue // a group that has begun to be rolled is rolled to the end
		}
		if left > 0 {
			under := reason.RollingOut.Of(p.wantedReplicas(m.group)-left+len(m.exiting), p.wantedReplicas(m.group), m.group.Name)
			p.Rolling = &under
			return m
		}
		if complete < p.wantedReplicas(m.group) && len(old) > 0 {
			waits := reason.RollWaiting.Of(len(old), countStaying(p.seen.Pods), m.group.Name, complete, p.wantedReplicas(m.group))
			p.Rolling = &waits
			return nil // those that came last have to join before the next group is touched
		}
	}
	return nil
}

// rollGroup marks the replicas of a group that a rolling replacement retires now, and gives
// the size that the group is to have meanwhile.
func rollGroup(p *planner, m *members) int {
	pace := paceOf(p, m.group)
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
