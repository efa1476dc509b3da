package decision

import (
	"fmt"
	"slices"
	"strings"
)

// result puts the plan into the terms of a result.
func (p *plan) result() Result {
	v := p.verdicts()
	d := Result{Infeasible: v.infeasible, Kept: v.kept}
	gone := make([]int64, len(p.groups))
	for _, r := range slices.Concat(p.drain, p.release) {
		gone[r.group]++
		d.dismiss(r)
	}
	for _, g := range p.groups {
		for _, r := range g.replaced {
			d.dismiss(r)
		}
	}
	slices.Sort(d.Release)
	for _, at := range p.order {
		g := p.groups[at]
		// Those that go are the first of those that are above a maximum.
		replicas := min(g.alive, g.live-gone[at]) + p.made[at]
		d.Targets = append(d.Targets, Target{
			Group: g.Name, Replicas: int(replicas), Reason: strings.Join(v.reasons(at, replicas), "; "),
		})
	}
	return d
}

// dismiss names a replica's nodes to drain, and its pods to give back.
func (d *Result) dismiss(r *replica) {
	for _, h := range r.hosts {
		if h.node != nil {
			d.Drain = append(d.Drain, h.key)
		} else {
			d.Release = append(d.Release, h.key)
		}
	}
}

// reasons say what a group's size is for.
func (v *verdicts) reasons(at int, replicas int64) []string {
	g := v.groups[at]
	if g.Closed {
		return []string{"suspended"}
	}
	var all []string
	shapes := v.causes(at)
	if g.missing > 0 || len(shapes) == 0 && replicas > 0 && replicas == g.least {
		all = append(all, fmt.Sprintf("minimum of %d", g.least))
	}
	if v.floor.taken[at] > 0 {
		all = append(all, "request_resources")
	}
	if len(shapes) > 0 {
		all = append(all, listed(shapes))
	}
	if v.made[at] < v.fresh[at] {
		all = append(all, fmt.Sprintf("at most %d on their way", v.limit()))
	}
	if slices.ContainsFunc(v.drain, func(r *replica) bool { return r.group == at }) {
		all = append(all, "idle")
	}
	if slices.ContainsFunc(v.release, func(r *replica) bool { return r.group == at }) {
		all = append(all, map[bool]string{true: "no capacity", false: "not needed"}[g.PassedOver])
	}
	if n := len(g.replaced); n > 0 {
		all = append(all, fmt.Sprintf("%d too late to start replaced", n))
	}
	if g.Failing != "" {
		all = append(all, "its newest workers fail: "+g.Failing)
	}
	return append(all, v.limits(at)...)
}

// limits name the maximum that keeps a group from being larger.
func (v *verdicts) limits(at int) []string {
	g := v.groups[at]
	switch {
	case v.blocked[at] && !v.tighter(at) || g.alive < g.live && g.alive == g.most:
		return []string{fmt.Sprintf("maximum of %d", g.Max)}
	case v.blocked[at] || g.alive < g.live:
		return []string{fmt.Sprintf("maximum of %d workers of the cluster", v.in.MaxNodes)}
	default:
		return nil
	}
}

// causes are the shapes that pods of a group are made for, with their number.
func (p *plan) causes(at int) []string {
	var order []string
	counts := map[string]int64{}
	for i := range p.main.placed {
		placed := &p.main.placed[i]
		if !placed.isNew || placed.group != at {
			continue
		}
		text := placed.unit.shape.String()
		if counts[text] == 0 {
			order = append(order, text)
		}
		counts[text] = sum(counts[text], product(placed.nodes, placed.each))
	}
	for i, text := range order {
		order[i] = fmt.Sprintf("%d × %s", counts[text], text)
	}
	return order
}

// shapesShown is how many shapes a reason names.
const shapesShown = 3

func listed(shapes []string) string {
	if more := len(shapes) - shapesShown; more > 0 {
		return strings.Join(shapes[:shapesShown], ", ") + fmt.Sprintf(" and %d more shapes", more)
	}
	return strings.Join(shapes, ", ")
}
