package cluster

import (
	"k8s.io/utils/ptr"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// suspendCluster removes the pods where the spec or the idle policy wants none, and reports
// whether that is so.
func suspendCluster(p *planner) bool {
	wanted := chooseSuspension(p)
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
	deletePods(p, "the cluster is suspended")
	p.ForgetStore = true
	planFixtures(p)
	planGang(p)
	return true
}

// deletePods plans the deletion of all pods.
func deletePods(p *planner, why string) {
	for _, pod := range p.seen.Pods {
		if !pod.isTerminating() {
			p.Delete = append(p.Delete, Removal{Pod: pod, GraceSeconds: grace(lostGrace), Why: why})
		}
	}
}

// chooseSuspension returns why the cluster must have no pods, zero where it may: its own reasons come before the
// queue, which gets the room of a cluster back that does not want it.
func chooseSuspension(p *planner) Suspension {
	own := ownSuspension(p)
	planQueue(p, own.Cause == "")
	if own.Cause == "" && p.Queue.Held {
		return Suspension{Cause: suspendedQueued}
	}
	return own
}

// ownSuspension returns why the cluster must have no pods whatever the queue says.
func ownSuspension(p *planner) Suspension {
	was := p.seen.Record.Suspended
	now := Suspension{Cause: suspendedIdle, Generation: p.cluster.Generation, Resume: resumption(p.cluster)}
	switch {
	case ptr.Deref(p.cluster.Spec.Suspend, false):
		return Suspension{Cause: suspendedBySpec}
	case was.Cause == now.Cause && was.Generation == now.Generation && was.Resume == now.Resume && p.seen.Wanted == "":
		return was
	case was.Cause != "": // something changed that wakes it
		return Suspension{}
	case checkIdle(p) && p.cluster.Spec.IdlePolicy.Action == v1beta1.IdleSuspend:
		now.Since = p.IdleSince.Unix()
		return now
	default:
		return Suspension{}
	}
}
