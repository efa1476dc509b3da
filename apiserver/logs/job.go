package logs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/portal/heads"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// linesWithin is how long the operator may take to write the last lines of an attempt into the status.
const linesWithin = 30 * time.Second

// JobReference names an attempt of a ClusterJob. Attempt 0 is the last one that there is when the read begins.
type JobReference struct {
	Namespace, Name string
	Attempt         int32
}

// reading is a read of an attempt.
type reading struct {
	*session
	of  JobReference
	uid types.UID
	// missed is since when an attempt is over whose last lines are not in the status yet; zero before.
	missed time.Time
}

// ReadJob reads the output of an attempt of a ClusterJob. Before the first event an error says why there is none:
// ErrInvalid, ErrNotFound, a *heads.Unavailable, or that the API server does not answer. After it the last event is an
// end, unless the context or the sink ended the read.
//
// Who follows a job that waits, waits with it, and is told what for.
func (l *Logs) ReadJob(ctx context.Context, of JobReference, options Options, sink Sink) error {
	if err := options.check(); err != nil {
		return err
	}
	if of.Attempt < 0 {
		return ErrInvalid
	}
	r := &reading{session: l.begin(options, sink), of: of}
	for {
		job, found := l.settings.Jobs.FindJob(of.Namespace, of.Name)
		switch {
		case !found && r.uid == "":
			return ErrNotFound
		case !found, r.uid != "" && job.UID != r.uid:
			return r.finish(End{
				Outcome: Broken, Code: reason.OutputGone.Code, Message: fmt.Sprintf("ClusterJob %s was deleted", of.Name),
			})
		}
		r.uid = job.UID
		again, err := r.turn(ctx, job)
		if err != nil || !again {
			return err
		}
	}
}

// turn gives the reader what there is now of the attempt, and reports whether to look at the job again.
func (r *reading) turn(ctx context.Context, job *v1beta1.ClusterJob) (again bool, err error) {
	attempt := r.attempt(job)
	if attempt == nil {
		return r.waits(ctx, job)
	}
	r.of.Attempt, r.from.id, r.subject = attempt.Number, attempt.SubmissionID, "job "+attempt.SubmissionID
	head, err := r.logs.settings.Heads.FindHead(heads.Reference{
		Namespace: job.Namespace, Name: attempt.ClusterName, UID: attempt.ClusterUID,
	})
	if err != nil {
		return r.misses(ctx, verdict{err: err}, attempt)
	}
	if head.UID != attempt.HeadUID && !head.HasStore {
		found := reason.HeadLost.Of(attempt.HeadName, "another one is there")
		return r.misses(ctx, verdict{err: &heads.Unavailable{
			Code: found.Code, Message: found.Text, Temporary: true, RetryAfter: lookEach,
		}}, attempt)
	}
	v, err := r.pump(ctx, head)
	switch {
	case err != nil:
		return false, err
	case v.err != nil:
		return r.misses(ctx, v, attempt)
	default:
		return false, r.finish(r.explained(endOf(v), v.isOver))
	}
}

// attempt finds the attempt that is read; nil where there is none of that number yet.
func (r *reading) attempt(job *v1beta1.ClusterJob) *v1beta1.JobAttempt {
	all := job.Status.Attempts
	if r.of.Attempt == 0 && len(all) > 0 {
		return &all[len(all)-1]
	}
	at := slices.IndexFunc(all, func(a v1beta1.JobAttempt) bool { return a.Number == r.of.Attempt })
	if at < 0 {
		return nil
	}
	return &all[at]
}

// waits is for a job that has no such attempt.
func (r *reading) waits(ctx context.Context, job *v1beta1.ClusterJob) (again bool, err error) {
	code, message, remedy := saying(job)
	isOver := job.Status.EndTime != nil
	switch {
	case len(job.Status.Attempts) > 0, r.of.Attempt > 1, isOver && r.of.Attempt > 0:
		if r.hasSent { // its place in the status is another's by now
			return false, r.broken(reason.OutputGone.Of("job "+job.Name, "the status no longer lists this attempt"))
		}
		return false, ErrNotFound
	case isOver:
		return false, r.finish(End{Outcome: outcomeOf(code, nil), Code: code, Message: message, Remedy: remedy})
	case !r.options.Follow:
		return false, r.finish(End{Outcome: Pending, Code: code, Message: message, Remedy: remedy})
	}
	if err := r.notice(code, message); err != nil {
		return false, err
	}
	return true, r.logs.wait(ctx, lookEach)
}

// saying is what the operator says of a job.
func saying(job *v1beta1.ClusterJob) (code, message, remedy string) {
	ready := meta.FindStatusCondition(job.Status.Conditions, v1beta1.ConditionReady)
	if ready == nil {
		return reason.Submitting.Code, "the operator has not looked at the job yet", ""
	}
	message, remedy = reason.Split(ready.Reason, ready.Message)
	return ready.Reason, message, remedy
}

