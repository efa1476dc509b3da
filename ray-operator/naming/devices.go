package naming

import (
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// ResourceGPU and ResourceTPU are the resources as which Ray counts them.
const ResourceGPU, ResourceTPU = "GPU", "TPU"

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
	{regexp.MustCompile(`^google\.com/tpu$`), ResourceTPU},
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
		return ResourceGPU
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

// MayBeGPU reports whether a Kubernetes resource is a device of a name that says nothing of what it is.
func MayBeGPU(name corev1.ResourceName) bool {
	return IsDevice(name) && Accelerator(name) == "" && !gpuless.MatchString(string(name))
}

// IsDevice reports whether a resource is neither cpu nor memory, hugepages-2Mi and the like.
func IsDevice(name corev1.ResourceName) bool {
	return strings.Contains(string(name), "/") && !strings.Contains(string(name), "kubernetes.io/")
}
