package decision

import "testing"

// judging has judged nothing yet.
func judging(in Input) *verdicts {
	p := planFor(&in)
	return &verdicts{plan: p, index: map[string]int{}, blocked: make([]bool, len(p.groups))}
}

func TestVerdicts_AreForNodesThatSelectorsAllow(t *testing.T) {
	v := judging(Input{
		Groups: []Group{kindOf("a", cpus(4), labelled("zone", "a")), kindOf("b", cpus(1), labelled("zone", "b"))},
		Nodes:  []Node{{Place: Place{Key: "head"}, Total: cpus(8), Labels: map[string]string{"zone": "c"}}},
		Demand: append(tasks(1, cpus(8)), tasks(1, cpus(4))...),
		Gangs: []Gang{{
			Bundles: tasks(1, cpus(1)), Selectors: []Selector{in("zone", "a"), in("zone", "b"), in("zone", "c")},
		}},
	})
	all := v.gangs[0].rules
	for _, c := range []struct {
		name string
		of   *wanting
		also rule
		held bool
	}{
		{"a group's node", v.demand[1], all[0], true},
		{"a group's node is too small", v.demand[1], all[1], false},
		{"a node that is there", v.demand[1], all[2], true},
		{"no group has as much", v.demand[0], all[0], false},
		{"a node that is there has", v.demand[0], all[2], true},
		{"anywhere", v.demand[0], everyNode, true},
	} {
		if got := v.held(c.of.unit, c.also); got != c.held {
			t.Errorf("%s: %s can be held: %t", c.name, c.of.shape, got)
		}
	}
}

// A look at nodes costs as much as there are classes, and more for many kinds.
func TestVerdicts_CountTheirLooks(t *testing.T) {
	shape := Resources{}
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		shape[name] = 1
	}
	v := judging(Input{
		Nodes: []Node{
			{Place: Place{Key: "1"}, Total: Resources{"a": 1}}, {Place: Place{Key: "2"}, Total: Resources{"a": 2}},
			{Place: Place{Key: "3"}, Total: Resources{"a": 3}},
		},
		Demand: tasks(1, shape),
	})
	one := v.demand[0].unit
	if v.held(one, everyNode) || v.looks != 6 {
		t.Errorf("8 kinds on 3 classes take %d looks, not 6", v.looks)
	}
	v.looks = mostWork
	if v.held(one, everyNode) {
		t.Error("it calls possible what is not, before it had enough")
	}
	v.looks = mostWork + 1
	if !v.held(one, everyNode) {
		t.Error("it calls impossible what it no longer looks at")
	}
}

func TestVerdicts_LookForOneDomain(t *testing.T) {
	racks := []Group{
		kindOf("cpu", cpus(4), labelled("rack", "1")), kindOf("gpu", Resources{"GPU": 1}, labelled("rack", "2")),
	}
	both := within("rack", Gang{Bundles: append(tasks(1, cpus(4)), tasks(1, Resources{"GPU": 1})...)})
	at := func(rack string, has Resources) []Node {
		return []Node{{Place: Place{Key: "head"}, Total: has, Labels: map[string]string{"rack": rack}}}
	}
	for _, c := range []struct {
		name   string
		groups []Group
		nodes  []Node
		looked int
		found  bool
		looks  int
	}{
		{"no rack has both", racks, at("3", cpus(4)), 0, false, 12},
		{"a node of another rack does not help", racks[:1], at("3", Resources{"GPU": 1}), 0, false, 7},
		{"a node of the same rack does", racks[:1], at("1", Resources{"GPU": 1}), 0, true, 3},
		{"what is above the most counts as found", racks, at("3", cpus(4)), mostWork, true, mostWork + 9},
		{"then it looks no more", racks, at("3", cpus(4)), mostWork + 1, true, mostWork + 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := judging(Input{Groups: c.groups, Nodes: c.nodes, Gangs: []Gang{both}})
			v.looks = c.looked
			if got := v.inOneDomain(v.gangs[0], everyNode); got != c.found || v.looks != c.looks {
				t.Errorf("found: %t, after %d looks, not %d", got, v.looks, c.looks)
			}
		})
	}
}

func TestVerdicts_LookForOneReplica(t *testing.T) {
	two := kindOf("two", Resources{"TPU": 4}, ofHosts(2))
	for _, c := range []struct {
		name string
		of   Gang
		want bool
	}{
		{"as many as fit on all hosts", pack("p", 8, Resources{"TPU": 1}), true},
		{"but not more", pack("p", 9, Resources{"TPU": 1}), false},
		{"one on each host", spread("p", 2, Resources{"TPU": 1}), true},
		{"but not more of those kept apart", spread("p", 3, Resources{"TPU": 1}), false},
	} {
		v := judging(Input{Groups: []Group{two}, Gangs: []Gang{within("pod", c.of)}})
		if got := v.inOneReplica(v.gangs[0], everyNode); got != c.want {
			t.Errorf("%s: %t", c.name, got)
		}
	}
}

func TestVerdicts_CrowdedIsLessRoomThanAReplica(t *testing.T) {
	v := judging(Input{Groups: []Group{slice()}, MaxNodes: 8})
	for _, c := range []struct {
		fresh int64
		want  bool
	}{{0, false}, {4, false}, {5, true}, {8, true}} {
		v.main.fresh = c.fresh
		if got := v.crowded(0); got != c.want {
			t.Errorf("with room for 8 and %d new, a replica of 4 hosts is crowded out: %t", c.fresh, got)
		}
	}
}
