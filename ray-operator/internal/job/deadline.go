package job

import (
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// enforceDeadlines stops a job or an attempt that took too long.
func enforceDeadlines(p *planner) bool {
	spec := &p.job.Spec
	began := p.job.CreationTimestamp.Time
	if p.record.Began > 0 {
		began = time.Unix(p.record.Began, 0)
	}
	ran := p.ranSince()
	switch {
	case ran.IsZero() && checkDeadline(p, spec.StartDeadlineSeconds, began):
		stopAttempt(p, reason.StartDeadlineExceeded.Of(*spec.StartDeadlineSeconds, explainWait(p.situation)))
	case !ran.IsZero() && checkDeadline(p, spec.ActiveDeadlineSeconds, ran):
		stopAttempt(p, reason.DeadlineExceeded.Of(*spec.ActiveDeadlineSeconds))
	case spec.Retry != nil && p.isBound() && !p.startedAt().IsZero() && checkDeadline(p, spec.Retry.AttemptDeadlineSeconds, p.startedAt()):
		stopAttempt(p, reason.AttemptDeadlineExceeded.Of(*spec.Retry.AttemptDeadlineSeconds))
	default:
		return false
	}
	return true
}

// checkDeadline reports whether a limit in seconds is over, counted from a moment. If not, it wakes the job then.
func checkDeadline(p *planner, limit *int32, from time.Time) bool {
	if limit == nil {
		return false
	}
	left := from.Add(time.Duration(*limit) * time.Second).Sub(p.now)
	p.wakeIn(left)
	return left <= 0
}

// explainWait returns what the job was waiting for when its deadline was over.
func explainWait(s situation) string {
	s.now = s.now.Add(-time.Nanosecond)
	trial := planner{situation: s}
	if trial.isBound() {
		watchAttempt(&trial)
	} else {
		runAttempt(&trial)
	}
	return trial.Finding.Text
}
