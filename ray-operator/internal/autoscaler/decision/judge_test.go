package decision

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// judge holds a plan and its decision against the input.
type judge struct {
	*plan
	d Result
	// main and onFloor are who was put where, boxes what there was before that.
	main, onFloor []laid
	boxes         map[string]*box
	groups        map[string]Group
	wrong         []string
}

// judged gives all that is wrong with a plan and its decision.
func judged(p *plan, d Result) []string {
	j := &judge{plan: p, d: d, main: traced(p, p.main), onFloor: traced(p, p.floor), boxes: boxes(p, false), groups: map[string]Group{}}
	for _, g := range p.in.Groups {
		j.groups[g.Name] = g
	}
	j.places(j.onFloor, boxes(p, true))
	j.places(j.main, boxes(p, false))
	j.counts()
	for i := range p.in.Gangs {
		j.gang(i, &p.in.Gangs[i])
	}
	if len(d.Targets) == len(p.in.Groups) {
		j.targets()
		j.pace()
	} else {
		j.blame("%d targets for %d groups", len(d.Targets), len(p.in.Groups))
	}
	j.leavers()
	return j.wrong
}

func (j *judge) blame(format string, args ...any) {
	j.wrong = append(j.wrong, fmt.Sprintf(format, args...))
}

// places puts each request where it was put, one after the other.
func (j *judge) places(all []laid, on map[string]*box) {
	never := j.unusable()
	for _, l := range all {
		b := on[l.box]
		if b == nil {
			j.blame("%s was put on %s, which there is not", l.demand.Shape, l.box)
			continue
		}
		if why := never[l.box]; why != "" {
			j.blame("%s was put on %s, which %s", l.demand.Shape, l.box, why)
		}
		j.put(&l, b)
	}
}

func (j *judge) put(l *laid, b *box) {
	for name, n := range l.demand.Shape {
		if _, said := b.has[name]; !said && strings.HasPrefix(name, "node:__internal_implicit_resource_") {
			b.has[name] = 10000
		}
		b.has[name] -= tenThousandths(n) * l.count
		if b.has[name] < 0 {
			j.blame("%d × %s do not fit on %s: %s is %d", l.count, l.demand.Shape, l.box, name, b.has[name])
		}
	}
	if !naiveMatch(l.demand.Selectors, b.labels) {
		j.blame("%s was put on %s, whose labels %v do not match %v", l.demand.Shape, l.box, b.labels, l.demand.Selectors)
	}
	for _, label := range l.demand.Apart {
		if b.tags[label] || l.count > 1 {
			j.blame("%s is twice on %s, to be kept apart by %v", l.demand.Shape, l.box, label)
		}
		b.tags[label] = true
	}
}

// unusable are boxes that must not be counted on.
func (j *judge) unusable() map[string]string {
	never := map[string]string{}
	for _, node := range j.in.Nodes {
		if node.Draining || node.Going {
			never[node.Key] = "is going"
		}
	}
	for _, pod := range j.in.Pods {
		name := fmt.Sprintf("%s/%d/%d", pod.Group, pod.Replica, pod.Host)
		if pod.Going || j.replaced(&pod) {
			never[name] = "is going"
		}
		if g := j.groups[pod.Group]; g.PassedOver && pod.Waiting || g.Closed {
			never[name] = "is of a group that is passed over or closed"
		}
	}
	return never
}

// replaced reports whether a pod goes now because one of its replica is replaced.
func (j *judge) replaced(pod *Pod) bool {
	return slices.Contains(j.d.Release, pod.Key) && slices.ContainsFunc(j.in.Pods, func(other Pod) bool {
		return other.Replace && other.Group == pod.Group && other.Replica == pod.Replica
	})
}

func naiveMatch(selectors []Selector, labels map[string]string) bool {
	return len(selectors) == 0 || slices.ContainsFunc(selectors, func(selector Selector) bool {
		for _, term := range selector {
			found := false
			value, there := labels[term.Label]
			for _, wanted := range term.Values {
				found = found || there && wanted == value
			}
			if found == term.Not {
				return false
			}
		}
		return true
	})
}

