package cluster

import (
	"k8s.io/utils/ptr"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/scale"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// maxFilled is how many workers of a cluster one pass builds and sends. A pod takes some kilobytes of the operator's
// memory, or a hundred with many variables, and others wait meanwhile. The next pass follows at once.
const maxFilled = 256

// planGroups brings each group to its size.
func planGroups(p *planner) {
	var all []*members
	for i := range p.cluster.Spec.WorkerGroups {
		m := membersOf(p.basis(), &p.cluster.Spec.WorkerGroups[i])
		p.wakeIn(m.wake)
		all = append(all, m)
	}
	var rolled *members
	if canKeepRoll(p.basis(), p.Roll) {
		rolled, p.Rolling = chooseRolledGroup(p.basis(), p.Sizes, p.Roll.Group, all)
		if rolled != nil && isAutoscaled(p.cluster) {
			size := rolledSize(rolled, p.Sizes[rolled.group.Name])
			p.Sizes[rolled.group.Name], p.Roll = size, Roll{Group: rolled.group.Name, Size: size.Replicas}
		}
	}
	for _, m := range all {
		resizeGroup(p, m, m == rolled)
	}
	for _, worker := range p.seen.Pods {
		if p.hasPod(worker) && worker.isDraining() {
			exit := worker.plannedExit()
			if removal := endExit(p.basis(), worker, exit); removal != nil {
				p.Delete = append(p.Delete, *removal)
				continue
			}
			p.Ask.addDrain(worker.UID, exit.Until)
			p.wakeIn(exit.Until.Sub(p.now))
		}
	}
}

// resizeGroup fills and empties slots of a group.
func resizeGroup(p *planner, m *members, rolling bool) {
	size, why := p.wantedReplicas(m.group), exitSurplus
	switch {
	case ptr.Deref(m.group.Suspend, false):
		why = exitSuspended
	case rolling:
		pace := paceOf(p.situation, p.Sizes, m.group)
		if !p.hasAllVolumes() {
			pace.Unavailable = 0 // none leaves that nothing could follow
		}
		size = rollGroup(m, pace)
	}
	change := scale.Target(size, m.hosts, m.slots)
	if isAnswerNeeded(p.basis(), m, change) {
		p.Ask.askEvery(askDrain)
		return
	}
	fillSlots(p, m, change.Create, change.Broken)
	for _, slot := range change.Broken {
		p.Delete = append(p.Delete, removeBroken(p.basis(), m.bySlot[slot.Index]))
	}
	retireWorkers(p, m, change.Retire)
	p.Delete = append(p.Delete, takeBackWorkers(p.basis(), m, p.Sizes[m.group.Name], change.Given)...)
	for _, slot := range change.Surplus {
		beginExit(p, m.bySlot[slot.Index], why)
	}
	p.Release = append(p.Release, unneededClaims(p.basis(), m, p.wantedReplicas(m.group), change.Create)...)
}

// isAnswerNeeded reports whether Ray has yet to say which workers are idle before some are
// chosen to leave that might be at work. A head that does not answer is not waited for.
func isAnswerNeeded(b basis, m *members, change scale.Change) bool {
	if b.head == nil || !b.head.isReady() || b.seen.Ray.Failed || b.seen.Ray.isFresh(b.now) {
		return false
	}
	joined := func(slots []scale.Slot) int {
		count := 0
		for _, slot := range slots {
			if slot.State == scale.Ready && !slot.Retire {
				count++
			}
		}
		return count
	}
	leaving := joined(change.Surplus)
	return leaving > 0 && leaving < joined(m.slots)
}

// fillSlots creates workers in slots, some in place of those that broke. Where their slots' claims are waited for,
// fewer.
func fillSlots(p *planner, m *members, slots []int, broken []scale.Slot) {
	slots = slots[:max(0, len(slots)-m.vacating)]
	if p.Held != nil || len(slots) == 0 {
		return
	}
	if room := roomLeft(p.Create); len(slots) > room {
		slots = slots[:room]
		p.wakeIn(fillAgain)
	}
	filling := GroupCreation{Group: m.group.Name, Event: eventOfScaling(p.situation, m.group, p.Sizes[m.group.Name])}
	for _, slot := range slots {
		claims, going := missingClaims(p.situation, m.group, slot)
		if going {
			p.wakeIn(goingRetry)
			continue
		}
		filling.Claims = append(filling.Claims, claims...)
		filling.Pods = append(filling.Pods, joinGang(p.situation, p.Sizes, p.site.WorkerPod(p.cluster, m.group, slot, p.Session)))
	}
	if len(filling.Pods) > 0 {
		noteFailures(p.situation, m, broken, filling.Pods)
		p.Create = append(p.Create, filling)
	}
}

// roomLeft returns how many workers this pass builds beside those that it has planned.
func roomLeft(planned []GroupCreation) int {
	room := maxFilled
	for _, filling := range planned {
		room -= len(filling.Pods)
	}
	return room
}

// removeBroken returns the removal of a worker that ended, or of one of a replica that can never be whole again.
func removeBroken(b basis, worker Pod) Removal {
	if !worker.hasFinished() {
		return Removal{Pod: worker, Why: "its replica is broken"}
	}
	event := telemetry.Event{Finding: reason.WorkerFailed.Of(worker.Name, explainEnd(b.situation, worker)), Related: worker.Pod, Action: "Replace", Warning: true}
	return Removal{Pod: worker, Why: "it has finished", Event: &event}
}
