package validate

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// A selector's value as Ray 2.60 takes it: a label's value, one of several, or neither.
var (
	selectorValue = regexp.MustCompile(`^$|^!?(` + labelValue + `|in[(]` + labelValue + `(, ?` + labelValue + `)*[)])$`)
	withoutLabels = regexp.MustCompile(`^2[.]5[23][.]`)
)

const labelValue = `[a-zA-Z0-9]([a-zA-Z0-9_.-]{0,61}[a-zA-Z0-9])?`

// resourcesOfRay are names that Ray takes in no request.
var resourcesOfRay = []string{"", "object_store_memory", "bundle"}

// namesOfKubernetes are its names of what Ray calls CPU, GPU and TPU, beside those that end in /gpu. Ray gives a driver
// no device for them, and where no node has them, the driver waits for ever.
var namesOfKubernetes = []string{"cpu", "gpu", "tpu", "google.com/tpu"}

// oddStep tells a quantity that is no multiple of 0.0001, which is what Ray counts in. A
// float64 is near enough up to 100T, as the schema's expression has it.
func oddStep(quantity resource.Quantity) bool {
	steps := quantity.AsApproximateFloat64() * 10000
	near := float64(int64(steps + 0.5))
	return steps-near >= 0.01 || near-steps >= 0.01
}

// asked reports the entrypointResources that are wrong.
func asked(wrong func(name string, quantity resource.Quantity) bool) func(*run, report) {
	return func(r *run, bad report) {
		quantities(r.spec.EntrypointResources, wrong, func(name, quantity string) {
			bad.at(specPath.Child("entrypointResources").Key(name), quantity)
		})
	}
}

// placementRules are about where a job's driver runs and what it takes.
var placementRules = []Rule{
	{
		ID: "driver-resource-own", Field: "spec.entrypointResources", By: Expression,
		Refused: "a resource must not be named object_store_memory, bundle or node:..., or have an empty name", Remedy: "choose another name",
		job: asked(func(name string, _ resource.Quantity) bool {
			return slices.Contains(resourcesOfRay, name) || strings.HasPrefix(name, "node:")
		}),
	},
	{
		ID: "driver-resource-kubernetes", Field: "spec.entrypointResources", By: Expression,
		Refused: "a resource of the driver must have Ray's name, not that of Kubernetes", Remedy: "write CPU, GPU or TPU",
		job: asked(func(name string, _ resource.Quantity) bool {
			return slices.Contains(namesOfKubernetes, name) || strings.HasSuffix(name, "/gpu")
		}),
	},
	{
		ID: "driver-resource-negative", Field: "spec.entrypointResources", By: Expression,
		Refused: "a resource of the driver must not be negative", Remedy: "give 0 or more",
		job: asked(func(_ string, quantity resource.Quantity) bool { return quantity.Sign() < 0 }),
	},
	{
		ID: "driver-resource-step", Field: "spec.entrypointResources", By: Expression,
		Refused: "a resource of the driver must be a multiple of 0.0001 up to 100T, and memory a whole number of bytes", Remedy: "round it",
		job: asked(func(name string, quantity resource.Quantity) bool {
			if quantity.Sign() < 0 {
				return false
			}
			return quantity.Cmp(mostResource) > 0 || name == "memory" && !whole(quantity) || oddStep(quantity)
		}),
	},
	{
		ID: "selector-grammar", Field: "spec.entrypointLabelSelector", By: Policy,
		Refused: "a key of a selector must be a label key, and its value a label value, in(a, b), or one of these after '!'", Remedy: "correct the key or the value",
		Holds: "object.spec.?entrypointLabelSelector.orValue({}).all(k, !format.qualifiedName().validate(k).hasValue() && " +
			"object.spec.entrypointLabelSelector[k].matches('" + selectorValue.String() + "'))",
		job: func(r *run, bad report) {
			selector := r.spec.EntrypointLabelSelector
			keys(bad, specPath, "entrypointLabelSelector", selector, func(key string) bool {
				return !isLabelKey(key) || !selectorValue.MatchString(selector[key])
			})
		},
	},
	{
		ID: "selector-version", Field: "spec.entrypointLabelSelector", By: Policy,
		Refused: "entrypointLabelSelector must be used with Ray 2.54 or later", Remedy: "raise clusterTemplate.spec.rayVersion with its image, or leave the selector out",
		Holds: "size(object.spec.?entrypointLabelSelector.orValue({})) == 0 || !variables.cluster.?rayVersion.orValue('').matches('" + withoutLabels.String() + "')",
		job: func(r *run, bad report) {
			if len(r.spec.EntrypointLabelSelector) > 0 && r.cluster != nil && withoutLabels.MatchString(r.cluster.Spec.RayVersion) {
				bad.at(specPath.Child("entrypointLabelSelector"), nil)
			}
		},
	},
}
