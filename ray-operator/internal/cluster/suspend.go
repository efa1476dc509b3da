package cluster

import (
	"time"

	"k8s.io/utils/ptr"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// suspendCluster removes the pods where the spec or the idle policy wants none, and reports
// whether that is so.
func suspendCluster(p *planner) bool {
	b := p.basis()
	wanted, isOpen := ownSuspension(b)
	if isOpen {
		idle := checkIdle(b, p.Policy)
		p.takeIdle(idle, p.now)
		if idle.isOver && p.cluster.Spec.IdlePolicy.Action == v1beta1.IdleSuspend {
			wanted = idleSuspension(b)
			wanted.Since = idle.since.Unix()
		}
	}
	var wake time.Duration
	p.Queue, wake = planQueue(b, p.Sizes, wanted.Cause == "")
	p.wakeIn(wake)
	if wanted.Cause == "" && p.Queue.Held { // the queue gets the room of a cluster back that does not want it
		wanted = Suspension{Cause: suspendedQueued}
	}
	if wanted.Cause == "" {
		return false
	}
	p.Suspended = true
	if wanted != p.seen.Record.Suspended {
		record := p.seen.Record
		record.Suspended = wanted
		p.Record = &record
	}
	if wanted.Cause == suspendedIdle && p.Record != nil {
		p.Began = &telemetry.Event{Finding: reason.SuspendedIdle.Of(wanted.idleSince()), Action: "Suspend"}
	}
	p.Delete = append(p.Delete, removeAll(p.seen.Pods, "the cluster is suspended")...)
	p.ForgetStore = true
	planFixtures(p)
	planGang(p)
	return true
}

// removeAll returns the removals of all pods.
func removeAll(pods []Pod, why string) (removals []Removal) {
	for _, pod := range pods {
		if !pod.isTerminating() {
			removals = append(removals, Removal{Pod: pod, GraceSeconds: shortGrace(pod), Why: why})
		}
	}
	return removals
}

// ownSuspension returns why the cluster must have no pods whatever the queue says. It is open where that depends on the idle
// policy.
func ownSuspension(b basis) (own Suspension, isOpen bool) {
	was, now := b.seen.Record.Suspended, idleSuspension(b)
	switch {
	case ptr.Deref(b.cluster.Spec.Suspend, false):
		return Suspension{Cause: suspendedBySpec}, false
	case was.Cause == now.Cause && was.Generation == now.Generation && was.Resume == now.Resume && b.seen.Wanted == "":
		return was, false
	default: // where it was suspended, something changed that wakes it
		return Suspension{}, was.Cause == ""
	}
}

// idleSuspension returns the suspension of a cluster that nobody uses.
func idleSuspension(b basis) Suspension {
	return Suspension{Cause: suspendedIdle, Generation: b.cluster.Generation, Resume: resumption(b.cluster)}
}
