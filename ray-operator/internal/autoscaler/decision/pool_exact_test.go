package decision

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

func TestEnough_BeginsAboveTheMost(t *testing.T) {
	if enough(mostWork-1) || enough(mostWork) || !enough(mostWork+1) {
		t.Errorf("%d looks are enough: %t, one more: %t", mostWork, enough(mostWork), enough(mostWork+1))
	}
}

func TestLooks_GrowWithEightKinds(t *testing.T) {
	var got []int
	for _, kinds := range []int{0, 7, 8, 15, 16, 80} {
		got = append(got, make(vector, kinds).looks())
	}
	checkExact(t, []int{1, 1, 2, 2, 3, 11}, got)
}

// poolOf is a pool of so many nodes with four CPUs each, all alike, for work of one CPU.
func poolOf(nodes int) *pool {
	in := Input{Groups: []Group{kindOf("a", cpus(4))}, Demand: tasks(1, cpus(1))}
	for replica := range nodes {
		in.Nodes = append(in.Nodes, node("a", replica, cpus(4), cpus(4)))
	}
	w := newWorld(&in)
	return w.newPool(w.hosts(), false)
}

// shown lists classes as from+count: what is free, and what was placed as from+nodes × each.
func (p *pool) shown() (classes, placed []string) {
	for _, c := range p.classes {
		classes = append(classes, fmt.Sprintf("%d+%d: %d, room %g", c.from, c.count, c.free.of(0)/perOne, c.room))
	}
	for _, one := range p.placed {
		placed = append(placed, fmt.Sprintf("%d+%d × %d", one.from, one.nodes, one.each))
	}
	return classes, placed
}

func TestPool_PutsFullOnesFirst(t *testing.T) {
	for _, c := range []struct {
		name            string
		tasks, left     int64
		placed, classes []string
	}{
		{"nothing", 0, 0, nil, []string{"0+3: 4, room 1"}},
		{"a part of one", 1, 0, []string{"0+1 × 1"}, []string{"1+2: 4, room 1", "0+1: 3, room 0.75"}},
		{"one", 4, 0, []string{"0+1 × 4"}, []string{"1+2: 4, room 1", "0+1: 0, room 0"}},
		{
			"one and a part", 6, 0, []string{"0+1 × 4", "1+1 × 2"},
			[]string{"2+1: 4, room 1", "0+1: 0, room 0", "1+1: 2, room 0.5"},
		},
		{"two", 8, 0, []string{"0+2 × 4"}, []string{"2+1: 4, room 1", "0+2: 0, room 0"}},
		{
			"two and a part", 9, 0, []string{"0+2 × 4", "2+1 × 1"},
			[]string{"2+1: 3, room 0.75", "0+2: 0, room 0"},
		},
		{"all", 12, 0, []string{"0+3 × 4"}, []string{"0+3: 0, room 0"}},
		{"no more than all", 13, 1, []string{"0+3 × 4"}, []string{"0+3: 0, room 0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := poolOf(3)
			want := &wanting{unit: p.demand[0], left: c.tasks}
			p.put(want, 0, 4)
			classes, placed := p.shown()
			checkExact(t, c.classes, classes)
			checkExact(t, c.placed, placed)
			if want.left != c.left {
				t.Errorf("%d are left, not %d", want.left, c.left)
			}
		})
	}
}

func TestPool_SplitRecordsWhatItPlaced(t *testing.T) {
	p := poolOf(2)
	p.open(0, 1)
	before := slices.Clone(p.classes)
	of := &gang{}
	want := &wanting{unit: &unit{need: vector{{0, perOne}}, apart: []rule{7}}, gang: of, left: 2}
	p.split(0, 1, want, 1)
	p.split(1, 1, want, 3)
	checkExact(t, []placement{{want.unit, of, 0, false, 0, 1, 1}, {want.unit, of, 0, true, 0, 1, 3}}, p.placed)
	checkExact(t, []former{{0, before[0]}, {1, before[1]}}, p.undo)
	for at, added := range [][]rule{nil, {7}, {7}} {
		checkExact(t, added, p.classes[at].added)
	}
}