// counts sees that what is placed and what is left make up what was asked for.
func (j *judge) counts() {
	asked, got := map[string]int64{}, map[string]int64{}
	for _, demand := range j.in.Demand {
		if demand.Count > 0 {
			asked[demand.keyOf()] += int64(demand.Count)
		}
	}
	for _, l := range j.main {
		if l.gang < 0 {
			got[l.demand.keyOf()] += l.count
		}
	}
	for _, want := range j.demand {
		got[want.key] += want.left
	}
	if !maps.Equal(asked, got) {
		j.blame("asked for %v, placed and left are %v", asked, got)
	}
}

// gang sees that a gang is whole or not there, and in one place where it must be.
func (j *judge) gang(i int, gang *Gang) {
	want, got := gang.places(), int64(0)
	domains, replicas := map[string]bool{}, map[string]bool{}
	mine := slices.DeleteFunc(slices.Clone(j.main), func(l laid) bool { return l.gang != i || j.boxes[l.box] == nil })
	for _, l := range mine {
		b := j.boxes[l.box]
		got += l.count
		domain, has := b.labels[gang.Within]
		if !has {
			domain = "that of " + b.replica
		}
		domains[domain], replicas[b.replica] = true, true
		if !naiveMatch(gang.Selectors, b.labels) {
			j.blame("gang %d is on %s, whose labels are %v", i, l.box, b.labels)
		}
	}
	if got != 0 && (got != want || slices.Contains(j.d.Infeasible.Gangs, i)) {
		j.blame("gang %d has %d of its %d places; never: %v", i, got, want, j.d.Infeasible.Gangs)
	}
	if gang.Within != "" && !gang.Together && len(domains) > 1 && len(replicas) > 1 {
		j.blame("gang %d is in %v, which must be one %s", i, slices.Sorted(maps.Keys(domains)), gang.Within)
	}
}

// places is how many a gang needs: one for all where it must be together.
func (g *Gang) places() int64 {
	want := int64(0)
	for _, bundle := range g.Bundles {
		want += int64(max(0, bundle.Count))
	}
	if g.Together {
		return min(1, want)
	}
	return want
}

// present counts the replicas of a group that are there and not going.
func present(in *Input, group string) (alive int, going map[int]bool) {
	going = map[int]bool{}
	for _, node := range in.Nodes {
		if node.Group == group {
			going[node.Replica] = going[node.Replica] || node.Draining || node.Going
		}
	}
	for _, pod := range in.Pods {
		if pod.Group == group {
			going[pod.Replica] = going[pod.Replica] || pod.Going
		}
	}
	for _, goes := range going {
		if !goes {
			alive++
		}
	}
	return alive, going
}

// named are the replicas of a group that are to go.
func named(in *Input, d Result, group string) map[int]bool {
	named := map[int]bool{}
	for _, node := range in.Nodes {
		if node.Group == group && slices.Contains(d.Drain, node.Key) {
			named[node.Replica] = true
		}
	}
	for _, pod := range in.Pods {
		if pod.Group == group && slices.Contains(d.Release, pod.Key) {
			named[pod.Replica] = true
		}
	}
	return named
}

// targets holds targets against the bounds and against what is there.
func (j *judge) targets() {
	tight := j.in.MaxNodes > 0
	workers := j.strangers()
	for i, g := range j.in.Groups {
		target := j.d.Targets[i]
		workers += target.Replicas * max(1, g.Hosts)
		most, least := g.Max, min(g.Min, g.Max)
		if g.Closed {
			most, least = 0, 0
		}
		if target.Group != g.Name || target.Replicas < 0 || target.Replicas > most {
			j.blame("%s is to have %v, at most %d", g.Name, target, most)
		}
		alive, _ := present(j.in, g.Name)
		least = max(least, min(alive-len(named(j.in, j.d, g.Name)), most))
		if !tight && target.Replicas < least {
			j.blame("%s is to have %v, at least %d", g.Name, target, least)
		}
		if stays := max(alive-j.replacements(g.Name), least); g.Failing != "" && target.Replicas > max(alive, stays) {
			j.blame("%s is to have %v, and had %d when its newest pods failed", g.Name, target, alive)
		}
	}
	if tight && workers > max(j.in.MaxNodes, j.strangers()) {
		j.blame("%d workers are above the maximum %d", workers, j.in.MaxNodes)
	}
}

// replacements counts the replicas of a group that go to be made again.
func (j *judge) replacements(group string) int {
	all := map[int]bool{}
	for i := range j.in.Pods {
		if pod := &j.in.Pods[i]; pod.Group == group && j.replaced(pod) {
			all[pod.Replica] = true
		}
	}
	return len(all)
}

