package decision

import "cmp"

// full is the share of a node from which on it counts as made full use of: among nodes that
// are, the larger is preferred, because there are fewer of them then. Among others that are
// made the same use of the smaller wastes less.
const full = 0.9

// widest is how many kinds of requests are looked at to find how a new node would be filled.
const widest = 128

// filling is how an empty node of a group would be filled.
type filling struct {
	// group is where, and host which of its variants is looked at.
	group, host int
	parts       []part
	// times is how many nodes could be filled so.
	times int64
	// tier, mismatched, rank and share are what groups are compared by.
	tier, rank int
	mismatched bool
	share      float64
}

// part is how many requests of a kind a node gets.
type part struct {
	want *wanting
	each int64
	// foreseen tells that it is looked ahead at only.
	foreseen bool
}

// grow opens nodes for requests that have no place, in their order, and fills them. What ahead
// holds is not placed, but tells what else the nodes will be good for. It gives whether
// all got a place.
func (p *pool) grow(wants, ahead []*wanting, within scope, may func(*group) bool) bool {
	all, before := true, len(p.events)
	within.since = max(within.since, p.there) // what there was to begin with was tried before
	for at, want := range wants {
		if len(p.events) > before {
			p.place(want, within)
		}
		for want.left > 0 {
			best, ok := p.choose(wants[at:], ahead, may)
			if !ok {
				all = false
				break
			}
			p.fill(&best)
		}
	}
	return all
}

// choose finds the group whose nodes are best for the first of the requests.
func (p *pool) choose(wants, ahead []*wanting, may func(*group) bool) (filling, bool) {
	var best filling
	found := false
	for at, g := range p.groups {
		rank, _ := wants[0].rankOn(p, at)
		if rank == nowhere || p.available(at) == 0 || enough(p.work) || !may(g) {
			continue
		}
		next := p.filling(at, wants, ahead)
		next.rank = rank
		if !found || isBetter(&next, &best, p.groups) {
			best, found = next, true
		}
	}
	return best, found
}

// rankOn is the rank of its selectors on an empty host of a group, or nowhere, and which variant that host is.
func (want *wanting) rankOn(p *pool, at int) (rank, host int) {
	if g := p.groups[at]; len(g.variants) > 1 {
		return p.rankIn(want.unit, want.also, g)
	}
	return want.rankOnHost(p, at, 0), 0
}

// rankOnHost is the rank of its selectors on an empty host of one variant.
func (want *wanting) rankOnHost(p *pool, at, host int) int {
	g := p.groups[at]
	switch v := &g.variants[host]; {
	case len(g.variants) > 1:
		return p.rankOf(want.unit, want.also, v)
	case p.labels.rank(want.also, v.on) == nowhere:
		return nowhere
	default:
		return want.holds[at]
	}
}

// isBetter reports whether a filling is better than another one.
func isBetter(a, b *filling, groups []*group) bool {
	groupA, groupB := groups[a.group], groups[b.group]
	larger := cmp.Compare(groupB.size, groupA.size)
	if a.share < full {
		larger = -larger
	}
	return cmp.Or(
		cmp.Compare(a.tier, b.tier), first(b.mismatched, a.mismatched), cmp.Compare(groupB.Priority, groupA.Priority),
		cmp.Compare(a.rank, b.rank), cmp.Compare(min(b.share, full), min(a.share, full)), larger, cmp.Compare(a.group, b.group),
	) < 0
}

// available is how many replicas of a group can be opened: those on their way, and only when
// these are used up new ones.
func (p *pool) available(at int) int64 {
	if inStock := p.stock[at] - p.taken[at]; inStock > 0 {
		return inStock
	}
	g := p.groups[at]
	if g.PassedOver {
		return 0
	}
	made := max(p.stock[at], p.taken[at]) - int64(len(g.stock))
	more := g.most - g.alive - made
	if g.Failing != "" {
		more = min(more, max(g.missing, int64(len(g.replaced)))-made) // what is replaced may be of the minimum
	}
	return max(0, min(more, (p.room-p.fresh)/g.hosts))
}

