package decision

import (
	"fmt"
	"math"
	"slices"
)

// What follows judges a decision by itself: it knows requests, nodes and limits one by one
// and shares no arithmetic with the packer. Of the plan it takes only who was put where.

// box is a node as the judge sees it: there, on its way, or to be made.
type box struct {
	has    map[string]int64
	labels map[string]string
	tags   map[Label]bool
	group  string
	// replica and domain say where it belongs; a domain is shared by the hosts of a replica.
	replica string
}

// laid is requests that were put on a box.
type laid struct {
	box    string
	demand Demand
	gang   int
	count  int64
}

func tenThousandths(x float64) int64 { return int64(math.Round(x * 10000)) }

func boxed(has Resources, labels map[string]string, group, replica string) *box {
	b := &box{has: map[string]int64{}, labels: labels, tags: map[Label]bool{}, group: group, replica: replica}
	for name, n := range has {
		b.has[name] = tenThousandths(n)
	}
	for name, value := range labels {
		b.tags[Label{name, value}] = true
	}
	return b
}

// boxes are all nodes that the plan counts on, by name.
func boxes(p *plan, totals bool) map[string]*box {
	all := map[string]*box{}
	for _, node := range p.in.Nodes {
		has := node.Available
		if totals {
			has = node.Total
		}
		all[node.Key] = boxed(has, node.Labels, node.Group, fmt.Sprint(node.Group, "/", node.Replica))
	}
	for _, g := range p.groups {
		for _, r := range g.replicas {
			for host := range g.hosts {
				name := fmt.Sprintf("%s/%d/%d", g.Name, r.number, host)
				has, labels := g.Group.host(int(host))
				all[name] = boxed(has, labels, g.Name, fmt.Sprint(g.Name, "/", r.number))
			}
		}
		for i := range p.fresh[g.at(p)] {
			for host := range g.hosts {
				name := fmt.Sprintf("%s/new%d/%d", g.Name, i, host)
				has, labels := g.Group.host(int(host))
				all[name] = boxed(has, labels, g.Name, fmt.Sprint(g.Name, "/new", i))
			}
		}
	}
	return all
}

func (g *group) at(p *plan) int { return slices.Index(p.groups, g) }

// hostName names the box of a host that the packer counts on.
func hostName(p *plan, h *host) string {
	if h.node != nil {
		return h.node.Key
	}
	return fmt.Sprintf("%s/%d/%d", p.groups[h.replica.group].Name, h.replica.number, h.host)
}

// openedName names the box of the nth host of the replicas that were opened: where hosts differ, those of one
// variant of all replicas of an event come first.
func openedName(p *plan, from *pool, at int, nth int64) string {
	g := p.groups[at]
	replica, host := nth/g.hosts, nth%g.hosts
	for _, e := range from.events {
		after := nth - e.from*g.hosts
		if len(g.variants) == 1 || e.group != at || after < 0 || after >= e.many*g.hosts {
			continue
		}
		for _, v := range g.variants {
			if of := after - v.before*e.many; of >= 0 && of < v.hosts*e.many {
				replica, host = e.from+of/v.hosts, int64(v.numbers[of%v.hosts])
			}
		}
	}
	if replica < int64(len(g.stock)) {
		return fmt.Sprintf("%s/%d/%d", g.Name, g.stock[replica].number, host)
	}
	return fmt.Sprintf("%s/new%d/%d", g.Name, replica-int64(len(g.stock)), host)
}

// traced lists who was put where by a pool.
func traced(p *plan, from *pool) []laid {
	var all []laid
	for _, one := range from.placed {
		for i := range one.nodes {
			name := openedName(p, from, max(0, one.group), one.from+i)
			if !one.isNew {
				name = hostName(p, from.members[one.from+i])
			}
			all = append(all, p.laid(from, &one, name))
		}
	}
	return all
}

// laid says whose requests were put on a box.
func (p *plan) laid(from *pool, one *placement, name string) laid {
	l := laid{box: name, demand: Demand{Shape: one.unit.shape}, gang: -1, count: one.each}
	list := p.in.Demand
	switch {
	case one.gang != nil:
		l.gang, list = one.gang.index, one.gang.Bundles
	case from == p.floor:
		list = p.in.Floor
	}
	// The bundles that were made one have no place of their own in the input.
	if len(one.unit.from) > 0 {
		l.demand = list[one.unit.from[0]]
	}
	return l
}
