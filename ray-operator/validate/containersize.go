package validate

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// containerSize is a field for the size of containers that the operator adds.
type containerSize struct {
	// id begins the IDs of its rules.
	id   string
	path *field.Path
	// least is the memory that its containers cannot do with less of.
	least resource.Quantity
	of    func(c *v1beta1.ComputeCluster) corev1.ResourceList
}

// containerSizes are all such fields.
var containerSizes = []containerSize{
	{
		id: "autoscaling-size", path: autoscalingPath.Child("size"), least: leastAutoscaler,
		of: func(c *v1beta1.ComputeCluster) corev1.ResourceList {
			if c.Spec.Autoscaling == nil {
				return nil
			}
			return c.Spec.Autoscaling.Size
		},
	},
	{
		id: "store-size", path: storePath.Child("managedRedis", "size"), least: leastRedis,
		of: func(c *v1beta1.ComputeCluster) corev1.ResourceList {
			if m := storeOf(c).ManagedRedis; m != nil {
				return m.Size
			}
			return nil
		},
	},
	{id: "encryption-size", path: encryptionSizePath, least: leastEncryption, of: encryptionSize},
	{
		id: "history-size", path: field.NewPath("spec", "history", "size"), least: leastCollector,
		of: func(c *v1beta1.ComputeCluster) corev1.ResourceList {
			if c.Spec.History == nil {
				return nil
			}
			return c.Spec.History.Size
		},
	},
}

// leastCollector is what the collector of history cannot do with less of.
var leastCollector = resource.MustParse("32Mi")

// leastEncryption is what the containers of encryption cannot do with less of.
var leastEncryption = resource.MustParse("32Mi")

var encryptionSizePath = field.NewPath("spec", "network", "encryptionSize")

func encryptionSize(c *v1beta1.ComputeCluster) corev1.ResourceList {
	if c.Spec.Network == nil {
		return nil
	}
	return c.Spec.Network.EncryptionSize
}

// sizedNames are what such a size can contain.
var sizedNames = []string{"cpu", "limits.cpu", "memory", "ephemeral-storage"}

// A limit of CPU must not be below the request.
const (
	limitRefused = "limits.cpu must not be below cpu"
	limitRemedy  = "raise limits.cpu, or lower cpu"
)

// isLimitBelow reports whether a size has a limit of CPU below its request.
func isLimitBelow(size corev1.ResourceList) bool {
	request, hasRequest := size[corev1.ResourceCPU]
	limit, hasLimit := size[corev1.ResourceLimitsCPU]
	return hasRequest && hasLimit && request.Cmp(limit) > 0
}

// addChecks adds the functions of the rules about a size, by their IDs.
func (s containerSize) addChecks(to map[string]Rule) {
	to[s.id+"-name"] = s.each(func(name string, _ resource.Quantity) bool { return !slices.Contains(sizedNames, name) })
	to[s.id] = s.each(func(name string, quantity resource.Quantity) bool {
		return quantity.Sign() <= 0 || name == "memory" && quantity.Cmp(s.least) < 0
	})
	to[s.id+"-limit"] = Rule{cluster: func(c *v1beta1.ComputeCluster, bad report) {
		if isLimitBelow(s.of(c)) {
			bad.at(s.path, nil)
		}
	}}
}

// each reports what is wrong in a size.
func (s containerSize) each(wrong func(name string, quantity resource.Quantity) bool) Rule {
	return Rule{cluster: func(c *v1beta1.ComputeCluster, bad report) {
		quantities(s.of(c), wrong, func(name, quantity string) { bad.at(s.path.Key(name), quantity) })
	}}
}
