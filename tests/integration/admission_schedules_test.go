package integration

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// newSchedule starts a job like another one each night.
func newSchedule(namespace, name string, like *v1beta1.ClusterJob) *v1beta1.ClusterJobSchedule {
	return &v1beta1.ClusterJobSchedule{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1beta1.ClusterJobScheduleSpec{
			Schedule: "0 2 * * *", JobTemplate: v1beta1.JobTemplate{Spec: *like.Spec.DeepCopy()},
		},
	}
}

func TestTheAPIServerAndTheRulesAgree_OnSchedules(t *testing.T) {
	t.Parallel()
	agree(t, "schedules", countsOfSchedules)
}
