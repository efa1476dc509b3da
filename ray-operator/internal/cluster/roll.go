package cluster

import (
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/scale"
)

// Roll is a rolling replacement of an autoscaled group. Its size is fixed when it begins: what the autoscaler wants
// meanwhile follows from workers that come and go for the sake of the replacement.
type Roll struct {
	Group string `json:"group"`
	// Size is how many replicas the group has meanwhile.
	Size int `json:"size"`
}

// mirroredRoll is the roll as the status tells of it.
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

// isRolling reports whether workers that are out of date are replaced one after the other.
func (p *planner) isRolling() bool {
	strategy := p.cluster.Spec.UpgradeStrategy
	return strategy != nil && strategy.Type == v1alpha1.UpgradeRollingWorkers
}

// rolls reports whether the record's roll is that of a group, and not at its end.
func (p *planner) rolls(group string) bool {
	if p.seen.Record.Roll.Group != group || !p.isRolling() {
		return false
	}
	for _, worker := range p.seen.Pods {
		if worker.At.Group != group || !p.has(worker) {
			continue
		}
		exits := worker.draining() && worker.exit().Why == exitRolling
		if exits || worker.counts() && p.intents.isOld(worker) && !p.intents.canGrow(worker) {
			return true
		}
	}
	return false
}

// canKeepRoll reports whether the record can say what is rolled before the first worker goes. One that is only written
// once the head is known comes too late.
func (p *planner) canKeepRoll() bool {
	noted := !p.seen.RecordMissing && p.seen.Record.HeadUID != ""
	return !autoscaled(p.cluster) || noted || p.Record != nil || p.Roll.Group != ""
}

// beginRoll fixes the size of an autoscaled group that is rolled from now on. The record says so before the first
// worker goes.
func (p *planner) beginRoll(m *members) {
	if m == nil || !autoscaled(p.cluster) {
		return
	}
	size := p.Sizes[m.group.Name]
	if !size.Rolled {
		size.Replicas = min(size.Replicas+len(m.exiting), bounds(m.group).Max)
		size.Rolled, size.Reason = true, rollReason
		p.Sizes[m.group.Name] = size
	}
	p.Roll = Roll{Group: m.group.Name, Size: size.Replicas}
}

// pace is how fast a group is rolled. With autoscaling, what is there beyond its size stays within its maximum and the
// cluster's; where nothing may be missing, one replica may be beyond them, since nothing could be replaced otherwise.
func (p *planner) pace(group *v1alpha1.WorkerGroup) scale.RollPace {
	pace := scale.RollPace{Wanted: p.wanted(group), Unavailable: 1}
	if rolling := p.cluster.Spec.UpgradeStrategy.Rolling; rolling != nil {
		pace.Unavailable, pace.Surge = int(rolling.MaxUnavailable), int(rolling.MaxSurge)
	}
	if p.seen.Queue.Queue != "" { // which has given quota for no pod beyond its sizes
		return scale.RollPace{Wanted: pace.Wanted, Unavailable: max(pace.Unavailable, 1)}
	}
	if !autoscaled(p.cluster) {
		return pace
	}
	least := 0
	if pace.Unavailable == 0 {
		least = 1
	}
	beyond := bounds(group).Max - pace.Wanted
	if room, limited := p.nodesLeft(func(size Size) int { return max(size.Replicas, size.Staying) }); limited {
		own := p.Sizes[group.Name] // whose workers beyond its size take up this room already
		beyond = min(beyond, room/pod.Hosts(group)+max(0, own.Staying-own.Replicas))
	}
	pace.Surge = min(pace.Surge, max(beyond, least))
	return pace
}
