package validate

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
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

// mostResource is the most that Ray takes of a logical resource.
var mostResource = resource.MustParse("100T")

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

func logical(wrong func(name string, quantity resource.Quantity) bool) func(*node, report) {
	return func(n *node, bad report) {
		quantities(n.spec.RayResources, wrong, func(name, quantity string) { bad.at(n.path.Child("rayResources").Key(name), quantity) })
	}
}

// ownedParams are the options of "ray start" that the operator sets, each with the rule
// that refuses it.
var ownedParams = map[string]string{
	"head": optionOwned, "block": optionOwned, "address": optionOwned, "port": optionOwned, "dashboard-host": optionOwned,
	"dashboard-port": optionOwned, "dashboard-agent-listen-port": optionOwned, "metrics-export-port": optionOwned,
	"ray-client-server-port": optionOwned, "no-monitor": optionOwned, "include-dashboard": optionOwned, "node-ip-address": optionOwned,
	"redis-password": optionOwned, "redis-username": optionOwned, "autoscaling-config": optionOwned,
	"num-cpus": "option-resources", "num-gpus": "option-resources", "memory": "option-resources", "resources": "option-resources",
	"labels": "option-labels", "labels-file": "option-labels", "object-store-memory": "option-store", "disable-usage-stats": "option-usage",
}

const optionOwned = "option-owned"

// bareParams are the options of "ray start" that take no value.
var bareParams = []string{"no-redirect-output", "enable-object-reconstruction", "ray-debugger-external", "enable-resource-isolation"}

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

func options(rule string) func(*node, report) {
	return func(n *node, bad report) {
		keys(bad, n.path, "rayStartParams", n.spec.RayStartParams, func(key string) bool { return ownedParams[key] == rule })
	}
}

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
		ID: "size-memory", Field: "NODE.size[memory]", By: Expression,
		Refused: "memory must be at least 768Mi for a head and 512Mi for a worker, or Ray does not start", Remedy: "raise it",
		node: sizes(func(n *node, name string, quantity resource.Quantity) bool {
			return name == string(corev1.ResourceMemory) && quantity.Sign() > 0 && quantity.Cmp(n.leastMemory()) < 0
		}),
	},
	{
		ID: "resource-positive", Field: "NODE.rayResources", By: Expression,
		Refused: "a resource must not be negative", Remedy: "give 0 or more",
		node: logical(func(_ string, quantity resource.Quantity) bool { return quantity.Sign() < 0 }),
	},
	{
		ID: "resource-whole", Field: "NODE.rayResources", By: Expression,
		Refused: "a resource must be a whole number up to 100T", Remedy: "give a smaller or a whole number, such as 1000 for thousandths",
		node: logical(func(name string, quantity resource.Quantity) bool {
			return name != "memory" && quantity.Sign() >= 0 && !whole(quantity) || quantity.Cmp(mostResource) > 0
		}),
	},
	{
		ID: "resource-store", Field: "NODE.rayResources", By: Expression,
		Refused: "rayResources must not contain object_store_memory", Remedy: "use objectStoreMemory",
		node: logical(func(name string, _ resource.Quantity) bool { return name == "object_store_memory" }),
	},
	{
		ID: "resource-node", Field: "NODE.rayResources", By: Expression,
		Refused: "a resource must not be named node:... or have an empty name", Remedy: "choose another name",
		node: logical(func(name string, _ resource.Quantity) bool { return name == "" || strings.HasPrefix(name, "node:") }),
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
		ID: optionOwned, Field: "NODE.rayStartParams", By: Expression,
		Refused: "the operator sets head, block, address, port, dashboard-host, dashboard-port, dashboard-agent-listen-port, metrics-export-port, " +
			"ray-client-server-port, no-monitor, include-dashboard, node-ip-address, redis-password, redis-username, autoscaling-config",
		Remedy: "leave them out", node: options(optionOwned),
	},
	{
		ID: "option-resources", Field: "NODE.rayStartParams", By: Expression,
		Refused: "num-cpus, num-gpus, memory and resources must not be set, because they follow the pod", Remedy: "use rayResources to override them", node: options("option-resources"),
	},
	{
		ID: "option-labels", Field: "NODE.rayStartParams", By: Expression,
		Refused: "labels and labels-file must not be set, because the operator sets Ray's labels", Remedy: "use the field labels", node: options("option-labels"),
	},
	{
		ID: "option-store", Field: "NODE.rayStartParams", By: Expression,
		Refused: "object-store-memory must not be set", Remedy: "use objectStoreMemory", node: options("option-store"),
	},
	{
		ID: "option-usage", Field: "NODE.rayStartParams", By: Expression,
		Refused: "disable-usage-stats must not be set, because usage statistics are off by default", Remedy: "set RAY_USAGE_STATS_ENABLED in the template to change that", node: options("option-usage"),
	},
	{
		ID: "option-bare", Field: "NODE.rayStartParams", By: Expression,
		Refused: strings.Join(bareParams, ", ") + " must have no value", Remedy: "leave it empty",
		node: func(n *node, bad report) {
			keys(bad, n.path, "rayStartParams", n.spec.RayStartParams, func(key string) bool {
				return slices.Contains(bareParams, key) && n.spec.RayStartParams[key] != ""
			})
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
		ID: "ray-label-own", Field: "NODE.labels", By: Expression,
		Refused: "the prefix ray.io is reserved for Ray, except for accelerator-type, market-type, gpu-domain, availability-* and tpu-*",
		Remedy:  "choose another prefix",
		node:    func(n *node, bad report) { keys(bad, n.path, "labels", n.spec.Labels, isRayLabel) },
	},
	{
		ID: "ray-label-grammar", Field: "NODE.labels", By: Policy,
		Refused: labelGrammar, Remedy: "correct the key or the value", Holds: strings.ReplaceAll(goodLabels, "%[1]s", "n.spec.?labels.orValue({})"),
		node: func(n *node, bad report) { keys(bad, n.path, "labels", n.spec.Labels, badLabels(n.spec.Labels)) },
	},
}

// isRayLabel reports whether a node label of Ray's is not the user's to give: those of a machine may be, as Ray does
// not find out all of them, and the autoscaler none of a machine that is not there yet.
func isRayLabel(key string) bool {
	name, own := strings.CutPrefix(key, "ray.io/")
	switch {
	case !own, slices.Contains([]string{"accelerator-type", "market-type", "gpu-domain"}, name):
		return false
	default:
		return !strings.HasPrefix(name, "availability-") && !strings.HasPrefix(name, "tpu-")
	}
}
