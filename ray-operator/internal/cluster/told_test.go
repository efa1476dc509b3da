package cluster

import (
	"testing"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
)

// TestWaitsFor: a loop that submits what can never fit costs a write each half minute, and nothing else waits so long.
func TestWaitsFor(t *testing.T) {
	status := func(ready int32, shapes ...v1alpha1.InfeasibleShape) v1alpha1.ComputeClusterStatus {
		return v1alpha1.ComputeClusterStatus{
			Workers: v1alpha1.WorkerCounts{Ready: ready}, Autoscaling: &v1alpha1.AutoscalingStatus{Infeasible: shapes},
		}
	}
	one, two, other := v1alpha1.InfeasibleShape{Shape: "a", Count: 1}, v1alpha1.InfeasibleShape{Shape: "a", Count: 2}, v1alpha1.InfeasibleShape{Shape: "b"}
	for name, c := range map[string]struct {
		before, after v1alpha1.ComputeClusterStatus
		want          time.Duration
	}{
		"another count":         {status(1, one), status(1, two), 30 * time.Second},
		"another shape":         {status(1, one), status(1, one, other), 30 * time.Second},
		"the first":             {status(1), status(1, one), 2 * time.Second},
		"the end of it":         {status(1, one), status(1), 2 * time.Second},
		"a worker more as well": {status(1, one), status(2, two), 2 * time.Second},
		"without autoscaling":   {v1alpha1.ComputeClusterStatus{}, status(1, one), 2 * time.Second},
	} {
		if got := waitsFor(c.before, c.after); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
