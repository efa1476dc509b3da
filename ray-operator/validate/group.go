package validate

import (
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// hosts of a replica as the API server's default makes them.
func hosts(g *v1beta1.WorkerGroup) int64 { return max(int64(g.HostsPerReplica), 1) }

// groupRules are about a worker group beside what it has in common with the head.
var groupRules = []Rule{
	{
		ID: "replicas-below-min", Field: "GROUP.replicas", By: Policy,
		Refused: "replicas must not be below minReplicas", Remedy: "raise replicas or lower minReplicas",
		Holds: "n.head || has(variables.cluster.autoscaling) || !has(n.spec.replicas) || n.spec.replicas >= n.spec.?minReplicas.orValue(0)",
		group: func(n *node, bad report) {
			if g := n.group; !n.autoscaled() && g.Replicas != nil && g.MinReplicas != nil && *g.Replicas < *g.MinReplicas {
				bad.at(n.path.Child("replicas"), *g.Replicas)
			}
		},
	},
	{
		ID: "replicas-above-max", Field: "GROUP.replicas", By: Policy,
		Refused: "replicas must not be above maxReplicas", Remedy: "lower replicas or raise maxReplicas",
		Holds: "n.head || has(variables.cluster.autoscaling) || !has(n.spec.replicas) || !has(n.spec.maxReplicas) || n.spec.replicas <= n.spec.maxReplicas",
		group: func(n *node, bad report) {
			if g := n.group; !n.autoscaled() && g.Replicas != nil && g.MaxReplicas != nil && *g.Replicas > *g.MaxReplicas {
				bad.at(n.path.Child("replicas"), *g.Replicas)
			}
		},
	},
}
