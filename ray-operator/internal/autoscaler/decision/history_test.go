package decision

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// TestNeverMorePodsThanDemandPlusMinimum: never more pods than demand plus minimum needs, whatever fails to start.
// A node takes one task, so the bound is exact. Once all that is made starts, each task is served; once all tasks
// have ended, the minimum is left.
func TestNeverMorePodsThanDemandPlusMinimum(t *testing.T) {
	for seed := range rounds(t, 1000) {
		h := newHistory(seed)
		for range 60 {
			h.happen()
			if wrong := h.round(); wrong != "" {
				t.Fatalf("seed %d: %s\n%s", seed, wrong, shown(h.in))
			}
		}
		if wrong := h.calm(); wrong != "" {
			t.Fatalf("seed %d: %s\n%s", seed, wrong, shown(h.in))
		}
	}
}

// fate is what becomes of a pod: when it is placed and when it joins, both below zero for never.
type fate struct{ placed, joins time.Duration }

// history is a cluster to which things happen. What works is busy with one task.
type history struct {
	dice
	in      Input
	fates   map[string]fate
	working map[string]bool
	// tasks are those that wait and run, most the most that there were, made how many pods were ever made.
	tasks, most, made int
	healthy           bool
	// rolled are the sizes of groups of which the operator replaces one worker after the other.
	rolled map[string]int
}

func newHistory(seed int) *history {
	h := &history{dice: seeded(seed), fates: map[string]fate{}, working: map[string]bool{}, rolled: map[string]int{}}
	h.in.Pace, h.in.MayShrink = pick(h.dice, Conservative, Default, Aggressive), true
	for i := range 1 + h.IntN(3) {
		g := Group{Name: fmt.Sprintf("g%d", i), Hosts: 1, IdleTimeout: time.Minute, Resources: Resources{"CPU": 4}, Priority: h.IntN(2)}
		g.Min = max(0, h.IntN(6)-3)
		g.Max = g.Min + 4 + h.IntN(12)
		h.in.Groups = append(h.in.Groups, g)
	}
	if h.one(4) {
		h.in.MaxNodes = h.minimum() + 1 + h.IntN(10)
	}
	return h
}

func (h *history) minimum() int {
	all := 0
	for _, g := range h.in.Groups {
		all += g.Min
	}
	return all
}

// happen makes things happen to tasks, groups, nodes and pods.
func (h *history) happen() {
	switch h.IntN(7) {
	case 0:
		h.tasks += h.IntN(6)
	case 1:
		h.end(h.IntN(4))
	case 2:
		// Where one that is rolled gets no capacity, its replacements wait, and others serve the demand beside them.
		if g := &h.in.Groups[h.IntN(len(h.in.Groups))]; !h.rolls(g.Name) {
			g.PassedOver = !g.PassedOver
		}
	case 3:
		if n := len(h.in.Nodes); n > 0 { // by a drain
			h.in.Nodes[h.IntN(n)].Going = true
		}
	case 4:
		h.die()
	case 5:
		h.in.MayShrink = !h.in.MayShrink
	case 6:
		if g := h.in.Groups[h.IntN(len(h.in.Groups))]; !g.PassedOver && h.alive(g.Name) >= max(1, g.Min) {
			h.roll(g.Name)
		}
	}
	h.replace()
	for i := range h.in.Pods {
		h.in.Pods[i].Replace = h.in.Pods[i].Late && h.one(4)
	}
	h.in.Nodes = slices.DeleteFunc(h.in.Nodes, func(n Node) bool { return n.Going && h.one(3) })
}

// roll begins or ends to replace the workers of a group.
func (h *history) roll(group string) {
	if _, rolled := h.rolled[group]; rolled {
		delete(h.rolled, group)
		return
	}
	h.rolled[group] = h.alive(group)
}

// replace takes a worker of each group that is rolled, and makes another one in its place.
func (h *history) replace() {
	for _, g := range h.in.Groups {
		size, rolled := h.rolled[g.Name]
		if !rolled {
			continue
		}
		for i := range h.in.Nodes {
			if n := &h.in.Nodes[i]; n.Group == g.Name && !n.Going {
				n.Going = true
				break
			}
		}
		for range size - h.alive(g.Name) {
			h.add(g.Name)
		}
	}
}