// strangers are workers of groups that there are not.
func (j *judge) strangers() int {
	count := 0
	for _, node := range j.in.Nodes {
		if _, known := j.groups[node.Group]; node.Group != "" && !node.Draining && !node.Going && !known {
			count++
		}
	}
	return count
}

// pace counts the pods that will be on their way.
func (j *judge) pace() {
	joined, onWay, growth, forMin, largest := j.strangers(), 0, 0, 0, 0
	for i, g := range j.in.Groups {
		hosts := max(1, g.Hosts)
		alive, going := present(j.in, g.Name)
		leaving := named(j.in, j.d, g.Name)
		for _, node := range j.in.Nodes {
			if node.Group == g.Name && !going[node.Replica] {
				joined++
			}
		}
		// Workers above a maximum are somebody else's choice, and not counted.
		if alive <= min(g.Max, j.d.Targets[i].Replicas+len(leaving)) {
			onWay += j.onTheirWay(&g, func(replica int) bool { return !going[replica] && !leaving[replica] })
		}
		if more := j.d.Targets[i].Replicas - (alive - len(leaving)); more > 0 {
			growth += more * hosts
			largest = max(largest, hosts)
			forMin += max(0, min(more, min(g.Min, g.Max)-alive+j.replacements(g.Name))) * hosts
		}
	}
	limit := map[Pace]int{Conservative: max(1, joined), Aggressive: math.MaxInt}[j.in.Pace]
	if limit == 0 {
		limit = max(100, joined)
	}
	if growth > forMin && growth > max(limit-onWay, largest, forMin) {
		j.blame("%d are made beside %d that are on their way: the pace is %d", growth, onWay, limit)
	}
}

// onTheirWay counts a group's pods that the pace counts.
func (j *judge) onTheirWay(g *Group, counts func(replica int) bool) int {
	count := 0
	for _, pod := range j.in.Pods {
		if pod.Group == g.Name && !pod.Late && !g.PassedOver && !g.Closed && counts(pod.Replica) {
			count++
		}
	}
	return count
}

// leavers sees that who goes was idle, is whole, and is needed by nothing.
func (j *judge) leavers() {
	used := map[string]bool{}
	for _, l := range slices.Concat(j.onFloor, j.main) {
		used[l.box] = true
	}
	for i := range j.in.Nodes {
		if slices.Contains(j.d.Drain, j.in.Nodes[i].Key) {
			j.drained(&j.in.Nodes[i], used)
		}
	}
	for i := range j.in.Pods {
		if slices.Contains(j.d.Release, j.in.Pods[i].Key) {
			j.givenBack(&j.in.Pods[i], used)
		}
	}
	for _, g := range j.in.Groups {
		alive, _ := present(j.in, g.Name)
		if names := named(j.in, j.d, g.Name); len(names) > j.replacements(g.Name) && !g.Closed &&
			alive-len(names)+j.replacements(g.Name) < min(g.Min, g.Max) {
			j.blame("%s goes below its minimum by %v", g.Name, slices.Sorted(maps.Keys(names)))
		}
	}
}

func (j *judge) givenBack(pod *Pod, used map[string]bool) {
	if used[fmt.Sprintf("%s/%d/%d", pod.Group, pod.Replica, pod.Host)] {
		j.blame("%s is given back, which is needed", pod.Key)
	}
	if pod.Age < 10*time.Second && !j.groups[pod.Group].PassedOver && !j.replaced(pod) {
		j.blame("%s is given back after %s", pod.Key, pod.Age)
	}
}

func (j *judge) drained(node *Node, used map[string]bool) {
	g, known := j.groups[node.Group]
	switch {
	case !known:
		j.blame("%s goes, which is of no group", node.Key)
	case used[node.Key]:
		j.blame("%s goes, which is needed", node.Key)
	case node.Idle <= 0 || node.Idle < g.IdleTimeout || !j.in.MayShrink:
		j.blame("%s goes after %s", node.Key, node.Idle)
	}
	for _, other := range j.in.Nodes {
		if other.Group == node.Group && other.Replica == node.Replica && !slices.Contains(j.d.Drain, other.Key) {
			j.blame("%s goes without %s of the same replica", node.Key, other.Key)
		}
	}
}
