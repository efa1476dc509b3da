package explain_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/apiserver/explain"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

func TestPhaseOfSchedule_FollowsFromItsStatus(t *testing.T) {
	now := metav1.Now()
	for want, row := range map[string]struct {
		conditions []string
		active     int32
		deleted    *metav1.Time
	}{
		v1beta1.PhasePending:   {},
		v1beta1.PhaseReady:     {conditions: []string{v1beta1.ConditionReady}},
		v1beta1.PhaseRunning:   {conditions: []string{v1beta1.ConditionReady}, active: 1},
		v1beta1.PhaseSuspended: {conditions: []string{v1beta1.ConditionSuspended}, active: 1},
		v1beta1.PhaseFailed:    {conditions: []string{v1beta1.ConditionStalled}, active: 1},
		v1beta1.PhaseDeleting:  {conditions: []string{v1beta1.ConditionStalled}, deleted: &now},
	} {
		schedule := &v1beta1.ClusterJobSchedule{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: row.deleted}}
		schedule.Status.ActiveJobs = row.active
		for _, condition := range row.conditions {
			schedule.Status.Conditions = append(schedule.Status.Conditions, metav1.Condition{Type: condition, Status: metav1.ConditionTrue})
		}
		if got := explain.PhaseOfSchedule(schedule); got != want {
			t.Errorf("it is %s, want %s", got, want)
		}
	}
}
