package validate

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var claimModes = []corev1.PersistentVolumeAccessMode{
	corev1.ReadWriteOnce, corev1.ReadOnlyMany, corev1.ReadWriteMany, corev1.ReadWriteOncePod,
}

func claims(wrong func(n *node, claim *corev1.PersistentVolumeClaim) bool) func(*node, report) {
	return func(n *node, bad report) {
		each(bad, n.claimPath(), "", n.group.VolumeClaimTemplates, func(c *corev1.PersistentVolumeClaim) bool { return wrong(n, c) })
	}
}

func (n *node) claimPath() *field.Path { return n.path.Child("volumeClaimTemplates") }

// claimRules are about the volumeClaimTemplates of a group. In their expressions n.claims
// is that list, empty for the head, and n.volumes the names of the template's volumes.
var claimRules = []Rule{
	{
		ID: "claim-name", Field: "GROUP.volumeClaimTemplates[*].metadata.name", By: Policy,
		Refused: "the name of a claim, which is also that of its volume, must be a DNS label", Remedy: "use lower-case letters, digits and '-', at most 63",
		Holds: "n.claims.all(c, !format.dns1123Label().validate(c.?metadata.?name.orValue('')).hasValue())",
		group: claims(func(_ *node, c *corev1.PersistentVolumeClaim) bool { return len(validation.IsDNS1123Label(c.Name)) > 0 }),
	},
	{
		ID: "claim-twice", Field: "GROUP.volumeClaimTemplates", By: Policy,
		Refused: "names of claims must be unique", Remedy: "rename one",
		Holds: "n.claims.all(c, n.claims.exists_one(d, d.?metadata.?name.orValue('') == c.?metadata.?name.orValue('')))",
		group: func(n *node, bad report) {
			twice(bad, n.claimPath(), "", n.group.VolumeClaimTemplates, func(c *corev1.PersistentVolumeClaim) string { return c.Name })
		},
	},
	{
		ID: "claim-volume", Field: "GROUP.volumeClaimTemplates[*].metadata.name", By: Policy,
		Refused: "a volume of the template or of the operator (" + strings.Join(ownVolumes, ", ") + ") has the claim's name", Remedy: "rename the claim",
		Holds: "n.claims.all(c, !(c.?metadata.?name.orValue('') in n.volumes) && !(c.?metadata.?name.orValue('') in " + list(ownVolumes) + "))",
		group: claims(func(n *node, c *corev1.PersistentVolumeClaim) bool {
			taken := slices.ContainsFunc(n.pod.Volumes, func(v corev1.Volume) bool { return v.Name == c.Name })
			return taken || slices.Contains(ownVolumes, c.Name)
		}),
	},
	{
		ID: "claim-modes", Field: "GROUP.volumeClaimTemplates[*].spec.accessModes", By: Policy,
		Refused: "a claim must have access modes of ReadWriteOnce, ReadOnlyMany and ReadWriteMany, or ReadWriteOncePod alone", Remedy: "use ReadWriteOnce unless you need another",
		Holds: fmt.Sprintf("n.claims.all(c, size(c.?spec.?accessModes.orValue([])) > 0 && c.spec.accessModes.all(m, m in %s && "+
			"(m != 'ReadWriteOncePod' || size(c.spec.accessModes) == 1)))", list(texts(claimModes))),
		group: claims(func(_ *node, c *corev1.PersistentVolumeClaim) bool {
			modes := c.Spec.AccessModes
			return len(modes) == 0 || slices.ContainsFunc(modes, func(m corev1.PersistentVolumeAccessMode) bool {
				return !slices.Contains(claimModes, m) || m == corev1.ReadWriteOncePod && len(modes) > 1
			})
		}),
	},
	{
		ID: "claim-storage", Field: "GROUP.volumeClaimTemplates[*].spec.resources.requests[storage]", By: Policy,
		Refused: "a claim must request storage", Remedy: "give a size such as 10Gi",
		Holds: "n.claims.all(c, sign(quantity(string(c.?spec.?resources.?requests.?storage.orValue('0')))) > 0)",
		group: claims(func(_ *node, c *corev1.PersistentVolumeClaim) bool {
			storage := c.Spec.Resources.Requests[corev1.ResourceStorage]
			return storage.Sign() <= 0
		}),
	},
	{
		ID: "claim-labels", Field: "GROUP.volumeClaimTemplates[*].metadata", By: Policy,
		Refused: "labels and annotations of a claim must have Kubernetes' syntax and must not be the operator's (heliostat.dev/… and app.kubernetes.io/name, instance, managed-by)",
		Remedy:  "correct or remove them",
		Holds: "n.claims.all(c, " + fmt.Sprintf(noOwnLabel, claimLabels) + " && " + fmt.Sprintf(goodLabels, claimLabels) + " && " +
			fmt.Sprintf(noOwnAnnotation, claimAnnotations) + " && " + fmt.Sprintf(goodAnnotations, claimAnnotations) + ")",
		group: claims(func(_ *node, c *corev1.PersistentVolumeClaim) bool {
			return anyKey(c.Labels, isOwnLabel) || anyKey(c.Labels, badLabels(c.Labels)) ||
				anyKey(c.Annotations, isOwnKey) || anyKey(c.Annotations, badAnnotation)
		}),
	},
	{
		ID: "claim-extra", Field: "GROUP.volumeClaimTemplates[*]", By: Policy,
		Refused: "a claim must have only a name, labels, annotations and a spec, with a source in the same namespace", Remedy: "remove the rest",
		Holds: "n.claims.all(c, !['generateName', 'namespace', 'finalizers', 'ownerReferences'].exists(f, f in c.?metadata.orValue({})) && " +
			"size(c.?status.orValue({})) == 0 && !c.?spec.?dataSourceRef.?namespace.hasValue())",
		group: claims(func(_ *node, c *corev1.PersistentVolumeClaim) bool {
			elsewhere := c.Spec.DataSourceRef != nil && c.Spec.DataSourceRef.Namespace != nil
			return elsewhere || c.GenerateName+c.Namespace != "" || len(c.Finalizers)+len(c.OwnerReferences) > 0 ||
				!reflect.DeepEqual(c.Status, corev1.PersistentVolumeClaimStatus{})
		}),
	},
}

const (
	claimLabels      = "c.?metadata.?labels.orValue({})"
	claimAnnotations = "c.?metadata.?annotations.orValue({})"
)

func anyKey(m map[string]string, wrong func(string) bool) bool {
	for key := range m {
		if wrong(key) {
			return true
		}
	}
	return false
}

func texts[T ~string](words []T) []string {
	all := make([]string, len(words))
	for i := range words {
		all[i] = string(words[i])
	}
	return all
}
