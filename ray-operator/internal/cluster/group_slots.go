package cluster

import (
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/scale"
)

// members are a group's workers of the plan's epoch, with the slots that they take.
type members struct {
	group  *v1beta1.WorkerGroup
	hosts  int
	bySlot map[int]Pod
	slots  []scale.Slot
	// old tells of each replica whether a worker of it is out of date, and joined whether
	// all of them are ready.
	old, joined map[int]bool
	// exiting counts replicas that a rolling replacement retired and that are at work.
	exiting map[int]bool
	// vacating counts workers that leave, or are about to, and whose slots are waited for.
	vacating int
	// wake is after how long one of them may be in another state, though nothing happened.
	wake time.Duration
}

// membersOf returns a group's workers of a session.
func membersOf(b basis, group *v1beta1.WorkerGroup) *members {
	m := &members{
		group: group, hosts: pod.Hosts(group), bySlot: map[int]Pod{}, old: map[int]bool{}, joined: map[int]bool{}, exiting: map[int]bool{},
	}
	for _, worker := range b.seen.Pods {
		if worker.At.Group != group.Name || !b.hasPod(worker) {
			continue
		}
		slot, wake := slotOf(b, worker)
		m.addWorker(worker, slot, b.intents)
		wait := m.untilVacant(worker, b.now)
		if wait > 0 {
			m.vacating++
		}
		m.wake = reconcile.Soonest(m.wake, reconcile.Soonest(wake, wait))
	}
	m.retireCorrected(b.intents)
	return m
}

// addWorker counts a worker that sits in a slot.
func (m *members) addWorker(worker Pod, slot scale.Slot, judged intents) {
	replica := slot.Index / m.hosts
	m.bySlot[slot.Index] = worker
	m.slots = append(m.slots, slot)
	switch slot.State {
	case scale.Starting, scale.Ready:
		m.old[replica] = m.old[replica] || judged.isOld(worker) && !judged.canGrow(worker)
		before, known := m.joined[replica]
		m.joined[replica] = slot.State == scale.Ready && (before || !known)
	case scale.Draining:
		if worker.plannedExit().Why == exitRolling {
			m.exiting[replica] = true
		}
	case scale.Finished, scale.Leaving:
	}
}

// untilVacant returns for how long the slot of a terminating worker is waited for: where the slot has claims.
func (m *members) untilVacant(worker Pod, now time.Time) time.Duration {
	if !worker.isTerminating() || len(m.group.VolumeClaimTemplates) == 0 {
		return 0
	}
	return worker.DeletionTimestamp.Add(vacateFor).Sub(now)
}

// countProgress counts replicas that are still to be replaced, and those that are as they
// must be and have joined.
func (m *members) countProgress() (left, complete int) {
	left = len(m.exiting)
	for replica, isOld := range m.old {
		switch {
		case isOld:
			left++
		case m.joined[replica]:
			complete++
		}
	}
	return left, complete
}

// retireCorrected retires the replicas with a worker that is corrected. One with several hosts is of use only as a
// whole, so all of it leaves. A slot with claims is waited for.
func (m *members) retireCorrected(judged intents) {
	corrected := map[int]bool{}
	for slot, worker := range m.bySlot {
		if !judged.isCorrected(worker) {
			continue
		}
		corrected[slot/m.hosts] = true
		if len(m.group.VolumeClaimTemplates) > 0 {
			m.vacating++
		}
	}
	for i := range m.slots {
		if corrected[m.slots[i].Index/m.hosts] {
			m.slots[i].Retire = true
		}
	}
}

// slotOf returns the slot of a worker with its state, and after how long that is another, 0 if nothing is waited for. One
// that failed soon after it was made counts as starting for a while, so that its successor does not fail at the same pace.
func slotOf(b basis, worker Pod) (slot scale.Slot, wake time.Duration) {
	slot = scale.Slot{Index: worker.At.Slot, State: scale.Starting}
	wait := replaceableIn(b.situation, worker, worker.failureCount())
	switch {
	case worker.isTerminating():
		slot.State = scale.Leaving
	case worker.isDraining():
		slot.State = scale.Draining
	case worker.hasFinished() && wait > 0:
		wake = wait
	case worker.hasFinished():
		slot.State = scale.Finished
	case worker.isReady():
		slot.State = scale.Ready
	}
	slot.Retire = retireReason(b.situation, worker) != ""
	slot.Busy = isBusy(b.situation, worker)
	if left, given := untilGivenBack(b.situation, worker); given {
		slot.Given = left <= 0
		wake = reconcile.Soonest(wake, left)
	}
	if slot.State == scale.Starting {
		late := worker.CreationTimestamp.Add(abandonAfter).Sub(b.now)
		slot.Abandoned = late <= 0
	}
	return slot, wake
}

// isBusy reports whether Ray says that something runs on a worker.
func isBusy(s situation, worker Pod) bool {
	node, known := s.seen.Ray.Nodes[worker.UID]
	return known && !node.Idle && !node.Dead
}

// abandonAfter is how long a replica with several hosts waits for those that are missing
// before it gives back what it holds.
const abandonAfter = time.Minute

// vacateFor is how long the successor of a worker with claims of its own waits for the
// slot, and so for the claims, of one that is on its way out.
const vacateFor = 90 * time.Second
