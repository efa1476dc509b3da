package pod

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// environment tells Ray who it is. RAY_CLOUD_INSTANCE_ID is the pod's UID: a pod that
// takes over a name is never taken for the one before it.
func environment(d *draft) {
	address, group, drain := headAddress(d), d.at.Group, workerDrain
	if d.isHead() {
		address, group, drain = "127.0.0.1:6379", naming.HeadGroup, "0"
		d.offer(naming.VariableAutoscaler, "1") // so that "ray status" reads the live state
	}
	d.set("RAY_ADDRESS", address)
	d.set("RAY_CLUSTER_NAME", d.cluster.Name)
	d.set("RAY_CLUSTER_NAMESPACE", d.cluster.Namespace)
	d.set("RAY_NODE_TYPE_NAME", group)
	d.ray.Env = append(d.ray.Env, fromPod("RAY_CLOUD_INSTANCE_ID", "metadata.uid"))
	d.offerFromPod(variableAddresses, "status.podIPs")
	d.offer(VariableDrain, drain)
	d.offer("RAY_DASHBOARD_ENABLE_K8S_DISK_USAGE", "1")
	d.offer("RAY_worker_niceness", "0")     // Ray gives work 15, and a program cannot lower it
	d.offer("RAY_USAGE_STATS_ENABLED", "0") // nothing leaves the cluster unless the user says so
	topology(d)
}

// VariableDrain is for how many seconds Ray drains a node that is told to end.
const VariableDrain = "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S"

// unset is what Ray takes for a variable of ours that is not given. RAY_REDIS_ADDRESS has no such value: Ray takes an empty
// one for an address.
var unset = map[string]string{
	"RAY_AUTH_TOKEN": "", "RAY_ENABLE_K8S_TOKEN_AUTH": "0", "RAY_ENABLE_GCS_LEADER_ELECTION": "0", "RAY_gcs_storage": "memory",
	"RAY_USE_TLS": "0",
}

// shield sets the variables that are the operator's where others come from a Secret or a ConfigMap, which nobody sees
// before the pod starts: what stands in env wins over envFrom.
func shield(d *draft) {
	if len(d.ray.EnvFrom) == 0 {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(unset)) {
		d.offer(name, unset[name])
	}
}

// topology gives Ray the node's zone and region, of which it makes labels of its own.
// Kubernetes copies them from the node to the pod when it binds it, from 1.35 on; before
// that the values are empty, and Ray makes no label.
func topology(d *draft) {
	d.offerFromPod("RAY_NODE_ZONE", "metadata.labels['"+corev1.LabelTopologyZone+"']")
	d.offerFromPod("RAY_NODE_REGION", "metadata.labels['"+corev1.LabelTopologyRegion+"']")
}

// fromPod is a variable whose value is a field of the pod itself.
func fromPod(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path},
	}}
}

// set adds a variable that only the operator may set.
func (d *draft) set(name, value string) {
	d.ray.Env = append(d.ray.Env, corev1.EnvVar{Name: name, Value: value})
}

// offer adds a variable that the user's own wins over.
func (d *draft) offer(name, value string) {
	if !hasVariable(d.ray, name) {
		d.set(name, value)
	}
}

// offerFromPod adds a variable with a field of the pod itself, which the user's own wins over.
func (d *draft) offerFromPod(name, path string) {
	if !hasVariable(d.ray, name) {
		d.ray.Env = append(d.ray.Env, fromPod(name, path))
	}
}
