package convert

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/validate"
)

// nodePart is the head or a worker group on its way.
type nodePart struct {
	*clusterPart
	// at is the path of the node, to that of ours for people.
	at, to string
	from   *rayNode
	isHead bool
	made   v1beta1.NodeSpec
	// image is that of the Ray container.
	image string
}

// node converts what a head and a worker group have in common.
func (p *clusterPart) node(at, to string, from *rayNode) *nodePart {
	n := &nodePart{clusterPart: p, at: at, to: to, from: from, isHead: to == "head"}
	n.made.Labels = from.Labels
	n.made.RayResources = map[string]resource.Quantity{}
	n.takeResources()
	n.takeOptions()
	n.takeTemplate()
	if n.isHead {
		n.keepBusy()
	}
	n.takeDevices()
	return n
}

// takeResources reads Ray's logical resources, which ray.io has as texts.
func (n *nodePart) takeResources() {
	for _, name := range slices.Sorted(maps.Keys(n.from.Resources)) {
		n.count(n.at+".resources["+name+"]", name, n.from.Resources[name])
	}
}

// count takes an amount of a logical resource.
func (n *nodePart) count(path, name, text string) {
	quantity, err := resource.ParseQuantity(strings.TrimSpace(text))
	if err != nil {
		n.refuse(path, fmt.Sprintf("%.40q is no number; correct it", text))
		return
	}
	if _, given := n.made.RayResources[name]; given {
		n.refuse(path, "resources and rayStartParams both say it; keep one of them")
		return
	}
	n.made.RayResources[name] = quantity
}

// Options of ray start that the operator sets, with the value by which nothing changes: none where any will do.
var ownOptions = map[string]string{
	"block": "", "address": "", "head": "", "dashboard-host": "", "no-monitor": "", "node-ip-address": "", "autoscaling-config": "",
	"disable-usage-stats": "", "port": "6379", "dashboard-port": "8265", "metrics-export-port": "8080", "ray-client-server-port": "10001",
	"dashboard-agent-listen-port": "52365", "include-dashboard": "true",
}

// amountOptions are options of ray start that are fields of ours, with the resource.
var amountOptions = map[string]string{"num-cpus": "CPU", "num-gpus": "GPU", "memory": "memory"}

// valuedOptions take true and false as values; all others are bare options.
var valuedOptions = []string{"log-color", "include-log-monitor"}

func (n *nodePart) takeOptions() {
	n.made.RayStartParams = map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(n.from.RayStartParams)) {
		n.takeOption(n.at+".rayStartParams["+name+"]", name, n.from.RayStartParams[name])
	}
}

func (n *nodePart) takeOption(path, name, value string) {
	usual, own := ownOptions[name]
	switch {
	case name == "redis-password" || name == "redis-username":
		n.takeRedisOption(path)
	case own && (usual == "" || value == usual):
		n.drop(path, "the operator sets this")
	case own:
		n.change(path, "", fmt.Sprintf("it is %s always; point clients there, and leave the option out", usual))
	case strings.Contains(value, "$"):
		n.refuse(path, "no shell reads options, so that no variable is put in; write the value itself")
	case name == "labels" || name == "labels-file":
		n.refuse(path, "ray.io takes labels of nodes by the field labels alone; use that")
	default:
		n.takeFreeOption(path, name, value)
	}
}

// takeFreeOption is about an option that is the user's to set. Some have a field of their own.
func (n *nodePart) takeFreeOption(path, name, value string) {
	isBare := !slices.Contains(valuedOptions, name)
	switch resourceName, isAmount := amountOptions[name]; {
	case isAmount:
		n.count(path, resourceName, value)
	case name == "resources":
		n.takeCustom(path, value)
	case name == "object-store-memory":
		n.takeObjectStore(path, value)
	case isBare && value == "true":
		n.made.RayStartParams[name] = ""
	case isBare && value == "false":
	default:
		n.made.RayStartParams[name] = value
	}
}

// takeRedisOption is about the credentials of a Redis, which the control store has.
func (n *nodePart) takeRedisOption(path string) {
	if n.clusterPart.made.ControlStore == nil {
		n.drop(path, "without a control store there is no Redis; set gcsFaultToleranceOptions if there is one")
		return
	}
	n.adjust(path, "controlStore.redis", "controlStore.redis has the credentials")
}

