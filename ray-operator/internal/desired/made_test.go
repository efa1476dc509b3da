package desired_test

import (
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

// TestSite_MakesNoPodOutOfDate: its defaults are in new pods, and no part of what a cluster wants of them.
func TestSite_MakesNoPodOutOfDate(t *testing.T) {
	cluster := testkit.Cluster("demo", testkit.Group("cpu", 1))
	cluster.Spec.Autoscaling = &v1beta1.Autoscaling{}
	group := &cluster.Spec.WorkerGroups[0]
	with := desired.Site{Installed: pod.Installed{
		PodDefaults: &v1beta1.PodDefaults{Labels: map[string]string{"site": "a"}}, Sizes: pod.Sizes{Autoscaling: testkit.Resources("cpu", "1")},
	}}
	head, worker := with.HeadPod(cluster, 1), with.WorkerPod(cluster, group, 0, 1)
	if head.Labels["site"] != "a" || worker.Labels["site"] != "a" {
		t.Errorf("labels %v and %v", head.Labels, worker.Labels)
	}
	if head.Annotations[v1beta1.AnnotationIntent] != pod.Intent(cluster, "") || worker.Annotations[v1beta1.AnnotationIntent] != pod.Intent(cluster, "cpu") {
		t.Error("a pod's intent is of the installation too")
	}
	if worker.Annotations[v1beta1.AnnotationShape] != pod.Shape(cluster, "cpu") {
		t.Error("a worker's shape is of the installation too")
	}
}