// ordered is what the operator orders: a group that is rolled keeps its size.
func (h *history) ordered() Input {
	in := h.in
	in.Groups = slices.Clone(h.in.Groups)
	for i := range in.Groups {
		if g := &in.Groups[i]; h.rolls(g.Name) {
			g.Min, g.Max = h.alive(g.Name), h.alive(g.Name)
		}
	}
	return in
}

func (h *history) rolls(group string) bool {
	_, rolled := h.rolled[group]
	return rolled
}

// end ends as many tasks.
func (h *history) end(many int) {
	h.tasks = max(0, h.tasks-many)
	for key := range h.working {
		if len(h.working) > h.tasks {
			delete(h.working, key)
		}
	}
}

// die lets a node forget that it ever was one: its pod goes on.
func (h *history) die() {
	if n := len(h.in.Nodes); n > 0 {
		dead := h.in.Nodes[h.IntN(n)]
		h.in.Nodes = slices.DeleteFunc(h.in.Nodes, func(n Node) bool { return n.Key == dead.Key })
		h.in.Pods = append(h.in.Pods, Pod{Place: dead.Place, Going: dead.Going})
		h.fates[dead.Key] = h.fate()
	}
}

func (h *history) fate() fate {
	if h.healthy {
		return fate{0, time.Minute}
	}
	never := fate{-1, -1}
	return pick(h.dice, fate{0, time.Minute}, fate{0, 20 * time.Minute}, fate{0, -1}, never, fate{30 * time.Minute, time.Hour})
}

// round lets five minutes pass, decides, does what is decided, and says what is wrong with it.
func (h *history) round() string {
	h.most = max(h.most, h.tasks)
	h.pass()
	d := Decide(h.ordered())
	h.in.Pods = slices.DeleteFunc(h.in.Pods, func(p Pod) bool { return slices.Contains(d.Release, p.Key) })
	for _, key := range d.Drain {
		if h.working[key] {
			return key + " is drained at work"
		}
	}
	h.in.Nodes = slices.DeleteFunc(h.in.Nodes, func(n Node) bool { return slices.Contains(d.Drain, n.Key) })
	covers, before := h.covers(), h.made
	missing := h.create(d)
	if made := h.made - before; made > missing+max(0, h.waiting()-covers) {
		return fmt.Sprintf("%d are made: the minimum lacks %d, %d tasks wait, and %d pods or nodes are there for them", made, missing, h.waiting(), covers)
	}
	if all := h.alive(""); all > h.most+h.minimum() || h.in.MaxNodes > 0 && all > h.in.MaxNodes {
		return fmt.Sprintf("%d pods, with %d tasks at most, a minimum of %d and a maximum of %d", all, h.most, h.minimum(), h.in.MaxNodes)
	}
	return ""
}

// pass lets pods start and tasks begin.
func (h *history) pass() {
	const step, lateAfter = 5 * time.Minute, 15 * time.Minute
	var coming []Pod
	for _, p := range h.in.Pods {
		of := h.fates[p.Key]
		p.Age += step
		p.Waiting = of.placed < 0 || p.Age < of.placed
		p.Late = !p.Waiting && p.Age-of.placed >= lateAfter
		if of.joins >= 0 && p.Age >= of.joins {
			h.in.Nodes = append(h.in.Nodes, Node{Place: p.Place, Total: Resources{"CPU": 4}, Available: Resources{"CPU": 4}, Going: p.Going})
			continue
		}
		coming = append(coming, p)
	}
	h.in.Pods = coming
	h.occupy(step)
	h.in.Demand = tasks(h.waiting(), Resources{"CPU": 4})
}