// misses handles that a head gives no output of the attempt. Of an attempt that is over nothing more will come.
func (r *reading) misses(ctx context.Context, v verdict, attempt *v1beta1.JobAttempt) (again bool, err error) {
	var unavailable *heads.Unavailable
	isAway := errors.As(v.err, &unavailable)
	switch {
	case isLost(v.err) && v.job.Status.Over(), isGone(v.err) && attempt.EndTime != nil:
		return r.outlives(ctx, v, attempt)
	case headclient.KindOf(v.err) == headclient.NotFound:
		return r.unknown(ctx, v.err, attempt)
	case isAway && !unavailable.Temporary && r.options.Follow && unavailable.IsEnding():
		// The operator will say what has become of the attempt.
		if err := r.notice(unavailable.Code, unavailable.Message); err != nil {
			return false, err
		}
		return true, r.logs.wait(ctx, lookEach)
	default:
		return r.fails(ctx, v)
	}
}

// isGone reports whether no output will come from where it was: it is not there, or its cluster or head is going or gone.
func isGone(err error) bool {
	var unavailable *heads.Unavailable
	return isLost(err) || errors.As(err, &unavailable) && (unavailable.IsEnding() || unavailable.Code == reason.HeadLost.Code)
}

// unknown handles that Ray does not know an attempt which is not over: it was not submitted yet, or is lost, which the
// operator will say.
func (r *reading) unknown(ctx context.Context, err error, attempt *v1beta1.JobAttempt) (again bool, failure error) {
	why := &heads.Unavailable{
		Code: reason.Submitting.Code, Message: fmt.Sprintf("Ray does not know attempt %d yet", attempt.Number), Temporary: true, RetryAfter: lookEach,
	}
	hasRun := r.hasData || attempt.StartTime != nil
	if hasRun {
		why.Code, why.Message = reason.RunNotFound.Code, fmt.Sprintf("Ray does not know attempt %d any more", attempt.Number)
	}
	switch {
	case r.options.Follow:
		return r.retry(ctx, err, why)
	case hasRun:
		return r.fails(ctx, verdict{err: err})
	default:
		return false, r.finish(End{Outcome: Pending, Code: why.Code, Message: why.Message})
	}
}

// outlives ends the read of an attempt whose output is gone: with the last lines that the status kept, for a reader that
// had nothing yet, and with how the attempt ended.
func (r *reading) outlives(ctx context.Context, v verdict, attempt *v1beta1.JobAttempt) (again bool, err error) {
	now := r.logs.settings.Clock.Now()
	if r.missed.IsZero() {
		r.missed = now
	}
	if attempt.LogState == "" && r.options.Follow && now.Sub(r.missed) < linesWithin {
		return true, r.logs.wait(ctx, lookEach)
	}
	why, lines := causeOf(v.err), r.lines(attempt)
	if len(lines) > 0 {
		why += fmt.Sprintf("; its last %d lines follow, which its status kept", len(lines))
	}
	found := reason.OutputGone.Of("job "+r.of.Name, why)
	message, _ := reason.Split(found.Code, found.Text)
	if err := r.notice(found.Code, message); err != nil {
		return false, err
	}
	if len(lines) > 0 {
		if err := r.send(Event{Data: []byte(strings.Join(lines, "\n") + "\n")}); err != nil {
			return false, err
		}
	}
	if attempt.EndTime != nil {
		return false, r.finish(ended(attempt))
	}
	return false, r.finish(r.explained(judge(v.job), true))
}

// causeOf is why there is no output, without what helps.
func causeOf(err error) string {
	var unavailable *heads.Unavailable
	if errors.As(err, &unavailable) {
		return unavailable.Message
	}
	return headclient.CauseOf(err)
}

// lines are the last lines of an attempt that the status kept, for a reader that has had nothing of the output.
func (r *reading) lines(attempt *v1beta1.JobAttempt) []string {
	if r.hasData || r.options.Offset > 0 {
		return nil
	}
	lines := attempt.LastLines
	if tail := r.options.Tail; tail > 0 {
		lines = lines[max(0, len(lines)-tail):]
	}
	return lines
}

// explained adds to an end what the operator says of the attempt: it knows why a run was stopped.
func (r *reading) explained(end End, isOver bool) End {
	job, found := r.logs.settings.Jobs.FindJob(r.of.Namespace, r.of.Name)
	if !found || job.UID != r.uid || !isOver {
		return end
	}
	attempt := r.attempt(job)
	if attempt == nil || attempt.Reason == "" || end.Outcome != Stopped {
		return end
	}
	end.Outcome, end.Code = outcomeOf(attempt.Reason, nil), attempt.Reason
	end.Message, end.Remedy = "the attempt was stopped", ""
	if attempt.Message != "" {
		end.Message, end.Remedy = reason.Split(attempt.Reason, attempt.Message)
	}
	return end
}

// ended is how an attempt ended, by its status.
func ended(attempt *v1beta1.JobAttempt) End {
	message, remedy := reason.Split(attempt.Reason, attempt.Message)
	if message == "" {
		message = fmt.Sprintf("attempt %d is over", attempt.Number)
	}
	return End{Outcome: outcomeOf(attempt.Reason, attempt.ExitCode), ExitCode: attempt.ExitCode, Code: attempt.Reason, Message: message, Remedy: remedy}
}

// outcomeOf sorts the reasons for which jobs and attempts end.
func outcomeOf(code string, exit *int32) Outcome {
	switch code {
	case reason.JobSucceeded.Code:
		return Succeeded
	case reason.Stopped.Code, reason.StoppedInRay.Code, reason.JobSuspended.Code, reason.JobPreempted.Code:
		return Stopped
	}
	if exit != nil && *exit == 0 {
		return Succeeded
	}
	return Failed
}
