package decision

import (
	"cmp"
	"slices"
)

// stage tells what a class's nodes are: the earlier is made use of first.
type stage uint8

const (
	// existing nodes are Ray's, joining ones hosts on their way of a replica that has others.
	existing stage = iota
	joining
	// opened nodes are of replicas on their way, or new.
	opened
)

// class is nodes that are all alike: a range of the pool's members, or of the replicas of a
// group that were opened.
type class struct {
	free  vector
	on    set
	added []rule
	stage stage
	group int
	// own is the replica where gangs must tell them apart, else 0.
	own int
	// guarded nodes have accelerators; spare ones go if nothing is placed there.
	guarded, spare bool
	from, count    int64
	room           float64
}

// pool is nodes with what is left on them.
type pool struct {
	*world
	members []*host
	classes []class
	// there is how many classes there were to begin with.
	there int
	stock []int64
	// taken is how many replicas of each group were opened, from its stock or new; fresh how
	// many pods the new ones of all groups have.
	taken  []int64
	fresh  int64
	events []event
	placed []placement
	// undo holds classes as they were since the last mark.
	undo []former
	work int
	// scratch is room for candidates.
	scratch queue
}

// event is replicas that were opened together.
type event struct {
	group int
	from  int64
	many  int64
}

// placement is requests on the nodes of a range, the same number on each.
type placement struct {
	unit  *unit
	gang  *gang
	group int
	// isNew tells a range of opened replicas' pods from one of members.
	isNew       bool
	from, nodes int64
	each        int64
}

type former struct {
	at  int
	was class
}

// mark is a state of the pool to which it can go back.
type mark struct {
	undo, classes, events, placed int
	taken                         []int64
	fresh                         int64
}

// mostWork bounds the looks at classes in one decision: what a hostile head says must not
// keep it busy. It is some ten times what 10,000 nodes and 100,000 requests take.
const mostWork = 40_000_000

// enough tells that no more is looked at in this decision.
func enough(work int) bool { return work > mostWork }

// looks is what looking at a vector costs.
func (v vector) looks() int { return 1 + len(v)/8 }

// newPool makes classes of hosts, with what is free, or with all that nodes have.
func (w *world) newPool(hosts []*host, totals bool) *pool {
	p := &pool{world: w, stock: make([]int64, len(w.groups)), taken: make([]int64, len(w.groups))}
	apart := slices.ContainsFunc(w.gangs, func(g *gang) bool { return g.Within != "" })
	alike := map[likeness]int{}
	var members [][]*host
	for _, h := range hosts {
		c := p.classOf(h, totals, apart)
		like := c.likeness()
		at, known := alike[like]
		if !known {
			at = len(p.classes)
			alike[like] = at
			p.classes = append(p.classes, c)
			members = append(members, nil)
		}
		members[at] = append(members[at], h)
	}
	p.lay(members)
	p.there = len(p.classes)
	for at, g := range w.groups {
		p.stock[at] = int64(len(g.stock))
	}
	return p
}

// lay gives each class its range of members, the least idle first. Which class comes first
// must not depend on nodes that nothing needs: these go.
func (p *pool) lay(members [][]*host) {
	order := make([]int, len(members))
	for at := range members {
		order[at] = at
		slices.SortStableFunc(members[at], func(a, b *host) int { return cmp.Compare(a.idle(), b.idle()) })
	}
	slices.SortStableFunc(order, func(a, b int) int { return byKey(members[a][0], members[b][0]) })
	for _, at := range order {
		p.classes[at].from, p.classes[at].count = int64(len(p.members)), int64(len(members[at]))
		p.members = append(p.members, members[at]...)
	}
}

func (h *host) idle() int64 {
	if h.replica == nil {
		return 0
	}
	return int64(h.replica.idle)
}

// hosts are the nodes, and the pods on their way of replicas that have nodes, in the order of
// their keys.
func (w *world) hosts() []*host {
	all := slices.Clone(w.loose)
	for _, g := range w.groups {
		for _, r := range g.replicas {
			for _, h := range r.hosts {
				if h.node != nil || h.counted(g) {
					all = append(all, h)
				}
			}
			if g.PassedOver {
				continue
			}
			for _, number := range r.absent() {
				all = append(all, &host{replica: r, key: r.hosts[0].key, host: number})
			}
		}
	}
	slices.SortStableFunc(all, byKey)
	return all
}

// absent are the numbers of the hosts that a replica lacks.
func (r *replica) absent() []int {
	var all []int
	for number := 0; len(all) < r.lacking; number++ {
		if !slices.ContainsFunc(r.hosts, func(h *host) bool { return h.host == number }) {
			all = append(all, number)
		}
	}
	return all
}

// counted tells a pod on its way that can be counted on beside others of its replica.
func (h *host) counted(g *group) bool {
	return !h.replica.onItsWay() && (h.replica.waiting == 0 || !g.PassedOver)
}

func (p *pool) classOf(h *host, totals, apart bool) class {
	if h.node == nil {
		g := p.groups[h.replica.group]
		v := g.variantOf(h.host)
		c := class{free: v.free, on: v.on, stage: joining, group: h.replica.group, guarded: g.accelerated, room: v.size}
		c.mine(h, apart)
		return c
	}
	has := h.node.Available
	if totals {
		has = h.node.Total
	}
	c := class{free: p.kinds.know(has), on: p.labels.know(h.node.Labels), group: -1}
	for name, n := range h.node.Total {
		c.guarded = c.guarded || accelerators[name] && n > 0
	}
	c.room = p.bulk(c.free)
	if h.replica != nil {
		c.group, c.spare = h.replica.group, h.replica.free
		c.mine(h, apart)
	}
	return c
}

