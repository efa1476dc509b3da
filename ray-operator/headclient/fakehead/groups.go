package fakehead

import (
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/heliostat-dev/heliostat/proto/gen/ray/rpc"
	"github.com/heliostat-dev/heliostat/proto/gen/ray/rpc/autoscaler"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// group is a placement group: its bundles one by one, and the node of each, nil for none.
type group struct {
	id       string
	strategy headclient.Strategy
	locality headclient.Locality
	bundles  []Ask
	on       []*node
	tasks    int
	placed   bool // it was once
}

// Group is a placement group to be made.
type Group struct {
	Strategy headclient.Strategy
	Bundles  []Ask
	Locality headclient.Locality
	// Tasks is how many tasks wait for its bundles, until it has its nodes.
	Tasks int
}

// Gather makes a placement group, which gets its nodes once there is room for all of it, and
// keeps them until end is called.
func (c *cluster) Gather(wish Group) (end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made++
	one := &group{id: fmt.Sprintf("%036x", c.made), strategy: wish.Strategy, locality: wish.Locality, tasks: wish.Tasks}
	for _, bundle := range wish.Bundles {
		for range bundle.Count {
			one.bundles = append(one.bundles, Ask{Shape: bundle.Shape, Selectors: bundle.Selectors, Count: 1})
		}
	}
	one.on = make([]*node, len(one.bundles))
	c.groups = append(c.groups, one)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.settle()
		for i := range one.on {
			one.leave(i, c.clock.Now())
		}
		c.groups = slices.DeleteFunc(c.groups, func(other *group) bool { return other == one })
	}
}

// label is what a node is labelled with that hosts a bundle.
func (g *group) label() string { return "_PG_" + g.id }

// inside is what a task asks for that is to run in any bundle.
func (g *group) inside() map[string]float64 {
	return map[string]float64{"CPU_group_" + g.id: 1, "bundle_group_" + g.id: 0.001}
}

// names are the resources that a node has for the tasks of a bundle.
func (g *group) names(i int) map[string]float64 {
	names := map[string]float64{"bundle_group_" + g.id: 1000, fmt.Sprintf("bundle_group_%d_%s", i, g.id): 1000}
	for name, amount := range g.bundles[i].Shape {
		names[name+"_group_"+g.id], names[fmt.Sprintf("%s_group_%d_%s", name, i, g.id)] = amount, amount
	}
	return names
}

func (g *group) enter(i int, at *node) {
	at.take(g.bundles[i].Shape)
	at.hosted[g.label()]++
	for name, amount := range g.names(i) {
		at.extra[name] += amount
	}
	g.on[i] = at
}

func (g *group) leave(i int, now time.Time) {
	at := g.on[i]
	g.on[i] = nil
	if at == nil || at.dead {
		return
	}
	at.give(g.bundles[i].Shape, now)
	for name, amount := range g.names(i) {
		if at.extra[name] -= amount; at.extra[name] <= 0 {
			delete(at.extra, name)
		}
	}
	if at.hosted[g.label()]--; at.hosted[g.label()] == 0 {
		delete(at.hosted, g.label())
	}
}

// placeGroup gives nodes to all bundles that have none, or to none of them.
func (c *cluster) placeGroup(g *group) {
	var entered []int
	for i, at := range g.on {
		if at != nil && at.dead {
			g.on[i] = nil
		}
	}
	for i := range g.on {
		if g.on[i] != nil {
			continue
		}
		at := slices.IndexFunc(c.nodes, func(n *node) bool { return g.mayBeOn(i, n) && fits(g.bundles[i].Shape, n.free()) })
		if at < 0 {
			for _, i := range entered {
				g.leave(i, c.clock.Now())
			}
			return
		}
		g.enter(i, c.nodes[at])
		entered = append(entered, i)
	}
	g.placed = true
}

// mayBeOn reports whether a node is one for a bundle, room apart. The first bundle says where
// those go that want to be together.
func (g *group) mayBeOn(i int, n *node) bool {
	if !n.open() || !n.matches(g.bundles[i].Selectors) || len(g.locality.Selector) > 0 && !n.matches([]headclient.Selector{g.locality.Selector}) {
		return false
	}
	for _, other := range g.on {
		switch {
		case other == nil:
		case g.strategy == headclient.StrictPack && other != n,
			g.strategy == headclient.StrictSpread && other == n,
			g.locality.Strategy == headclient.StrictPack && other.Labels[g.locality.Label] != n.Labels[g.locality.Label]:
			return false
		}
	}
	return true
}

// waitingGroups lists what of groups has no node, and one group that waits for nothing, as
// GCS does. The caller holds the lock.
func (c *cluster) waitingGroups() []*autoscaler.GangResourceRequest {
	listed := []*autoscaler.GangResourceRequest{{}}
	for _, g := range c.groups {
		state := "PENDING"
		if g.placed {
			state = "RESCHEDULING"
		}
		gang := &autoscaler.GangResourceRequest{Details: fmt.Appendf(nil, "%s:%s|%s", g.id, g.strategy, state)}
		within := &autoscaler.BundleSelector{LocalityRequirement: g.required()}
		for i, at := range g.on {
			if at != nil {
				continue
			}
			request := g.bundles[i].request()
			request.PlacementConstraints = g.constraints()
			plain := proto.CloneOf(request)
			plain.LabelSelectors = nil
			gang.Requests, within.ResourceRequests = append(gang.Requests, plain), append(within.ResourceRequests, request)
		}
		if len(gang.Requests) > 0 {
			gang.BundleSelectors = []*autoscaler.BundleSelector{within}
			listed = append(listed, gang)
		}
	}
	return listed
}

func (g *group) constraints() []*autoscaler.PlacementConstraint {
	switch g.strategy {
	case headclient.StrictSpread:
		return []*autoscaler.PlacementConstraint{{AntiAffinity: &autoscaler.AntiAffinityConstraint{LabelName: g.label()}}}
	case headclient.StrictPack:
		return []*autoscaler.PlacementConstraint{{Affinity: &autoscaler.AffinityConstraint{LabelName: g.label()}}}
	default:
		return nil
	}
}

func (g *group) required() *autoscaler.LocalityRequirement {
	if g.locality.Label == "" {
		return nil
	}
	return &autoscaler.LocalityRequirement{
		LocalityConstraint: &autoscaler.LocalityConstraint{
			LabelName: g.locality.Label, PlacementStrategy: rpc.PlacementStrategy(rpc.PlacementStrategy_value[string(g.locality.Strategy)]),
		},
		LabelSelector: written(g.locality.Selector),
	}
}
