package explain

import (
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// PhaseOfSchedule returns the phase of a schedule, whose status has none, in the words of other kinds: Running while one of
// its jobs has not ended. One that is suspended is so beside jobs that go on.
func PhaseOfSchedule(schedule *v1beta1.ClusterJobSchedule) string {
	is := func(condition string) bool { return meta.IsStatusConditionTrue(schedule.Status.Conditions, condition) }
	switch {
	case schedule.DeletionTimestamp != nil:
		return v1beta1.PhaseDeleting
	case is(v1beta1.ConditionStalled):
		return v1beta1.PhaseFailed
	case is(v1beta1.ConditionSuspended):
		return v1beta1.PhaseSuspended
	case schedule.Status.ActiveJobs > 0:
		return v1beta1.PhaseRunning
	case is(v1beta1.ConditionReady):
		return v1beta1.PhaseReady
	}
	return v1beta1.PhasePending
}
