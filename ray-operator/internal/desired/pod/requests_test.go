package pod_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

// TestRequestsAreThoseOfBuiltPods: whatever a pod is made of.
func TestRequestsAreThoseOfBuiltPods(t *testing.T) {
	for name, group := range map[string]v1alpha1.WorkerGroup{
		"by default": testkit.Group("cpu", 1), "sized": sized(), "templated": templated(),
	} {
		cluster := testkit.Cluster("demo", group)
		cluster.Spec.Head.Size = testkit.Resources("cpu", "3")
		asBuilt(t, name, cluster)
		cluster.Spec.Autoscaling = &v1alpha1.Autoscaling{Size: testkit.Resources("cpu", "100m")}
		asBuilt(t, name+", autoscaled", cluster)
		cluster.Spec.Head.Template = testkit.Template()
		cluster.Spec.Head.Template.Spec.InitContainers = []corev1.Container{{
			Name: "large", Resources: corev1.ResourceRequirements{Requests: testkit.Resources("cpu", "3")},
		}}
		asBuilt(t, name+", autoscaled beside an init container", cluster)
	}
}

// asBuilt compares what is said of the pods of a cluster with the pods.
func asBuilt(t *testing.T, name string, cluster *v1alpha1.ComputeCluster) {
	t.Helper()
	for _, of := range []struct {
		group string
		built *corev1.Pod
	}{{"", operatorImage.Complete(pod.Head(cluster, 1), cluster)}, {cluster.Spec.WorkerGroups[0].Name, worker(cluster)}} {
		want := resourcehelper.PodRequests(of.built, resourcehelper.PodResourcesOptions{})
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