// A mark holds all that changes after it, and each mark can be gone back to.
func TestPool_GoesBackToAMark(t *testing.T) {
	p := poolOf(3)
	want := &wanting{unit: p.demand[0], left: 6}
	type state struct {
		classes, placed []string
		taken           []int64
		fresh           int64
		undo, events    int
	}
	now := func() state {
		classes, placed := p.shown()
		return state{classes, placed, slices.Clone(p.taken), p.fresh, len(p.undo), len(p.events)}
	}
	var marks []mark
	var states []state
	for _, change := range []func(){
		func() { p.put(want, 0, 4) }, func() { p.open(0, 2) }, func() { want.left = 1; p.put(want, 0, 4) },
		func() { want.left = 9; p.put(want, 3, 4) }, func() { p.open(0, 1) },
	} {
		marks, states = append(marks, p.mark()), append(states, now())
		change()
	}
	checkExact(t, mark{undo: 4, classes: 4, events: 1, placed: 4, taken: []int64{2}, fresh: 2}, marks[4])
	checkExact(t, []event{{0, 0, 2}, {0, 2, 1}}, p.events)
	for i, to := range slices.Backward(marks) {
		p.back(to)
		checkExact(t, states[i], now())
	}
}

func TestPool_LooksAtNothingForNothing(t *testing.T) {
	p := poolOf(3)
	want := &wanting{unit: p.demand[0]}
	p.place(want, everywhere)
	if p.work != 0 {
		t.Errorf("nothing takes %d looks", p.work)
	}
	want.left = 1
	p.place(want, everywhere)
	if p.work != 1 || want.left != 0 {
		t.Errorf("one task takes %d looks at one class, and leaves %d", p.work, want.left)
	}
}

func TestPool_LooksNoMoreWhenItHadEnough(t *testing.T) {
	p := poolOf(1)
	p.work = mostWork + 1
	if got := p.candidates(&wanting{unit: p.demand[0], left: 1}, everywhere); len(got) != 0 {
		t.Errorf("it finds %v", got)
	}
	p.work = mostWork
	if got := p.candidates(&wanting{unit: p.demand[0], left: 1}, everywhere); len(got) != 1 || p.work != mostWork+1 {
		t.Errorf("it finds %v after %d looks", got, p.work)
	}
}

// A decision asks for candidates thousands of times.
func TestPool_UsesTheRoomOfCandidatesAgain(t *testing.T) {
	p := poolOf(1)
	want := &wanting{unit: p.demand[0], left: 1}
	one := p.candidates(want, everywhere)
	if two := p.candidates(want, everywhere); &one[0] != &two[0] {
		t.Error("each call makes room of its own")
	}
}

// Candidates say all by which they are chosen, the best first.
func TestPool_FindsCandidates(t *testing.T) {
	w := newWorld(&Input{
		Groups: []Group{kindOf("a", cpus(4)), kindOf("b", cpus(8)), kindOf("c", Resources{"CPU": 8, "GPU": 1})},
		Demand: tasks(1, cpus(2), in("zone", "z"), Selector{}),
		Nodes: []Node{
			node("a", 0, cpus(4), nil), node("a", 1, cpus(1), nil), node("a", 2, cpus(2), nil),
			node("a", 3, cpus(8), nil, with("zone", "z")),
		},
	})
	p := w.newPool(w.hosts(), false)
	p.open(1, 2)
	p.open(1, 1)
	p.open(0, 1)
	p.open(2, 1)
	for _, c := range []struct {
		name   string
		within scope
		want   []candidate
	}{
		{"everywhere", everywhere, []candidate{
			{at: 3, room: 1, group: -1, from: 3}, {at: 2, grade: 4, room: 0.25, group: -1, from: 2},
			{at: 0, grade: 4, room: 0.5, group: -1},
			{at: 6, grade: 2<<20 + 4, room: 0.5}, {at: 4, grade: 2<<20 + 4, room: 1, group: 1},
			{at: 5, grade: 2<<20 + 4, room: 1, group: 1, from: 2}, {at: 7, grade: 2<<20 + 6, room: 1, group: 2},
		}},
		{"among those listed, and after a place", scope{list: []int{0, 1}, since: 6}, []candidate{
			{at: 0, grade: 4, room: 0.5, group: -1}, {at: 6, grade: 2<<20 + 4, room: 0.5},
			{at: 7, grade: 2<<20 + 6, room: 1, group: 2},
		}},
		{"nowhere", scope{since: 8}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			best := p.candidates(&wanting{unit: p.demand[0], left: 1}, c.within)
			var got []candidate
			for next, ok := best.pop(); ok; next, ok = best.pop() {
				got = append(got, next)
			}
			checkExact(t, c.want, got)
		})
	}
}

