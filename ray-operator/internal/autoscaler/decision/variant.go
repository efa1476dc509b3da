package decision

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// variant is hosts of each replica of a group that are all alike, as far as something asks for what they have.
type variant struct {
	free vector
	on   set
	size float64
	// hosts is how many of a replica's are so, before how many of other variants come first. Where there are several
	// variants, numbers are those of the hosts in their replica.
	hosts, before int64
	numbers       []int
}

// host is what a host of a replica has, by its number.
func (g *Group) host(number int) (Resources, map[string]string) {
	has, labels := g.Resources, g.Labels
	if number == 0 && len(g.First) > 0 {
		has = maps.Clone(g.Resources)
		if has == nil {
			has = Resources{}
		}
		maps.Copy(has, g.First)
	}
	if g.Numbered != "" {
		labels = maps.Clone(g.Labels)
		if labels == nil {
			labels = map[string]string{}
		}
		labels[g.Numbered] = strconv.Itoa(number)
	}
	return has, labels
}

// differs reports whether something asks for what tells the hosts of a replica apart.
func (w *world) differs(g *Group) bool {
	for name := range g.First {
		if _, asked := w.kinds.byName[name]; asked {
			return true
		}
	}
	return g.Numbered != "" && w.labels.names[g.Numbered]
}

// vary finds the variants of a group, of which there is one where nothing tells hosts apart.
func (w *world) vary(g *group) {
	if !w.differs(g.Group) {
		g.variants = []variant{w.variantOf(g.Resources, g.Labels)}
		g.variants[0].hosts = g.hosts
		return
	}
	type likeness struct {
		free string
		on   set
	}
	known := map[likeness]int{}
	for number := range int(g.hosts) {
		has, labels := g.Group.host(number)
		v := w.variantOf(has, labels)
		like := likeness{v.free.key(), v.on}
		at, is := known[like]
		if !is {
			at = len(g.variants)
			known[like] = at
			g.variants = append(g.variants, v)
		}
		g.variants[at].hosts++
		g.variants[at].numbers = append(g.variants[at].numbers, number)
	}
	for i := 1; i < len(g.variants); i++ {
		g.variants[i].before = g.variants[i-1].before + g.variants[i-1].hosts
	}
}

func (w *world) variantOf(has Resources, labels map[string]string) variant {
	own := maps.Clone(has)
	maps.DeleteFunc(own, func(name string, _ float64) bool { return strings.HasPrefix(name, "node:") })
	return variant{free: w.kinds.know(own), on: w.labels.know(labels)}
}

// variantOf is the variant of a host, by its number; a number that no host should have is like the last.
func (g *group) variantOf(number int) *variant {
	for i := range g.variants {
		if slices.Contains(g.variants[i].numbers, number) {
			return &g.variants[i]
		}
	}
	return &g.variants[len(g.variants)-1]
}

// total is how much of a kind an empty replica of a group has.
func (g *group) total(of kind) int64 {
	all := int64(0)
	for i := range g.variants {
		all = sum(all, product(g.variants[i].free.of(of), g.variants[i].hosts))
	}
	return all
}

// rankIn is the rank of a request on an empty host of a group and which of its variants that is, the first of the
// best; nowhere if none holds it.
func (w *world) rankIn(one *unit, also rule, g *group) (rank, at int) {
	rank = nowhere
	for i := range g.variants {
		if next := w.rankOf(one, also, &g.variants[i]); next != nowhere && (rank == nowhere || next < rank) {
			rank, at = next, i
		}
	}
	return rank, at
}

func (w *world) rankOf(one *unit, also rule, v *variant) int {
	if w.labels.rank(also, v.on) == nowhere {
		return nowhere
	}
	return w.rank(one, v.free, v.on)
}

// holdsIn reports whether an empty host of a group could hold a request that another rule binds, too.
func (w *world) holdsIn(one *unit, also rule, at int) bool {
	g := w.groups[at]
	if len(g.variants) == 1 {
		return one.holds[at] != nowhere && w.labels.rank(also, g.variants[0].on) != nowhere
	}
	rank, _ := w.rankIn(one, also, g)
	return rank != nowhere
}
