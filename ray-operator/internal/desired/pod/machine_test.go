package pod_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

// selecting is a group of one device per worker on nodes that a selector asks for.
func selecting(device string, selector map[string]string) v1beta1.WorkerGroup {
	group := withContainer(corev1.Container{Resources: corev1.ResourceRequirements{Limits: testkit.Resources(device, "4")}})
	group.Template.Spec.NodeSelector = selector
	return group
}

// TestGroupShape_ForetellsAccelerators: a well-known node selector tells which accelerator Ray will find.
func TestGroupShape_ForetellsAccelerators(t *testing.T) {
	for _, test := range []struct{ label, value, want string }{
		{"cloud.google.com/gke-accelerator", "nvidia-tesla-a100", "A100"}, {"cloud.google.com/gke-accelerator", "nvidia-h100-mega-80gb", "H100"},
		{"cloud.google.com/gke-accelerator", "nvidia-l4", "L4"}, {"cloud.google.com/gke-accelerator", "nvidia-h200-141gb", "H200"},
		{"cloud.google.com/gke-accelerator", "nvidia-rtx-pro-6000", "RTX-PRO-6000"},
		{"k8s.amazonaws.com/accelerator", "nvidia-tesla-v100", "V100"},
		{"karpenter.k8s.aws/instance-gpu-name", "a10g", "A10G"}, {"karpenter.k8s.aws/instance-gpu-name", "l40s", "L40S"},
		{"karpenter.azure.com/sku-gpu-name", "T4", "T4"},
		{"node.kubernetes.io/instance-type", "Standard_NC24ads_A100_v4", "A100"}, {"node.kubernetes.io/instance-type", "a2-highgpu-1g", ""},
		{"nvidia.com/gpu.product", "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "A100"}, {"nvidia.com/gpu.product", "Tesla-T4", "T4"},
		{"nvidia.com/gpu.product", "NVIDIA-GeForce-RTX-4090", ""}, {"pool", "a100", ""},
	} {
		cluster := testkit.Cluster("demo", selecting("nvidia.com/gpu", map[string]string{test.label: test.value}))
		resources, labels := pod.GroupShape(cluster, &cluster.Spec.WorkerGroups[0])
		if got := labels["ray.io/accelerator-type"]; got != test.want {
			t.Errorf("%s=%s: the accelerator is %q, want %q", test.label, test.value, got, test.want)
		}
		if test.want != "" && resources["accelerator_type:"+test.want] != 1 {
			t.Errorf("%s=%s: tasks cannot ask for it by accelerator_type: %v", test.label, test.value, resources)
		}
		cluster = testkit.Cluster("demo", selecting("rdma/hca", map[string]string{test.label: test.value}))
		if _, labels = pod.GroupShape(cluster, &cluster.Spec.WorkerGroups[0]); labels["ray.io/accelerator-type"] != "" {
			t.Errorf("%s=%s: a worker without GPUs has %v", test.label, test.value, labels)
		}
	}
}

// TestGroupShape_ForetellsSlices: GKE's selectors of TPUs tell what Ray calls the slice, and each host is told the same.
func TestGroupShape_ForetellsSlices(t *testing.T) {
	for _, test := range []struct{ kind, topology, want, generation string }{
		{"tpu-v4-podslice", "2x2x2", "v4-16", "TPU-V4"}, {"tpu-v5-lite-podslice", "4x4", "v5litepod-16", "TPU-V5LITEPOD"},
		{"tpu-v5p-slice", "2X2x1", "v5p-8", "TPU-V5P"}, {"tpu-v6e-slice", "2x4", "v6e-8", "TPU-V6E"}, {"tpu7x", "2x2x1", "v7x-8", "TPU-V7X"},
		{"tpu-v9-slice", "2x2", "", ""}, {"tpu-v4-podslice", "", "", ""}, {"tpu-v4-podslice", "2x0", "", ""}, {"tpu-v4-podslice", "99999x2", "", ""},
	} {
		group := selecting("google.com/tpu", map[string]string{
			"cloud.google.com/gke-tpu-accelerator": test.kind, "cloud.google.com/gke-tpu-topology": test.topology,
		})
		cluster := testkit.Cluster("demo", group)
		resources, labels := pod.GroupShape(cluster, &cluster.Spec.WorkerGroups[0])
		got := []string{labels["ray.io/tpu-pod-type"], labels["ray.io/accelerator-type"], variables(t, worker(cluster))["TPU_ACCELERATOR_TYPE"]}
		if diff := cmp.Diff([]string{test.want, test.generation, test.want}, got); diff != "" {
			t.Errorf("%s of %q: the slice, its generation, and what the host is told: %s", test.kind, test.topology, diff)
		}
		if has := resources["accelerator_type:"+test.generation] == 1; has != (test.generation != "") {
			t.Errorf("%s of %q: %v", test.kind, test.topology, resources)
		}
	}
}

// TestGroupShape_ForetellsMarketAndZone: from selectors, of podDefaults too. What the user says wins.
func TestGroupShape_ForetellsMarketAndZone(t *testing.T) {
	group := testkit.Group("cpu", 1)
	cluster := testkit.Cluster("demo", group)
	labels := func() map[string]string {
		_, all := pod.GroupShape(cluster, &cluster.Spec.WorkerGroups[0])
		_, told := told(t, worker(cluster))
		told["ray.io/node-group"] = "cpu"
		if variable := all["ray.io/market-type"]; variable == "reserved" {
			told["ray.io/market-type"] = variable // Ray makes it of the variable
		}
		if diff := cmp.Diff(all, told); diff != "" {
			t.Errorf("labels that are foretold and those that Ray is told: %s", diff)
		}
		return all
	}
	cluster.Spec.PodDefaults = &v1beta1.PodDefaults{NodeSelector: map[string]string{
		"karpenter.sh/capacity-type": "spot", "topology.kubernetes.io/zone": "a", "topology.kubernetes.io/region": "north",
	}}
	want := map[string]string{
		"ray.io/node-group": "cpu", "ray.io/market-type": "spot", "ray.io/availability-zone": "a", "ray.io/availability-region": "north",
	}
	if diff := cmp.Diff(want, labels()); diff != "" {
		t.Errorf("of the defaults' selector: %s", diff)
	}
	cluster.Spec.WorkerGroups[0].Labels = map[string]string{"ray.io/availability-zone": "b"}
	cluster.Spec.PodDefaults.Env = []corev1.EnvVar{{Name: "RAY_NODE_MARKET_TYPE", Value: "reserved"}}
	want["ray.io/availability-zone"], want["ray.io/market-type"] = "b", "reserved"
	if diff := cmp.Diff(want, labels()); diff != "" {
		t.Errorf("of what the user says beside it: %s", diff)
	}
}
