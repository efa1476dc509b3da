package job

import (
	"fmt"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

const (
	// stopFor is how long the stop of a run on a shared cluster is tried.
	stopFor = 2 * time.Minute
	// freeAfter is how long a suspended job leaves its own cluster for the last lines, and
	// giveUpAfter how long a job that is over a deadline leaves it for the stop.
	freeAfter   = time.Second
	giveUpAfter = 30 * time.Second
	// lookEvery is how often a head that is calm is asked about a run, and a little more.
	lookEvery = 4 * time.Second
)

// isStopAsked reports whether a job's annotation asks for its stop.
func isStopAsked(job *v1beta1.ClusterJob) bool {
	return job.Annotations[v1beta1.AnnotationStop] == v1beta1.StopOn
}

// stopOnRequest ends a job whose annotation asks for that, its bound attempt first.
func stopOnRequest(p *planner) bool {
	if !isStopAsked(p.job) {
		return false
	}
	stopAttempt(p, reason.Stopped.Of())
	return true
}

// stopAttempt begins the stop of the bound attempt, or closes the job where none is bound.
func stopAttempt(p *planner, finding reason.Finding) {
	if !p.isBound() {
		closeJob(p, finding)
		return
	}
	p.record.Ending, p.record.Since = finding.Code, p.now.Unix()
	advanceStop(p)
}

// askForStop returns what is wanted of the head so that the bound attempt ends, nil where there is no head.
func askForStop(v view) *Ask {
	if !v.isBound() || v.seen.Head == nil {
		return nil
	}
	return &Ask{Head: v.seen.Head, ID: v.submissionID(), Session: v.record.Bound.Session, Stop: true}
}

// continueStop goes on with the stop of an attempt that was begun.
func continueStop(p *planner) bool {
	if p.record.Ending == "" || !p.isBound() {
		return false
	}
	advanceStop(p)
	return true
}

// advanceStop asks for the stop of the bound attempt, and ends it once it is over or has been waited for long enough:
// on the job's own cluster the work ends with that.
func advanceStop(p *planner) {
	p.Ask = askForStop(p.view)
	p.setPhase(p.boundPhase(), reason.Stopping.Of(p.record.Attempt, explainStop(&p.job.Spec, p.record.Ending).Text))
	if p.isSuspending() {
		p.Phase = v1beta1.PhaseSuspending
	}
	if f, is := judgeAttempt(p.view); is {
		followResult(p, f)
		return
	}
	left := time.Unix(p.record.Since, 0).Add(stopPatience(p.view)).Sub(p.now)
	if left > 0 {
		p.wakeIn(left)
		p.wakeIn(untilSettled(p.view))
		return
	}
	f := result{Finding: explainStop(&p.job.Spec, p.record.Ending), log: v1beta1.LogLost}
	if said := p.seen.Answer.Tail; p.seen.Heard && len(said.Lines) > 0 {
		f.lines, f.log = lastOf(said.Lines), v1beta1.LogTruncated
	}
	if p.hasOwnCluster() {
		p.record.Own++ // it goes, with all that may still run there
	} else {
		abandoned := abandonedStop(p.view)
		p.Events = append(p.Events, abandonedEvent(abandoned, p.seen.Cluster))
		if !p.isSuspending() || isLastAttempt(p.job, p.record.Ending) {
			f.Finding = abandoned
		}
	}
	followResult(p, f)
}

// stopPatience returns how long the stop of the bound attempt is waited for.
func stopPatience(v view) time.Duration {
	least := giveUpAfter
	switch {
	case !v.hasOwnCluster():
		least = stopFor
	case v.isSuspending():
		least = freeAfter
	}
	if v.runsGang() {
		return max(least, v.grace()+slack)
	}
	return least
}

// untilSettled returns after how long it may be clear that an attempt never got to the head, 0 where it got there: a head
// that still does not know it wakes nobody.
func untilSettled(v view) time.Duration {
	if !v.seen.Heard || v.seen.Answer.Known {
		return 0
	}
	return max(settledAt(v).Sub(v.now), 0) + lookEvery
}

// abandonedStop returns why the stop of a run on a shared cluster is given up.
func abandonedStop(v view) reason.Finding {
	why := "its head does not answer"
	if v.seen.Heard && v.seen.Answer.Err == nil {
		why = fmt.Sprintf("Ray still says %s", v.seen.Answer.Job.Status)
	}
	return reason.StopAbandoned.Of(v.job.Name, v.record.Bound.Cluster, why, v.submissionID())
}

// abandonedEvent returns the event of a stop that is given up, which is told of the cluster too.
func abandonedEvent(finding reason.Finding, cluster *v1beta1.ComputeCluster) telemetry.Event {
	event := eventOf(finding, "Stop")
	if cluster != nil {
		event.Also = cluster
	}
	return event
}

// explainStop returns the finding of an attempt that is stopped on purpose, by the code of why.
func explainStop(spec *v1beta1.ClusterJobSpec, ending string) reason.Finding {
	switch ending {
	case reason.Stopped.Code:
		return reason.Stopped.Of()
	case reason.JobPreempted.Code:
		return reason.JobPreempted.Of()
	case reason.StartDeadlineExceeded.Code:
		why := "Ray did not run it"
		if gangOf(spec) != nil {
			why = "it did not have all its places"
		}
		return reason.StartDeadlineExceeded.Of(valueOf(spec.StartDeadlineSeconds), why)
	case reason.GangLost.Code:
		return reason.GangLost.Of("the cluster can no longer hold it")
	case reason.DeadlineExceeded.Code:
		return reason.DeadlineExceeded.Of(valueOf(spec.ActiveDeadlineSeconds))
	case reason.AttemptDeadlineExceeded.Code:
		return reason.AttemptDeadlineExceeded.Of(attemptDeadline(spec))
	default:
		return reason.JobSuspended.Of()
	}
}
