package pod

import (
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/defaults"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

const pathTokenFile = naming.PathToken + "/" + v1beta1.TokenKey

// storage gives the object store its memory. Its pages count against the container's
// memory limit, so the volume adds nothing to what the pod may use. A volume that the
// user mounts there stands.
func storage(d *draft) {
	memory, ok := amount(d.ray, corev1.ResourceMemory)
	own := slices.ContainsFunc(d.ray.VolumeMounts, func(m corev1.VolumeMount) bool {
		return strings.TrimRight(m.MountPath, "/") == naming.PathShared
	})
	if !ok || own {
		return
	}
	limit := resource.NewQuantity(defaults.SharedMemory(d.objectStore(memory.Value())), resource.BinarySI)
	d.pod.Spec.Volumes = append(d.pod.Spec.Volumes, corev1.Volume{Name: naming.VolumeShared, VolumeSource: corev1.VolumeSource{
		EmptyDir: &corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: limit},
	}})
	d.ray.VolumeMounts = append(d.ray.VolumeMounts, corev1.VolumeMount{Name: naming.VolumeShared, MountPath: naming.PathShared})
}

// claims adds a volume for each of the group's volumeClaimTemplates, by the template's
// name. Where it is mounted is the template's to say.
func claims(d *draft) {
	if d.isHead() {
		return
	}
	for i := range d.group.VolumeClaimTemplates {
		name := d.group.VolumeClaimTemplates[i].Name
		d.pod.Spec.Volumes = append(d.pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{
				ClaimName: naming.Claim(d.cluster.Name, d.cluster.UID, d.group.Name, d.at.Slot, name),
			},
		}})
	}
}

// sharedVolumes mounts the shared volumes of the cluster in the Ray container.
func sharedVolumes(d *draft) {
	for i := range d.cluster.Spec.SharedVolumes {
		volume := &d.cluster.Spec.SharedVolumes[i]
		name, readOnly := naming.SharedVolume(volume.Name), ptr.Deref(volume.ReadOnly, false)
		d.pod.Spec.Volumes = append(d.pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: SharedClaim(d.cluster, volume), ReadOnly: readOnly},
		}})
		d.ray.VolumeMounts = append(d.ray.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: volume.MountPath, ReadOnly: readOnly})
	}
}

// SharedClaim is the name of the claim of a shared volume, the user's own or one of ours.
func SharedClaim(cluster *v1beta1.ComputeCluster, volume *v1beta1.SharedVolume) string {
	if volume.Claim == nil {
		return volume.ClaimName
	}
	return naming.SharedClaim(cluster.Name, volume.Name)
}

// authentication turns Ray's token authentication on, or off where the spec says so:
// it is never left to the default of a Ray release. The token comes as a file, so that
// it stands in no environment and no command line, and alone, whatever else the Secret
// holds.
func authentication(d *draft) {
	secret := TokenSecret(d.cluster)
	if secret == "" {
		d.set("RAY_AUTH_MODE", "disabled")
		return
	}
	d.set("RAY_AUTH_MODE", "token")
	d.set("RAY_AUTH_TOKEN_PATH", pathTokenFile)
	readable := int32(0o444) // the image's user is not known, and only Ray's and the operator's own container mount it
	d.pod.Spec.Volumes = append(d.pod.Spec.Volumes, corev1.Volume{Name: naming.VolumeToken, VolumeSource: corev1.VolumeSource{
		Secret: &corev1.SecretVolumeSource{
			SecretName: secret, DefaultMode: &readable,
			Items: []corev1.KeyToPath{{Key: v1beta1.TokenKey, Path: v1beta1.TokenKey}},
		},
	}})
	d.ray.VolumeMounts = append(d.ray.VolumeMounts, tokenMount())
}

// tokenMount is where a container sees the token. As a part of the volume it stays what it
// was when the container began: each of Ray's processes reads it again, and a changed token
// would keep all that start later from the head.
func tokenMount() corev1.VolumeMount {
	return corev1.VolumeMount{Name: naming.VolumeToken, MountPath: pathTokenFile, SubPath: v1beta1.TokenKey, ReadOnly: true}
}

// TokenRequired reports whether those who talk to the cluster need its token.
func TokenRequired(cluster *v1beta1.ComputeCluster) bool {
	return cluster.Spec.Authentication == nil || cluster.Spec.Authentication.Mode != v1beta1.AuthenticationDisabled
}

// TokenSecret is the name of the Secret that the pods take the token from: the user's,
// or the one that the operator makes. It is empty where no token is required.
func TokenSecret(cluster *v1beta1.ComputeCluster) string {
	switch {
	case !TokenRequired(cluster):
		return ""
	case cluster.Spec.Authentication != nil && cluster.Spec.Authentication.SecretName != "":
		return cluster.Spec.Authentication.SecretName
	default:
		return naming.TokenSecret(cluster.Name)
	}
}
