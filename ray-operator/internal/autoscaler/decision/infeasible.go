package decision

import (
	"fmt"
	"slices"
	"strings"
)

// verdicts sorts what got no place: what never can, and what waits and why.
type verdicts struct {
	*plan
	// empty are the nodes that are there, as if nothing ran on them.
	empty      *pool
	infeasible Infeasible
	kept       []Kept
	index      map[string]int
	// blocked tells of which groups a maximum keeps something waiting.
	blocked []bool
	// looks counts like a pool's work, and is bounded like it: who looked at too much calls
	// nothing impossible any more.
	looks int
}

func (p *plan) verdicts() *verdicts {
	v := &verdicts{plan: p, index: map[string]int{}, blocked: make([]bool, len(p.groups))}
	v.judge(p.onFloor, p.in.Floor, &v.infeasible.Floor, "request_resources: ")
	for at, g := range p.gangs {
		if p.gangPlaced[at] {
			continue
		}
		if !v.possible(g) {
			v.infeasible.Gangs = append(v.infeasible.Gangs, g.index)
			continue
		}
		count := int64(0)
		for _, one := range g.units {
			count = sum(count, one.count)
		}
		v.keep(g.units[0].shape, count, "placement group "+short(g.Name)+": "+v.why(g.units, g))
	}
	slices.Sort(v.infeasible.Gangs)
	v.judge(p.demand, p.in.Demand, &v.infeasible.Demand, "")
	return v
}

// judge judges requests that stand alone.
func (v *verdicts) judge(wants []*wanting, in []Demand, never *[]Demand, prefix string) {
	for _, want := range wants {
		switch {
		case want.left == 0:
		case v.held(want.unit, everyNode):
			v.keep(want.shape, want.left, prefix+v.why([]*unit{want.unit}, nil))
		default:
			for _, at := range want.from {
				*never = append(*never, in[at])
			}
		}
	}
}

func (v *verdicts) keep(shape Resources, count int64, why string) {
	key := shape.String() + why
	at, known := v.index[key]
	if !known {
		at = len(v.kept)
		v.index[key] = at
		v.kept = append(v.kept, Kept{Shape: shape, Why: why})
	}
	v.kept[at].Count = int(sum(int64(v.kept[at].Count), count))
}

// held reports whether a node of a group, or one that is there, could hold one of the requests.
func (v *verdicts) held(one *unit, also rule) bool {
	for at := range v.groups {
		if v.holdsIn(one, also, at) {
			return true
		}
	}
	return v.heldBy(one, also, func(*class) bool { return true })
}

// heldBy reports whether a node that is there could hold one of the requests if it were empty.
func (v *verdicts) heldBy(one *unit, also rule, may func(*class) bool) bool {
	if v.empty == nil {
		v.empty = v.newPool(v.hosts(), true)
	}
	if enough(v.looks) {
		return true
	}
	v.looks += len(v.empty.classes) * one.need.looks()
	return slices.ContainsFunc(v.empty.classes, func(c class) bool {
		return c.stage == existing && may(&c) && v.rank(one, c.free, c.on) != nowhere && v.labels.rank(also, c.on) != nowhere
	})
}

// possible reports whether a gang could have its place if everything were empty and nothing had
// a maximum. It says no only where that is sure.
func (v *verdicts) possible(g *gang) bool {
	for _, also := range g.rules {
		if slices.ContainsFunc(g.units, func(one *unit) bool { return !v.held(one, also) }) {
			continue
		}
		if g.Within == "" || g.Together || v.inOneDomain(g, also) || v.inOneReplica(g, also) {
			return true
		}
	}
	return false
}

// inOneDomain reports whether for one value of the gang's label each bundle could be held.
func (v *verdicts) inOneDomain(g *gang, also rule) bool {
	if enough(v.looks) {
		return true
	}
	v.looks += len(v.labels.sets)
	values := map[string]bool{}
	for _, labels := range v.labels.sets {
		if value, has := labels[g.Within]; has {
			values[value] = true
		}
	}
	in := func(on set, value string) bool { return v.labels.has(on, g.Within, value) }
	v.looks += len(values) * len(v.groups)
	for value := range values {
		lacks := func(one *unit) bool {
			for at, group := range v.groups {
				if in(group.labels, value) && v.holdsIn(one, also, at) {
					return false
				}
			}
			return !v.heldBy(one, also, func(c *class) bool { return in(c.on, value) })
		}
		if !slices.ContainsFunc(g.units, lacks) {
			return true
		}
	}
	return false
}