// mine makes the hosts of a replica that is half there a class of their own.
func (c *class) mine(h *host, apart bool) {
	if apart && h.replica.nodes < len(h.replica.hosts)+h.replica.lacking {
		c.own = h.replica.number + 1
	}
}

// likeness is what nodes of a class have in common. A group is part of it for hosts that are
// told apart by their replica.
type likeness struct {
	stage          stage
	guarded, spare bool
	on             set
	group, own     int
	free           string
}

func (c *class) likeness() likeness {
	l := likeness{stage: c.stage, guarded: c.guarded, spare: c.spare, on: c.on, own: c.own, free: c.free.key()}
	if c.own != 0 {
		l.group = c.group
	}
	return l
}

func (p *pool) mark() mark {
	return mark{len(p.undo), len(p.classes), len(p.events), len(p.placed), slices.Clone(p.taken), p.fresh}
}

// back undoes all since the mark.
func (p *pool) back(to mark) {
	for i := len(p.undo) - 1; i >= to.undo; i-- {
		p.classes[p.undo[i].at] = p.undo[i].was
	}
	p.undo, p.classes, p.events, p.placed = p.undo[:to.undo], p.classes[:to.classes], p.events[:to.events], p.placed[:to.placed]
	p.taken, p.fresh = slices.Clone(to.taken), to.fresh
}

// wanting is requests of one kind, with whose they are and how many of them have no place yet.
type wanting struct {
	*unit
	gang *gang
	// also binds their nodes besides their own rules.
	also rule
	left int64
}

// scope is which classes come into question: those listed, and all from one on.
type scope struct {
	list  []int
	since int
}

var everywhere scope

// candidate is a class on which a request fits.
type candidate struct {
	at int
	// grade is lower the better it is: its stage, the rank of its selector, whether it has
	// accelerators that the request does not want, whether it could go.
	grade int
	// room is preferred to be little; group and from make the order the same each time.
	room  float64
	group int
	from  int64
}

func (c *class) grade(rank int, accelerated bool) int {
	grade := int(c.stage)<<20 | rank<<2
	if c.guarded && !accelerated {
		grade |= 2
	}
	if c.spare {
		grade |= 1
	}
	return grade
}

func (c *candidate) before(other *candidate) bool {
	switch {
	case c.grade != other.grade:
		return c.grade < other.grade
	case c.room != other.room:
		return c.room < other.room
	case c.group != other.group:
		return c.group < other.group
	default:
		return c.from < other.from
	}
}

// place puts as many of the requests as fit where they fit best.
func (p *pool) place(want *wanting, within scope) {
	if want.left == 0 {
		return
	}
	best := p.candidates(want, within)
	for want.left > 0 {
		next, ok := best.pop()
		if !ok {
			return
		}
		p.put(want, next.at, p.classes[next.at].often(want.unit))
	}
}

// candidates are the classes on which a request fits, until the next call.
func (p *pool) candidates(want *wanting, within scope) queue {
	best := p.scratch[:0]
	look := func(at int) {
		c := &p.classes[at]
		p.work += c.free.looks()
		if c.free.fits(want.need) == 0 || c.bars(want.unit) {
			return
		}
		rank := p.matches(want.rules, c.on)
		if rank == nowhere || p.labels.rank(want.also, c.on) == nowhere {
			return
		}
		group := -1
		if c.stage == opened {
			group = c.group
		}
		best = append(best, candidate{at: at, grade: c.grade(rank, want.accelerated), room: c.room, group: group, from: c.from})
	}
	if enough(p.work) {
		return nil
	}
	for _, at := range within.list {
		look(at)
	}
	for at := within.since; at < len(p.classes); at++ {
		look(at)
	}
	best.order()
	p.scratch = best
	return best
}

// bars reports whether a request that is kept apart has one like it on the nodes already.
func (c *class) bars(one *unit) bool {
	for _, label := range one.apart {
		if slices.Contains(c.added, label) {
			return true
		}
	}
	return false
}

// often is how many of a request fit on each of the nodes.
func (c *class) often(one *unit) int64 {
	if len(one.apart) > 0 {
		return min(1, c.free.fits(one.need))
	}
	return c.free.fits(one.need)
}

// put places requests on nodes of a class, each as full as it gets, and parts the class
// where they do not need all of it.
func (p *pool) put(want *wanting, at int, each int64) {
	whole := p.classes[at]
	if full := min(want.left/each, whole.count); full > 0 {
		p.split(at, full, want, each)
		want.left -= product(full, each)
		if full == whole.count {
			return
		}
	}
	if rest := min(want.left, each); rest > 0 {
		p.split(at, 1, want, rest)
		want.left -= rest
	}
}

// split puts some of a request on each of the first nodes of a class.
func (p *pool) split(at int, nodes int64, want *wanting, each int64) {
	c := p.classes[at]
	p.placed = append(p.placed, placement{want.unit, want.gang, c.group, c.stage == opened, c.from, nodes, each})
	p.undo = append(p.undo, former{at, c})
	rest := c
	c.count = nodes
	c.free = c.free.less(want.need, each)
	c.room = p.bulk(c.free)
	c.added = append(slices.Clip(c.added), want.apart...)
	if nodes == rest.count {
		p.classes[at] = c
		return
	}
	rest.from += nodes
	rest.count -= nodes
	p.classes[at] = rest
	p.classes = append(p.classes, c)
}