// filling tries how an empty node would be filled, the first request first.
func (p *pool) filling(at int, wants, ahead []*wanting) filling {
	g := p.groups[at]
	f := filling{group: at, times: tooMuch, tier: 1, mismatched: g.accelerated && !wants[0].accelerated}
	if p.stock[at] > p.taken[at] {
		f.tier = 0
	}
	_, f.host = wants[0].rankOn(p, at)
	v := &g.variants[f.host]
	free := v.free
	var added []rule
	take := func(wants []*wanting, foreseen bool) {
		for _, want := range wants[:min(len(wants), widest)] {
			p.work++
			if want.left == 0 || want.rankOnHost(p, at, f.host) == nowhere {
				continue
			}
			c := class{free: free, added: added}
			each := min(want.left, c.often(want.unit))
			if each == 0 || c.bars(want.unit) {
				continue
			}
			f.parts = append(f.parts, part{want, each, foreseen})
			f.times = min(f.times, want.left/each)
			free = free.less(want.need, each)
			added = append(added, want.apart...)
		}
	}
	take(wants, false)
	take(ahead, true)
	f.share = p.kinds.used(v.free, free, wants[0].accelerated) * min(1, float64(f.times)/float64(v.hosts))
	return f
}

// used is the share of a node that is made use of: that of its accelerators where it has
// any and the work is for them, else that of whatever is used most.
func (k *kinds) used(full, free vector, accelerated bool) float64 {
	share, shareOfAccelerators := 0.0, 0.0
	for _, whole := range full {
		if whole.n == 0 {
			continue
		}
		part := 1 - float64(free.of(whole.kind))/float64(whole.n)
		share = max(share, part)
		if k.accelerator[whole.kind] {
			shareOfAccelerators = max(shareOfAccelerators, part)
		}
	}
	if accelerated {
		return shareOfAccelerators
	}
	return share
}

// fill opens as many replicas as can be filled in the same way, one at least, and places the
// requests on them.
func (p *pool) fill(f *filling) {
	g := p.groups[f.group]
	replicas := max(1, min(p.useful(f), p.available(f.group)))
	inside := p.open(f.group, replicas)
	nodes := min(f.times, p.classes[inside.list[f.host]].count)
	for _, part := range f.parts {
		switch most := product(part.each, nodes); {
		case part.foreseen:
			part.want.left -= min(part.want.left, most)
		case len(g.variants) > 1: // also on the other hosts, which have come with this one
			p.place(part.want, inside)
		default:
			p.placeSome(part.want, most, inside)
		}
	}
}

// useful is how many replicas the first request fills, or all that are filled together where hosts are alike.
func (p *pool) useful(f *filling) int64 {
	g := p.groups[f.group]
	if len(g.variants) == 1 {
		return f.times / g.hosts
	}
	want, holds := f.parts[0].want, int64(0)
	for i := range g.variants {
		if want.rankOnHost(p, f.group, i) != nowhere {
			c := class{free: g.variants[i].free}
			holds = sum(holds, product(c.often(want.unit), g.variants[i].hosts))
		}
	}
	return want.left / max(1, holds)
}

// placeSome places at most so many of the requests.
func (p *pool) placeSome(want *wanting, most int64, within scope) {
	later := want.left - min(want.left, most)
	want.left -= later
	p.place(want, within)
	want.left += later
}

// open takes replicas of a group, first those on their way, and gives where their hosts are: a class for each variant.
func (p *pool) open(at int, replicas int64) scope {
	g := p.groups[at]
	inStock := max(0, min(replicas, p.stock[at]-p.taken[at]))
	p.events = append(p.events, event{at, p.taken[at], replicas})
	made := scope{list: make([]int, 0, len(g.variants))}
	for i := range g.variants {
		v := &g.variants[i]
		made.list = append(made.list, len(p.classes))
		p.classes = append(p.classes, class{
			free: v.free, on: v.on, stage: opened, group: at, guarded: g.accelerated,
			from: p.taken[at]*g.hosts + v.before*replicas, count: replicas * v.hosts, room: v.size,
		})
	}
	made.since = len(p.classes)
	p.taken[at] += replicas
	p.fresh += (replicas - inStock) * g.hosts
	return made
}
