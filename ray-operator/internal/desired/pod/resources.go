package pod

import (
	"encoding/json"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/naming"
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

// Requests is what a pod of a group asks Kubernetes for, or the head's under "". It is
// what a built pod asks for, without the cost of building it.
func Requests(cluster *v1alpha1.ComputeCluster, group string) corev1.ResourceList {
	d := &draft{cluster: cluster, node: &cluster.Spec.Head.NodeSpec, at: naming.Place{Group: group}, pod: &corev1.Pod{}}
	if found := FindGroup(cluster, group); found != nil {
		d.node, d.group = &found.NodeSpec, found
	}
	if d.node.Template != nil {
		d.pod.Spec = *d.node.Template.Spec.DeepCopy()
	}
	d.ray = rayContainer(&d.pod.Spec)
	sizes(d)
	return resourcehelper.PodRequests(d.pod, resourcehelper.PodResourcesOptions{})
}

// amount is what a container gets of CPU or memory: its limit, or its request where
// there is no limit.
func amount(container *corev1.Container, name corev1.ResourceName) (resource.Quantity, bool) {
	if quantity, ok := container.Resources.Limits[name]; ok {
		return quantity, true
	}
	quantity, ok := container.Resources.Requests[name]
	return quantity, ok
}

// Shares of the memory limit: the object store gets the 30 % that Ray itself takes
// by default, up to Ray's own default bound of 200 GB, and /dev/shm a tenth more than
// the object store. Ray compares the two when it starts: where /dev/shm is smaller it
// falls back to a file on disk, and above 10 GB it does not start. Ray refuses an
// object store below 75 MiB.
const (
	objectStorePercent = 30
	sharedPercent      = 110
	minObjectStore     = 75 << 20
	maxObjectStore     = 200_000_000_000
)

// objectStore is the size of the object store in bytes for a memory limit in bytes.
func objectStore(memory int64) int64 {
	return min(max(memory/100*objectStorePercent, minObjectStore), maxObjectStore)
}

// SharedMemory is the size of /dev/shm in bytes for a memory limit in bytes.
func SharedMemory(memory int64) int64 { return objectStore(memory) / 100 * sharedPercent }

// rayResources is what Ray is told of the pod: its options num-cpus (a fraction of a
// CPU counts as a whole one), num-gpus, memory (bytes), object-store-memory (bytes) and
// resources (JSON), computed from the Ray container and overridden by the user's
// rayResources. The head takes no tasks when there are worker groups.
func rayResources(d *draft) map[string]string {
	options, custom := map[string]string{}, map[string]float64{}
	idle := d.isHead() && len(d.cluster.Spec.WorkerGroups) > 0
	if cpu, ok := amount(d.ray, corev1.ResourceCPU); ok {
		options["num-cpus"] = number(cpu.Value())
	}
	if memory, ok := amount(d.ray, corev1.ResourceMemory); ok {
		store := objectStore(memory.Value())
		options["object-store-memory"] = number(store)
		options["memory"] = number(max(memory.Value()-store, 0))
	}
	counts := devices(d.ray)
	if counts[resourceGPU] > 0 || len(d.ray.Resources.Claims) == 0 { // else Ray counts what was allocated to the claims
		options["num-gpus"] = number(counts[resourceGPU])
	}
	delete(counts, resourceGPU)
	for name, count := range counts {
		custom[name] = float64(count)
	}
	if idle {
		options["num-cpus"], options["num-gpus"] = "0", "0"
		for name := range custom {
			custom[name] = 0 // said, because Ray would count what it is not told of
		}
	}
	overridden(options, custom, d.node)
	if len(custom) > 0 {
		text, _ := json.Marshal(custom) // a map of finite numbers always marshals
		options["resources"] = string(text)
	}
	return options
}

// overridden lays the user's rayResources over what was computed.
func overridden(options map[string]string, custom map[string]float64, node *v1alpha1.NodeSpec) {
	for name, quantity := range node.RayResources {
		switch name {
		case "CPU":
			options["num-cpus"] = number(quantity.Value())
		case resourceGPU:
			options["num-gpus"] = number(quantity.Value())
		case "memory":
			options["memory"] = number(quantity.Value())
		default:
			custom[name] = quantity.AsApproximateFloat64()
		}
	}
}

func number(n int64) string { return strconv.FormatInt(n, 10) }
