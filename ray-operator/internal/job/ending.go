package job

import (
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// followFate ends the bound attempt by its fate: another attempt follows, the job rests, or it is closed.
func followFate(p *planner, f fate) {
	stops := isLastAttempt(p.situation)
	markLost(p, f)
	recordEnd(p, f)
	kind := classOf(f.Code)
	suspended := kind == neutral && f.Code != reason.StopAbandoned.Code
	again := (kind == failure || kind == loss) && countEnd(p, kind, f)
	switch {
	case stops && (suspended || again || kind == loss):
		closeJob(p, reason.Stopped.Of())
	case suspended:
		p.record.Attempt++
		p.setPhase(v1beta1.PhaseSuspending, f.Finding)
	case again:
		planRetry(p, f)
	default:
		closeJob(p, f.Finding)
	}
	p.wakeIn(soon)
}

// recordEnd moves the bound attempt to the past ones.
func recordEnd(p *planner, f fate) {
	record := &p.record
	start, end := p.startedAt(), f.end
	if end.IsZero() {
		end = p.now
	}
	past := Past{
		Number: record.Attempt, Cluster: record.Bound.Cluster, Head: record.Bound.Head, Reason: f.Code, Exit: f.exit, End: end.Unix(),
	}
	if !start.IsZero() {
		past.Start = start.Unix()
		if record.Ran == 0 { // deadlines count from it, and the clock of the head may be another
			record.Ran = min(max(past.Start, record.Bound.At), p.now.Unix())
		}
	}
	entry := entryOf(past)
	describeBound(&entry, record.Bound)
	entry.Message, entry.LastLines, entry.LogState = f.Text, f.lines, f.log
	p.Done, p.Ask = &entry, nil
	record.keepAttempt(past)
	record.Ended = p.now.Unix()
	record.Last, record.Bound, record.Ending, record.Since = record.Bound, Bound{}, "", 0
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
	f, is := judgeAttempt(p.situation)
	if is {
		followFate(p, f)
	}
	return is
}
