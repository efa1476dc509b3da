package validate

import (
	"math"
	"slices"
)

// beside is that a field of a deployment does not go with another one.
func beside(key, other string) flaw {
	return flaw{
		in: partDeployment, key: key, when: there(key) + " && " + there(other),
		wrong: func(of map[string]any) bool { return isThere(of, key) && isThere(of, other) },
	}
}

// deploymentRules are about what is said of single deployments.
var deploymentRules = []Rule{
	repeated(Rule{
		ID: "serve-deployment-twice", Field: "spec.serveConfig.applications[*].deployments[*].name",
		Refused: "a deployment must have only one entry", Remedy: "merge the two",
	}, partDeployment, "name", nameIn, nameOf),
	ofParts(Rule{
		ID: "serve-per-node-alone", Field: "spec.serveConfig.applications[*].deployments[*].max_replicas_per_node",
		Refused: "max_replicas_per_node must not be set with placement_group_bundles or gang_scheduling_config", Remedy: "keep one of them",
	}, beside("max_replicas_per_node", "placement_group_bundles"), beside("max_replicas_per_node", "gang_scheduling_config")),
	ofParts(Rule{
		ID: "serve-gang-strategy", Field: "spec.serveConfig.applications[*].deployments[*].placement_group_strategy",
		Refused: "placement_group_strategy must not be set with gang_scheduling_config", Remedy: "set gang_placement_strategy of the latter instead",
	}, beside("placement_group_strategy", "gang_scheduling_config")),
	ofParts(Rule{
		ID: "serve-bundle-selector", Field: "spec.serveConfig.applications[*].deployments[*].placement_group_bundle_label_selector",
		Refused: "placement_group_bundle_label_selector must have one entry for all placement_group_bundles, or one for each", Remedy: "correct it, or leave it out",
	}, flaw{
		in: partDeployment, key: "placement_group_bundle_label_selector",
		when: "type(o.of.?placement_group_bundle_label_selector.orValue(dyn(null))) == list && size(o.of.placement_group_bundle_label_selector) != " +
			"(type(o.of.?placement_group_bundles.orValue(dyn(null))) != list ? -1 : size(o.of.placement_group_bundle_label_selector) == 1 ? 1 : size(o.of.placement_group_bundles))",
		wrong: func(of map[string]any) bool {
			selectors, given := of["placement_group_bundle_label_selector"].([]any)
			bundles, there := of["placement_group_bundles"].([]any)
			return given && (!there || len(selectors) != 1 && len(selectors) != len(bundles))
		},
	}),
}

// scalingRules are about how many replicas deployments have.
var scalingRules = []Rule{
	ofParts(Rule{
		ID: "serve-replicas-fixed", Field: "spec.serveConfig.applications[*].deployments[*].num_replicas",
		Refused: "num_replicas must not be a number with autoscaling_config", Remedy: `set num_replicas to "auto" or leave it out, or remove autoscaling_config`,
	}, flaw{
		in: partDeployment, key: "num_replicas", when: "[o.of.?num_replicas.orValue(dyn(null))].exists(v, " + numberOf("v") + ") && " + there("autoscaling_config"),
		wrong: func(of map[string]any) bool {
			_, fixed := of["num_replicas"].(float64)
			return fixed && isThere(of, "autoscaling_config")
		},
	}),
	ofParts(Rule{
		ID: "serve-scaling-order", Field: "spec.serveConfig.applications[*].deployments[*].autoscaling_config",
		Refused: "min_replicas must not be above initial_replicas, and neither must be above max_replicas", Remedy: "correct them",
	}, flaw{
		in: "autoscaling", wrong: isOutOfOrder,
		when: "[['min_replicas', 'initial_replicas'], ['min_replicas', 'max_replicas'], ['initial_replicas', 'max_replicas']].exists(p, " +
			"p.all(k, [o.of[?k].orValue(dyn(null))].exists(v, " + numberOf("v") + ")) && o.of[p[0]] > o.of[p[1]])",
	}),
	ofParts(Rule{
		ID: "serve-scaling-elsewhere", Field: "spec.serveConfig.applications[*].external_scaler_enabled",
		Refused: "deployments must not scale by themselves with external_scaler_enabled", Remedy: `remove autoscaling_config and num_replicas "auto", or external_scaler_enabled`,
	}, flaw{
		in: partApplication, key: "external_scaler_enabled", wrong: isScaledTwice,
		when: "o.of.?external_scaler_enabled.orValue(dyn(false)) == true && " + listIn("o.of", "deployments") + ".exists(d, type(d) == map && " +
			"(d.?num_replicas.orValue(dyn(null)) == 'auto' || d.?autoscaling_config.orValue(dyn(null)) != null))",
	}),
	ofParts(Rule{
		ID: "serve-gang-size", Field: "spec.serveConfig.applications[*].deployments[*].gang_scheduling_config",
		Refused: "gang_scheduling_config must have a gang_size, and num_replicas, or with \"auto\" the numbers of autoscaling_config, must be multiples of it", Remedy: "correct them",
	}, flaw{
		in: partDeployment, key: "gang_scheduling_config", wrong: isBrokenGang,
		when: "[o.of.?gang_scheduling_config.orValue(dyn(null))].exists(g, type(g) == map && (!('gang_size' in g) || " + countOf("g.gang_size") + " && " +
			"([o.of.?num_replicas.orValue(dyn(null))] + [o.of.?autoscaling_config.orValue(dyn(null))].map(a, o.of.?num_replicas.orValue(dyn(null)) == 'auto' && type(a) == map ? " +
			"[a.?min_replicas.orValue(dyn(null)), a.?initial_replicas.orValue(dyn(null)), a.?max_replicas.orValue(dyn(null))] : [])[0])" +
			".exists(n, " + countOf("n") + " && int(n) % int(g.gang_size) != 0)))",
	}),
}

func isOutOfOrder(of map[string]any) bool {
	before := math.Inf(-1)
	for _, key := range []string{"min_replicas", "initial_replicas", "max_replicas"} {
		number, given := of[key].(float64)
		if given && number < before {
			return true
		}
		if given {
			before = number
		}
	}
	return false
}

func isScaledTwice(of map[string]any) bool {
	deployments, _ := of["deployments"].([]any)
	for i := range deployments {
		deployment, _ := deployments[i].(map[string]any)
		if deployment["num_replicas"] == "auto" || isThere(deployment, "autoscaling_config") {
			return of["external_scaler_enabled"] == true
		}
	}
	return false
}

func isBrokenGang(of map[string]any) bool {
	gang, isGang := of["gang_scheduling_config"].(map[string]any)
	if !isGang {
		return false
	}
	if _, given := gang["gang_size"]; !given {
		return true
	}
	numbers := []any{of["num_replicas"]}
	if scaling, ok := of["autoscaling_config"].(map[string]any); ok && of["num_replicas"] == "auto" {
		numbers = append(numbers, scaling["min_replicas"], scaling["initial_replicas"], scaling["max_replicas"])
	}
	size, _ := gang["gang_size"].(float64)
	return isCount(size) && slices.ContainsFunc(numbers, func(value any) bool {
		number, _ := value.(float64)
		return isCount(value) && math.Mod(number, size) != 0
	})
}
