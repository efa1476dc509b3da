package validate

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// sharedVolumes is an expression for the shared volumes of the cluster.
const sharedVolumes = "variables.cluster.?sharedVolumes.orValue([])"

// sharedVolumeRules are about the templates of a cluster with shared volumes. What can be judged of a shared volume alone, the CRD
// does.
var sharedVolumeRules = []Rule{
	{
		ID: "shared-volume-mount", Field: "NODE.template.spec.containers[ray].volumeMounts", By: Policy,
		Refused: "a mount of the ray container must not be where a shared volume is", Remedy: "change the mountPath of one of the two",
		Holds: "n.ray.?volumeMounts.orValue([]).all(m, !" + sharedVolumes + ".exists(v, m.mountPath.startsWith(v.mountPath) && m.mountPath.substring(size(v.mountPath)).matches('^/*$')))",
		inner: inRay(func(n *node, bad report) {
			each(bad, n.rayPath, "volumeMounts", n.ray.VolumeMounts, func(m *corev1.VolumeMount) bool {
				return slices.ContainsFunc(n.cluster.Spec.SharedVolumes, func(v v1beta1.SharedVolume) bool {
					rest, is := strings.CutPrefix(m.MountPath, v.MountPath)
					return is && strings.Trim(rest, "/") == ""
				})
			})
		}),
	},
	{
		ID: "shared-volume-taken", Field: "NODE.template.spec.volumes", By: Policy,
		Refused: "a volume of a template must not have the name shared-NAME of a shared volume", Remedy: "rename one of the two",
		Holds: "!n.volumes.exists(v, " + sharedVolumes + ".exists(s, v == 'shared-' + s.name))",
		inner: func(n *node, bad report) {
			each(bad, n.podPath(), "volumes", n.pod.Volumes, func(v *corev1.Volume) bool { return n.isShared(v.Name) })
		},
	},
	{
		ID: "shared-volume-claimed", Field: "GROUP.volumeClaimTemplates[*].metadata.name", By: Policy,
		Refused: "a claim of a worker must not have the name shared-NAME of a shared volume", Remedy: "rename one of the two",
		Holds: "n.claims.all(c, !" + sharedVolumes + ".exists(s, c.?metadata.?name.orValue('') == 'shared-' + s.name))",
		group: claims(func(n *node, c *corev1.PersistentVolumeClaim) bool { return n.isShared(c.Name) }),
	},
}

// isShared reports whether a shared volume of the cluster has the name of a volume.
func (n *node) isShared(volume string) bool {
	return slices.ContainsFunc(n.cluster.Spec.SharedVolumes, func(v v1beta1.SharedVolume) bool { return naming.SharedVolume(v.Name) == volume })
}

// sharedChange reports the claims of shared volumes that a change finds wrong.
func sharedChange(child string, wrong func(before, after *v1beta1.SharedVolumeClaim) bool) Rule {
	return Rule{change: func(before, after *v1beta1.ComputeCluster, bad report) {
		for i := range after.Spec.SharedVolumes {
			now := &after.Spec.SharedVolumes[i]
			at := slices.IndexFunc(before.Spec.SharedVolumes, func(v v1beta1.SharedVolume) bool { return v.Name == now.Name })
			if at < 0 || now.Claim == nil || before.Spec.SharedVolumes[at].Claim == nil || !wrong(before.Spec.SharedVolumes[at].Claim, now.Claim) {
				continue
			}
			bad.at(field.NewPath("spec", "sharedVolumes").Index(i).Child("claim", child), nil)
		}
	}}
}

func hasOtherClass(before, after *v1beta1.SharedVolumeClaim) bool {
	if before.StorageClassName == nil || after.StorageClassName == nil {
		return before.StorageClassName != after.StorageClassName
	}
	return *before.StorageClassName != *after.StorageClassName
}

func isShrunk(before, after *v1beta1.SharedVolumeClaim) bool {
	return before.Storage != nil && after.Storage != nil && after.Storage.Cmp(*before.Storage) < 0
}
