package job

import (
	"fmt"
	"time"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// runAttempt brings an attempt on its way: a cluster, its head, a place there, the submission.
func runAttempt(p *planner) bool {
	p.releaseClusters(p.now, p.seen.Former...) // also of a bound one: an operator that saw the past may have made a former one again
	p.wakeIn(p.seen.recheckRemains())
	if p.isBound() {
		if p.lack != "" && isGathering(p.view) {
			stopAttempt(p, reason.GangLost.Of(p.lack))
		} else {
			watchAttempt(p)
		}
		return true
	}
	left, held := p.record.endedAt(p.now).Add(retryDelay(p.job.Spec.Retry, p.record)).Sub(p.now), holdLeft(p.view)
	switch obstacle := findHeadObstacle(p.view); {
	case len(p.record.Past) > 0 && left > 0:
		p.setPhase(v1beta1.PhaseRetrying, explainRetry(p.job.Spec.Retry, p.record, p.now))
		p.wakeIn(left)
	case p.seen.hasFormer():
		p.setPhase(p.waitingPhase(), reason.ClusterEnding.Of(p.endingCluster()))
	case held > 0:
		p.setPhase(p.waitingPhase(), explainHold(p.record))
		p.wakeIn(held)
	case p.lack != "":
		p.setPhase(v1beta1.PhasePending, explainLack(p.view))
	case obstacle == nil:
		approachHead(p)
	default:
		p.setPhase(obstacle.phase, obstacle.finding)
		if p.seen.Cluster == nil && p.hasOwnCluster() {
			p.Make, p.Claims = ownCluster(p.job, p.record.Own), desired.JobClaims(p.job)
			p.Events = append(p.Events, strandedEvents(p.seen.Stranded, p.record.Last.Cluster)...)
		}
	}
	return true
}

// obstacle is why an attempt has no head to go to, and the phase of the job meanwhile.
type obstacle struct {
	phase   string
	finding reason.Finding
}

// findHeadObstacle returns why there is no head to submit to, nil if there is one.
func findHeadObstacle(v view) *obstacle {
	cluster, name := v.seen.Cluster, v.clusterName()
	switch {
	case cluster == nil && v.hasOwnCluster():
		return &obstacle{v1beta1.PhaseProvisioning, reason.ClusterStarting.Of(name, "it is being made")}
	case cluster == nil:
		return &obstacle{v1beta1.PhasePending, reason.ClusterMissing.Of(name)}
	case cluster.DeletionTimestamp != nil:
		return &obstacle{v1beta1.PhasePending, reason.ClusterDeleting.Of(name)}
	case !reconcile.IsOurs(cluster.Spec.ManagedBy):
		return &obstacle{v1beta1.PhasePending, reason.ClusterForeign.Of(name, cluster.Spec.ManagedBy)}
	case ptr.Deref(cluster.Spec.Suspend, false):
		return &obstacle{v.waitingPhase(), reason.ClusterSuspended.Of(name)}
	case v.seen.Head == nil || v.seen.Head.Status.PodIP == "":
		return &obstacle{v.waitingPhase(), explainStarting(cluster)}
	default:
		return nil
	}
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
	answer, position := &p.seen.Answer, p.seen.Position
	switch {
	case !p.seen.Heard || answer.Failure != "" || answer.Session.Name == "":
		if answer.Failure != headclient.Unauthenticated {
			p.wakeIn(p.seen.untilTold(p.now))
		}
		p.setPhase(p.waitingPhase(), explainSilence(&p.seen, p.clusterName(), p.now))
	case position.Most > 0 && position.Running+position.Place > position.Most:
		p.setPhase(p.waitingPhase(), reason.JobQueued.Of(p.clusterName(), position.Running, position.Most, position.Place))
		p.wakeIn(recheckAfter(position.Place))
	case position.Gang != "":
		p.setPhase(p.waitingPhase(), reason.GangQueued.Of(position.Gang, p.clusterName(), position.GangPlace))
		p.wakeIn(recheckAfter(position.GangPlace))
	case len(p.job.Spec.EntrypointLabelSelector) > 0 && naming.IsRayBefore(answer.Session.Version, firstWithSelectors):
		closeJob(p, reason.SubmissionRefused.Of(fmt.Sprintf("entrypointLabelSelector needs Ray 2.54, and the cluster runs %s", answer.Session.Version)))
	default: // what follows depends on the record
		p.record.Bound = boundTo(p.seen.Cluster, p.seen.Head, answer.Session.Name, p.now)
		if p.isGang() {
			p.record.Bound.Grace = max(1, int64(graceOf(&p.job.Spec)/time.Second))
		}
		p.Enter, p.Finalizer = position.Most, !p.hasOwnCluster() || p.isGang()
		p.Ask = &Ask{Head: p.seen.Head, ID: p.submissionID(), Session: p.record.Bound.Session, Submit: true}
		p.setPhase(v1beta1.PhaseSubmitting, reason.Submitting.Of(p.record.Attempt, p.clusterName()))
		p.addEvent(reason.JobSubmitted.Of(p.record.Attempt, p.clusterName(), p.submissionID()), "Submit")
		p.wakeIn(permitFor - time.Second)
	}
}

// boundTo returns what an attempt is bound to from now on: a head of a cluster, and the session that answers there.
func boundTo(cluster *v1beta1.ComputeCluster, head *corev1.Pod, session string, now time.Time) Bound {
	return Bound{Cluster: cluster.Name, UID: cluster.UID, Pod: head.Name, Head: head.UID, Session: session, At: now.Unix()}
}

// explainSilence returns what is known of a head that does not answer, on a cluster of a name.
func explainSilence(seen *Seen, name string, now time.Time) reason.Finding {
	answer := &seen.Answer
	switch {
	case seen.Heard && answer.Failure == headclient.Unauthenticated:
		return reason.HeadUnauthorized.Of(name, cutText(answer.Err.Error()))
	case seen.isSilent(now) && reconcile.Ready(seen.Head):
		return reason.HeadUnreachable.Of(name, reconcile.Stamp(answer.FailingSince), cutText(answer.Err.Error()))
	}
	if seen.Cluster != nil && !reconcile.Ready(seen.Head) {
		if starting := explainStarting(seen.Cluster); starting.Severity() == reason.Warning {
			return starting
		}
	}
	return reason.JobAPIStarting.Of(name)
}

// isPermitUseful reports whether the head may take a submission now. For one that does not answer, the permit would be
// renewed for ever, each time with a read past the cache. The poller wakes the job when the head answers again.
func (s *Seen) isPermitUseful(now time.Time) bool {
	return !s.Heard || s.Answer.Failure == "" || now.Sub(s.Answer.FailingSince) < permitFor
}

// untilTold returns after how long people are told that the head does not answer; 0 where they are told, or it answers.
func (s *Seen) untilTold(now time.Time) time.Duration {
	if !s.Heard || s.Answer.Failure == "" {
		return 0
	}
	return max(0, s.Answer.FailingSince.Add(silentAfter).Sub(now))
}

// isSilent reports whether the head has not answered for so long that people are told.
func (s *Seen) isSilent(now time.Time) bool {
	return s.Heard && s.Answer.Failure != "" && s.untilTold(now) == 0
}

// watchAttempt asks the head about the bound attempt, and submits it where that has not happened.
func watchAttempt(p *planner) {
	known := p.seen.Heard && p.seen.Answer.Known
	if p.seen.Head != nil {
		p.Ask = askAbout(p.view)
		if p.Ask.Submit {
			p.wakeIn(permitFor - time.Second)
		}
	}
	if p.seen.Heard && !known && !p.startedAt().IsZero() {
		p.wakeIn(lookEvery) // a head that answers once more that it does not know the attempt wakes nobody
	}
	phase, isStarting := p.boundPhase(), p.seen.Head == nil && p.seen.Cluster != nil
	if !isStarting {
		p.wakeIn(p.seen.untilTold(p.now))
	}
	switch {
	case isStarting:
		p.setPhase(phase, explainStarting(p.seen.Cluster))
	case p.seen.isSilent(p.now):
		p.setPhase(phase, explainSilence(&p.seen, p.clusterName(), p.now))
	case phase != v1beta1.PhaseSubmitting && p.isGang():
		p.setPhase(phase, explainGang(p.view, phase))
		p.wakeIn(untilUnreported(p.view))
		p.wakeIn(untilLossSeen(p.view))
		p.Events = append(p.Events, gangEvents(p.view, phase)...)
	default:
		p.setPhase(phase, explainProgress(p.view, phase))
	}
}

// explainProgress returns what Ray does with the bound attempt in a phase.
func explainProgress(v view, phase string) reason.Finding {
	switch {
	case phase == v1beta1.PhaseRunning:
		return reason.JobRunning.Of(v.record.Attempt, v.clusterName())
	case v.seen.Heard && v.seen.Answer.Known:
		return reason.JobPending.Of(cutText(v.seen.Answer.Job.Message))
	default:
		return reason.Submitting.Of(v.record.Attempt, v.clusterName())
	}
}

// askAbout returns what is wanted of the head of the bound attempt: that it is submitted, unless the head or the status
// shows a start.
func askAbout(v view) *Ask {
	known := v.seen.Heard && v.seen.Answer.Known
	taken := known || v.seen.Heard && !v.seen.Answer.Submitted.IsZero() || !v.startedAt().IsZero()
	return &Ask{Head: v.seen.Head, ID: v.submissionID(), Session: v.record.Bound.Session, Submit: !taken && v.seen.isPermitUseful(v.now)}
}
