package job

import (
	"slices"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// countEnd counts a failure or a loss, and reports whether another attempt follows.
func countEnd(p *planner, kind kind, f fate) bool {
	retry, record := p.job.Spec.Retry, &p.record
	if kind == failure {
		record.Failures++
	} else {
		record.Losses++
	}
	switch {
	case retry == nil:
		return false
	case kind == loss && retry.InfrastructureLimit != nil:
		return record.Losses <= *retry.InfrastructureLimit
	case kind == failure && !isRetriedExit(retry.OnExitCodes, f.exit):
		return false
	case retry.InfrastructureLimit != nil:
		return record.Failures <= retry.Limit
	default:
		return record.Failures+record.Losses <= retry.Limit
	}
}

// isRetriedExit reports whether a failure with an exit code is one to retry. One without an exit
// code is not among those that are named.
func isRetriedExit(codes *v1beta1.ExitCodes, exit *int32) bool {
	switch {
	case codes == nil:
		return true
	case len(codes.In) > 0:
		return exit != nil && slices.Contains(codes.In, *exit)
	default:
		return exit == nil || !slices.Contains(codes.NotIn, *exit)
	}
}

// planRetry plans another attempt.
func planRetry(p *planner, f fate) {
	number := p.record.Attempt
	p.record.Attempt++
	if p.hasOwnCluster() && (p.job.Spec.Retry.Scope == v1beta1.RetryCluster || f.Code == reason.ClusterGone.Code) {
		p.record.Own++
	}
	p.addEvent(reason.AttemptEnded.Of(number, f.Code, f.Text), "Retry")
	p.Events[len(p.Events)-1].Warning = true
	p.setPhase(v1beta1.PhaseRetrying, reason.Retrying.Of(number, f.Code, reconcile.Stamp(p.record.endedAt(p.now).Add(retryDelay(p.situation)))))
}

// retryDelay returns how long to wait after the last attempt before the next.
func retryDelay(s situation) time.Duration {
	retry, count := s.job.Spec.Retry, int(s.record.Failures+s.record.Losses)
	if retry == nil || count == 0 || len(s.record.Past) == 0 {
		return 0
	}
	if kind := classOf(s.record.Past[len(s.record.Past)-1].Reason); kind != failure && kind != loss {
		return 0
	}
	wait, most := inSeconds(retry.BackoffSeconds, 10), inSeconds(retry.MaxBackoffSeconds, 360)
	for range count - 1 {
		if wait < most {
			wait *= 2
		}
	}
	return min(wait, most)
}

// inSeconds is a time that is given in seconds, or otherwise the default.
func inSeconds(given *int32, otherwise int32) time.Duration {
	if given == nil {
		given = &otherwise
	}
	return time.Duration(*given) * time.Second
}
