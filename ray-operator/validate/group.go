package validate

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// hosts of a replica as the API server's default makes them.
func hosts(g *v1beta1.WorkerGroup) int64 { return max(int64(g.HostsPerReplica), 1) }

var headNames = []string{"head", naming.HeadGroup}

// groupRules are about a worker group beside what it has in common with the head.
var groupRules = []Rule{
	{
		ID: "group-name", Field: "GROUP.name", By: Expression,
		Refused: "a group's name must be lower-case letters, digits and '-', starting with a letter and ending with a letter or digit",
		Remedy:  "choose such a name",
		group: func(n *node, bad report) {
			if !label.MatchString(n.group.Name) {
				bad.at(n.path.Child("name"), n.group.Name)
			}
		},
	},
	{
		ID: "group-name-head", Field: "GROUP.name", By: Expression,
		Refused: "a group must not be named head or headgroup, which stand for the head", Remedy: "choose another name",
		group: func(n *node, bad report) {
			if slices.Contains(headNames, n.group.Name) {
				bad.at(n.path.Child("name"), n.group.Name)
			}
		},
	},
	{
		ID: "min-above-max", Field: "GROUP.minReplicas", By: Expression,
		Refused: "minReplicas must not be above maxReplicas", Remedy: "raise maxReplicas or lower minReplicas",
		group: func(n *node, bad report) {
			if g := n.group; g.MinReplicas != nil && g.MaxReplicas != nil && *g.MinReplicas > *g.MaxReplicas {
				bad.at(n.path.Child("minReplicas"), *g.MinReplicas)
			}
		},
	},
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
	{
		ID: "too-many-hosts", Field: "GROUP.hostsPerReplica", By: Expression,
		Refused: "replicas times hostsPerReplica must not be above 10000 pods", Remedy: "lower one of the two or create two clusters",
		group: func(n *node, bad report) {
			if pods := int64(given(n.group.Replicas, 1)) * hosts(n.group); hosts(n.group) > 1 && pods > maxReplicas {
				bad.at(n.path.Child("hostsPerReplica"), pods)
			}
		},
	},
	{
		ID: "too-many-workers", Field: "spec.workerGroups", By: Expression,
		Refused: "the groups must not have more than 10000 workers together", Remedy: "lower replicas or create two clusters",
		cluster: func(c *v1beta1.ComputeCluster, bad report) {
			all := int64(0)
			for i := range c.Spec.WorkerGroups {
				group := &c.Spec.WorkerGroups[i]
				all += int64(given(group.Replicas, 1)) * hosts(group)
			}
			if all > maxReplicas && c.Spec.Autoscaling == nil {
				bad.at(field.NewPath("spec", "workerGroups"), all)
			}
		},
	},
	{
		ID: "hosts-fixed", Field: "GROUP.hostsPerReplica", By: Expression,
		Refused: "hostsPerReplica is immutable", Remedy: "add a group with another name and remove this one",
		change: func(before, after *v1beta1.ComputeCluster, bad report) {
			for i := range after.Spec.WorkerGroups {
				group := &after.Spec.WorkerGroups[i]
				was := naming.FindGroup(before, group.Name)
				if was == nil {
					continue
				}
				if has := hosts(group); has != hosts(was) {
					bad.at(field.NewPath("spec", "workerGroups").Index(i).Child("hostsPerReplica"), has)
				}
			}
		},
	},
}
