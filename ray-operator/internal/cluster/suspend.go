package cluster

import (
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/pass"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// suspend removes the pods where the spec or the idle policy wants none, and reports
// whether that is so.
func (p *planner) suspend() bool {
	wanted := p.suspension()
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
		p.Began = &telemetry.Event{Finding: reason.SuspendedIdle.Of(wanted.since()), Action: "Suspend"}
	}
	p.clear("the cluster is suspended")
	p.ForgetStore = true
	p.fix()
	p.keepGang()
	return true
}

// clear takes all pods away.
func (p *planner) clear(why string) {
	for _, pod := range p.seen.Pods {
		if !pod.leaving() {
			p.Delete = append(p.Delete, Removal{Pod: pod, GraceSeconds: grace(lostGrace), Why: why})
		}
	}
}

// suspension returns why the cluster must have no pods, zero where it may: its own reasons come before the queue, which gets
// the room of a cluster back that does not want it.
func (p *planner) suspension() Suspension {
	own := p.ownSuspension()
	p.queue(own.Cause == "")
	if own.Cause == "" && p.Queue.Held {
		return Suspension{Cause: suspendedQueued}
	}
	return own
}

// ownSuspension returns why the cluster must have no pods whatever the queue says.
func (p *planner) ownSuspension() Suspension {
	was := p.seen.Record.Suspended
	now := Suspension{Cause: suspendedIdle, Generation: p.cluster.Generation, Resume: resumption(p.cluster)}
	switch {
	case p.cluster.Spec.Suspend:
		return Suspension{Cause: suspendedBySpec}
	case was.Cause == now.Cause && was.Generation == now.Generation && was.Resume == now.Resume && p.seen.Wanted == "":
		return was
	case was.Cause != "": // something changed that wakes it
		return Suspension{}
	case p.idle() && p.cluster.Spec.IdlePolicy.Action == v1alpha1.IdleSuspend:
		now.Since = p.IdleSince.Unix()
		return now
	default:
		return Suspension{}
	}
}

// resumption is a short form of the annotation that wakes an idle cluster.
func resumption(cluster *v1alpha1.ComputeCluster) string {
	value, ok := cluster.Annotations[v1alpha1.AnnotationResume]
	if !ok {
		return ""
	}
	hash, _ := naming.ObjectHash(value) // a string always marshals
	return hash
}

// idle reports whether nobody has used the cluster for as long as its policy says, by an
// answer of the head that is fresh; and else when that will be so. A job that waits for the
// cluster uses it, though Ray does not know yet.
func (p *planner) idle() bool {
	policy := p.cluster.Spec.IdlePolicy
	if policy == nil || p.head == nil || !p.head.ready() {
		return false
	}
	p.Ask.often(askIdle)
	p.Ask.Use = true
	if p.seen.Wanted != "" {
		p.wakeIn(pass.Recheck) // the end of a job wakes nobody here
		return false
	}
	if !p.seen.Ray.fresh(p.now) || p.seen.Ray.IdleSince.IsZero() || p.now.Sub(p.seen.Ray.UseAt) > freshFor {
		return false
	}
	p.IdleSince = p.idleSince()
	p.IdleAt = p.IdleSince.Add(time.Duration(policy.AfterSeconds) * time.Second)
	p.wakeIn(p.IdleAt.Sub(p.now))
	return !p.IdleAt.After(p.now)
}

// idleSince is since when nobody has used the cluster: at most since its head is ready.
func (p *planner) idleSince() time.Time {
	since := p.seen.Ray.IdleSince
	if ready := p.head.readySince(); ready.After(since) {
		since = ready
	}
	return since
}

// told is a time as people read it in a message.
func told(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// end deletes a cluster that its idle policy wants gone.
func (p *planner) end() bool {
	if policy := p.cluster.Spec.IdlePolicy; policy == nil || policy.Action != v1alpha1.IdleDelete || !p.idle() {
		return false
	}
	p.End = &telemetry.Event{Finding: reason.DeletedIdle.Of(told(p.IdleSince)), Action: "Delete"}
	return true
}

// resume begins a new epoch: the pods of the former one are gone or going.
func (p *planner) resume() {
	p.beginEpoch(telemetry.Event{Finding: reason.Resumed.Of(p.seen.Record.Suspended.Cause, p.Epoch+1), Action: "Resume"})
}
