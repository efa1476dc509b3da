package decision

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"
)

// endless is a number of pods that nothing reaches.
const endless = int64(math.MaxInt64 / 4)

// bound brings what is there within the maxima: what is above them is nobody's place.
func (w *world) bound() {
	w.room = endless
	others := int64(0)
	for _, h := range w.loose {
		if h.node.Group != "" {
			others++
		}
	}
	size := make([]int64, len(w.groups))
	pods := others
	for at, g := range w.groups {
		size[at] = min(max(g.live, g.least), g.most)
		pods += size[at] * g.hosts
		for _, r := range g.replicas {
			w.joined += int64(r.nodes)
		}
	}
	w.joined += others
	if w.in.MaxNodes > 0 {
		over := pods - int64(w.in.MaxNodes)
		over = w.shorten(size, over, func(at int) int64 { return max(w.groups[at].least, size[at]-w.groups[at].resting()) })
		over = w.shorten(size, over, func(at int) int64 { return w.groups[at].least })
		over = w.shorten(size, over, func(int) int64 { return 0 })
		w.room = -over // below 0 where more are over than can go
	}
	for at, g := range w.groups {
		g.alive = min(g.live, size[at])
		g.missing = max(0, size[at]-g.live)
		g.drop(g.live - g.alive)
	}
}

// shorten takes replicas from the groups of least priority until what is over is gone, and
// gives what is left over; a number below 0 is how much room there is.
func (w *world) shorten(size []int64, over int64, to func(at int) int64) int64 {
	order := make([]int, len(w.groups))
	for at := range order {
		order[at] = at
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(w.groups[a].Priority, w.groups[b].Priority), cmp.Compare(b, a))
	})
	for _, at := range order {
		if hosts := w.groups[at].hosts; over > 0 {
			fewer := min((over+hosts-1)/hosts, size[at]-to(at))
			size[at] -= fewer
			over -= fewer * hosts
		}
	}
	return over
}

// resting is how many replicas do nothing, or are not there yet.
func (g *group) resting() int64 {
	count := int64(0)
	for _, r := range g.replicas {
		if r.nodes == 0 || r.rested(g) {
			count++
		}
	}
	return count
}

// drop leaves out as many replicas, those first that are likely to be chosen to go.
func (g *group) drop(many int64) {
	if many <= 0 {
		return
	}
	slices.SortFunc(g.replicas, func(a, b *replica) int {
		return cmp.Or(
			cmp.Compare(a.nodes, b.nodes), cmp.Compare(b.late, a.late), cmp.Compare(b.waiting, a.waiting),
			cmp.Compare(b.idle, a.idle), cmp.Compare(b.number, a.number),
		)
	})
	g.above = slices.Clone(g.replicas[:many])
	g.replicas = g.replicas[many:]
	slices.SortFunc(g.replicas, func(a, b *replica) int { return cmp.Compare(a.number, b.number) })
}

// classify finds what may go, and what of the group can be counted on.
func (w *world) classify(g *group) {
	spare := g.alive - g.least
	for _, r := range longestIdle(g.replicas) {
		if spare > 0 && w.in.MayShrink && r.rested(g) {
			r.free = true
			spare--
		}
	}
	for _, r := range g.replicas {
		if r.onItsWay() && (r.waiting == 0 || !g.PassedOver) {
			g.stock = append(g.stock, r)
		}
	}
	slices.SortFunc(g.stock, func(a, b *replica) int {
		return cmp.Or(
			cmp.Compare(a.late, b.late), cmp.Compare(a.waiting, b.waiting), cmp.Compare(b.age, a.age),
			cmp.Compare(a.number, b.number),
		)
	})
}

func longestIdle(replicas []*replica) []*replica {
	return slices.SortedFunc(slices.Values(replicas), func(a, b *replica) int {
		return cmp.Or(cmp.Compare(b.idle, a.idle), cmp.Compare(a.group, b.group), cmp.Compare(a.number, b.number))
	})
}

// rested tells a replica that was idle for long enough on all of its nodes; one without nodes
// is not idle. Pods of it that are still on their way must have been so for as long.
func (r *replica) rested(g *group) bool {
	if r.idle <= 0 || r.idle < g.IdleTimeout {
		return false
	}
	return r.nodes == len(r.hosts) || r.age >= max(g.IdleTimeout, patience)
}

// patience is for how long a pod that nothing needs is kept: a demand that was seen for a
// moment only must not make pods come and go.
const patience = 10 * time.Second

// byKey orders hosts by the keys of their pods.
func byKey(a, b *host) int { return strings.Compare(a.key, b.key) }
