package job

import (
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// enforceDeadlines stops a job or an attempt that took too long, or wakes the job when it will have.
func enforceDeadlines(p *planner) bool {
	exceeded, left := findExceeded(p.view)
	p.wakeIn(left)
	if exceeded == nil {
		return false
	}
	stopAttempt(p, *exceeded)
	return true
}

// findExceeded returns the deadline that is over, nil if none is, and after how long the next one will be.
func findExceeded(v view) (exceeded *reason.Finding, left time.Duration) {
	spec, ran, started := &v.job.Spec, v.ranSince(), time.Time{}
	if v.isBound() {
		started = v.workedSince()
		if latest := v.worksAt(); !latest.IsZero() && (started.IsZero() || started.After(latest)) {
			started = latest
		}
	}
	if limit, from, of := jobDeadline(v, ran); limit != nil {
		if left = untilLimit(*limit, from, v.now); left <= 0 {
			finding := of(*limit)
			return &finding, 0
		}
	}
	if spec.Retry == nil || spec.Retry.AttemptDeadlineSeconds == nil || started.IsZero() {
		return nil, left
	}
	each := untilLimit(*spec.Retry.AttemptDeadlineSeconds, started, v.now)
	if each <= 0 {
		finding := reason.AttemptDeadlineExceeded.Of(*spec.Retry.AttemptDeadlineSeconds)
		return &finding, left
	}
	return nil, reconcile.Soonest(left, each)
}

// jobDeadline returns the deadline of the job as a whole, from when it counts, and the finding where it is over; nil where it has
// none. The time is when the job first ran.
func jobDeadline(v view, ran time.Time) (limit *int32, from time.Time, of func(int32) reason.Finding) {
	spec := &v.job.Spec
	active := func(limit int32) reason.Finding { return reason.DeadlineExceeded.Of(limit) }
	began := v.startedAt()
	switch {
	case !ran.IsZero():
		return spec.ActiveDeadlineSeconds, ran, active
	case spec.StartDeadlineSeconds == nil && v.isGang() && v.isBound() && !began.IsZero(): // nothing else bounds its first wait
		return spec.ActiveDeadlineSeconds, began, active
	default:
		return spec.StartDeadlineSeconds, v.beganAt(), func(limit int32) reason.Finding {
			return reason.StartDeadlineExceeded.Of(limit, explainWait(v))
		}
	}
}

// untilLimit returns how much is left of a limit in seconds that is counted from a moment.
func untilLimit(limit int32, from, now time.Time) time.Duration {
	return from.Add(time.Duration(limit) * time.Second).Sub(now)
}

// explainWait returns what the job was waiting for when its deadline was over.
func explainWait(v view) string {
	v.now = v.now.Add(-time.Nanosecond)
	trial := planner{view: v}
	if trial.isBound() {
		watchAttempt(&trial)
	} else {
		runAttempt(&trial)
	}
	return trial.Finding.Text
}
