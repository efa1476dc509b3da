package pod

import (
	"encoding/json"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
)

// Default sizes of a Ray container. Measured on Ray 2.60: a head keeps about 1.2 GiB
// resident, a worker 0.45 GiB, before any task.
var (
	defaultCPU    = resource.MustParse("1")
	defaultMemory = map[bool]resource.Quantity{true: resource.MustParse("4Gi"), false: resource.MustParse("2Gi")}
)

// sizes fills the Ray container's resources from size, or from the defaults where
// neither size nor template says anything.
func sizes(d *draft) {
	resources := &d.ray.Resources
	if len(resources.Requests) > 0 || len(resources.Limits) > 0 {
		return
	}
	size := corev1.ResourceList{corev1.ResourceCPU: defaultCPU, corev1.ResourceMemory: defaultMemory[d.isHead()]}
	for name, quantity := range d.node.Size {
		size[name] = quantity
	}
	resources.Requests, resources.Limits = size, corev1.ResourceList{}
	for name, quantity := range size {
		if name != corev1.ResourceCPU {
			resources.Limits[name] = quantity
		}
	}
}

// amount is what a container gets of a resource: its limit, or its request where
// there is no limit.
func amount(container *corev1.Container, name corev1.ResourceName) (resource.Quantity, bool) {
	if quantity, ok := container.Resources.Limits[name]; ok {
		return quantity, true
	}
	quantity, ok := container.Resources.Requests[name]
	return quantity, ok
}

// IsGPU tells whether a Kubernetes resource is one that Ray counts as GPU: whole,
// time-shared (.shared) and MIG devices alike.
func IsGPU(name corev1.ResourceName) bool {
	switch text := string(name); {
	case text == "nvidia.com/gpu", text == "nvidia.com/gpu.shared", text == "amd.com/gpu":
		return true
	default:
		return strings.HasPrefix(text, "nvidia.com/mig-")
	}
}

// Shares of the memory limit: the object store gets the 30 % that Ray itself takes
// by default, and /dev/shm a tenth more than the object store, so that Ray never
// falls back to a file on disk. Ray refuses an object store below 75 MiB.
const (
	objectStorePercent = 30
	sharedPercent      = 110
	minObjectStore     = 75 << 20
)

// objectStore is the size of the object store in bytes for a memory limit in bytes.
func objectStore(memory int64) int64 { return max(memory/100*objectStorePercent, minObjectStore) }

// rayResources is what Ray is told of the pod: its options num-cpus, num-gpus, memory
// (bytes), object-store-memory (bytes) and resources (JSON), computed from the Ray
// container and overridden by the user's rayResources. The head takes no tasks when
// there are worker groups.
func rayResources(d *draft) map[string]string {
	options := map[string]string{}
	if cpu, ok := amount(d.ray, corev1.ResourceCPU); ok {
		options["num-cpus"] = strconv.FormatInt(cpu.Value(), 10)
	}
	if memory, ok := amount(d.ray, corev1.ResourceMemory); ok {
		store := objectStore(memory.Value())
		options["object-store-memory"] = strconv.FormatInt(store, 10)
		options["memory"] = strconv.FormatInt(max(memory.Value()-store, 0), 10)
	}
	options["num-gpus"] = strconv.FormatInt(gpus(d.ray), 10)
	if d.isHead() && len(d.cluster.Spec.WorkerGroups) > 0 {
		options["num-cpus"], options["num-gpus"] = "0", "0"
	}
	overridden(options, d.node)
	return options
}

func gpus(container *corev1.Container) int64 {
	var count int64
	for name := range container.Resources.Limits {
		if IsGPU(name) {
			quantity := container.Resources.Limits[name]
			count += quantity.Value()
		}
	}
	return count
}

// overridden lays the user's rayResources over what was computed.
func overridden(options map[string]string, node *v1alpha1.NodeSpec) {
	custom := map[string]float64{}
	for name, quantity := range node.RayResources {
		switch name {
		case "CPU":
			options["num-cpus"] = strconv.FormatInt(quantity.Value(), 10)
		case "GPU":
			options["num-gpus"] = strconv.FormatInt(quantity.Value(), 10)
		case "memory":
			options["memory"] = strconv.FormatInt(quantity.Value(), 10)
		default:
			custom[name] = quantity.AsApproximateFloat64()
		}
	}
	if len(custom) > 0 {
		text, _ := json.Marshal(custom) // a map of finite numbers always marshals
		options["resources"] = string(text)
	}
}
