package job

import (
	"k8s.io/utils/ptr"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// suspendJob takes a suspended job off its cluster, and begins again when it is resumed.
func suspendJob(p *planner) bool {
	switch {
	case ptr.Deref(p.job.Spec.Suspend, false) && p.isBound():
		stopAttempt(p, reason.JobSuspended.Of())
	case isHeld(p.job, p.Queue) && p.isBound() && !p.hasOwnCluster():
		return false // the label came later, and a job on a cluster that exists has no quota to lose
	case isHeld(p.job, p.Queue) && p.isBound():
		stopAttempt(p, reason.JobPreempted.Of())
	case isHeld(p.job, p.Queue):
		vacateCluster(p)
	case p.record.Suspended:
		p.record.Suspended, p.record.Began, p.record.Ran = false, p.now.Unix(), 0
		return false
	default:
		return false
	}
	return true
}

// vacateCluster has a job without an attempt give up its own cluster, as while it is suspended.
func vacateCluster(p *planner) {
	if !p.record.Suspended && p.hasOwnCluster() && p.seen.Cluster != nil {
		p.record.Own++
		p.seen.Former = append(p.seen.Former, p.seen.Cluster)
	}
	p.record.Suspended = true
	p.releaseClusters(p.now, p.seen.Former...)
	p.wakeIn(p.seen.recheckRemains())
	if p.seen.hasFormer() {
		p.setPhase(v1beta1.PhaseSuspending, reason.ClusterEnding.Of(p.endingCluster()))
		return
	}
	if left := holdLeft(p.view); left > 0 {
		p.wakeIn(left)
		p.setPhase(v1beta1.PhaseSuspending, explainHold(p.record))
		return
	}
	if p.job.Status.Phase == v1beta1.PhaseSuspending {
		p.Events = append(p.Events, strandedEvents(p.seen.Stranded, p.record.Last.Cluster)...)
	}
	switch {
	case ptr.Deref(p.job.Spec.Suspend, false):
		p.setPhase(v1beta1.PhaseSuspended, reason.JobSuspended.Of())
	case p.lack != "":
		p.setPhase(v1beta1.PhasePending, explainLack(p.view))
	default:
		p.setPhase(v1beta1.PhasePending, explainQueue(p.seen.Queue, p.Queue.Waits))
	}
}
