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

// hasClaim reports whether a shared volume of a cluster names a claim.
func hasClaim(cluster *v1beta1.ComputeCluster, name string) bool {
	return slices.ContainsFunc(cluster.Spec.SharedVolumes, func(v v1beta1.SharedVolume) bool {
		return v.ClaimName != "" && v.ClaimName == name
	})
}

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
		ID: "shared-volume-claim-again", Field: "NODE.template.spec.volumes", By: Policy,
		Refused: "a volume of a template must not have the claim of a shared volume, because pods with one claim in two volumes may never start", Remedy: "mount the volume shared-NAME in its place",
		Holds: "!n.pod.?volumes.orValue([]).exists(v, has(v.persistentVolumeClaim) && " + sharedVolumes + ".exists(s, has(s.claimName) && s.claimName == v.persistentVolumeClaim.claimName))",
		inner: func(n *node, bad report) {
			each(bad, n.podPath(), "volumes", n.pod.Volumes, func(v *corev1.Volume) bool {
				return v.PersistentVolumeClaim != nil && hasClaim(n.cluster, v.PersistentVolumeClaim.ClaimName)
			})
		},
	},
	{
		ID: "shared-volume-claim-store", Field: "spec.controlStore.embedded.existingClaim", By: Policy,
		Refused: "the control store must not have the claim of a shared volume, because a head with one claim in two volumes may never start", Remedy: "name another claim",
		Holds: "!" + sharedVolumes + ".exists(s, has(s.claimName) && s.claimName == variables.cluster.?controlStore.?embedded.?existingClaim.orValue(''))",
		cluster: func(c *v1beta1.ComputeCluster, bad report) {
			if store := c.Spec.ControlStore; store != nil && store.Embedded != nil && hasClaim(c, store.Embedded.ExistingClaim) {
				bad.at(specPath.Child("controlStore", "embedded", "existingClaim"), nil)
			}
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
