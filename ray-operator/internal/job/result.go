package job

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/diagnose"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
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
	case reason.EntrypointFailed.Code, reason.ProcessFailed.Code, reason.MetricMissing.Code, reason.TuningFailed.Code, reason.RuntimeEnvFailed.Code, reason.JobFailed.Code,
		reason.AttemptDeadlineExceeded.Code:
		return failure
	case reason.GangLost.Code, reason.HeadLost.Code, reason.ClusterGone.Code, reason.DriverLost.Code, reason.DriverNotStarted.Code, reason.RunNotFound.Code:
		return loss
	case reason.SubmissionRefused.Code, reason.SubmissionForeign.Code, reason.StoppedInRay.Code, reason.Stopped.Code,
		reason.DeadlineExceeded.Code, reason.StartDeadlineExceeded.Code:
		return final
	default:
		return neutral
	}
}

// result is what has become of an attempt.
type result struct {
	reason.Finding
	// exit and end are as Ray told them, nil and zero where it did not.
	exit  *int32
	end   time.Time
	lines []string
	log   v1beta1.LogState
	// gone: it is judged by the absence of its head.
	gone bool
	// unseen: it is a loss that the operator has not seen itself.
	unseen bool
}

// class returns the kind of an end, of an attempt that was being stopped for a reason with a code, or was not.
func (r result) class(ending string) kind {
	switch {
	case r.Code != reason.GangLost.Code:
		return classOf(r.Code)
	case ending == r.Code: // the operator ended it
		return neutral
	case r.unseen:
		return failure
	default:
		return loss
	}
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
func judgeAttempt(v view) (result, bool) {
	answer := &v.seen.Answer
	switch {
	case v.seen.Heard && answer.Known && answer.Job.Status.Over():
		if !answer.Tailed && v.seen.Head != nil {
			return result{}, false // its last lines are on their way
		}
		if untilLossSeen(v) > 0 {
			return result{}, false
		}
		return judgeEnded(v, answer.Job), true
	case v.hasSession() && answer.Foreign: // somebody else submitted it under its name
		return result{Finding: reason.SubmissionForeign.Of(v.submissionID()), log: v1beta1.LogComplete}, true
	case v.hasSession() && answer.Refused != "":
		return result{Finding: reason.SubmissionRefused.Of(answer.Refused), log: v1beta1.LogComplete}, true
	case !v.hasSession() && v.seen.Heard && answer.Session.Name != "":
		return judgeLostHead(v.seen.Head, v.record.Bound, "another session answers at its address"), true
	}
	return judgeAbsent(v)
}

// judgeAbsent returns the result of an attempt whose cluster or head is gone, or does not know it.
func judgeAbsent(v view) (result, bool) {
	bound, answer := &v.record.Bound, &v.seen.Answer
	unknown := v.hasSession() && !answer.Known && !answer.Asked.IsZero()
	switch {
	case v.seen.Cluster == nil || v.seen.Cluster.UID != bound.UID:
		return result{Finding: reason.ClusterGone.Of(bound.Cluster, v.record.Attempt), gone: true, log: v1beta1.LogLost}, v.seen.Head == nil
	case v.seen.Head == nil:
		return judgeLostHead(v.seen.Head, v.record.Bound, "it is not there any more"), !canComeBack(v.seen.Cluster)
	case !canComeBack(v.seen.Cluster) && hasSessionEnded(v):
		return judgeLostHead(v.seen.Head, v.record.Bound, "its Ray container ended, and the session with it"), true // whenever the kubelet starts it again
	case unknown:
		return judgeUnknown(v)
	default:
		return result{}, false
	}
}

// judgeUnknown returns the result of an attempt that its own session does not know. Another operator may have submitted it
// after the head answered this one: such an answer is too old where the status has the attempt begun.
func judgeUnknown(v view) (result, bool) {
	answer, started := &v.seen.Answer, v.startedAt()
	switch {
	case !answer.Submitted.IsZero() || !started.IsZero() && answer.Asked.After(started.Add(time.Second)): // the status has whole seconds
		return result{Finding: reason.RunNotFound.Of(v.submissionID()), log: v1beta1.LogLost}, true
	case !started.IsZero():
		return result{}, false
	}
	return result{Finding: explainStop(&v.job.Spec, v.record.Ending), log: v1beta1.LogLost}, answer.Asked.After(settledAt(v)) // it never got there
}

// canComeBack reports whether the cluster's memory outlives its head: another one will know the
// attempt, and what became of it. With its workers gone nothing of it goes on.
func canComeBack(cluster *v1beta1.ComputeCluster) bool {
	return cluster.Spec.ControlStore != nil && !ptr.Deref(cluster.Spec.Suspend, false) && cluster.DeletionTimestamp == nil &&
		!meta.IsStatusConditionTrue(cluster.Status.Conditions, v1beta1.ConditionSuspended)
}

// hasSessionEnded reports whether the head's Ray container ended after the attempt was bound to its
// session, and does not answer: it will never answer as that session.
func hasSessionEnded(v view) bool {
	silent := !v.hasSession() || v.seen.Answer.Failure != ""
	return silent && diagnose.RayEnded(v.seen.Head).After(time.Unix(v.record.Bound.At, 0))
}

// settledAt returns from when on an attempt that the head does not know is taken for one that never
// got there: some time after it was last allowed to be submitted. Never while it still is.
func settledAt(v view) time.Time {
	switch {
	case v.job.DeletionTimestamp != nil:
		return v.job.DeletionTimestamp.Add(settledAfter)
	case v.record.Ending != "":
		return time.Unix(v.record.Since, 0).Add(settledAfter)
	default:
		return v.now
	}
}

// judgeLostHead returns the result of an attempt whose head is lost.
func judgeLostHead(head *corev1.Pod, bound Bound, why string) result {
	return result{
		Finding: reason.HeadLost.Of(bound.Pod, why), gone: head == nil, log: v1beta1.LogLost,
	}
}

// judgeEnded returns the result of a run that Ray says is over.
func judgeEnded(v view, job headclient.Job) result {
	f := result{exit: exitCode(job), end: job.End, Finding: nameEnd(v, job)}
	f.lines, f.log = lastOf(v.seen.Answer.Tail.Lines), v1beta1.LogComplete
	switch {
	case !v.seen.Answer.Tailed || v.seen.Answer.LogLost:
		f.lines, f.log = nil, v1beta1.LogLost
	case v.seen.Answer.Tail.Truncated:
		f.log = v1beta1.LogTruncated
	}
	return judgeGang(v, f)
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
func nameEnd(v view, job headclient.Job) reason.Finding {
	switch {
	case job.Status == headclient.JobSucceeded:
		return reason.JobSucceeded.Of(v.record.Attempt)
	case v.record.Ending != "" && (job.Status == headclient.JobStopped || job.ExitCode == nil && isSupervisorFailure(job)):
		return explainStop(&v.job.Spec, v.record.Ending)
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
		return nameExit(v, job)
	default:
		return reason.JobFailed.Of(job.ErrorType, cutText(job.Message))
	}
}

// nameExit returns the finding for a driver that ended with a code other than 0.
func nameExit(v view, job headclient.Job) reason.Finding {
	if v.isGang() {
		return nameGangEnd(v.report(), job)
	}
	return reason.EntrypointFailed.Of(*exitCode(job), describeException(job))
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
