package job

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/pass"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// step is the attempt's own way: a cluster, its head, a place there, the submission.
func (p *planner) step() bool {
	if p.bound() {
		p.discard() // an operator that saw the past may have made a former one again
		p.attend()
		return true
	}
	left := p.record.ended(p.now).Add(p.backoff()).Sub(p.now)
	switch leaving := p.discard(); {
	case len(p.record.Past) > 0 && left > 0:
		last := p.record.Past[len(p.record.Past)-1]
		p.say(v1alpha1.PhaseRetrying, reason.Retrying.Of(last.Number, last.Reason, pass.Stamp(p.now.Add(left))))
		p.wakeIn(left)
	case leaving:
		p.say(p.waiting(), reason.ClusterEnding.Of(p.leaving()))
	case p.hasHead():
		p.approach()
	}
	return true
}

// waiting is the phase of a job that has no head to go to yet.
func (p *planner) waiting() string {
	if p.own() {
		return v1alpha1.PhaseProvisioning
	}
	return v1alpha1.PhasePending
}

// hasHead reports whether there is a head to go to, and ensures that there will be one.
func (p *planner) hasHead() bool {
	cluster, name := p.seen.Cluster, p.clusterName()
	switch {
	case cluster == nil && p.own():
		p.Make = ownCluster(p.job, p.record.Own)
		p.leaveBehind()
		p.say(v1alpha1.PhaseProvisioning, reason.ClusterStarting.Of(name, "it is being made"))
	case cluster == nil:
		p.say(v1alpha1.PhasePending, reason.ClusterMissing.Of(name))
	case cluster.DeletionTimestamp != nil:
		p.say(v1alpha1.PhasePending, reason.ClusterDeleting.Of(name))
	case cluster.Spec.ManagedBy != "" && cluster.Spec.ManagedBy != v1alpha1.ManagedByOperator:
		p.say(v1alpha1.PhasePending, reason.ClusterForeign.Of(name, cluster.Spec.ManagedBy))
	case cluster.Spec.Suspend:
		p.say(p.waiting(), reason.ClusterSuspended.Of(name))
	case p.seen.Head == nil || p.seen.Head.Status.PodIP == "":
		p.say(p.waiting(), clusterStarting(cluster))
	default:
		return true
	}
	return false
}

// clusterStarting says why a cluster has no head yet, in the cluster's own words.
func clusterStarting(cluster *v1alpha1.ComputeCluster) reason.Finding {
	why := "it has just been made"
	ready := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionReady)
	if ready != nil && ready.ObservedGeneration > 0 {
		why = ready.Message
		told := reason.Finding{Code: ready.Reason, Text: ready.Message}
		if ready.Status != "True" && told.Severity() == reason.Warning {
			return told.About("ComputeCluster " + cluster.Name)
		}
	}
	return reason.ClusterStarting.Of(cluster.Name, why)
}

// approach learns who answers at the head, and binds the attempt to it.
func (p *planner) approach() {
	p.Ask = &Ask{Head: p.seen.Head}
	answer, line := &p.seen.Answer, p.seen.Line
	switch {
	case !p.seen.Heard || answer.Failure != "" || answer.Session.Name == "":
		p.say(p.waiting(), p.unheard())
	case line.Most > 0 && line.Running+line.Place > line.Most:
		p.say(p.waiting(), reason.JobQueued.Of(p.clusterName(), line.Running, line.Most, line.Place))
		p.wakeIn(line.recheck())
	case len(p.job.Spec.EntrypointLabelSelector) > 0 && naming.IsRayBefore(answer.Session.Version, 54):
		p.close(reason.SubmissionRefused.Of(fmt.Sprintf("entrypointLabelSelector needs Ray 2.54, and the cluster runs %s", answer.Session.Version)))
	default:
		p.bind()
	}
}

// unheard says what is known of a head that does not answer.
func (p *planner) unheard() reason.Finding {
	name, answer := p.clusterName(), &p.seen.Answer
	switch {
	case p.seen.Heard && answer.Failure == headclient.Unauthenticated:
		return reason.HeadUnauthorized.Of(name, cut(answer.Err.Error()))
	case p.silent() && pass.Ready(p.seen.Head):
		return reason.HeadUnreachable.Of(name, pass.Stamp(answer.FailingSince), cut(answer.Err.Error()))
	}
	if p.seen.Cluster != nil && !pass.Ready(p.seen.Head) {
		if starting := clusterStarting(p.seen.Cluster); starting.Severity() == reason.Warning {
			return starting
		}
	}
	return reason.JobAPIStarting.Of(name)
}

// mayHear reports whether a permit to submit is of use: one for a head that does not answer would be renewed for ever, each
// time with a read past the cache. The poller wakes the job when the head answers again.
func (p *planner) mayHear() bool {
	return !p.seen.Heard || p.seen.Answer.Failure == "" || p.now.Sub(p.seen.Answer.FailingSince) < permitFor
}

// silent reports whether the head has not answered for so long that people are told, and wakes
// the job when that will be so.
func (p *planner) silent() bool {
	if !p.seen.Heard || p.seen.Answer.Failure == "" {
		return false
	}
	left := p.seen.Answer.FailingSince.Add(silentAfter).Sub(p.now)
	p.wakeIn(left)
	return left <= 0
}

// bind binds the attempt to the head that answers; what follows depends on it.
func (p *planner) bind() {
	p.record.Bound = Bound{
		Cluster: p.seen.Cluster.Name, UID: p.seen.Cluster.UID, Pod: p.seen.Head.Name, Head: p.seen.Head.UID,
		Session: p.seen.Answer.Session.Name, At: p.now.Unix(),
	}
	p.Enter = p.seen.Line.Most
	p.Finalizer = !p.own()
	p.Ask = &Ask{Head: p.seen.Head, ID: p.id(), Session: p.record.Bound.Session, Submit: true}
	p.say(v1alpha1.PhaseSubmitting, reason.Submitting.Of(p.record.Attempt, p.clusterName()))
	p.tell(reason.JobSubmitted.Of(p.record.Attempt, p.clusterName(), p.id()), "Submit")
	p.wakeIn(permitFor - time.Second)
}

// attend manages a bound attempt.
func (p *planner) attend() {
	answer := &p.seen.Answer
	known := p.seen.Heard && answer.Known
	taken := known || p.seen.Heard && !answer.Submitted.IsZero() || !p.started().IsZero()
	submit := p.seen.Head != nil && !taken && p.mayHear()
	if p.seen.Head != nil {
		p.Ask = &Ask{Head: p.seen.Head, ID: p.id(), Session: p.record.Bound.Session, Submit: submit}
	}
	if submit {
		p.wakeIn(permitFor - time.Second)
	}
	switch phase := p.underway(); {
	case p.seen.Head == nil && p.seen.Cluster != nil:
		p.say(phase, clusterStarting(p.seen.Cluster))
	case p.silent():
		p.say(phase, p.unheard())
	case phase == v1alpha1.PhaseRunning:
		p.say(phase, reason.JobRunning.Of(p.record.Attempt, p.clusterName()))
	case known:
		p.say(phase, reason.JobPending.Of(cut(answer.Job.Message)))
	default:
		p.say(phase, reason.Submitting.Of(p.record.Attempt, p.clusterName()))
	}
}
