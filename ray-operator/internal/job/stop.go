package job

import (
	"fmt"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
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

// askForStop asks the head to stop the bound attempt, and returns the finding meanwhile.
func askForStop(p *planner, why string) reason.Finding {
	if p.isBound() && p.seen.Head != nil {
		p.Ask = &Ask{Head: p.seen.Head, ID: p.submissionID(), Session: p.record.Bound.Session, Stop: true}
	}
	return reason.Stopping.Of(p.record.Attempt, why)
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
	p.setPhase(p.boundPhase(), askForStop(p, explainStop(p.situation).Text))
	if p.isSuspending() {
		p.Phase = v1beta1.PhaseSuspending
	}
	if f, is := judgeAttempt(p.situation); is {
		followFate(p, f)
		return
	}
	patience := stopFor
	switch {
	case p.hasOwnCluster() && p.isSuspending():
		patience = freeAfter
	case p.hasOwnCluster():
		patience = giveUpAfter
	}
	left := time.Unix(p.record.Since, 0).Add(patience).Sub(p.now)
	if left > 0 {
		p.wakeIn(left)
		wakeOnceSettled(p)
		return
	}
	f := fate{Finding: explainStop(p.situation), log: v1beta1.LogLost}
	if said := p.seen.Answer.Tail; p.seen.Heard && len(said.Lines) > 0 {
		f.lines, f.log = lastOf(said.Lines), v1beta1.LogTruncated
	}
	if p.hasOwnCluster() {
		p.record.Own++ // it goes, with all that may still run there
	} else if abandoned := abandonStop(p); !p.isSuspending() || isLastAttempt(p.situation) {
		f.Finding = abandoned
	}
	followFate(p, f)
}

// wakeOnceSettled wakes the job when it may be clear that its attempt never got to the head: a head that still does not
// know it wakes nobody.
func wakeOnceSettled(p *planner) {
	if p.seen.Heard && !p.seen.Answer.Known {
		p.wakeIn(max(settledAt(p.situation).Sub(p.now), 0) + lookEvery)
	}
}

// abandonStop gives up the stop of a run on a shared cluster, and returns why.
func abandonStop(p *planner) reason.Finding {
	why := "its head does not answer"
	if p.seen.Heard && p.seen.Answer.Err == nil {
		why = fmt.Sprintf("Ray still says %s", p.seen.Answer.Job.Status)
	}
	finding := reason.StopAbandoned.Of(p.job.Name, p.record.Bound.Cluster, why, p.submissionID())
	p.addEvent(finding, "Stop")
	if p.seen.Cluster != nil {
		p.Events[len(p.Events)-1].Also = p.seen.Cluster
	}
	return finding
}

// explainStop returns the finding of an attempt that is stopped on purpose.
func explainStop(s situation) reason.Finding {
	spec := &s.job.Spec
	switch s.record.Ending {
	case reason.Stopped.Code:
		return reason.Stopped.Of()
	case reason.JobPreempted.Code:
		return reason.JobPreempted.Of()
	case reason.StartDeadlineExceeded.Code:
		return reason.StartDeadlineExceeded.Of(valueOf(spec.StartDeadlineSeconds), "Ray did not run it")
	case reason.DeadlineExceeded.Code:
		return reason.DeadlineExceeded.Of(valueOf(spec.ActiveDeadlineSeconds))
	case reason.AttemptDeadlineExceeded.Code:
		return reason.AttemptDeadlineExceeded.Of(attemptDeadline(spec))
	default:
		return reason.JobSuspended.Of()
	}
}