func TestCandidate_IsNotBeforeItself(t *testing.T) {
	same := candidate{grade: 1, room: 2, group: 3, from: 4}
	if same.before(&same) {
		t.Error("a candidate is before itself")
	}
}

func TestClass_GradeOrdersByStageThenRank(t *testing.T) {
	for _, c := range []struct {
		of          class
		rank        int
		accelerated bool
		want        int
	}{
		{class{}, 0, false, 0},
		{class{spare: true}, 0, false, 1},
		{class{guarded: true}, 0, false, 2},
		{class{guarded: true}, 0, true, 0},
		{class{guarded: true, spare: true}, 0, false, 3},
		{class{}, 1, false, 4},
		{class{stage: joining}, 0, false, 1 << 20},
		{class{stage: opened, guarded: true, spare: true}, 240, false, 2<<20 + 963},
	} {
		if got := c.of.grade(c.rank, c.accelerated); got != c.want {
			t.Errorf("%+v with rank %d is of grade %d, not %d", c.of, c.rank, got, c.want)
		}
	}
}

func TestClass_HoldsOneOfThoseKeptApart(t *testing.T) {
	need, c := vector{{0, perOne}}, class{free: vector{{0, 3 * perOne}}, added: []rule{1}}
	for _, kept := range []struct {
		apart []rule
		often int64
		bars  bool
	}{{nil, 3, false}, {[]rule{2}, 1, false}, {[]rule{1}, 1, true}, {[]rule{2, 1}, 1, true}} {
		one := &unit{need: need, apart: kept.apart}
		if c.often(one) != kept.often || c.bars(one) != kept.bars {
			t.Errorf("%v: %d times, barred: %t", kept.apart, c.often(one), c.bars(one))
		}
	}
	if got := c.often(&unit{need: vector{{0, 4 * perOne}}, apart: []rule{2}}); got != 0 {
		t.Errorf("what does not fit is there %d times", got)
	}
}

// What is alike is told apart by its group only together with its replica.
func TestClass_LikenessIsAllItHasInCommon(t *testing.T) {
	c := class{
		free: vector{{0, 1}}, on: 3, stage: joining, group: 5, guarded: true, spare: true, from: 1, count: 2, room: 3,
	}
	want := likeness{stage: joining, guarded: true, spare: true, on: 3, free: c.free.key()}
	checkExact(t, want, c.likeness())
	c.own = 1
	want.group, want.own = 5, 1
	checkExact(t, want, c.likeness())
}

