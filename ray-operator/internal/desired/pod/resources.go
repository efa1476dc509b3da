package pod

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/defaults"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// defaultCPU is that of a Ray container.
var defaultCPU = resource.MustParse("1")

// sizes fills the Ray container's resources from size, or from the defaults where
// neither size nor template says anything.
func sizes(d *draft) {
	resources := &d.ray.Resources
	if len(resources.Requests) > 0 || len(resources.Limits) > 0 {
		return
	}
	standard := corev1.ResourceList{corev1.ResourceCPU: defaultCPU, corev1.ResourceMemory: defaults.Memory(d.isHead())}
	sized := Sized(Over(standard, d.node.Size))
	resources.Requests, resources.Limits = sized.Requests, sized.Limits
}

// outline is a draft of the pods of a group, or of the head where that is nil, as far as
// their sizes.
func outline(cluster *v1beta1.ComputeCluster, group *v1beta1.WorkerGroup) *draft {
	d := &draft{cluster: cluster, node: &cluster.Spec.Head.NodeSpec, pod: &corev1.Pod{}}
	if group != nil {
		d.node, d.group, d.at.Group = &group.NodeSpec, group, group.Name
	}
	if d.node.Template != nil {
		template := d.node.Template.DeepCopy()
		d.pod.Annotations, d.pod.Spec = template.Annotations, template.Spec
	}
	d.ray = rayContainer(&d.pod.Spec)
	sizes(d)
	return d
}

// Requests is what a pod of a group asks Kubernetes for, or the head's under "". It is
// what a built pod asks for once the API server has taken it, without the cost of building it.
func Requests(cluster *v1beta1.ComputeCluster, group string) corev1.ResourceList {
	d := outline(cluster, naming.FindGroup(cluster, group))
	ours := OperatorImage{Image: "any"}.containers(cluster, d.isHead(), nil)
	d.pod.Spec.InitContainers = slices.Concat(ours, d.pod.Spec.InitContainers)
	if d.isCollected() {
		d.pod.Spec.InitContainers = append(d.pod.Spec.InitContainers, OperatorImage{}.collector(d, &History{}))
	}
	complete(&d.pod.Spec)
	return resourcehelper.PodRequests(d.pod, resourcehelper.PodResourcesOptions{})
}

// complete fills in the resources of a pod that the API server fills in when it takes the pod: what a container has a
// limit of, and no request, it requests as well. Resources of the pod as a whole are refused before.
func complete(spec *corev1.PodSpec) {
	eachContainer(spec, func(container *corev1.Container) {
		resources := &container.Resources
		for name, limit := range resources.Limits {
			if resources.Requests == nil {
				resources.Requests = corev1.ResourceList{}
			}
			if _, has := resources.Requests[name]; !has {
				resources.Requests[name] = limit
			}
		}
	})
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

// objectStore is the size of the object store in bytes, as the user says it or for a memory limit in bytes.
func (d *draft) objectStore(memory int64) int64 {
	if given := d.node.ObjectStoreMemory; given != nil {
		return given.Value()
	}
	return defaults.ObjectStore(memory)
}

// Ray's own names of what it counts of a node.
const (
	amountCPU    = "CPU"
	amountMemory = "memory"              // bytes
	amountStore  = "object_store_memory" // bytes
)

// rayAmounts are what Ray is told that the node has (a fraction of a CPU counts as a whole
// one), computed from the Ray container and overridden by the user's rayResources. What Ray
// is not told of it finds out by itself. The head takes no tasks when there are worker
// groups.
func rayAmounts(d *draft) map[string]float64 {
	amounts := map[string]float64{}
	for name, count := range devices(d.ray) {
		amounts[name] = float64(count)
	}
	if amounts[naming.ResourceGPU] == 0 {
		amounts[naming.ResourceGPU] = 0
		if d.mayHaveGPUs() { // then Ray counts those that it sees
			delete(amounts, naming.ResourceGPU)
		}
	}
	if cpu, ok := amount(d.ray, corev1.ResourceCPU); ok {
		amounts[amountCPU] = float64(cpu.Value())
	}
	if d.isHead() && len(d.cluster.Spec.WorkerGroups) > 0 {
		for name := range amounts {
			amounts[name] = 0 // said, because Ray would count what it is not told of
		}
		amounts[amountCPU], amounts[naming.ResourceGPU] = 0, 0
	}
	if memory, ok := amount(d.ray, corev1.ResourceMemory); ok {
		store := d.objectStore(memory.Value())
		amounts[amountStore] = float64(store)
		amounts[amountMemory] = float64(max(memory.Value()-store, 0))
	}
	if kind := cmp.Or(d.node.Labels[labelAccelerator], d.foretold()[labelAccelerator]); kind != "" && amounts[naming.ResourceGPU] > 0 {
		amounts[accelerated+kind] = 1
	}
	for name, quantity := range d.node.RayResources {
		switch name {
		case amountCPU, naming.ResourceGPU, amountMemory:
			amounts[name] = float64(quantity.Value())
		default:
			amounts[name] = quantity.AsApproximateFloat64()
		}
	}
	return amounts
}

// amountOptions are the options of ray start that say an amount; all others go together
// into the option resources, as JSON.
var amountOptions = map[string]string{amountCPU: "num-cpus", naming.ResourceGPU: "num-gpus", amountMemory: "memory", amountStore: "object-store-memory"}

// resourceOptions are the options of ray start that tell Ray of amounts.
func resourceOptions(amounts map[string]float64) map[string]string {
	options, custom := map[string]string{}, map[string]float64{}
	for name, amount := range amounts {
		if option, ok := amountOptions[name]; ok {
			options[option] = strconv.FormatInt(int64(amount), 10)
		} else {
			custom[name] = amount
		}
	}
	if len(custom) > 0 {
		text, _ := json.Marshal(custom) // a map of finite numbers always marshals
		options["resources"] = string(text)
	}
	return options
}