// occupy gives free nodes tasks that wait. What runs on a node that is not there any more waits again.
func (h *history) occupy(step time.Duration) {
	there := map[string]bool{}
	for _, n := range h.in.Nodes {
		there[n.Key] = true
	}
	for key := range h.working {
		if !there[key] {
			delete(h.working, key)
		}
	}
	for i := range h.in.Nodes {
		n := &h.in.Nodes[i]
		if !n.Going && h.waiting() > 0 {
			h.working[n.Key] = true
		}
		n.Idle, n.Available = n.Idle+step, Resources{"CPU": 4}
		if h.working[n.Key] {
			n.Idle, n.Available = 0, Resources{}
		}
	}
	h.failing()
}

// failing stops groups whose three newest pods never start.
func (h *history) failing() {
	for i := range h.in.Groups {
		failed := 0
		for _, p := range h.in.Pods {
			if p.Group == h.in.Groups[i].Name && h.fates[p.Key].joins < 0 && !p.Waiting && !p.Going {
				failed++
			}
		}
		h.in.Groups[i].Failing = map[bool]string{true: "ImageNotFound"}[failed >= 3]
	}
}

func (h *history) waiting() int { return h.tasks - len(h.working) }

// covers counts what is there for tasks that wait.
func (h *history) covers() int {
	count := 0
	for _, n := range h.in.Nodes {
		if !n.Going && !h.working[n.Key] {
			count++
		}
	}
	for _, p := range h.in.Pods {
		passed := slices.ContainsFunc(h.in.Groups, func(g Group) bool { return g.Name == p.Group && g.PassedOver })
		if !p.Going && !(passed && p.Waiting) {
			count++
		}
	}
	return count
}

// create makes what targets ask for, and says how many the minima lacked.
func (h *history) create(d Result) (missing int) {
	for i, g := range h.in.Groups {
		alive := h.alive(g.Name)
		if h.rolls(g.Name) { // late pods that were given back are made again
			missing += max(0, d.Targets[i].Replicas-alive)
		} else {
			missing += max(0, g.Min-alive)
		}
		for range max(0, d.Targets[i].Replicas-alive) {
			h.add(g.Name)
		}
	}
	return missing
}

// add makes a pod of a group.
func (h *history) add(group string) {
	h.made++
	key := fmt.Sprintf("%s-%d", group, h.made)
	h.fates[key] = h.fate()
	h.in.Pods = append(h.in.Pods, Pod{Place: Place{Key: key, Group: group, Replica: h.made}, Waiting: true})
}

// alive counts the pods of a group that stay, of all groups for none.
func (h *history) alive(group string) int {
	count := 0
	for _, n := range h.in.Nodes {
		if !n.Going && (group == "" || n.Group == group) {
			count++
		}
	}
	for _, p := range h.in.Pods {
		if !p.Going && (group == "" || p.Group == group) {
			count++
		}
	}
	return count
}

// calm lets all that is made start, and late pods be replaced, until each task is served, and then until only the
// minimum is left.
func (h *history) calm() string {
	h.healthy, h.in.MayShrink, h.in.MaxNodes = true, true, 0
	clear(h.rolled)
	h.end(max(0, h.tasks-4)) // each group alone has room for as many beyond its minimum
	for i := range h.in.Groups {
		h.in.Groups[i].PassedOver = false
	}
	for _, what := range []struct {
		name string
		ends func() bool
	}{
		{"tasks wait for ever", func() bool { return h.waiting() == 0 }},
		{"more than the minimum stays", func() bool { h.end(h.tasks); return h.alive("") == h.minimum() }},
	} {
		for rounds := 0; !what.ends(); rounds++ {
			h.in.Pods = slices.DeleteFunc(h.in.Pods, func(p Pod) bool { return p.Going })
			for i := range h.in.Pods {
				p := &h.in.Pods[i]
				p.Replace = p.Late
				if h.fates[p.Key].placed != 0 { // machines are found
					h.fates[p.Key] = fate{0, time.Minute}
				}
			}
			h.in.Nodes = slices.DeleteFunc(h.in.Nodes, func(n Node) bool { return n.Going })
			if wrong := h.round(); wrong != "" || rounds > 40 {
				return what.name + ": " + wrong
			}
		}
	}
	return ""
}
