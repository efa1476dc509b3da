package validate

import (
	"slices"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// cleanups reports the rules of a job's cleanup that do not go with another one.
func cleanups(wrong func(rule, other *v1beta1.CleanupRule) bool) func(*run, report) {
	return func(r *run, bad report) {
		rules := r.spec.Cleanup
		for i := range rules {
			for j := range rules {
				if i != j && wrong(&rules[i], &rules[j]) {
					bad.at(specPath.Child("cleanup").Index(i), nil)
					break
				}
			}
		}
	}
}

// cleanupRules are about what of a job's own cluster goes when.
var cleanupRules = []Rule{
	{
		ID: "cleanup-own", Field: "spec.cleanup", By: Expression,
		Refused: "cleanup must be used with clusterTemplate only", Remedy: "leave cleanup out, or use clusterTemplate",
		job: func(r *run, bad report) {
			if len(r.spec.Cleanup) > 0 && r.cluster == nil {
				bad.at(specPath.Child("cleanup"), nil)
			}
		},
	},
	{
		ID: "cleanup-twice", Field: "spec.cleanup", By: Expression,
		Refused: "rules must differ in outcome or action", Remedy: "keep one of the two",
		job: cleanups(func(rule, other *v1beta1.CleanupRule) bool {
			return rule.Outcome == other.Outcome && rule.Action == other.Action
		}),
	},
	{
		ID: "cleanup-order", Field: "spec.cleanup", By: Expression,
		Refused: "DeleteWorkers must come before DeleteCluster", Remedy: "lower its afterSeconds or remove it",
		job: cleanups(func(rule, other *v1beta1.CleanupRule) bool {
			return rule.Action == v1beta1.CleanupDeleteWorkers && other.Action == v1beta1.CleanupDeleteCluster &&
				rule.Outcome == other.Outcome && rule.AfterSeconds >= other.AfterSeconds
		}),
	},
	{
		ID: "cleanup-workers", Field: "spec.cleanup", By: Policy,
		Refused: "DeleteWorkers must be used with a cluster that has workers", Remedy: "use DeleteCluster",
		Holds: "!has(object.spec.clusterTemplate) || size(variables.cluster.?workerGroups.orValue([])) > 0 || " +
			"object.spec.?cleanup.orValue([]).all(c, c.action != 'DeleteWorkers')",
		job: func(r *run, bad report) {
			has := slices.ContainsFunc(r.spec.Cleanup, func(c v1beta1.CleanupRule) bool { return c.Action == v1beta1.CleanupDeleteWorkers })
			if has && r.cluster != nil && len(r.cluster.Spec.WorkerGroups) == 0 {
				bad.at(specPath.Child("cleanup"), nil)
			}
		},
	},
}
