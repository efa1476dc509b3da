package job

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/utils/ptr"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
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

// classOf returns the kind of an end by its reason's code.
func classOf(code string) kind {
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
	log   v1beta1.LogState
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

// judgeAttempt returns what has become of the bound attempt, false while it goes on.
func judgeAttempt(s situation) (fate, bool) {
	answer := &s.seen.Answer
	switch {
	case s.seen.Heard && answer.Known && answer.Job.Status.Over():
		if !answer.Tailed && s.seen.Head != nil {
			return fate{}, false // its last lines are on their way
		}
		return judgeEnded(s, answer.Job), true
	case s.hasSession():
		if f, is := judgeRejected(s); is {
			return f, true
		}
	case s.seen.Heard && answer.Session.Name != "":
		return judgeLostHead(s, "another session answers at its address"), true
	}
	return judgeAbsent(s)
}

// judgeRejected returns the fate of an attempt that Ray refused, or that somebody else submitted under its name.
func judgeRejected(s situation) (fate, bool) {
	switch answer := &s.seen.Answer; {
	case answer.Foreign:
		return fate{Finding: reason.SubmissionForeign.Of(s.submissionID()), log: v1beta1.LogComplete}, true
	case answer.Refused != "":
		return fate{Finding: reason.SubmissionRefused.Of(answer.Refused), log: v1beta1.LogComplete}, true
	default:
		return fate{}, false
	}
}

// judgeAbsent returns the fate of an attempt whose cluster or head is gone, or does not know it.
func judgeAbsent(s situation) (fate, bool) {
	bound, answer := &s.record.Bound, &s.seen.Answer
	unknown := s.hasSession() && !answer.Known && !answer.Asked.IsZero()
	switch {
	case s.seen.Cluster == nil || s.seen.Cluster.UID != bound.UID:
		return fate{Finding: reason.ClusterGone.Of(bound.Cluster, s.record.Attempt), gone: true, log: v1beta1.LogLost}, s.seen.Head == nil
	case s.seen.Head == nil:
		return judgeLostHead(s, "it is not there any more"), !canComeBack(s)
	case !canComeBack(s) && hasSessionEnded(s):
		return judgeLostHead(s, "its Ray container ended, and the session with it"), true // whenever the kubelet starts it again
	case unknown:
		return judgeUnknown(s)
	default:
		return fate{}, false
	}
}

// judgeUnknown returns the fate of an attempt that its own session does not know. Another operator may have submitted it
// after the head answered this one: such an answer is too old where the status has the attempt begun.
func judgeUnknown(s situation) (fate, bool) {
	answer, started := &s.seen.Answer, s.startedAt()
	switch {
	case !answer.Submitted.IsZero() || !started.IsZero() && answer.Asked.After(started.Add(time.Second)): // the status has whole seconds
		return fate{Finding: reason.RunNotFound.Of(s.submissionID()), log: v1beta1.LogLost}, true
	case !started.IsZero():
		return fate{}, false
	}
	return fate{Finding: explainStop(s), log: v1beta1.LogLost}, answer.Asked.After(settledAt(s)) // it never got there
}

// canComeBack reports whether the cluster's memory outlives its head: another one will know the
// attempt, and what became of it. With its workers gone nothing of it goes on.
func canComeBack(s situation) bool {
	cluster := s.seen.Cluster
	return cluster.Spec.ControlStore != nil && !ptr.Deref(cluster.Spec.Suspend, false) && cluster.DeletionTimestamp == nil &&
		!meta.IsStatusConditionTrue(cluster.Status.Conditions, v1beta1.ConditionSuspended)
}

// hasSessionEnded reports whether the head's Ray container ended after the attempt was bound to its
// session, and does not answer: it will never answer as that session.
func hasSessionEnded(s situation) bool {
	silent := !s.hasSession() || s.seen.Answer.Failure != ""
	return silent && diagnose.RayEnded(s.seen.Head).After(time.Unix(s.record.Bound.At, 0))
}

// settledAt returns from when on an attempt that the head does not know is taken for one that never
// got there: some time after it was last allowed to be submitted. Never while it still is.
func settledAt(s situation) time.Time {
	switch {
	case s.job.DeletionTimestamp != nil:
		return s.job.DeletionTimestamp.Add(settledAfter)
	case s.record.Ending != "":
		return time.Unix(s.record.Since, 0).Add(settledAfter)
	default:
		return s.now
	}
}

// judgeLostHead returns the fate of an attempt whose head is lost.
func judgeLostHead(s situation, why string) fate {
	return fate{
		Finding: reason.HeadLost.Of(s.record.Bound.Pod, why), gone: s.seen.Head == nil, log: v1beta1.LogLost,
	}
}

// judgeEnded returns the fate of a run that Ray says is over.
func judgeEnded(s situation, job headclient.Job) fate {
	f := fate{exit: exitCode(job), end: job.End, Finding: nameEnd(s, job)}
	f.lines, f.log = lastOf(s.seen.Answer.Tail.Lines), v1beta1.LogComplete
	switch {
	case !s.seen.Answer.Tailed || s.seen.Answer.LogLost:
		f.lines, f.log = nil, v1beta1.LogLost
	case s.seen.Answer.Tail.Truncated:
		f.log = v1beta1.LogTruncated
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

// nameEnd returns the finding for how a run ended.
func nameEnd(s situation, job headclient.Job) reason.Finding {
	switch {
	case job.Status == headclient.JobSucceeded:
		return reason.JobSucceeded.Of(s.record.Attempt)
	case s.record.Ending != "" && (job.Status == headclient.JobStopped || job.ExitCode == nil && isSupervisorFailure(job)):
		return explainStop(s)
	case job.Status == headclient.JobStopped:
		return reason.StoppedInRay.Of()
	case job.ErrorType == "RUNTIME_ENV_SETUP_FAILURE":
		return reason.RuntimeEnvFailed.Of(cutText(cmp.Or(job.Exception(), job.Message)))
	case job.ErrorType == "JOB_SUPERVISOR_ACTOR_DIED":
		return reason.DriverLost.Of(cutText(job.Message))
	case job.ErrorType == "JOB_SUPERVISOR_ACTOR_START_FAILURE" && isMistake(job.Message):
		return reason.JobFailed.Of(job.ErrorType, cutText(job.Message))
	case isSupervisorFailure(job):
		return reason.DriverNotStarted.Of(job.ErrorType, cutText(job.Message))
	case job.ExitCode != nil:
		return reason.EntrypointFailed.Of(*exitCode(job), describeException(job))
	default:
		return reason.JobFailed.Of(job.ErrorType, cutText(job.Message))
	}
}

// describeException returns the exception with which the output of a driver ends, as it follows an exit code. Where more
// output follows, the program may have gone on after it.
func describeException(job headclient.Job) string {
	line := job.Exception()
	if line == "" || strings.Contains(line, "\n") {
		return ""
	}
	return ": " + cutText(line)
}

// isMistake reports whether Ray could not start what it has around the driver because of what was asked for, as a
// runtime environment of a wrong type or a negative amount. Its message ends with a traceback, and that with the
// error.
func isMistake(message string) bool {
	last := ""
	for line := range strings.Lines(message) {
		if word, _, _ := strings.Cut(line, ":"); strings.HasSuffix(word, "Error") && !strings.ContainsAny(word, " \t'") {
			last = word
		}
	}
	return last == "TypeError" || last == "ValueError"
}

// isSupervisorFailure reports whether what Ray has around the driver failed, and not the driver.
func isSupervisorFailure(job headclient.Job) bool {
	return slices.Contains([]string{
		"JOB_SUPERVISOR_ACTOR_START_TIMEOUT", "JOB_SUPERVISOR_ACTOR_START_FAILURE", "JOB_SUPERVISOR_ACTOR_UNSCHEDULABLE",
		"JOB_SUPERVISOR_ACTOR_DIED", "JOB_SUPERVISOR_ACTOR_UNKNOWN_FAILURE",
	}, job.ErrorType)
}

// mostText is how much of what Ray says goes into a condition, in bytes.
const mostText = 512

// cutText returns the end of a text, where errors say most.
func cutText(text string) string {
	if len(text) <= mostText {
		return text
	}
	text = text[len(text)-mostText:]
	for text != "" && !utf8.RuneStart(text[0]) {
		text = text[1:] // the rest of a character
	}
	return "…" + text
}

func valueOf(of *int32) int32 {
	if of == nil {
		return 0
	}
	return *of
}
