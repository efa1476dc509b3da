package pod

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// LabelGroup is Ray's label for the group that a node is of.
const LabelGroup = "ray.io/node-group"

// labelsOfVariables are labels that Ray makes of variables of its container.
var labelsOfVariables = map[string]string{"RAY_NODE_MARKET_TYPE": labelMarket, "RAY_NODE_ZONE": labelZone, "RAY_NODE_REGION": labelRegion}

// GroupShape is what each of a group's nodes will have in Ray's terms: the amounts that ray
// start is told, by Ray's names and with memory in bytes, and the labels that are known
// before a machine is found, from variables and the node selector. What only the machine tells, such as the size of a
// container without limits, is not in it; nor is what differs between the replicas of a group, or their hosts.
func GroupShape(cluster *v1beta1.ComputeCluster, group *v1beta1.WorkerGroup) (resources map[string]float64, labels map[string]string) {
	d := workerOutline(cluster, group)
	resources = rayAmounts(d)
	for name, amount := range resources {
		if amount == 0 { // Ray leaves out what a node has none of
			delete(resources, name)
		}
	}
	labels = map[string]string{LabelGroup: group.Name}
	for variable, label := range labelsOfVariables {
		if value := d.variable(variable); value != "" {
			labels[label] = value
		}
	}
	labels = merged(labels, merged(d.foretold(), d.node.Labels))
	if kind := labels[labelAccelerator]; resources[naming.ResourceTPU] > 0 && kind != "" { // Ray finds it out of what slice offers
		resources[accelerated+kind] = 1
	}
	return resources, labels
}

// DetectsGPUs reports whether Ray is not told how many GPUs a group's nodes have, and counts those that it sees.
func DetectsGPUs(cluster *v1beta1.ComputeCluster, group *v1beta1.WorkerGroup) bool {
	_, isTold := rayAmounts(workerOutline(cluster, group))[naming.ResourceGPU]
	return !isTold
}

// workerOutline is the outline of a group's pods, with what podDefaults add that Ray is told of.
func workerOutline(cluster *v1beta1.ComputeCluster, group *v1beta1.WorkerGroup) *draft {
	d := outline(cluster, group)
	if given := cluster.Spec.PodDefaults; given != nil {
		rayDefaults(d.ray, given.DeepCopy())
		d.pod.Spec.NodeSelector = merged(given.NodeSelector, d.pod.Spec.NodeSelector)
		d.pod.Annotations = merged(given.Annotations, d.pod.Annotations)
	}
	return d
}

// variable is the text that a variable of the Ray container is given, empty where it comes
// from elsewhere.
func (d *draft) variable(name string) string {
	for _, given := range d.ray.Env {
		if given.Name == name && !refers(given) {
			return given.Value
		}
	}
	return ""
}

// refers reports whether a variable's text is made of others.
func refers(variable corev1.EnvVar) bool { return strings.Contains(variable.Value, "$(") }
