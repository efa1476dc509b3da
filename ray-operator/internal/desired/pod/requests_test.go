package pod_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

// TestRequestsAreThoseOfBuiltPods: whatever a pod is made of.
func TestRequestsAreThoseOfBuiltPods(t *testing.T) {
	for name, group := range map[string]v1beta1.WorkerGroup{
		"by default": testkit.Group("cpu", 1), "sized": sized(), "templated": templated(),
	} {
		cluster := testkit.Cluster("demo", group)
		cluster.Spec.Head.Size = testkit.Resources("cpu", "3")
		asBuilt(t, name, cluster)
		cluster.Spec.Autoscaling = &v1beta1.Autoscaling{Size: testkit.Resources("cpu", "100m")}
		asBuilt(t, name+", autoscaled", cluster)
		cluster.Spec.Head.Template = testkit.Template()
		cluster.Spec.Head.Template.Spec.InitContainers = []corev1.Container{{
			Name: "large", Resources: corev1.ResourceRequirements{Requests: testkit.Resources("cpu", "3")},
		}}
		asBuilt(t, name+", autoscaled beside an init container", cluster)
	}
}

// TestRequests_CountLimits: what has a limit and no request requests it, whichever container it is of.
func TestRequests_CountLimits(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	limits := corev1.ResourceRequirements{Limits: testkit.Resources("cpu", "2", "memory", "3Gi", "nvidia.com/gpu", "1")}
	for name, test := range map[string]struct {
		edit func(*corev1.PodSpec)
		want corev1.ResourceList
	}{
		"Ray's": {func(s *corev1.PodSpec) { s.Containers[0].Resources = limits }, testkit.Resources("cpu", "2", "memory", "3Gi", "nvidia.com/gpu", "1")},
		"with another request": {
			func(s *corev1.PodSpec) {
				s.Containers[0].Resources = corev1.ResourceRequirements{Requests: testkit.Resources("cpu", "1"), Limits: limits.Limits}
			}, testkit.Resources("cpu", "1", "memory", "3Gi", "nvidia.com/gpu", "1"),
		},
		"requests alone": {
			func(s *corev1.PodSpec) {
				s.Containers[0].Resources = corev1.ResourceRequirements{Requests: testkit.Resources("cpu", "1", "memory", "1Gi")}
			}, testkit.Resources("cpu", "1", "memory", "1Gi"),
		},
		"a device of an unknown name": {
			func(s *corev1.PodSpec) {
				s.Containers[0].Resources = corev1.ResourceRequirements{Limits: testkit.Resources("volcano.sh/vgpu-number", "2")}
			}, testkit.Resources("volcano.sh/vgpu-number", "2"),
		},
		"a container beside it": {
			func(s *corev1.PodSpec) {
				s.Containers = append(s.Containers, corev1.Container{Name: "b", Resources: limits})
			},
			testkit.Resources("cpu", "3", "memory", "5Gi", "nvidia.com/gpu", "1"),
		},
		"a sidecar": {
			func(s *corev1.PodSpec) {
				s.InitContainers = []corev1.Container{{Name: "b", RestartPolicy: &always, Resources: limits}}
			},
			testkit.Resources("cpu", "3", "memory", "5Gi", "nvidia.com/gpu", "1"),
		},
		"an init container": {
			func(s *corev1.PodSpec) { s.InitContainers = []corev1.Container{{Name: "b", Resources: limits}} },
			testkit.Resources("cpu", "2", "memory", "3Gi", "nvidia.com/gpu", "1"),
		},
	} {
		group := testkit.Group("g", 1)
		group.Template = testkit.Template(corev1.Container{Name: "ray"})
		test.edit(&group.Template.Spec)
		cluster := testkit.Cluster("demo", group)
		before := cluster.DeepCopy()
		if diff := cmp.Diff(test.want, pod.Requests(cluster, "g")); diff != "" {
			t.Errorf("%s (- want):\n%s", name, diff)
		}
		asBuilt(t, name, cluster)
		if diff := cmp.Diff(before, cluster); diff != "" {
			t.Errorf("%s: the spec was changed:\n%s", name, diff)
		}
	}
}

// taken is a pod as the API server takes it: what has a limit and no request requests it.
func taken(built *corev1.Pod) *corev1.Pod {
	pod := built.DeepCopy()
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			requests := containers[i].Resources.Limits.DeepCopy()
			for name, quantity := range containers[i].Resources.Requests {
				if requests == nil {
					requests = corev1.ResourceList{}
				}
				requests[name] = quantity
			}
			containers[i].Resources.Requests = requests
		}
	}
	return pod
}

// asBuilt compares what is said of the pods of a cluster with the pods.
func asBuilt(t *testing.T, name string, cluster *v1beta1.ComputeCluster) {
	t.Helper()
	for _, of := range []struct {
		group string
		built *corev1.Pod
	}{{"", operatorImage.Complete(pod.Head(cluster, 1), cluster)}, {cluster.Spec.WorkerGroups[0].Name, worker(cluster)}} {
		want := resourcehelper.PodRequests(taken(of.built), resourcehelper.PodResourcesOptions{})
		if diff := cmp.Diff(want, pod.Requests(cluster, of.group)); diff != "" {
			t.Errorf("%s, group %q (- built, + requests):\n%s", name, of.group, diff)
		}
	}
}

func TestStartedWith(t *testing.T) {
	args := pod.Head(testkit.Cluster("demo"), 1).Spec.Containers[0].Args
	kept := pod.StartedWith(args)
	if len(kept) != 1 || kept[0] != "--object-store-memory=1288490160" {
		t.Errorf("of %q, %q are kept", args, kept)
	}
	if kept := pod.StartedWith([]string{"--head"}); kept != nil {
		t.Errorf("%q are kept", kept)
	}
}
