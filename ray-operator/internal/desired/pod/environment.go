package pod

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// HeadGroup is what Ray is told as the head's node type.
const HeadGroup = "headgroup"

// ownedVariables are the variables by which the parts of a cluster find and trust each
// other; a template that sets one is refused.
var ownedVariables = []string{
	"RAY_ADDRESS", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "RAY_CLOUD_INSTANCE_ID", "RAY_CLUSTER_NAME",
	"RAY_CLUSTER_NAMESPACE", "RAY_ENABLE_GCS_LEADER_ELECTION", "RAY_ENABLE_K8S_TOKEN_AUTH", "RAY_NODE_TYPE_NAME",
	"RAY_USE_TLS", "RAY_TLS_SERVER_CERT", "RAY_TLS_SERVER_KEY", "RAY_TLS_CA_CERT",
	// Where the head keeps its memory: what the spec's controlStore says, or nowhere.
	"RAY_REDIS_ADDRESS", "RAY_external_storage_namespace", "RAY_gcs_storage", "RAY_gcs_storage_path",
	"RAY_REDIS_CA_CERT", "RAY_REDIS_CA_PATH", "RAY_REDIS_CLIENT_CERT", "RAY_REDIS_CLIENT_KEY", "RAY_REDIS_SERVER_NAME",
}

// OwnsVariable reports whether an environment variable of the Ray container is the
// operator's alone.
func OwnsVariable(name string) bool { return slices.Contains(ownedVariables, name) }

// environment tells Ray who it is. RAY_CLOUD_INSTANCE_ID is the pod's UID: a pod that
// takes over a name is never taken for the one before it.
func environment(d *draft) {
	address, group, drain := headAddress(d), d.at.Group, workerDrain
	if d.isHead() {
		address, group, drain = "127.0.0.1:6379", HeadGroup, "0"
		d.offer(VariableAutoscaler, "1") // so that "ray status" reads the live state
	}
	d.set("RAY_ADDRESS", address)
	d.set("RAY_CLUSTER_NAME", d.cluster.Name)
	d.set("RAY_CLUSTER_NAMESPACE", d.cluster.Namespace)
	d.set("RAY_NODE_TYPE_NAME", group)
	d.ray.Env = append(d.ray.Env, fromPod("RAY_CLOUD_INSTANCE_ID", "metadata.uid"))
	d.offerFromPod(variableAddresses, "status.podIPs")
	d.offer("RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S", drain)
	d.offer("RAY_DASHBOARD_ENABLE_K8S_DISK_USAGE", "1")
	d.offer("RAY_USAGE_STATS_ENABLED", "0") // nothing leaves the cluster unless the user says so
	topology(d)
}

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
