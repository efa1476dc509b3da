package job

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
)

// room is what a cluster can have at most: nodes of each group, and a head.
type room struct {
	groups []nodeGroup
	// workers is how many all groups together may have.
	workers int
}

// nodeGroup are nodes of one shape.
type nodeGroup struct {
	pod.NodeShape
	name   string
	nodes  int
	isHead bool
}

// roomOf returns what a cluster can have at most by its spec. Workers that are there and are more than the spec allows, or
// were built from a former one, count too: they may stay for long.
func roomOf(cluster *v1beta1.ComputeCluster) room {
	spec := &cluster.Spec
	all := room{groups: []nodeGroup{{NodeShape: pod.ShapeOf(cluster, nil), name: "the head", nodes: 1, isHead: true}}}
	var there int
	for i := range spec.WorkerGroups {
		group := &spec.WorkerGroups[i]
		one := nodeGroup{NodeShape: pod.ShapeOf(cluster, group), name: "group " + group.Name, nodes: pod.Replicas(cluster, group)}
		if spec.Autoscaling != nil {
			one.nodes = int(ptr.Deref(group.MaxReplicas, math.MaxInt16))
		}
		one.nodes *= pod.Hosts(group)
		for j := range cluster.Status.Groups {
			if status := &cluster.Status.Groups[j]; status.Name == group.Name {
				one.nodes = max(one.nodes, int(status.Desired), int(status.Created))
				there += int(status.Created)
			}
		}
		all.groups = append(all.groups, one)
		all.workers += one.nodes
	}
	if spec.Autoscaling != nil && spec.Autoscaling.MaxNodes != nil {
		all.workers = min(all.workers, max(int(*spec.Autoscaling.MaxNodes), there))
	}
	return all
}

// isJudgeable reports whether what a cluster can have follows from its spec: no worker is of a former one. For a gang that has a
// place its status must be of that spec, too. One that has none is judged again with the next status.
func isJudgeable(cluster *v1beta1.ComputeCluster, isBound bool) bool {
	isOutdated := slices.ContainsFunc(cluster.Status.Groups, func(group v1beta1.GroupStatus) bool { return group.Outdated > 0 })
	return !isOutdated && (!isBound || cluster.Status.ObservedGeneration == cluster.Generation)
}

// lacks returns why a cluster can never hold a gang, with the arithmetic; empty where it may. It refuses only what is certain.
func (r room) lacks(gang *v1beta1.Gang) string {
	for i := range gang.Roles {
		if why := r.lacksRole(&gang.Roles[i], gang.Placement == v1beta1.PlacementStrictSpread); why != "" {
			return why
		}
	}
	switch gang.Placement {
	case v1beta1.PlacementStrictPack:
		if why := r.lacksOneNode(gang.Roles); why != "" {
			return why
		}
	case v1beta1.PlacementStrictSpread:
		if why := r.lacksNodes(gang.Roles); why != "" {
			return why
		}
	}
	return r.lacksSum(gang.Roles)
}

// lacksRole judges the places of one role alone.
func (r room) lacksRole(role *v1beta1.GangRole, isSpread bool) string {
	holds := func(g nodeGroup) int {
		if !g.CanMatch(role.LabelSelector) {
			return 0
		}
		if isSpread {
			return min(g.count(role), 1)
		}
		return g.count(role)
	}
	least := int(leastReplicas(role))
	most, parts := r.sum(holds)
	place := fmt.Sprintf("role %s needs %d × %s", role.Name, least, shapeText(role))
	switch {
	case most >= float64(least):
		return ""
	case most == 0 && !slices.ContainsFunc(r.groups, func(g nodeGroup) bool { return g.CanMatch(role.LabelSelector) }):
		return fmt.Sprintf("%s, and no group has the labels %s", place, selectorText(role.LabelSelector))
	case most == 0:
		return fmt.Sprintf("%s, and no node holds one: %s", place, r.describeNodes(role))
	default:
		return fmt.Sprintf("%s, and at most %.0f fit: %s", place, most, strings.Join(parts, ", "))
	}
}

// lacksSum judges what all roles need together of each resource.
func (r room) lacksSum(roles []v1beta1.GangRole) string {
	needs := needsOf(roles)
	for _, name := range slices.Sorted(maps.Keys(needs)) {
		have := func(g nodeGroup) float64 {
			if !slices.ContainsFunc(roles, func(role v1beta1.GangRole) bool { return g.CanMatch(role.LabelSelector) }) {
				return 0
			}
			return g.Most(name)
		}
		most, parts := total(r, have)
		if needs[name] > most*(1+tolerance) {
			return fmt.Sprintf("all roles need %s %s, and at most %s are there: %s", amountText(needs[name]), name, amountText(most), strings.Join(parts, ", "))
		}
	}
	return ""
}