// inOneReplica reports whether an empty replica of several hosts could hold the gang.
func (v *verdicts) inOneReplica(g *gang, also rule) bool {
	for at, group := range v.groups {
		if group.hosts < 2 {
			continue
		}
		all, fits := vector{}, true
		for _, one := range g.units {
			fits = fits && v.holdsIn(one, also, at) && (len(one.apart) == 0 || one.count <= group.hosts)
			all = all.plus(one.need, one.count)
		}
		for _, part := range all {
			fits = fits && part.n <= group.total(part.kind)
		}
		if fits {
			return true
		}
	}
	return false
}

// whysShown is how many groups a reason names.
const whysShown = 3

// why says what keeps requests waiting that some group could hold, a gang's or such that
// stand alone.
func (v *verdicts) why(units []*unit, of *gang) string {
	all := v.whys(units, of)
	switch {
	case len(all) > whysShown:
		return strings.Join(all[:whysShown], "; ") + fmt.Sprintf("; and %d more groups", len(all)-whysShown)
	case len(all) > 0:
		return strings.Join(all, "; ")
	case enough(v.main.work):
		return "more kinds of requests wait than one round looks at"
	default:
		return "only nodes that are there could hold it, and they are in use"
	}
}

// whys are the reasons of the groups that could hold one of the requests.
func (v *verdicts) whys(units []*unit, of *gang) []string {
	var all []string
	for at, g := range v.groups {
		rules := []rule{everyNode}
		if of != nil {
			rules = of.rules
		}
		if !slices.ContainsFunc(units, func(one *unit) bool {
			return slices.ContainsFunc(rules, func(also rule) bool { return v.holdsIn(one, also, at) })
		}) {
			continue
		}
		reason := v.keeps(at, g)
		if reason == "" && of != nil && !enough(v.main.work) {
			v.blocked[at] = true
			reason = fmt.Sprintf("group %s has no room for all of it up to its maximum of %d", g.Name, g.Max)
			if v.tighter(at) {
				reason = fmt.Sprintf("the cluster has no room for all of it up to its maximum of %d workers", v.in.MaxNodes)
			}
		}
		if reason != "" && !slices.Contains(all, reason) {
			all = append(all, reason)
		}
	}
	return all
}

// keeps says what keeps a group from growing, empty if nothing does.
func (v *verdicts) keeps(at int, g *group) string {
	switch {
	case g.Closed:
		return "group " + g.Name + " is suspended"
	case g.PassedOver:
		return "group " + g.Name + " gets no capacity"
	case g.Failing != "":
		return "group " + g.Name + " does not grow while its newest workers fail: " + g.Failing
	case v.full(at):
		v.blocked[at] = true
		return fmt.Sprintf("group %s is at its maximum of %d", g.Name, g.Max)
	case v.crowded(at):
		v.blocked[at] = true
		return fmt.Sprintf("the cluster is at its maximum of %d workers", v.in.MaxNodes)
	default:
		return ""
	}
}

// crowded tells that the cluster has no room for one more replica of a group that is not full.
func (v *verdicts) crowded(at int) bool {
	return v.main.room-v.main.fresh < v.groups[at].hosts && !v.full(at)
}

// tighter reports whether the cluster's maximum leaves a group room for fewer replicas than its own does.
func (v *verdicts) tighter(at int) bool {
	g := v.groups[at]
	return (v.main.room-v.main.fresh)/g.hosts < g.most-g.alive-v.fresh[at]
}

// full tells that a group has as many replicas as it may have.
func (v *verdicts) full(at int) bool {
	return v.groups[at].alive+v.fresh[at] >= v.groups[at].most
}
