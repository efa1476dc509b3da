package validate_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/admission/corpus"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

// TestRulesKnowTheAutoscaler: whatever the operator's container takes of the head's pod is
// refused there with autoscaling, and there and then alone.
func TestRulesKnowTheAutoscaler(t *testing.T) {
	scaled := corpus.Good()
	scaled.Spec.Autoscaling = &v1beta1.Autoscaling{}
	for i := range scaled.Spec.WorkerGroups {
		scaled.Spec.WorkerGroups[i].MaxReplicas = new(int32(3))
	}
	if errs := judge(t, "ComputeCluster", scaled); len(errs) > 0 {
		t.Fatal(errs)
	}
	head := pod.OperatorImage{Image: "operator"}.Complete(pod.Head(scaled, 1), scaled)
	container := head.Spec.InitContainers[slices.IndexFunc(head.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == v1beta1.ContainerAutoscaler })]
	taken := []*corev1.PodTemplateSpec{testkit.Template(corev1.Container{Name: "ray"}, corev1.Container{Name: container.Name, Image: "mine"})}
	for _, port := range container.Ports {
		port.Name = ""
		taken = append(taken, testkit.Template(corev1.Container{Name: "ray", Ports: []corev1.ContainerPort{port}}))
	}
	for i, template := range taken {
		for _, cluster := range []*v1beta1.ComputeCluster{scaled.DeepCopy(), corpus.Good()} {
			cluster.Spec.Head.Template = template
			if refused := len(judge(t, "ComputeCluster", cluster)) > 0; refused != (cluster.Spec.Autoscaling != nil) {
				t.Errorf("%d of the head's template: refused %v with autoscaling %v", i, refused, cluster.Spec.Autoscaling != nil)
			}
			cluster.Spec.Head.Template, cluster.Spec.WorkerGroups[0].Template = nil, template
			if errs := judge(t, "ComputeCluster", cluster); len(errs) > 0 {
				t.Errorf("%d of a worker's template is refused: %v", i, errs)
			}
		}
	}
}

func TestAutoscaling_BoundsPods(t *testing.T) {
	for name, test := range map[string]struct {
		most  *int32
		hosts int32
		want  string
	}{
		"takes 10000 pods":               {new(int32(5000)), 2, ""},
		"refuses 10001 pods":             {new(int32(137)), 73, "spec.workerGroups[0].maxReplicas"},
		"counts nothing without a bound": {nil, 10001, ""},
	} {
		cluster := corpus.Good()
		cluster.Spec.Autoscaling = &v1beta1.Autoscaling{}
		cluster.Spec.WorkerGroups[0].MaxReplicas, cluster.Spec.WorkerGroups[0].HostsPerReplica = test.most, test.hosts
		if have := places(t, cluster, "autoscaling-hosts"); have != test.want {
			t.Errorf("%s: refused at %q, want %q", name, have, test.want)
		}
	}
}
