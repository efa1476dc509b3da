package decision

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
)

// anyGroup and noGroup tell which groups may grow.
func anyGroup(*group) bool { return true }
func noGroup(*group) bool  { return false }

// wantings are requests that wait for their place.
func wantings(all []*unit, of *gang, also rule) []*wanting {
	wants := make([]*wanting, len(all))
	for i, one := range all {
		wants[i] = &wanting{unit: one, gang: of, also: also, left: one.count}
	}
	return wants
}

// lookahead finds what will be left when all that exists is full, so that nodes that are
// opened for a gang are of a group that is good for what comes after it, too. It changes nothing.
func (p *pool) lookahead() []*wanting {
	byKey := map[string]*wanting{}
	var all []*wanting
	add := func(one *unit, also rule) {
		key := aheadKey(one, also)
		if byKey[key] == nil {
			alone := *one
			alone.rules = slices.DeleteFunc(slices.Clone(one.rules), func(r rule) bool { return slices.Contains(one.apart, r) })
			alone.apart = nil
			byKey[key] = &wanting{unit: &alone, also: also}
			all = append(all, byKey[key])
		}
		byKey[key].left = sum(byKey[key].left, one.count)
	}
	for _, g := range p.gangs {
		for _, one := range g.units {
			add(one, g.rules[0])
		}
	}
	for _, one := range p.demand {
		add(one, everyNode)
	}
	slices.SortStableFunc(all, func(a, b *wanting) int { return harder(a.unit, b.unit) })
	before := p.mark()
	for _, want := range all {
		p.place(want, everywhere)
	}
	p.back(before)
	return all
}

// aheadKey is the same for requests that look alike from afar.
func aheadKey(one *unit, also rule) string {
	key := binary.AppendVarint([]byte(one.need.key()), int64(also))
	for _, of := range one.rules {
		if !slices.Contains(one.apart, of) {
			key = binary.AppendVarint(key, int64(of))
		}
	}
	return string(key)
}

// placeGangs gives each gang its place, the hardest first, and tells which got one.
func (p *pool) placeGangs() []bool {
	placed := make([]bool, len(p.gangs))
	if len(p.gangs) == 0 {
		return placed
	}
	ahead := p.lookahead()
	byKey := map[string]*wanting{}
	for _, want := range ahead {
		byKey[aheadKey(want.unit, want.also)] = want
	}
	for at, g := range p.gangs {
		for _, one := range g.units {
			if seen := byKey[aheadKey(one, g.rules[0])]; seen != nil {
				seen.left = max(0, seen.left-one.count)
			}
		}
		placed[at] = p.placeGang(g, ahead)
	}
	return placed
}

// placeGang tries the gang's alternatives in their order.
func (p *pool) placeGang(g *gang, ahead []*wanting) bool {
	for _, also := range g.rules {
		if enough(p.work) {
			break
		}
		for _, where := range p.wheres(g) {
			if !enough(p.work) && p.attempt(g, also, where, ahead) {
				return true
			}
		}
	}
	return false
}

// where is nodes among which a gang may be placed.
type where struct {
	scope scope
	// may tells which groups may grow for it. Of the group alone, counted from 1, one replica
	// is opened for nothing else.
	may   func(*group) bool
	alone int
}

// attempt places all of a gang, or nothing of it.
func (p *pool) attempt(g *gang, also rule, at where, ahead []*wanting) bool {
	p.work += len(ahead) + len(p.groups)
	before := p.mark()
	foreseen := make([]int64, len(ahead))
	for i, want := range ahead {
		foreseen[i] = want.left
	}
	wants := wantings(g.units, g, also)
	if at.alone > 0 {
		at.scope = p.open(at.alone-1, 1)
	}
	for _, want := range wants {
		p.place(want, at.scope)
	}
	if p.grow(wants, ahead, at.scope, at.may) {
		return true
	}
	p.back(before)
	for i, want := range ahead {
		want.left = foreseen[i]
	}
	return false
}

// wheres lists where a gang may go, the best first. Without a label to share that is anywhere.
// With one it is, first without new nodes: the nodes of one value of the label; then the
// hosts of one replica that is half there, a replica of several hosts being one place; then
// one value whose groups may grow; then one more replica of several hosts.
func (p *pool) wheres(g *gang) []where {
	if g.Within == "" || g.Together {
		return []where{{may: anyGroup}}
	}
	domains, halves := p.domains(g.Within)
	var all []where
	for _, value := range smallest(domains, p.classes) {
		all = append(all, where{scope: scope{list: domains[value], since: len(p.classes)}, may: noGroup})
	}
	for _, half := range slices.SortedFunc(maps.Keys(halves), func(a, b [2]int) int { return slices.Compare(a[:], b[:]) }) {
		all = append(all, where{scope: scope{list: halves[half], since: len(p.classes)}, may: noGroup})
	}
	var values []string
	for _, group := range p.groups {
		if value, has := p.labels.sets[group.labels][g.Within]; has {
			values = append(values, value)
		}
	}
	slices.Sort(values)
	for _, value := range slices.Compact(values) {
		in := func(group *group) bool { return p.labels.has(group.labels, g.Within, value) }
		all = append(all, where{scope: scope{list: domains[value], since: len(p.classes)}, may: in})
	}
	return append(all, p.alone(g)...)
}

// domains are the classes by their value of a label, and those of replicas that are half there
// by group and replica.
func (p *pool) domains(label string) (domains map[string][]int, halves map[[2]int][]int) {
	domains, halves = map[string][]int{}, map[[2]int][]int{}
	p.work += len(p.classes)
	for at := range p.classes {
		c := &p.classes[at]
		if value, has := p.labels.sets[c.on][label]; has {
			domains[value] = append(domains[value], at)
		}
		if c.own != 0 {
			halves[[2]int{c.group, c.own}] = append(halves[[2]int{c.group, c.own}], at)
		}
	}
	return domains, halves
}

// smallest orders domains by how many nodes they have that stay in any case: a gang must not take up the place
// of a larger one. Nodes that may go do not count, so that the order is the same once they have gone.
func smallest(domains map[string][]int, classes []class) []string {
	size := map[string]int64{}
	for value, list := range domains {
		for _, at := range list {
			if c := &classes[at]; !c.spare {
				size[value] += c.count
			}
		}
	}
	return slices.SortedFunc(maps.Keys(domains), func(a, b string) int {
		return cmp.Or(cmp.Compare(size[a], size[b]), cmp.Compare(a, b))
	})
}

// alone lists the groups of which one more replica may be a gang's place.
func (p *pool) alone(g *gang) []where {
	var fit []filling
	accelerated := slices.ContainsFunc(g.units, func(one *unit) bool { return one.accelerated })
	for at, group := range p.groups {
		_, labelled := p.labels.sets[group.labels][g.Within]
		if group.hosts < 2 || labelled || p.available(at) == 0 {
			continue
		}
		f := filling{group: at, tier: 1, mismatched: group.accelerated && !accelerated, share: 1 / (group.size * float64(group.hosts))}
		if p.stock[at] > p.taken[at] {
			f.tier = 0
		}
		fit = append(fit, f)
	}
	slices.SortFunc(fit, func(a, b filling) int {
		if isBetter(&a, &b, p.groups) {
			return -1
		}
		return 1
	})
	var all []where
	for _, f := range fit {
		all = append(all, where{may: noGroup, alone: f.group + 1})
	}
	return all
}
