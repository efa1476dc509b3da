package cluster

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// TestUrgent_AFirstStatus: it waits while all is under way, and not where there is something to report.
func TestUrgent_AFirstStatus(t *testing.T) {
	for name, c := range map[string]struct {
		phase, reason string
		want          bool
	}{
		"it waits while pods have no node": {v1beta1.PhasePending, "Scheduling", false},
		"it waits while pods start":        {v1beta1.PhaseStarting, "HeadStarting", false},
		"a warning is told":                {v1beta1.PhasePending, "QuotaExceeded", true},
		"that it is ready is told":         {v1beta1.PhaseReady, "AllReady", true},
		"that it failed is told":           {v1beta1.PhaseFailed, "InvalidSpec", true},
		"that it is suspended is told":     {v1beta1.PhaseSuspended, "SuspendedBySpec", true},
	} {
		first := v1beta1.ComputeClusterStatus{
			ObservedGeneration: 1, Phase: c.phase, Conditions: []metav1.Condition{{Type: v1beta1.ConditionReady, Reason: c.reason}},
		}
		if got := isUrgent(v1beta1.ComputeClusterStatus{}, first); got != c.want {
			t.Errorf("%s: urgent %t, want %t", name, got, c.want)
		}
	}
}

// TestProgressPatience: a loop that submits what can never fit costs a write each half minute, and nothing else waits so long.
func TestProgressPatience(t *testing.T) {
	status := func(ready int32, shapes ...v1beta1.InfeasibleShape) v1beta1.ComputeClusterStatus {
		return v1beta1.ComputeClusterStatus{
			Workers: v1beta1.WorkerCounts{Ready: ready}, Autoscaling: &v1beta1.AutoscalingStatus{Infeasible: shapes},
		}
	}
	one, two, other := v1beta1.InfeasibleShape{Shape: "a", Count: 1}, v1beta1.InfeasibleShape{Shape: "a", Count: 2}, v1beta1.InfeasibleShape{Shape: "b"}
	for name, c := range map[string]struct {
		before, after v1beta1.ComputeClusterStatus
		want          time.Duration
	}{
		"another count":         {status(1, one), status(1, two), 30 * time.Second},
		"another shape":         {status(1, one), status(1, one, other), 30 * time.Second},
		"the first":             {status(1), status(1, one), 2 * time.Second},
		"the end of it":         {status(1, one), status(1), 2 * time.Second},
		"a worker more as well": {status(1, one), status(2, two), 2 * time.Second},
		"without autoscaling":   {v1beta1.ComputeClusterStatus{}, status(1, one), 2 * time.Second},
	} {
		if got := progressPatience(c.before, c.after); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
