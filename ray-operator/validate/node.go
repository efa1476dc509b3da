package validate

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Least memory of a Ray container. Measured with Ray 2.60 in a cgroup, without any task:
// a head takes 590 MiB, and is killed in 512; a worker takes 230 MiB, to which its object
// store (at least 75 MiB) and one process of a task (about 100 MiB) come.
var (
	leastHead   = resource.MustParse("768Mi")
	leastWorker = resource.MustParse("512Mi")
)

func (n *node) leastMemory() resource.Quantity {
	if n.group == nil {
		return leastHead
	}
	return leastWorker
}

func isDevice(name string) bool { return strings.Contains(name, "/") }

// whole reports whether a quantity is written as a whole number, in the sense of CEL's isInteger.
func whole(quantity resource.Quantity) bool {
	_, ok := quantity.AsInt64()
	return ok
}

// quantities reports the keys whose quantity is wrong.
func quantities[K ~string](list map[K]resource.Quantity, wrong func(name string, quantity resource.Quantity) bool, found func(name string, quantity string)) {
	for _, name := range slices.Sorted(maps.Keys(list)) {
		if quantity := list[name]; wrong(string(name), quantity) {
			found(string(name), quantity.String())
		}
	}
}

func sizes(wrong func(n *node, name string, quantity resource.Quantity) bool) func(*node, report) {
	return func(n *node, bad report) {
		quantities(n.spec.Size, func(name string, quantity resource.Quantity) bool { return wrong(n, name, quantity) },
			func(name, quantity string) { bad.at(n.path.Child("size").Key(name), quantity) })
	}
}

// ownedConfig are names of Ray's own configuration that undo what a field of the spec promises.
var ownedConfig = []string{
	"AUTH_MODE", "ENABLE_K8S_TOKEN_AUTH", "USE_TLS", "TLS_SERVER_CERT", "TLS_SERVER_KEY", "TLS_CA_CERT",
	"external_storage_namespace", "gcs_storage", "gcs_storage_path", "enable_autoscaler_v2",
}

// setsOwned reports whether a system-config, which is JSON, may set one of them.
func setsOwned(config string) bool {
	return strings.Contains(config, `\`) || slices.ContainsFunc(ownedConfig, func(name string) bool { return strings.Contains(config, `"`+name+`"`) })
}

var startName = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

// Expressions for the names of the wrong sizes of a node n. A rule in the schema could not name them: its message would cost
// too much, as the names have no bound there.
const (
	smallSizes = "n.spec.?size.orValue({}).filter(k, sign(quantity(string(n.spec.size[k]))) < 0 || " +
		"(!k.contains('/') && sign(quantity(string(n.spec.size[k]))) == 0))"
	splitSizes = "n.spec.?size.orValue({}).filter(k, k.contains('/') && !quantity(string(n.spec.size[k])).isInteger())"
)

// nodeRules are about what the head and the groups have in common, beside the template.
var nodeRules = []Rule{
	{
		ID: "size-name", Field: "NODE.size", By: Policy,
		Refused: "a key of size must be cpu, limits.cpu, memory, ephemeral-storage, hugepages-… or a device with its domain, such as nvidia.com/gpu", Remedy: "correct the name",
		Holds: "n.spec.?size.orValue({}).all(k, k in ['cpu', 'limits.cpu', 'memory', 'ephemeral-storage'] || k.startsWith('hugepages-') || " +
			"(k.contains('/') && !format.qualifiedName().validate(k).hasValue()))",
		node: sizes(func(_ *node, name string, _ resource.Quantity) bool {
			known := slices.Contains(sizedNames, name) || strings.HasPrefix(name, "hugepages-")
			return !known && (!isDevice(name) || !isLabelKey(name))
		}),
	},
	{
		ID: "size-positive", Field: "NODE.size", By: Policy,
		Refused: "a size must be above 0, or for a device 0 or more", Remedy: "raise it, or leave it out",
		Holds: "size(" + smallSizes + ") == 0", Which: "(" + smallSizes + ").join(', ')",
		node: sizes(func(_ *node, name string, quantity resource.Quantity) bool {
			return quantity.Sign() < 0 || quantity.Sign() == 0 && !isDevice(name)
		}),
	},
	{
		ID: "size-device", Field: "NODE.size", By: Policy,
		Refused: "a device must be a whole number", Remedy: "give a whole number",
		Holds: "size(" + splitSizes + ") == 0", Which: "(" + splitSizes + ").join(', ')",
		node: sizes(func(_ *node, name string, quantity resource.Quantity) bool { return isDevice(name) && !whole(quantity) }),
	},
	{
		ID: "size-limit", Field: "NODE.size", By: Policy, Refused: limitRefused, Remedy: limitRemedy,
		Holds: "[n.spec.?size.orValue({})].all(s, !('cpu' in s && 'limits.cpu' in s) || " +
			"!quantity(string(s['cpu'])).isGreaterThan(quantity(string(s['limits.cpu']))))",
		node: func(n *node, bad report) {
			if isLimitBelow(n.spec.Size) {
				bad.at(n.path.Child("size"), nil)
			}
		},
	},
	{
		ID: "option-name", Field: "NODE.rayStartParams", By: Policy,
		Refused: "an option of ray start must be lower-case letters, digits and '-', without leading dashes", Remedy: "correct it",
		Holds: "n.spec.?rayStartParams.orValue({}).all(k, k.matches('" + startName.String() + "'))",
		node: func(n *node, bad report) {
			keys(bad, n.path, "rayStartParams", n.spec.RayStartParams, func(key string) bool { return !startName.MatchString(key) })
		},
	},
	{
		ID: "option-system-config", Field: "NODE.rayStartParams[system-config]", By: Policy,
		Refused: "the operator sets " + strings.Join(ownedConfig, ", ") + ", and a name with an escape could be one of them",
		Remedy:  "use authentication, controlStore and autoscaling, and write names without a backslash",
		Holds: "[n.spec.?rayStartParams[?'system-config'].orValue('')].all(v, !v.contains('\\\\') && " +
			list(ownedConfig) + ".all(k, !v.contains('\"' + k + '\"')))",
		node: func(n *node, bad report) {
			keys(bad, n.path, "rayStartParams", n.spec.RayStartParams, func(key string) bool {
				return key == "system-config" && setsOwned(n.spec.RayStartParams[key])
			})
		},
	},
	{
		ID: "ray-label-grammar", Field: "NODE.labels", By: Policy,
		Refused: labelGrammar, Remedy: "correct the key or the value", Holds: strings.ReplaceAll(goodLabels, "%[1]s", "n.spec.?labels.orValue({})"),
		node: func(n *node, bad report) { keys(bad, n.path, "labels", n.spec.Labels, badLabels(n.spec.Labels)) },
	},
}
