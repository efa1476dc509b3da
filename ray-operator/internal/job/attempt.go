package job

import (
	"fmt"
	"time"

	"k8s.io/utils/ptr"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// runAttempt brings an attempt on its way: a cluster, its head, a place there, the submission.
func runAttempt(p *planner) bool {
	if p.isBound() {
		releaseFormer(p) // an operator that saw the past may have made a former one again
		watchAttempt(p)
		return true
	}
	left := p.record.endedAt(p.now).Add(retryDelay(p.situation)).Sub(p.now)
	switch leaving := releaseFormer(p); {
	case len(p.record.Past) > 0 && left > 0:
		last := p.record.Past[len(p.record.Past)-1]
		p.setPhase(v1beta1.PhaseRetrying, reason.Retrying.Of(last.Number, last.Reason, reconcile.Stamp(p.now.Add(left))))
		p.wakeIn(left)
	case leaving:
		p.setPhase(p.waitingPhase(), reason.ClusterEnding.Of(p.endingCluster()))
	case ensureHead(p):
		approachHead(p)
	}
	return true
}

// ensureHead reports whether there is a head to submit to, and otherwise plans or explains what is missing.
func ensureHead(p *planner) bool {
	cluster, name := p.seen.Cluster, p.clusterName()
	switch {
	case cluster == nil && p.hasOwnCluster():
		p.Make = ownCluster(p.job, p.record.Own)
		reportStranded(p)
		p.setPhase(v1beta1.PhaseProvisioning, reason.ClusterStarting.Of(name, "it is being made"))
	case cluster == nil:
		p.setPhase(v1beta1.PhasePending, reason.ClusterMissing.Of(name))
	case cluster.DeletionTimestamp != nil:
		p.setPhase(v1beta1.PhasePending, reason.ClusterDeleting.Of(name))
	case !reconcile.IsOurs(cluster.Spec.ManagedBy):
		p.setPhase(v1beta1.PhasePending, reason.ClusterForeign.Of(name, cluster.Spec.ManagedBy))
	case ptr.Deref(cluster.Spec.Suspend, false):
		p.setPhase(p.waitingPhase(), reason.ClusterSuspended.Of(name))
	case p.seen.Head == nil || p.seen.Head.Status.PodIP == "":
		p.setPhase(p.waitingPhase(), explainStarting(cluster))
	default:
		return true
	}
	return false
}

// explainStarting returns why a cluster has no head yet, in the words of its status.
func explainStarting(cluster *v1beta1.ComputeCluster) reason.Finding {
	why := "it has just been made"
	ready := meta.FindStatusCondition(cluster.Status.Conditions, v1beta1.ConditionReady)
	if ready != nil && ready.ObservedGeneration > 0 {
		why = ready.Message
		told := reason.Finding{Code: ready.Reason, Text: ready.Message}
		if ready.Status != "True" && told.Severity() == reason.Warning {
			return told.About("ComputeCluster " + cluster.Name)
		}
	}
	return reason.ClusterStarting.Of(cluster.Name, why)
}

// approachHead asks for the session of the head, and binds the attempt to it once it answers and has a place.
func approachHead(p *planner) {
	p.Ask = &Ask{Head: p.seen.Head}
	answer, line := &p.seen.Answer, p.seen.Line
	switch {
	case !p.seen.Heard || answer.Failure != "" || answer.Session.Name == "":
		p.setPhase(p.waitingPhase(), explainSilence(p))
	case line.Most > 0 && line.Running+line.Place > line.Most:
		p.setPhase(p.waitingPhase(), reason.JobQueued.Of(p.clusterName(), line.Running, line.Most, line.Place))
		p.wakeIn(line.recheckAfter())
	case len(p.job.Spec.EntrypointLabelSelector) > 0 && naming.IsRayBefore(answer.Session.Version, 54):
		closeJob(p, reason.SubmissionRefused.Of(fmt.Sprintf("entrypointLabelSelector needs Ray 2.54, and the cluster runs %s", answer.Session.Version)))
	default:
		bindAttempt(p)
	}
}

// explainSilence returns what is known of a head that does not answer.
func explainSilence(p *planner) reason.Finding {
	name, answer := p.clusterName(), &p.seen.Answer
	switch {
	case p.seen.Heard && answer.Failure == headclient.Unauthenticated:
		return reason.HeadUnauthorized.Of(name, cutText(answer.Err.Error()))
	case checkSilence(p) && reconcile.Ready(p.seen.Head):
		return reason.HeadUnreachable.Of(name, reconcile.Stamp(answer.FailingSince), cutText(answer.Err.Error()))
	}
	if p.seen.Cluster != nil && !reconcile.Ready(p.seen.Head) {
		if starting := explainStarting(p.seen.Cluster); starting.Severity() == reason.Warning {
			return starting
		}
	}
	return reason.JobAPIStarting.Of(name)
}

// isPermitUseful reports whether the head may take a submission now. For one that does not answer, the permit would be
// renewed for ever, each time with a read past the cache. The poller wakes the job when the head answers again.
func isPermitUseful(s situation) bool {
	return !s.seen.Heard || s.seen.Answer.Failure == "" || s.now.Sub(s.seen.Answer.FailingSince) < permitFor
}

// checkSilence reports whether the head has not answered for so long that people are told. If not, it wakes the job
// then.
func checkSilence(p *planner) bool {
	if !p.seen.Heard || p.seen.Answer.Failure == "" {
		return false
	}
	left := p.seen.Answer.FailingSince.Add(silentAfter).Sub(p.now)
	p.wakeIn(left)
	return left <= 0
}

// bindAttempt binds the attempt to the head that answers; what follows depends on it.
func bindAttempt(p *planner) {
	p.record.Bound = Bound{
		Cluster: p.seen.Cluster.Name, UID: p.seen.Cluster.UID, Pod: p.seen.Head.Name, Head: p.seen.Head.UID,
		Session: p.seen.Answer.Session.Name, At: p.now.Unix(),
	}
	p.Enter = p.seen.Line.Most
	p.Finalizer = !p.hasOwnCluster()
	p.Ask = &Ask{Head: p.seen.Head, ID: p.submissionID(), Session: p.record.Bound.Session, Submit: true}
	p.setPhase(v1beta1.PhaseSubmitting, reason.Submitting.Of(p.record.Attempt, p.clusterName()))
	p.addEvent(reason.JobSubmitted.Of(p.record.Attempt, p.clusterName(), p.submissionID()), "Submit")
	p.wakeIn(permitFor - time.Second)
}

// watchAttempt asks the head about the bound attempt, and submits it where that has not happened.
func watchAttempt(p *planner) {
	answer := &p.seen.Answer
	known := p.seen.Heard && answer.Known
	if p.seen.Head != nil {
		askHead(p, known)
	}
	if p.seen.Heard && !known && !p.startedAt().IsZero() {
		p.wakeIn(lookEvery) // a head that answers once more that it does not know the attempt wakes nobody
	}
	switch phase := p.boundPhase(); {
	case p.seen.Head == nil && p.seen.Cluster != nil:
		p.setPhase(phase, explainStarting(p.seen.Cluster))
	case checkSilence(p):
		p.setPhase(phase, explainSilence(p))
	case phase == v1beta1.PhaseRunning:
		p.setPhase(phase, reason.JobRunning.Of(p.record.Attempt, p.clusterName()))
	case known:
		p.setPhase(phase, reason.JobPending.Of(cutText(answer.Job.Message)))
	default:
		p.setPhase(phase, reason.Submitting.Of(p.record.Attempt, p.clusterName()))
	}
}

// askHead asks the head about the bound attempt, and has it submitted unless the head or the status shows a start.
func askHead(p *planner, known bool) {
	taken := known || p.seen.Heard && !p.seen.Answer.Submitted.IsZero() || !p.startedAt().IsZero()
	submit := !taken && isPermitUseful(p.situation)
	p.Ask = &Ask{Head: p.seen.Head, ID: p.submissionID(), Session: p.record.Bound.Session, Submit: submit}
	if submit {
		p.wakeIn(permitFor - time.Second)
	}
}
