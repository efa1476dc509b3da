package job

import (
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// collectLastLines reads the last lines of the attempt before, where its end is recorded and not yet in the status.
func collectLastLines(p *planner) bool {
	if p.isBound() || isTold(p.job, &p.record) {
		return false
	}
	readLastLines(p)
	return true
}

// isTold reports whether the status shows the last attempt with its lines.
func isTold(job *v1beta1.ClusterJob, record *Record) bool {
	if len(record.Past) == 0 {
		return true
	}
	entry := findAttempt(job.Status.Attempts, record.Past[len(record.Past)-1].Number)
	return entry != nil && entry.LogState != ""
}

// readLastLines asks for the last lines of an attempt that is over, or says that they are lost where its head is gone.
func readLastLines(p *planner) {
	past := p.record.Past[len(p.record.Past)-1]
	entry := entryOf(past)
	describeBound(&entry, p.record.Last)
	if former := findAttempt(p.job.Status.Attempts, past.Number); former != nil {
		entry.Message = former.Message
	}
	p.Done = &entry
	p.setPhase(v1beta1.PhaseRetrying, reason.Collecting.Of(past.Number))
	if isHeld(p.job, p.Queue) {
		p.Phase = v1beta1.PhaseSuspending
	}
	if p.seen.LastHead != nil && !isUntaken(past) { // until the status has them: what nobody asks for is forgotten
		p.Ask = &Ask{Head: p.seen.LastHead, ID: naming.Submission(p.job.Name, p.job.UID, past.Number), Session: p.record.Last.Session}
	}
	p.wakeIn(p.seen.untilTold(p.now))
	if entry.LastLines, entry.LogState = lastLinesOf(p.view, past); entry.LogState != "" {
		p.wakeIn(soon)
	} else {
		p.wakeIn(reconcile.Recheck)
	}
}

// isUntaken reports whether an attempt ended because Ray did not take it: what is there under its
// name, if anything, is somebody else's.
func isUntaken(past Past) bool {
	return past.Reason == reason.SubmissionForeign.Code || past.Reason == reason.SubmissionRefused.Code
}

// lastLinesOf returns what there is of the last lines of an attempt that is over, with no state while they are being
// read.
func lastLinesOf(v view, past Past) ([]string, v1beta1.LogState) {
	answer := &v.seen.Answer
	switch {
	case isUntaken(past):
		return nil, v1beta1.LogComplete
	case v.seen.LastHead == nil:
		return nil, v1beta1.LogLost
	case !v.seen.Heard:
		return nil, ""
	case answer.Tailed:
		f := judgeEnded(v, answer.Job)
		return f.lines, f.log
	case v.seen.isSilent(v.now), answer.Session.Name != "" && answer.Session.Name != v.record.Last.Session:
		return nil, v1beta1.LogLost
	case !answer.Asked.IsZero() && !answer.Job.Status.Over(): // it is not there, or was given up
		return nil, v1beta1.LogLost
	default:
		return nil, ""
	}
}

// soon is when to look again for what only the status was waiting for.
const soon = 100 * time.Millisecond

func lastOf(of []string) []string { return of[max(0, len(of)-LastLines):] }
