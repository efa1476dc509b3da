package pod_test

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

// TestAmountsOfAResizedWorker: Ray counts what the pod has now, less the object store that
// it was started with, and nothing that rayResources fixes.
func TestAmountsOfAResizedWorker(t *testing.T) {
	const gib, store = 1 << 30, 2576980350 // of 8 GiB
	cluster := testkit.Cluster("demo", testkit.Sized(testkit.Group("cpu", 1), "cpu", "2", "memory", "8Gi"))
	running := worker(cluster)
	side := corev1.Container{Name: "side", Resources: corev1.ResourceRequirements{Limits: testkit.Resources("cpu", "7", "memory", "7Gi")}}
	running.Spec.Containers = append([]corev1.Container{side}, running.Spec.Containers...)
	running.Spec.Containers[1].Resources = corev1.ResourceRequirements{
		Requests: testkit.Resources("cpu", "4", "memory", "16Gi"), Limits: testkit.Resources("memory", "16Gi"),
	}
	for name, test := range map[string]struct {
		edit func(c *v1beta1.ComputeCluster, running *corev1.Pod)
		want map[string]float64
	}{
		"as it is": {func(*v1beta1.ComputeCluster, *corev1.Pod) {}, map[string]float64{"CPU": 4, "memory": 16*gib - store}},
		"fixed memory": {func(c *v1beta1.ComputeCluster, _ *corev1.Pod) {
			c.Spec.WorkerGroups[0].RayResources = map[string]resource.Quantity{"memory": resource.MustParse("1Gi")}
		}, map[string]float64{"CPU": 4}},
		"no sizes": {func(_ *v1beta1.ComputeCluster, p *corev1.Pod) {
			p.Spec.Containers[1].Resources = corev1.ResourceRequirements{}
		}, map[string]float64{}},
		"no object store":      {func(_ *v1beta1.ComputeCluster, p *corev1.Pod) { p.Spec.Containers[1].Args = nil }, map[string]float64{"CPU": 4, "memory": 16 * gib}},
		"a group that is gone": {func(_ *v1beta1.ComputeCluster, p *corev1.Pod) { p.Labels[v1beta1.LabelGroup] = "gone" }, nil},
		"no ray container":     {func(_ *v1beta1.ComputeCluster, p *corev1.Pod) { p.Spec.Containers[1].Name = "other" }, nil},
	} {
		c, p := cluster.DeepCopy(), running.DeepCopy()
		test.edit(c, p)
		if have := pod.RayAmounts(c, p); !maps.Equal(have, test.want) || (have == nil) != (test.want == nil) {
			t.Errorf("%s: %v, want %v", name, have, test.want)
		}
	}
}

func TestMemoryIsTheUsersToSay(t *testing.T) {
	cluster := testkit.Cluster("demo", testkit.Group("cpu", 1))
	cluster.Spec.WorkerGroups[0].RayResources = map[string]resource.Quantity{"memory": resource.MustParse("12345")}
	if have := argument(t, worker(cluster), "memory"); have != "12345" {
		t.Errorf("memory %s", have)
	}
}

// TestImageOfTheCluster: where a group has none of its own, with how it is pulled.
func TestImageOfTheCluster(t *testing.T) {
	cluster := testkit.Cluster("demo", testkit.Group("cpu", 1))
	cluster.Spec.Image, cluster.Spec.ImagePullPolicy = "example.com/ray:all", corev1.PullNever
	for _, built := range []*corev1.Pod{pod.Head(cluster, 1), worker(cluster)} {
		if ray := built.Spec.Containers[0]; ray.Image != "example.com/ray:all" || ray.ImagePullPolicy != corev1.PullNever {
			t.Errorf("%s has the image %s, pulled %s", built.Name, ray.Image, ray.ImagePullPolicy)
		}
	}
}

// TestNothingIsMadeOfNothing: defaults without a node selector leave none behind.
func TestNothingIsMadeOfNothing(t *testing.T) {
	cluster := testkit.Cluster("demo", testkit.Group("cpu", 1))
	cluster.Spec.PodDefaults = &v1beta1.PodDefaults{Labels: map[string]string{"a": "b"}}
	if built := worker(cluster); built.Spec.NodeSelector != nil {
		t.Errorf("the node selector is %v, want none", built.Spec.NodeSelector)
	}
	cluster.Spec.PodDefaults.NodeSelector = map[string]string{"pool": "a"}
	if built := worker(cluster); !maps.Equal(built.Spec.NodeSelector, map[string]string{"pool": "a"}) {
		t.Errorf("the node selector is %v", built.Spec.NodeSelector)
	}
}

// TestOneTPUPerHost: a single chip makes a host of a slice too.
func TestOneTPUPerHost(t *testing.T) {
	group := testkit.Sized(testkit.Group("tpu", 1), "google.com/tpu", "1")
	group.HostsPerReplica = 2
	for _, variable := range worker(testkit.Cluster("demo", group)).Spec.Containers[0].Env {
		if variable.Name == "TPU_WORKER_HOSTNAMES" {
			return
		}
	}
	t.Error("the hosts of a slice do not learn of each other")
}

// TestArgumentsAreRays: what a template says beside them, where admission was passed by, is
// not mixed in.
func TestArgumentsAreRays(t *testing.T) {
	group := testkit.Group("cpu", 1)
	group.Template = testkit.Template(corev1.Container{Name: "ray", Args: []string{"--stray"}})
	for _, argument := range worker(testkit.Cluster("demo", group)).Spec.Containers[0].Args {
		if argument == "--stray" {
			t.Error("the template's argument stays")
		}
	}
}

func TestSharedMemoryIsWrittenInPowersOfTwo(t *testing.T) {
	cluster := testkit.Cluster("demo", testkit.Sized(testkit.Group("cpu", 1), "memory", "8Gi"))
	if limit := worker(cluster).Spec.Volumes[0].EmptyDir.SizeLimit; limit.Format != resource.BinarySI {
		t.Errorf("the limit of /dev/shm is written as %s", limit.Format)
	}
}