func TestPool_MakesClassesOfHosts(t *testing.T) {
	gpu := Resources{"CPU": 4, "GPU": 1}
	w := newWorld(&Input{
		Groups: []Group{kindOf("g", gpu, ofHosts(2), labelled("zone", "a")), kindOf("f", cpus(16))},
		Demand: tasks(1, Resources{"CPU": 1, "GPU": 1}, in("zone", "a")),
		Nodes: []Node{
			{Place: Place{Key: "head"}, Available: cpus(2), Total: Resources{"CPU": 8, "GPU": 0}},
			node("g", 3, cpus(1), gpu, idle(time.Hour)), node("f", 0, cpus(4), cpus(16), idle(time.Hour)),
		},
		MayShrink: true,
	})
	hosts := w.hosts()
	var keys []string
	for _, h := range hosts {
		keys = append(keys, fmt.Sprint(h.key, " ", h.node != nil))
	}
	checkExact(t, []string{"f-0 true", "g-3 true", "g-3 false", "head true"}, keys)
	p := &pool{world: w}
	of := func(at int, totals, apart bool) class { return p.classOf(hosts[at], totals, apart) }
	one, four := amount{0, perOne}, amount{0, 4 * perOne}
	for _, c := range []struct {
		name      string
		got, want class
	}{
		{
			"a node, free", of(1, false, false),
			class{free: vector{one}, on: 1, group: 1, guarded: true, spare: true, room: 0.0625},
		},
		{
			"a node in all", of(1, true, false),
			class{free: vector{four, {1, perOne}}, on: 1, group: 1, guarded: true, spare: true, room: 1.25},
		},
		{
			"a node of half a replica", of(1, false, true),
			class{free: vector{one}, on: 1, group: 1, guarded: true, spare: true, own: 4, room: 0.0625},
		},
		{
			"a host on its way", of(2, false, false),
			class{free: vector{four, {1, perOne}}, stage: joining, group: 1, guarded: true, room: 1.25},
		},
		{
			"a host on its way of half a replica", of(2, false, true),
			class{free: vector{four, {1, perOne}}, stage: joining, group: 1, guarded: true, own: 4, room: 1.25},
		},
		{"a whole replica", of(0, false, true), class{free: vector{four}, spare: true, on: 1, room: 0.25}},
		{"the head", of(3, false, true), class{free: vector{{0, 2 * perOne}}, group: -1, on: 1, room: 0.125}},
		{"the head in all", of(3, true, true), class{free: vector{{0, 8 * perOne}, {1, 0}}, group: -1, on: 1, room: 0.5}},
	} {
		t.Run(c.name, func(t *testing.T) { checkExact(t, c.want, c.got) })
	}
}

// Those least idle come first in their class, and classes come in the order of their first keys.
func TestPool_LaysOutItsMembers(t *testing.T) {
	free := func(key string, cpu float64) Node { return Node{Place: Place{Key: key}, Available: cpus(cpu)} }
	for _, c := range []struct {
		name             string
		nodes            []Node
		members, classes []string
	}{
		{
			"the least idle first",
			[]Node{
				node("a", 0, cpus(4), nil, idle(3)), node("a", 1, cpus(4), nil, idle(1)),
				node("a", 2, cpus(2), nil, idle(9)), free("z", 4),
			},
			[]string{"a-2", "z", "a-1", "a-0"}, []string{"1+3: 4, room 1", "0+1: 2, room 0.5"},
		},
		{
			"a node of no group before one that is busy", []Node{free("a", 4), node("b", 0, cpus(4), nil)},
			[]string{"a", "b-0"}, []string{"0+2: 4, room 1"},
		},
		{
			"but after it by its key", []Node{free("c", 4), node("b", 0, cpus(4), nil)},
			[]string{"b-0", "c"}, []string{"0+2: 4, room 1"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := Input{Groups: []Group{kindOf("a", cpus(4)), kindOf("b", cpus(4))}, Demand: tasks(1, cpus(1)), Nodes: c.nodes}
			in.Pods = []Pod{coming("a", 8, 0), coming("b", 8, 0), coming("b", 9, 0)}
			w := newWorld(&in)
			p := w.newPool(w.hosts(), false)
			var members []string
			for _, h := range p.members {
				members = append(members, h.key)
			}
			classes, _ := p.shown()
			checkExact(t, c.members, members)
			checkExact(t, c.classes, classes)
			checkExact(t, []int64{1, 2}, p.stock)
			checkExact(t, []int64{0, 0}, p.taken)
			checkExact(t, len(p.classes), p.there)
		})
	}
}
