package job

import (
	"cmp"
	"maps"
	"slices"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// mostFitted is how many places are tried out at most. Gangs of more places together gather one after another.
const mostFitted = 512

// holdsTogether reports whether a cluster at its largest surely holds all of some gangs at once, so that none has to wait for
// another. It says no where it is not sure: amounts and labels that only machines tell count as none.
func (r room) holdsTogether(gangs []*v1beta1.Gang) bool {
	var bundles []bundle
	for at, gang := range gangs {
		bundles = append(bundles, bundlesOf(gang, at)...)
		if len(bundles) > mostFitted {
			return false
		}
	}
	slices.SortStableFunc(bundles, func(a, b bundle) int { return cmp.Compare(b.size(), a.size()) })
	trial := fitting{room: r, used: make([]int, len(r.groups))}
	return !slices.ContainsFunc(bundles, func(one bundle) bool { return !trial.place(one) })
}

// bundle is a place of a gang, or all of them where they must be on one node.
type bundle struct {
	needs     map[string]float64
	selectors []map[string]string
	// gang is the number of its gang. isAlone: no other place of that may be on its node.
	gang    int
	isAlone bool
}

// bundlesOf returns the places of a gang.
func bundlesOf(gang *v1beta1.Gang, number int) []bundle {
	if gang.Placement == v1beta1.PlacementStrictPack {
		all := bundle{needs: map[string]float64{}, gang: number}
		for i := range gang.Roles {
			all.add(&gang.Roles[i], float64(replicasOf(&gang.Roles[i])))
		}
		return []bundle{all}
	}
	var bundles []bundle
	for i := range gang.Roles {
		one := bundle{needs: map[string]float64{}, gang: number, isAlone: gang.Placement == v1beta1.PlacementStrictSpread}
		one.add(&gang.Roles[i], 1)
		for range replicasOf(&gang.Roles[i]) {
			bundles = append(bundles, one)
		}
	}
	return bundles
}

// add adds so many places of a role.
func (b *bundle) add(role *v1beta1.GangRole, count float64) {
	for name, quantity := range role.Resources {
		b.needs[name] += quantity.AsApproximateFloat64() * count
	}
	b.selectors = append(b.selectors, role.LabelSelector)
}

// size orders bundles: those that need most of anything but bytes come first.
func (b bundle) size() float64 {
	most := 0.0
	for name, need := range b.needs {
		if name != "memory" {
			most = max(most, need)
		}
	}
	return most
}

// fitting is a trial of how bundles fit on nodes.
type fitting struct {
	room
	// used is how many nodes of each group have bundles, workers how many of all.
	used    []int
	workers int
	nodes   []filledNode
}

// filledNode is a node with bundles on it.
type filledNode struct {
	group int
	free  map[string]float64
	gangs []int
}

// place puts a bundle on a node that has others already, or on one more.
func (f *fitting) place(one bundle) bool {
	for i := range f.nodes {
		node := &f.nodes[i]
		if one.isAlone && slices.Contains(node.gangs, one.gang) || !f.groups[node.group].suits(one) || !covers(node.free, one.needs) {
			continue
		}
		node.take(one)
		return true
	}
	for at, group := range f.groups {
		if f.used[at] >= group.nodes || !group.isHead && f.workers >= f.room.workers || !group.suits(one) {
			continue
		}
		node := filledNode{group: at, free: group.Known()}
		if !covers(node.free, one.needs) {
			continue
		}
		node.take(one)
		f.nodes = append(f.nodes, node)
		f.used[at]++
		if !group.isHead {
			f.workers++
		}
		return true
	}
	return false
}

// suits reports whether nodes of a group surely have the labels that a bundle asks for.
func (g nodeGroup) suits(one bundle) bool {
	return !slices.ContainsFunc(one.selectors, func(selector map[string]string) bool { return !g.Matches(selector) })
}

// covers reports whether what is free is as much as is needed.
func covers(free, needs map[string]float64) bool {
	for name, need := range needs {
		if need > free[name]*(1+tolerance) {
			return false
		}
	}
	return true
}

// take puts a bundle on the node.
func (n *filledNode) take(one bundle) {
	n.free = maps.Clone(n.free)
	for name, need := range one.needs {
		n.free[name] -= need
	}
	n.gangs = append(n.gangs, one.gang)
}
