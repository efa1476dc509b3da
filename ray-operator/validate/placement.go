package validate

import (
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// A selector's value as Ray 2.60 takes it: a label's value, one of several, or neither.
var (
	selectorValue = regexp.MustCompile(`^$|^!?(` + labelValue + `|in[(]` + labelValue + `(, ?` + labelValue + `)*[)])$`)
	withoutLabels = regexp.MustCompile(`^2[.]5[23][.]`)
)

const labelValue = `[a-zA-Z0-9]([a-zA-Z0-9_.-]{0,61}[a-zA-Z0-9])?`

// placementRules are about where a job's driver runs and what it takes.
var placementRules = []Rule{
	{
		ID: "selector-grammar", Field: "spec.entrypointLabelSelector, spec.gang.roles[*].labelSelector", By: Policy,
		Refused: "a key of a selector must be a label key, and its value a label value, in(a, b), or one of these after '!'", Remedy: "correct the key or the value",
		Holds: "([dyn(object.spec.?entrypointLabelSelector.orValue({}))] + variables.roles.map(r, dyn(r.?labelSelector.orValue({})))).all(s, " +
			"s.all(k, !format.qualifiedName().validate(k).hasValue() && s[k].matches('" + selectorValue.String() + "')))",
		job: func(r *run, bad report) {
			judge := func(path *field.Path, child string, selector map[string]string) {
				keys(bad, path, child, selector, func(key string) bool {
					return !isLabelKey(key) || !selectorValue.MatchString(selector[key])
				})
			}
			judge(specPath, "entrypointLabelSelector", r.spec.EntrypointLabelSelector)
			for i, role := range r.roles() {
				judge(rolesPath.Index(i), "labelSelector", role.LabelSelector)
			}
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
