package diagnose_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/diagnose"
)

// TestRayEnded_IsOfTheRayContainer looks at what ended last, with another container beside it that ended too.
func TestRayEnded_IsOfTheRayContainer(t *testing.T) {
	ended := func(seconds int64) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.Unix(seconds, 0)}}
	}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	beside := corev1.ContainerStatus{Name: "beside", State: ended(9)}
	for name, c := range map[string]struct {
		ray  []corev1.ContainerStatus
		want time.Time
	}{
		"not told of":   {},
		"running":       {ray: []corev1.ContainerStatus{{State: running}}},
		"ended":         {ray: []corev1.ContainerStatus{{State: ended(5)}}, want: time.Unix(5, 0)},
		"ended again":   {ray: []corev1.ContainerStatus{{State: ended(5), LastTerminationState: ended(3)}}, want: time.Unix(5, 0)},
		"running again": {ray: []corev1.ContainerStatus{{State: running, LastTerminationState: ended(3)}}, want: time.Unix(3, 0)},
	} {
		pod := &corev1.Pod{}
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, beside)
		for _, status := range c.ray {
			status.Name = v1beta1.ContainerRay
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, status)
		}
		if have := diagnose.RayEnded(pod); !have.Equal(c.want) {
			t.Errorf("%s: it ended at %v, want %v", name, have, c.want)
		}
		if status := diagnose.RayStatus(pod); (status == nil) != (len(c.ray) == 0) || status != nil && status.Name != v1beta1.ContainerRay {
			t.Errorf("%s: the status is %+v", name, status)
		}
	}
}
