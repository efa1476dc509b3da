package job

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// TestGivenGrace: the pods of a gang's own cluster have its grace, and no less than the user gives.
func TestGivenGrace(t *testing.T) {
	job := train(own, gang, func(j *v1beta1.ClusterJob) {
		spec := &j.Spec.ClusterTemplate.Spec
		spec.RayVersion = "2.57.0"
		spec.WorkerGroups = append(spec.WorkerGroups, v1beta1.WorkerGroup{Name: "gpu", NodeSpec: v1beta1.NodeSpec{Template: &corev1.PodTemplateSpec{
			Spec: corev1.PodSpec{TerminationGracePeriodSeconds: new(int64(500)), Containers: []corev1.Container{
				{Name: "beside"}, {Name: "ray", Env: []corev1.EnvVar{{Name: "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S", Value: "400"}}, Lifecycle: &corev1.Lifecycle{
					PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 1}},
				}},
			}},
		}}})
	})
	before := job.DeepCopy()
	spec := ownCluster(job, 1).Spec
	for name, test := range map[string]struct {
		node         v1beta1.NodeSpec
		grace        int64
		drain, waits string
	}{
		"head":             {spec.Head.NodeSpec, 40, "35", ""},
		"worker":           {spec.WorkerGroups[0].NodeSpec, 40, "35", "exec"},
		"worker of a user": {spec.WorkerGroups[1].NodeSpec, 500, "400", "sleep"},
	} {
		pod := test.node.Template.Spec
		ray := pod.Containers[len(pod.Containers)-1]
		waits := ""
		if ray.Lifecycle != nil {
			waits = map[bool]string{true: "exec", false: "sleep"}[ray.Lifecycle.PreStop.Exec != nil]
		}
		if *pod.TerminationGracePeriodSeconds != test.grace || ray.Name != "ray" || len(ray.Env) != 1 || ray.Env[0].Value != test.drain || waits != test.waits {
			t.Errorf("%s: %d s, %+v", name, *pod.TerminationGracePeriodSeconds, ray)
		}
	}
	if !reflect.DeepEqual(job, before) {
		t.Error("the job was changed")
	}
	job.Spec.ClusterTemplate.Spec.RayVersion = "2.58.0"
	if ray := ownCluster(job, 1).Spec.WorkerGroups[0].Template.Spec.Containers[0]; ray.Lifecycle != nil {
		t.Errorf("with a Ray that drains: %+v", ray.Lifecycle)
	}
}
