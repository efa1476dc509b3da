package job

import (
	"slices"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// countEnd counts an attempt that ended as a failure or a loss, where it is one.
func (r *Record) countEnd(kind kind) {
	switch kind {
	case failure:
		r.Failures++
	case loss:
		r.Losses++
	}
}

// isRetried reports whether another attempt follows one that ended in a way and is counted, with an exit code or without.
func isRetried(retry *v1beta1.Retry, record *Record, kind kind, exit *int32) bool {
	switch {
	case kind != failure && kind != loss || retry == nil:
		return false
	case kind == loss && retry.InfrastructureLimit != nil:
		return record.Losses <= *retry.InfrastructureLimit
	case kind == failure && !isRetriedExit(retry.OnExitCodes, exit):
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

// retryDelay returns how long to wait after the last attempt before the next.
func retryDelay(retry *v1beta1.Retry, record Record) time.Duration {
	count := int(record.Failures + record.Losses)
	if retry == nil || count == 0 || len(record.Past) == 0 {
		return 0
	}
	if kind := classOf(record.Past[len(record.Past)-1].Reason); kind != failure && kind != loss {
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