// lacksOneNode judges a gang whose places must all be on one node.
func (r room) lacksOneNode(roles []v1beta1.GangRole) string {
	needs := needsOf(roles)
	fits := func(g nodeGroup) bool {
		for i := range roles {
			if !g.CanMatch(roles[i].LabelSelector) {
				return false
			}
		}
		for name, amount := range needs {
			if amount > g.Most(name)*(1+tolerance) {
				return false
			}
		}
		return g.nodes > 0
	}
	if slices.ContainsFunc(r.groups, fits) {
		return ""
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(needs)) {
		parts = append(parts, fmt.Sprintf("%s: %s", name, amountText(needs[name])))
	}
	return fmt.Sprintf("StrictPack needs {%s} on one node, and no group has such nodes", strings.Join(parts, ", "))
}

// lacksNodes judges a gang whose places must each be on a node of its own.
func (r room) lacksNodes(roles []v1beta1.GangRole) string {
	least := 0
	for i := range roles {
		least += int(leastReplicas(&roles[i]))
	}
	most, parts := r.sum(func(g nodeGroup) int {
		for i := range roles {
			if g.CanMatch(roles[i].LabelSelector) && g.count(&roles[i]) > 0 {
				return 1
			}
		}
		return 0
	})
	if most >= float64(least) {
		return ""
	}
	return fmt.Sprintf("StrictSpread needs %d nodes, and at most %.0f are there: %s", least, most, strings.Join(parts, ", "))
}

// sum returns how many there are of what each node has some of, and how many in each group.
func (r room) sum(each func(nodeGroup) int) (float64, []string) {
	return total(r, func(g nodeGroup) float64 { return float64(each(g)) })
}

// total returns how much there is of what each node has some of, where as many workers are there as may be, and of what that is
// made up. The groups with most of it count first, as workers of others may leave them their places.
func total(r room, each func(nodeGroup) float64) (most float64, parts []string) {
	groups := slices.Clone(r.groups)
	slices.SortStableFunc(groups, func(a, b nodeGroup) int { return cmp.Compare(each(b), each(a)) })
	left := r.workers
	for _, g := range groups {
		nodes := g.nodes
		if !g.isHead {
			nodes = min(nodes, left)
			left -= nodes
		}
		if amount := each(g); amount > 0 && nodes > 0 {
			most += amount * float64(nodes)
			parts = append(parts, fmt.Sprintf("%s has at most %d × %s", g.name, nodes, amountText(amount)))
		}
	}
	return most, parts
}

// tolerance is what sums of fractions may be off by.
const tolerance = 1e-9

// count returns how many places of a role a node holds.
func (g nodeGroup) count(role *v1beta1.GangRole) int {
	count := float64(math.MaxInt16)
	for name, quantity := range role.Resources {
		if need := quantity.AsApproximateFloat64(); need > 0 {
			count = min(count, math.Floor(g.Most(name)/need*(1+tolerance)))
		}
	}
	return int(count)
}

// needsOf returns what the least places of all roles need together.
func needsOf(roles []v1beta1.GangRole) map[string]float64 {
	needs := map[string]float64{}
	for i := range roles {
		for name, quantity := range roles[i].Resources {
			needs[name] += quantity.AsApproximateFloat64() * float64(leastReplicas(&roles[i]))
		}
	}
	return needs
}

// describeNodes returns what the nodes that a role may be on have of what it needs.
func (r room) describeNodes(role *v1beta1.GangRole) string {
	var parts []string
	for _, g := range r.groups {
		if !g.CanMatch(role.LabelSelector) {
			continue
		}
		var amounts []string
		for _, name := range slices.Sorted(maps.Keys(role.Resources)) {
			if most := g.Most(name); !math.IsInf(most, 1) {
				amounts = append(amounts, fmt.Sprintf("%s: %s", name, amountText(most)))
			}
		}
		parts = append(parts, fmt.Sprintf("%s has {%s}", g.name, strings.Join(amounts, ", ")))
	}
	return strings.Join(parts, ", ")
}

// shapeText returns the resources of a place, as {CPU: 4, GPU: 1}.
func shapeText(role *v1beta1.GangRole) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(role.Resources)) {
		quantity := role.Resources[name]
		parts = append(parts, name+": "+quantity.String())
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// selectorText returns a selector, as a=b, c=d.
func selectorText(selector map[string]string) string {
	var parts []string
	for _, label := range slices.Sorted(maps.Keys(selector)) {
		parts = append(parts, label+"="+selector[label])
	}
	return strings.Join(parts, ", ")
}

// amountText returns an amount of a resource.
func amountText(amount float64) string {
	if math.IsInf(amount, 1) {
		return "an unknown amount"
	}
	return fmt.Sprintf("%.10g", amount)
}
