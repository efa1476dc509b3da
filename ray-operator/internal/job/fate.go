package job

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/diagnose"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// kind sorts how attempts end.
type kind int

const (
	// neutral counts towards nothing: it was meant, or nothing else can follow.
	neutral kind = iota
	success
	// failure is the program's own, loss is by no fault of it.
	failure
	loss
	// final failures are never followed by another attempt.
	final
)

// class is the kind of an end by its reason's code.
func class(code string) kind {
	switch code {
	case reason.JobSucceeded.Code:
		return success
	case reason.EntrypointFailed.Code, reason.RuntimeEnvFailed.Code, reason.JobFailed.Code, reason.AttemptDeadlineExceeded.Code:
		return failure
	case reason.HeadLost.Code, reason.ClusterGone.Code, reason.DriverLost.Code, reason.DriverNotStarted.Code, reason.RunNotFound.Code:
		return loss
	case reason.SubmissionRefused.Code, reason.SubmissionForeign.Code, reason.StoppedInRay.Code, reason.Stopped.Code,
		reason.DeadlineExceeded.Code, reason.StartDeadlineExceeded.Code:
		return final
	default:
		return neutral
	}
}

// fate is what has become of an attempt.
type fate struct {
	reason.Finding
	// exit and end are as Ray told them, nil and zero where it did not.
	exit  *int32
	end   time.Time
	lines []string
	log   v1alpha1.LogState
	// gone: it is judged by the absence of its head.
	gone bool
}

// How long to wait for what may never come.
const (
	// settledAfter is for how long an attempt may still get to the head that must not be
	// submitted any more: a permit and a request that a head holds until its agent is there.
	settledAfter = 20 * time.Second
	// silentAfter is for how long a head may not answer before people are told.
	silentAfter = 30 * time.Second
)

// fate finds out what has become of the bound attempt; false while it goes on.
func (p *planner) fate() (fate, bool) {
	answer := &p.seen.Answer
	switch {
	case p.seen.Heard && answer.Known && answer.Job.Status.Over():
		if !answer.Tailed && p.seen.Head != nil {
			return fate{}, false // its last lines are on their way
		}
		return p.ended(answer.Job), true
	case p.answers():
		if f, is := p.unlike(); is {
			return f, true
		}
	case p.seen.Heard && answer.Session.Name != "":
		return p.lost("another session answers at its address"), true
	}
	return p.absent()
}

// answers reports whether the session that the attempt is bound to does.
func (p *planner) answers() bool {
	return p.seen.Heard && p.seen.Answer.Session.Name == p.record.Bound.Session
}

// unlike is the fate of an attempt that its head has otherwise than it was submitted.
func (p *planner) unlike() (fate, bool) {
	switch answer := &p.seen.Answer; {
	case answer.Foreign:
		return fate{Finding: reason.SubmissionForeign.Of(p.id()), log: v1alpha1.LogComplete}, true
	case answer.Refused != "":
		return fate{Finding: reason.SubmissionRefused.Of(answer.Refused), log: v1alpha1.LogComplete}, true
	default:
		return fate{}, false
	}
}

// absent is the fate of an attempt whose cluster or head is gone, or does not know it.
func (p *planner) absent() (fate, bool) {
	bound, answer := &p.record.Bound, &p.seen.Answer
	unknown := p.answers() && !answer.Known && !answer.Asked.IsZero()
	switch {
	case p.seen.Cluster == nil || p.seen.Cluster.UID != bound.UID:
		return fate{Finding: reason.ClusterGone.Of(bound.Cluster, p.record.Attempt), gone: true, log: v1alpha1.LogLost}, p.seen.Head == nil
	case p.seen.Head == nil:
		return p.lost("it is not there any more"), !p.comesBack()
	case !p.comesBack() && p.sessionEnded():
		return p.lost("its Ray container ended, and the session with it"), true // whenever the kubelet starts it again
	case unknown:
		return p.unknown()
	default:
		return fate{}, false
	}
}

// unknown is the fate of an attempt that its own session does not know.
func (p *planner) unknown() (fate, bool) {
	answer := &p.seen.Answer
	if !answer.Submitted.IsZero() || !p.started().IsZero() {
		return fate{Finding: reason.RunNotFound.Of(p.id()), log: v1alpha1.LogLost}, true
	}
	return fate{Finding: p.endedBy(), log: v1alpha1.LogLost}, answer.Asked.After(p.settled()) // it never got there
}

// comesBack reports whether the cluster's memory outlives its head: another one will know the
// attempt, and what became of it. With its workers gone nothing of it goes on.
func (p *planner) comesBack() bool {
	cluster := p.seen.Cluster
	return cluster.Spec.ControlStore != nil && !cluster.Spec.Suspend && cluster.DeletionTimestamp == nil &&
		!meta.IsStatusConditionTrue(cluster.Status.Conditions, v1alpha1.ConditionSuspended)
}

// sessionEnded reports whether the head's Ray container ended after the attempt was bound to its
// session, and does not answer: it will never answer as that session.
func (p *planner) sessionEnded() bool {
	silent := !p.answers() || p.seen.Answer.Failure != ""
	return silent && diagnose.RayEnded(p.seen.Head).After(time.Unix(p.record.Bound.At, 0))
}

