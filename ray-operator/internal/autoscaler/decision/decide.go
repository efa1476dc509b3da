package decision

import "slices"

// plan is what a decision is made of.
type plan struct {
	*world
	// floor is the pool of what nodes have in total, main that of what is free.
	floor, main *pool
	demand      []*wanting
	onFloor     []*wanting
	gangPlaced  []bool
	// fresh is how many new replicas of each group are made use of, made how many of these the
	// pace admits now.
	fresh, made    []int64
	drain, release []*replica
}

// Decide makes the decision for an input.
func Decide(in Input) Result {
	return planFor(&in).result()
}

// planFor packs: the minimum, what Ray's floor asks for, gangs, tasks and actors.
func planFor(in *Input) *plan {
	w := newWorld(in)
	hosts := w.hosts()
	p := &plan{world: w, main: w.newPool(hosts, false)}
	if len(w.floor) == 0 {
		hosts = nil // nothing is to lie on them
	}
	p.floor = w.newPool(hosts, true)
	for at, g := range w.groups {
		if !g.PassedOver {
			p.floor.stock[at] += g.missing
		}
	}
	p.onFloor = wantings(w.floor, nil, everyNode)
	p.floor.placeAll(p.onFloor)
	for at := range w.groups {
		p.main.stock[at] = max(p.floor.stock[at], p.floor.taken[at])
	}
	p.main.fresh = p.floor.fresh
	p.gangPlaced = p.main.placeGangs()
	p.demand = wantings(w.demand, nil, everyNode)
	p.main.placeAll(p.demand)
	p.count()
	p.pace()
	p.shrink()
	return p
}

// placeAll places requests on what there is, then on what they open.
func (p *pool) placeAll(wants []*wanting) {
	for _, want := range wants {
		p.place(want, everywhere)
	}
	p.grow(wants, nil, everywhere, anyGroup)
}

// count finds how many replicas are made use of, and which.
func (p *plan) count() {
	for at, g := range p.groups {
		needed := max(p.floor.taken[at], p.main.taken[at])
		p.fresh = append(p.fresh, max(g.missing, needed-int64(len(g.stock))))
		for i := range min(needed, int64(len(g.stock))) {
			g.stock[i].used = true
		}
	}
	for _, pool := range []*pool{p.floor, p.main} {
		for _, placed := range pool.placed {
			if placed.isNew {
				continue
			}
			for _, h := range pool.members[placed.from : placed.from+placed.nodes] {
				if h.replica != nil {
					h.replica.used = true
				}
			}
		}
	}
}

// pace admits as many new replicas as may be on their way beside those that are. What the
// minimum asks for is always admitted; of the rest what was opened first.
func (p *plan) pace() {
	onWay := int64(0)
	for _, g := range p.groups {
		p.made = append(p.made, g.missing)
		onWay += g.missing * g.hosts
		for _, r := range g.replicas {
			if !g.PassedOver {
				onWay += int64(r.pods - r.late)
			}
		}
	}
	budget := p.limit() - onWay
	for _, pool := range []*pool{p.floor, p.main} {
		for _, opened := range pool.events {
			g := p.groups[opened.group]
			// An event may have opened replicas that are on their way, or that the floor opened too:
			// then there is nothing more, or less than that, and something is on its way.
			more := min(opened.from+opened.many-int64(len(g.stock)), p.fresh[opened.group]) - p.made[opened.group]
			now := max(0, min(more, budget/g.hosts))
			if now == 0 && onWay == 0 && more > 0 {
				now = 1
			}
			p.made[opened.group] += now
			onWay += now * g.hosts
			budget -= now * g.hosts
		}
	}
}

// defaultPace is how many workers may be on their way in any case.
const defaultPace = 100

// limit is how many pods may be on their way.
func (p *plan) limit() int64 {
	switch p.in.Pace {
	case Aggressive:
		return endless
	case Conservative:
		return max(1, p.joined)
	default:
		return max(defaultPace, p.joined)
	}
}

// shrink finds who may go beside those that are replaced: first pods on their way that nothing needs, then idle
// workers.
func (p *plan) shrink() {
	spare := make([]int64, len(p.groups))
	var rested []*replica
	for at, g := range p.groups {
		spare[at] = g.live - g.least
		for _, r := range slices.Backward(slices.Concat(g.replicas, g.above)) {
			switch {
			case spare[at] > 0 && r.givenBack(g):
				p.release = append(p.release, r)
				spare[at]--
			case p.in.MayShrink && !r.used && r.rested(g):
				rested = append(rested, r)
			}
		}
	}
	for _, r := range longestIdle(rested) {
		if spare[r.group] > 0 {
			p.drain = append(p.drain, r)
			spare[r.group]--
		}
	}
}

// givenBack reports whether pods are not needed that wait for a machine or are late, or will not get one.
func (r *replica) givenBack(g *group) bool {
	unneeded := r.waiting+r.late > 0 && !r.used && r.age >= patience
	return r.nodes == 0 && (unneeded || r.waiting > 0 && g.PassedOver)
}