// takeCustom reads custom resources: an object in JSON, which a shell used to take the quotes from.
func (n *nodePart) takeCustom(path, text string) {
	text = strings.Trim(strings.TrimSpace(text), "'")
	var quoted string
	if json.Unmarshal([]byte(text), &quoted) == nil {
		text = quoted
	}
	var custom map[string]float64
	if err := json.Unmarshal([]byte(text), &custom); err != nil {
		n.refuse(path, `it is no object of numbers; write one such as {"Custom": 1}`)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(custom)) {
		n.count(path, name, strconv.FormatFloat(custom[name], 'f', -1, 64))
	}
}

func (n *nodePart) takeObjectStore(path, text string) {
	quantity, err := resource.ParseQuantity(strings.TrimSpace(text))
	if err != nil {
		n.refuse(path, "it is no number of bytes; correct it")
		return
	}
	n.made.ObjectStoreMemory = &quantity
}

// keepBusy has the head take tasks as before: ours takes none beside worker groups, unless it is told what it has.
func (n *nodePart) keepBusy() {
	ray := n.ray()
	if len(n.spec.WorkerGroupSpecs) == 0 || ray == nil {
		return
	}
	if _, said := n.made.RayResources["CPU"]; !said {
		if cpu, sized := amount(ray, corev1.ResourceCPU); sized {
			n.made.RayResources["CPU"] = *resource.NewQuantity(cpu.Value(), resource.DecimalSI) // rounded up, as KubeRay does
		} else {
			n.change(n.at+".rayStartParams", "head.rayResources",
				"the head took tasks, and takes none beside worker groups; set num-cpus for it to go on")
		}
	}
	if _, said := n.made.RayResources["GPU"]; !said {
		if gpus := gpusOf(ray); gpus > 0 {
			n.made.RayResources["GPU"] = *resource.NewQuantity(gpus, resource.DecimalSI)
		}
	}
}

// takeDevices is about devices of which the operator cannot say whether they are GPUs. KubeRay takes those for GPUs whose name
// ends in gpu, and leaves the others to Ray, as the operator does.
func (n *nodePart) takeDevices() {
	ray := n.ray()
	if ray == nil {
		return
	}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(ray.Resources.Limits)), func(name corev1.ResourceName) bool { return !validate.MayBeGPU(name) })
	_, isSaid := n.made.RayResources["GPU"]
	if len(names) == 0 || isSaid {
		return
	}
	path, to := n.at+".template.spec.containers[0].resources", n.to+".rayResources"
	if gpus := gpusOf(ray); gpus > 0 {
		if slices.ContainsFunc(names, func(name corev1.ResourceName) bool { return strings.HasSuffix(string(name), "gpu") }) {
			n.made.RayResources["GPU"] = *resource.NewQuantity(gpus, resource.DecimalSI)
			n.adjust(path, to, fmt.Sprintf("rayResources says that %.60q are GPUs", names[0]))
		}
		return
	}
	if n.isHead && len(n.spec.WorkerGroupSpecs) > 0 {
		n.change(path, to, fmt.Sprintf("the head counted the GPUs of %.60q itself, and has none beside worker groups; set GPU in rayResources "+
			"for tasks on the head", names[0]))
		return
	}
	n.adjust(path, to, fmt.Sprintf("Ray counts the GPUs of %.60q itself, as before; set GPU in rayResources for autoscaling to know "+
		"of them before there is a worker", names[0]))
}

// amount is what a container gets: its limit, or its request where there is none.
func amount(container *corev1.Container, name corev1.ResourceName) (resource.Quantity, bool) {
	if limit, has := container.Resources.Limits[name]; has {
		return limit, true
	}
	request, has := container.Resources.Requests[name]
	return request, has
}

// gpusOf counts a container's GPUs as KubeRay does: by the first resource whose name ends in gpu.
func gpusOf(container *corev1.Container) int64 {
	for _, list := range []corev1.ResourceList{container.Resources.Limits, container.Resources.Requests} {
		for _, name := range slices.Sorted(maps.Keys(list)) {
			if quantity := list[name]; strings.HasSuffix(string(name), "gpu") {
				return quantity.Value()
			}
		}
	}
	return 0
}

// ray is the Ray container of the result, nil where there is none.
func (n *nodePart) ray() *corev1.Container {
	if n.made.Template == nil || len(n.made.Template.Spec.Containers) == 0 {
		return nil
	}
	return &n.made.Template.Spec.Containers[0]
}

// finished is the node as the spec has it.
func (n *nodePart) finished() v1beta1.NodeSpec {
	if len(n.made.RayResources) == 0 {
		n.made.RayResources = nil
	}
	if len(n.made.RayStartParams) == 0 {
		n.made.RayStartParams = nil
	}
	if ray := n.ray(); ray != nil && isBare(n.made.Template) {
		n.made.Template = nil
	}
	return n.made
}