// settled is from when on an attempt that the head does not know is taken for one that never
// got there: some time after it was last allowed to be submitted. Never while it still is.
func (p *planner) settled() time.Time {
	switch {
	case p.job.DeletionTimestamp != nil:
		return p.job.DeletionTimestamp.Add(settledAfter)
	case p.record.Ending != "":
		return time.Unix(p.record.Since, 0).Add(settledAfter)
	default:
		return p.now
	}
}

func (p *planner) lost(why string) fate {
	return fate{
		Finding: reason.HeadLost.Of(p.record.Bound.Pod, why), gone: p.seen.Head == nil, log: v1alpha1.LogLost,
	}
}

// ended is the fate of a job that Ray says is over.
func (p *planner) ended(job headclient.Job) fate {
	f := fate{exit: exitCode(job), end: job.End, Finding: p.judge(job)}
	f.lines, f.log = lines(p.seen.Answer.Tail.Lines), v1alpha1.LogComplete
	switch {
	case !p.seen.Answer.Tailed || p.seen.Answer.LogLost:
		f.lines, f.log = nil, v1alpha1.LogLost
	case p.seen.Answer.Tail.Truncated:
		f.log = v1alpha1.LogTruncated
	}
	return f
}

// exitCode is that of the driver's process, as a shell has it: where a signal ended it, 128
// and the signal, which Ray tells as the negative signal. Nil where there is none.
func exitCode(job headclient.Job) *int32 {
	code := job.ExitCode
	if code != nil && *code < 0 {
		signalled := 128 - *code
		code = &signalled
	}
	return code
}

func lines(of []string) []string { return of[max(0, len(of)-LastLines):] }

// judge names how a job ended.
func (p *planner) judge(job headclient.Job) reason.Finding {
	switch {
	case job.Status == headclient.JobSucceeded:
		return reason.JobSucceeded.Of(p.record.Attempt)
	case p.record.Ending != "" && (job.Status == headclient.JobStopped || job.ExitCode == nil && supervised(job)):
		return p.endedBy()
	case job.Status == headclient.JobStopped:
		return reason.StoppedInRay.Of()
	case job.ErrorType == "RUNTIME_ENV_SETUP_FAILURE":
		return reason.RuntimeEnvFailed.Of(cut(job.Message))
	case job.ErrorType == "JOB_SUPERVISOR_ACTOR_DIED":
		return reason.DriverLost.Of(cut(job.Message))
	case job.ErrorType == "JOB_SUPERVISOR_ACTOR_START_FAILURE" && isMistake(job.Message):
		return reason.JobFailed.Of(job.ErrorType, cut(job.Message))
	case supervised(job):
		return reason.DriverNotStarted.Of(job.ErrorType, cut(job.Message))
	case job.ExitCode != nil:
		return reason.EntrypointFailed.Of(*exitCode(job))
	default:
		return reason.JobFailed.Of(job.ErrorType, cut(job.Message))
	}
}

// isMistake reports whether Ray could not start what it has around the driver because of what was asked for, as a runtime
// environment of a wrong type or a negative amount. Its message ends with a traceback, and that with the error.
func isMistake(message string) bool {
	last := ""
	for line := range strings.Lines(message) {
		if word, _, _ := strings.Cut(line, ":"); strings.HasSuffix(word, "Error") && !strings.ContainsAny(word, " \t'") {
			last = word
		}
	}
	return last == "TypeError" || last == "ValueError"
}

// supervised reports whether what Ray has around the driver failed, and not the driver.
func supervised(job headclient.Job) bool {
	return slices.Contains([]string{
		"JOB_SUPERVISOR_ACTOR_START_TIMEOUT", "JOB_SUPERVISOR_ACTOR_START_FAILURE", "JOB_SUPERVISOR_ACTOR_UNSCHEDULABLE",
		"JOB_SUPERVISOR_ACTOR_DIED", "JOB_SUPERVISOR_ACTOR_UNKNOWN_FAILURE",
	}, job.ErrorType)
}

// mostText is how much of what Ray says goes into a condition, in bytes.
const mostText = 512

// cut is the end of a text, where errors say most.
func cut(text string) string {
	if len(text) <= mostText {
		return text
	}
	text = text[len(text)-mostText:]
	for text != "" && !utf8.RuneStart(text[0]) {
		text = text[1:] // the rest of a character
	}
	return "…" + text
}

// endedBy is the finding of an attempt that was stopped on purpose.
func (p *planner) endedBy() reason.Finding {
	spec := &p.job.Spec
	switch p.record.Ending {
	case reason.Stopped.Code:
		return reason.Stopped.Of()
	case reason.JobPreempted.Code:
		return reason.JobPreempted.Of()
	case reason.StartDeadlineExceeded.Code:
		return reason.StartDeadlineExceeded.Of(value(spec.StartDeadlineSeconds), "Ray did not run it")
	case reason.DeadlineExceeded.Code:
		return reason.DeadlineExceeded.Of(value(spec.ActiveDeadlineSeconds))
	case reason.AttemptDeadlineExceeded.Code:
		return reason.AttemptDeadlineExceeded.Of(attemptDeadline(spec))
	default:
		return reason.JobSuspended.Of()
	}
}

func value(of *int32) int32 {
	if of == nil {
		return 0
	}
	return *of
}

func attemptDeadline(spec *v1alpha1.ClusterJobSpec) int32 {
	if spec.Retry == nil {
		return 0
	}
	return value(spec.Retry.AttemptDeadlineSeconds)
}
