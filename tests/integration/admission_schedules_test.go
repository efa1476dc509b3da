package integration

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
)

// newSchedule starts a job like another one each night.
func newSchedule(namespace, name string, like *v1alpha1.ClusterJob) *v1alpha1.ClusterJobSchedule {
	return &v1alpha1.ClusterJobSchedule{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.ClusterJobScheduleSpec{
			Schedule: "0 2 * * *", JobTemplate: v1alpha1.JobTemplate{Spec: *like.Spec.DeepCopy()},
		},
	}
}

func TestTheAPIServerAndTheRulesAgree_OnSchedules(t *testing.T) {
	t.Parallel()
	agree(t, "schedules", countsOfSchedules)
}
