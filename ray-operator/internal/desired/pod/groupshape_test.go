package pod_test

import (
	"encoding/json"
	"maps"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

// told are the amounts and labels that a pod's start command tells Ray of, by Ray's names.
func told(t *testing.T, of *corev1.Pod) (resources map[string]float64, labels map[string]string) {
	t.Helper()
	resources, labels = map[string]float64{}, map[string]string{}
	if text := argument(t, of, "resources"); text != "" {
		if err := json.Unmarshal([]byte(text), &resources); err != nil {
			t.Fatal(err)
		}
	}
	for option, name := range map[string]string{"num-cpus": "CPU", "num-gpus": "GPU", "memory": "memory", "object-store-memory": "object_store_memory"} {
		if text := argument(t, of, option); text != "" {
			amount, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			resources[name] = amount
		}
	}
	maps.DeleteFunc(resources, func(_ string, amount float64) bool { return amount == 0 })
	if text := argument(t, of, "labels"); text != "" {
		for pair := range strings.SplitSeq(text, ",") {
			key, value, _ := strings.Cut(pair, "=")
			labels[key] = value
		}
	}
	return resources, labels
}

// withContainer is a group whose Ray container is given.
func withContainer(ray corev1.Container) v1beta1.WorkerGroup {
	ray.Name = v1beta1.ContainerRay
	group := testkit.Group("own", 1)
	group.Template = testkit.Template(ray)
	return group
}

// TestGroupShapeIsWhatRayIsTold: for whatever group, it has the amounts and the labels of
// the start command, the group's label beside them, and nothing that differs between
// replicas.
func TestGroupShapeIsWhatRayIsTold(t *testing.T) {
	zeroes := sized()
	zeroes.RayResources = map[string]resource.Quantity{"CPU": resource.MustParse("0"), "reader": resource.MustParse("0")}
	for name, group := range map[string]v1beta1.WorkerGroup{
		"by default": testkit.Group("cpu", 1), "sized": sized(), "templated": templated(), "of a slice": sliced().Spec.WorkerGroups[0],
		"nothing of some": zeroes,
		"a domain":        domain(),
		"no resources known": withContainer(corev1.Container{Resources: corev1.ResourceRequirements{
			Limits: testkit.Resources("nvidia.com/gpu", "1"),
		}}),
		"a device that may be a GPU": withContainer(corev1.Container{Resources: corev1.ResourceRequirements{
			Limits: testkit.Resources("volcano.sh/vgpu-number", "1", "memory", "2Gi"),
		}}),
		"allocated later": withContainer(corev1.Container{Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "gpus"}}}}),
	} {
		cluster := testkit.Cluster("demo", group)
		resources, labels := told(t, worker(cluster))
		delete(labels, pod.LabelGPUDomain)
		labels["ray.io/node-group"] = group.Name
		haveResources, haveLabels := pod.GroupShape(cluster, &cluster.Spec.WorkerGroups[0])
		if diff := cmp.Diff(resources, haveResources); diff != "" {
			t.Errorf("%s, resources (- told, + shape):\n%s", name, diff)
		}
		if diff := cmp.Diff(labels, haveLabels); diff != "" {
			t.Errorf("%s, labels (- told, + shape):\n%s", name, diff)
		}
	}
}

// domain is a group of two hosts with GPUs, which share a domain.
func domain() v1beta1.WorkerGroup {
	group := testkit.Sized(testkit.Group("nvl", 1), "nvidia.com/gpu", "4")
	group.HostsPerReplica, group.Labels = 2, map[string]string{"rack": "a"}
	return group
}

// TestGroupShapeInRaysTerms holds one in full.
func TestGroupShapeInRaysTerms(t *testing.T) {
	cluster := testkit.Cluster("demo", sized())
	resources, labels := pod.GroupShape(cluster, &cluster.Spec.WorkerGroups[0])
	want := map[string]float64{
		"CPU": 3, "GPU": 3, "nvidia.com/gpu": 2, "nvidia.com/mig-1g.5gb": 1, "reader": 0.5,
		"memory": 12025908454, "object_store_memory": 5153960730,
	}
	if diff := cmp.Diff(want, resources); diff != "" {
		t.Errorf("resources (- want):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"market": "spot", "accelerator": "a100", "ray.io/node-group": "gpu"}, labels); diff != "" {
		t.Errorf("labels (- want):\n%s", diff)
	}
}

// TestLabelsOfVariables: Ray makes labels of variables of its container; those that are
// plain text are known beforehand, from the template or from podDefaults.
func TestLabelsOfVariables(t *testing.T) {
	group := withContainer(corev1.Container{
		Resources: corev1.ResourceRequirements{Limits: testkit.Resources("google.com/tpu", "4")},
		Env: []corev1.EnvVar{
			{Name: "RAY_NODE_MARKET_TYPE", Value: "spot"}, {Name: "RAY_NODE_ZONE", Value: "a"}, {Name: "TPU_TOPOLOGY", Value: " 2X2x1 "},
		},
	})
	chip := testkit.Sized(testkit.Group("chip", 1), "google.com/tpu", "1")
	cluster := testkit.Cluster("demo", group, testkit.Group("cpu", 1), chip)
	cluster.Spec.PodDefaults = &v1beta1.PodDefaults{Env: []corev1.EnvVar{
		{Name: "RAY_NODE_MARKET_TYPE", Value: "on-demand"}, {Name: "RAY_NODE_REGION", Value: "north"}, {Name: "RAY_NODE_ZONE", Value: "$(OTHER)"},
		{Name: "TPU_TOPOLOGY", Value: "4x4"},
	}}
	before := cluster.DeepCopy()
	for i, want := range []map[string]string{
		{
			"ray.io/node-group": "own", "ray.io/market-type": "spot", "ray.io/availability-zone": "a", "ray.io/availability-region": "north",
			"ray.io/tpu-topology": "2x2x1",
		},
		{"ray.io/node-group": "cpu", "ray.io/market-type": "on-demand", "ray.io/availability-region": "north"},
		{
			"ray.io/node-group": "chip", "ray.io/market-type": "on-demand", "ray.io/availability-region": "north",
			"ray.io/tpu-topology": "4x4",
		},
	} {
		_, labels := pod.GroupShape(cluster, &cluster.Spec.WorkerGroups[i])
		if diff := cmp.Diff(want, labels); diff != "" {
			t.Errorf("group %d (- want):\n%s", i, diff)
		}
	}
	if diff := cmp.Diff(before, cluster); diff != "" {
		t.Errorf("the spec was changed:\n%s", diff)
	}
}
