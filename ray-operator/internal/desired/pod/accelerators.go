package pod

import (
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
)

const resourceGPU, resourceTPU = "GPU", "TPU"

// accelerators are the devices beside GPUs that Ray knows, by the names that their vendors'
// device plugins give them, and the resource as which Ray's tasks ask for them. A part
// of a device counts as one, as of a GPU: a partition, a virtual NPU.
//
// Not here: aws.amazon.com/neuron, because Ray counts cores, of which a Neuron device
// has 2 to 8; Ray finds out by itself.
var accelerators = []struct {
	device   *regexp.Regexp
	resource string
}{
	{regexp.MustCompile(`^google\.com/tpu$`), resourceTPU},
	{regexp.MustCompile(`^aws\.amazon\.com/neuroncore$`), "neuron_cores"},
	{regexp.MustCompile(`^habana\.ai/gaudi$`), "HPU"},
	// huawei.com/Ascend910B4-memory is an amount of memory, not a device.
	{regexp.MustCompile(`^huawei\.com/Ascend[^-]+(-[0-9]+c.*|-V|-VPro|-IPro)?$`), "NPU"},
	{regexp.MustCompile(`^rebellions\.ai/.+$`), "RBLN"},
	{regexp.MustCompile(`^furiosa\.ai/.+$`), "FURIOSA"},
}

// Accelerator is the resource as which Ray counts a Kubernetes device, or empty for
// one that it does not know.
func Accelerator(name corev1.ResourceName) string {
	if v1alpha1.IsGPU(name) {
		return resourceGPU
	}
	for _, known := range accelerators {
		if known.device.MatchString(string(name)) {
			return known.resource
		}
	}
	return ""
}

// devices counts what Ray is told of a container's devices: each kind as a resource of
// its own Kubernetes name, so that a task can ask for a MIG slice of a certain size or
// for a device that Ray does not know; and all kinds of an accelerator together under
// Ray's name for it. Limits count: Kubernetes refuses a device without one, and a
// request that differs from it.
func devices(container *corev1.Container) map[string]int64 {
	counts := map[string]int64{}
	for name, quantity := range container.Resources.Limits {
		if text := string(name); !strings.Contains(text, "/") || strings.Contains(text, "kubernetes.io/") {
			continue // cpu, memory, hugepages-2Mi and the like
		}
		counts[string(name)] = quantity.Value()
		if resource := Accelerator(name); resource != "" {
			counts[resource] += quantity.Value()
		}
	}
	return counts
}
