package pod

import (
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
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
	if v1beta1.IsGPU(name) {
		return resourceGPU
	}
	for _, known := range accelerators {
		if known.device.MatchString(string(name)) {
			return known.resource
		}
	}
	return ""
}

// gpuless are devices beside accelerators that have no GPU: Neuron devices, network adapters, and what virtual machines need.
var gpuless = regexp.MustCompile(`^(aws\.amazon\.com/neuron.*|vpc\.amazonaws\.com/.+|rdma/.+|devices\.kubevirt\.io/.+)$`)

// sharing are annotations by which schedulers give a pod a part of a GPU that no device stands for: those of KAI and Run:ai.
var sharing = []string{"gpu-fraction", "gpu-memory", "gpu-fraction-num-devices"}

// variableVisible is by which NVIDIA's container runtime gives a container GPUs that no device stands for.
const variableVisible = "NVIDIA_VISIBLE_DEVICES"

// mayHaveGPUs reports whether a container of which no GPU is known can have one all the same: by a claim, by a device of
// a name that says nothing, by a share that a scheduler gives, or by its runtime.
func (d *draft) mayHaveGPUs() bool {
	if len(d.ray.Resources.Claims) > 0 || strings.Contains(ptr.Deref(d.pod.Spec.RuntimeClassName, ""), "nvidia") {
		return true
	}
	if slices.ContainsFunc(d.ray.Env, showsGPUs) || slices.ContainsFunc(sharing, func(key string) bool { return d.pod.Annotations[key] != "" }) {
		return true
	}
	for name, quantity := range d.ray.Resources.Limits {
		if quantity.Sign() > 0 && MayBeGPU(name) {
			return true
		}
	}
	return false
}

// MayBeGPU reports whether a Kubernetes resource is a device of a name that says nothing of what it is.
func MayBeGPU(name corev1.ResourceName) bool {
	return isDevice(name) && Accelerator(name) == "" && !gpuless.MatchString(string(name))
}

// showsGPUs reports whether a variable has NVIDIA's container runtime give GPUs.
func showsGPUs(variable corev1.EnvVar) bool {
	return variable.Name == variableVisible && (variable.ValueFrom != nil || !slices.Contains([]string{"", "none", "void"}, variable.Value))
}

// isDevice reports whether a resource is neither cpu nor memory, hugepages-2Mi and the like.
func isDevice(name corev1.ResourceName) bool {
	return strings.Contains(string(name), "/") && !strings.Contains(string(name), "kubernetes.io/")
}

// devices counts what Ray is told of a container's devices: each kind as a resource of
// its own Kubernetes name, so that a task can ask for a MIG slice of a certain size or
// for a device that Ray does not know; and all kinds of an accelerator together under
// Ray's name for it. Limits count: Kubernetes refuses a device without one, and a
// request that differs from it.
func devices(container *corev1.Container) map[string]int64 {
	counts := map[string]int64{}
	for name, quantity := range container.Resources.Limits {
		if !isDevice(name) {
			continue
		}
		counts[string(name)] = quantity.Value()
		if resource := Accelerator(name); resource != "" {
			counts[resource] += quantity.Value()
		}
	}
	return counts
}
