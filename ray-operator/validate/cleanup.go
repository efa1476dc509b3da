package validate

import (
	"slices"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// cleanupRules are about what of a job's own cluster goes when.
var cleanupRules = []Rule{
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
