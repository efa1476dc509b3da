package job

import (
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// followResult ends the bound attempt by its result: another attempt follows, the job rests, or it is closed.
func followResult(p *planner, f result) {
	stops, number := isLastAttempt(p.job, p.record.Ending), p.record.Attempt
	kind, retry := f.class(p.record.Ending), p.job.Spec.Retry
	p.Lost = f.lostHead(p.record.Bound)
	p.record.Losses += lossesInPlace(p.view)
	if mayRunOn(p.view, f) {
		p.record.Hold = p.now.Add(leaseFor + p.grace()).Unix()
	}
	entry := p.record.endAttempt(f, p.startedAt(), p.workedSince(), p.now)
	p.Done, p.Ask = &entry, nil
	suspended := kind == neutral && f.Code != reason.StopAbandoned.Code
	p.record.countEnd(kind)
	again := isRetried(retry, &p.record, kind, f.exit)
	switch {
	case stops && (suspended || again || kind == loss):
		closeJob(p, reason.Stopped.Of())
	case suspended && f.Code == reason.GangLost.Code:
		p.record.Attempt++
		p.setPhase(v1beta1.PhaseRetrying, explainRetry(p.job.Spec.Retry, p.record, p.now))
	case suspended:
		p.record.Attempt++
		p.setPhase(v1beta1.PhaseSuspending, f.Finding)
	case again:
		p.record.Attempt++
		if p.hasOwnCluster() && (retry.Scope == v1beta1.RetryCluster || f.Code == reason.ClusterGone.Code) {
			p.record.Own++
		}
		p.addEvent(reason.AttemptEnded.Of(number, f.Code, f.Text), "Retry")
		p.Events[len(p.Events)-1].Warning = true
		p.setPhase(v1beta1.PhaseRetrying, explainRetry(retry, p.record, p.now))
	default:
		closeJob(p, f.Finding)
	}
	p.wakeIn(soon)
}

// explainRetry returns what a job is at whose next attempt waits for its time.
func explainRetry(retry *v1beta1.Retry, record Record, now time.Time) reason.Finding {
	last, at := record.Past[len(record.Past)-1], record.endedAt(now).Add(retryDelay(retry, record))
	if held := time.Unix(record.Hold, 0); held.After(at) {
		at = held
	}
	return reason.Retrying.Of(last.Number, last.Reason, reconcile.Stamp(at))
}

// endAttempt moves the bound attempt to the past ones, and returns how the status tells of it: started is when Ray ran it, worked
// when it first did its work.
func (r *Record) endAttempt(f result, started, worked, now time.Time) v1beta1.JobAttempt {
	end := f.end
	if end.IsZero() {
		end = now
	}
	past := Past{Number: r.Attempt, Cluster: r.Bound.Cluster, Head: r.Bound.Head, Reason: f.Code, Exit: f.exit, End: end.Unix()}
	if !started.IsZero() {
		past.Start = started.Unix()
	}
	if !worked.IsZero() && r.Ran == 0 { // deadlines count from it, and the clock of the head may be another
		r.Ran = min(max(worked.Unix(), r.Bound.At), now.Unix())
	}
	entry := entryOf(past)
	describeBound(&entry, r.Bound)
	entry.Message, entry.LastLines, entry.LogState = f.Text, f.lines, f.log
	r.keepAttempt(past)
	r.Ended = now.Unix()
	r.Last, r.Bound, r.Ending, r.Since = r.Bound, Bound{}, "", 0
	return entry
}

// closeJob ends the job for good.
func closeJob(p *planner, finding reason.Finding) {
	phase := v1beta1.PhaseFailed
	switch finding.Code {
	case reason.JobSucceeded.Code:
		phase = v1beta1.PhaseSucceeded
	case reason.Stopped.Code, reason.StoppedInRay.Code:
		phase = v1beta1.PhaseStopped
	}
	p.record.Outcome = Outcome{Phase: phase, Reason: finding.Code, Text: finding.Text, At: p.now.Unix()}
	p.Finalizer, p.Ask = false, nil
	p.setPhase(phase, finding)
	p.addEvent(finding, "End")
}

// followEndedAttempt follows the bound attempt where it ended by itself.
func followEndedAttempt(p *planner) bool {
	if !p.isBound() {
		return false
	}
	f, is := judgeAttempt(p.view)
	if is {
		followResult(p, f)
	}
	return is
}
