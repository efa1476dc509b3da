package pod

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/naming"
)

// HeadGroup is what Ray is told as the head's node type.
const HeadGroup = "headgroup"

// ownedVariables are the variables by which the parts of a cluster find and trust each
// other; a template that sets one is refused.
var ownedVariables = []string{
	"RAY_ADDRESS", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH", "RAY_CLOUD_INSTANCE_ID", "RAY_CLUSTER_NAME",
	"RAY_CLUSTER_NAMESPACE", "RAY_ENABLE_GCS_LEADER_ELECTION", "RAY_ENABLE_K8S_TOKEN_AUTH", "RAY_NODE_TYPE_NAME",
}

// OwnsVariable tells whether an environment variable of the Ray container is the
// operator's alone.
func OwnsVariable(name string) bool { return slices.Contains(ownedVariables, name) }

// environment tells Ray who it is. RAY_CLOUD_INSTANCE_ID is the pod's UID: a pod that
// takes over a name is never taken for the one before it.
func environment(d *draft) {
	address, group, drain := headAddress(d), d.at.Group, workerDrain
	if d.isHead() {
		address, group, drain = "127.0.0.1:6379", HeadGroup, "0"
		d.offer("RAY_enable_autoscaler_v2", "1") // so that "ray status" reads the live state
	}
	d.set("RAY_ADDRESS", address)
	d.set("RAY_CLUSTER_NAME", d.cluster.Name)
	d.set("RAY_CLUSTER_NAMESPACE", d.cluster.Namespace)
	d.set("RAY_NODE_TYPE_NAME", group)
	d.ray.Env = append(d.ray.Env, corev1.EnvVar{Name: "RAY_CLOUD_INSTANCE_ID", ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.uid"},
	}})
	d.offer("RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S", drain)
	d.offer("RAY_DASHBOARD_ENABLE_K8S_DISK_USAGE", "1")
	d.offer("RAY_USAGE_STATS_ENABLED", "0") // nothing leaves the cluster unless the user says so
}

// set adds a variable that only the operator may set.
func (d *draft) set(name, value string) {
	d.ray.Env = append(d.ray.Env, corev1.EnvVar{Name: name, Value: value})
}

// offer adds a variable that the user's own wins over.
func (d *draft) offer(name, value string) {
	if !slices.ContainsFunc(d.ray.Env, func(e corev1.EnvVar) bool { return e.Name == name }) {
		d.set(name, value)
	}
}

// Volumes of the operator in every pod, and where the Ray container sees them.
const (
	VolumeShared = "ray-shm"
	VolumeToken  = "ray-token"
	PathShared   = "/dev/shm"
	PathToken    = "/var/run/secrets/heliostat.dev/token"
)

// storage gives the object store its memory. Its pages count against the container's
// memory limit, so the volume adds nothing to what the pod may use.
func storage(d *draft) {
	memory, ok := amount(d.ray, corev1.ResourceMemory)
	if !ok {
		return
	}
	limit := resource.NewQuantity(objectStore(memory.Value())/100*sharedPercent, resource.BinarySI)
	d.mount(PathShared, false, corev1.Volume{Name: VolumeShared, VolumeSource: corev1.VolumeSource{
		EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: limit},
	}})
}

// authentication turns Ray's token authentication on. The token comes as a file, so
// that it stands in no environment and no command line.
func authentication(d *draft) {
	d.set("RAY_AUTH_MODE", "token")
	d.set("RAY_AUTH_TOKEN_PATH", PathToken+"/"+v1alpha1.TokenKey)
	readable := int32(0o444) // the image's user is not known, and only Ray's container mounts it
	d.mount(PathToken, true, corev1.Volume{Name: VolumeToken, VolumeSource: corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{SecretName: naming.TokenSecret(d.cluster.Name), DefaultMode: &readable},
	}})
}

func (d *draft) mount(path string, readOnly bool, volume corev1.Volume) {
	d.pod.Spec.Volumes = append(d.pod.Spec.Volumes, volume)
	d.ray.VolumeMounts = append(d.ray.VolumeMounts, corev1.VolumeMount{Name: volume.Name, MountPath: path, ReadOnly: readOnly})
}
