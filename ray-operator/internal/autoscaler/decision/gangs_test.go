package decision

import (
	"testing"
	"time"
)

// slice is a group whose replicas are of four hosts, as TPU slices are.
func slice(changes ...func(*Group)) Group {
	return kindOf("slice", Resources{"CPU": 8, "TPU": 4}, append([]func(*Group){ofHosts(4)}, changes...)...)
}

func within(label string, gang Gang) Gang {
	gang.Within = label
	return gang
}

func pack(name string, n int, shape Resources) Gang {
	return Gang{Name: name, Bundles: tasks(n, shape)}
}

func inOne(name string, n int, shape Resources) Gang {
	gang := pack(name, n, shape)
	gang.Together = true
	return gang
}

func TestGangs(t *testing.T) {
	a := func(changes ...func(*Group)) []Group { return []Group{kindOf("a", cpus(4), changes...)} }
	free := func(n int) []Node {
		var all []Node
		for i := range n {
			all = append(all, node("a", i, cpus(4), cpus(4)))
		}
		return all
	}
	checkRules(t, []example{
		{"packed", Input{Groups: a(), Gangs: []Gang{pack("p", 8, cpus(1))}}, []string{"a 2 8 × {CPU: 1}"}},
		{"apart", Input{Groups: a(), Gangs: []Gang{spread("p", 3, cpus(1))}}, []string{"a 3 3 × {CPU: 1}"}},
		{"two that are each apart share nodes", Input{Groups: a(), Gangs: []Gang{spread("p", 3, cpus(1)), spread("q", 3, cpus(1))}}, []string{"a 3 6 × {CPU: 1}"}},
		{
			"apart from a bundle that has its place",
			Input{Groups: a(), Nodes: []Node{node("a", 0, cpus(3), cpus(4), with("_PG_p", ""))}, Gangs: []Gang{spread("p", 1, cpus(1))}},
			[]string{"a 2 1 × {CPU: 1}"},
		},
		{
			"selectors of a gang", Input{
				Groups: []Group{kindOf("a", cpus(4), labelled("zone", "a")), kindOf("b", cpus(4), labelled("zone", "b"))},
				Gangs:  []Gang{{Name: "p", Bundles: tasks(2, cpus(4)), Selectors: []Selector{in("zone", "b")}}},
			},
			[]string{"a 0", "b 2 2 × {CPU: 4}"},
		},
		{"an empty gang is none", Input{Groups: a(), Gangs: []Gang{{Name: "p"}}}, []string{"a 0"}},
		{
			"all or nothing", Input{Groups: a(between(0, 2)), Nodes: free(1), Gangs: []Gang{spread("p", 3, cpus(1))}, MayShrink: true},
			[]string{"a 1 maximum of 2", "kept 3 × {CPU: 1}: placement group p: group a has no room for all of it up to its maximum of 2"},
		},
		{
			"what is not there holds up nobody else", Input{Groups: a(between(0, 2)), Gangs: []Gang{spread("p", 3, cpus(1))}, Demand: tasks(1, cpus(4))},
			[]string{"a 1 1 × {CPU: 4}; maximum of 2", "kept 3 × {CPU: 1}: placement group p: group a has no room for all of it up to its maximum of 2"},
		},
	})
}

// A gang's new nodes are of a group that is good for what comes after it, too.
func TestGangsLookAhead(t *testing.T) {
	small, medium, large := kindOf("s", cpus(4)), kindOf("m", cpus(8)), kindOf("l", cpus(16))
	young := pack("p", 4, cpus(1))
	young.Selectors = []Selector{{{Label: "age", Not: true, Values: []string{"old"}}}}
	checkRules(t, []example{
		{
			"nodes of a gang are good for what follows",
			Input{Groups: []Group{small, large}, Gangs: []Gang{pack("p", 4, cpus(1))}, Demand: tasks(12, cpus(1))},
			[]string{"s 0", "l 1 16 × {CPU: 1}"},
		},
		{"but only one that it leaves room for", Input{Groups: []Group{small, medium}, Gangs: []Gang{pack("p", 4, cpus(1))}}, []string{"s 1 4 × {CPU: 1}", "m 0"}},
		{
			"each task follows one gang only",
			Input{Groups: []Group{small, large}, Gangs: []Gang{pack("p", 4, cpus(1)), pack("q", 4, cpus(1))}, Demand: tasks(12, cpus(1))},
			[]string{"s 1 4 × {CPU: 1}", "l 1 16 × {CPU: 1}"},
		},
		{
			"and no other where it brings its own", Input{
				Groups: []Group{kindOf("s", cpus(4), labelled("zone", "a")), kindOf("m", cpus(16), labelled("zone", "a")), kindOf("l", cpus(16), labelled("disk", "y"))},
				Gangs:  []Gang{{Name: "p", Bundles: tasks(4, cpus(1)), Selectors: []Selector{in("disk", "y")}}, {Name: "q", Bundles: tasks(4, cpus(1)), Selectors: []Selector{in("zone", "a")}}},
				Demand: tasks(12, cpus(1)),
			},
			[]string{"s 1 4 × {CPU: 1}", "m 0", "l 1 16 × {CPU: 1}"},
		},
		{
			"gangs follow gangs", Input{Groups: []Group{small, medium}, Gangs: []Gang{pack("p", 4, cpus(1)), pack("q", 4, cpus(1))}},
			[]string{"s 0", "m 1 8 × {CPU: 1}"},
		},
		{
			"gangs kept apart in themselves are not kept from each other",
			Input{Groups: []Group{small, large}, Gangs: []Gang{spread("p", 2, cpus(4)), spread("q", 2, cpus(4)), spread("r", 2, cpus(4)), spread("s", 2, cpus(4))}},
			[]string{"s 0", "l 2 8 × {CPU: 4}"},
		},
		{
			"tasks of another shape follow, too",
			Input{Groups: []Group{small, large}, Gangs: []Gang{pack("p", 4, cpus(1))}, Demand: tasks(3, cpus(4))},
			[]string{"s 0", "l 1 4 × {CPU: 1}, 3 × {CPU: 4}"},
		},
		{
			"tasks that may not go there do not count", Input{
				Groups: []Group{kindOf("s", cpus(4), labelled("zone", "a")), kindOf("l", cpus(16), labelled("zone", "b"))},
				Gangs:  []Gang{pack("p", 4, cpus(1))}, Demand: tasks(12, cpus(1), in("zone", "a")),
			},
			[]string{"s 4 16 × {CPU: 1}", "l 0"},
		},
		{
			"nor those that have their place",
			Input{Groups: []Group{small, large}, Nodes: []Node{node("old", 0, cpus(12), nil, with("age", "old"))}, Gangs: []Gang{young}, Demand: tasks(12, cpus(1))},
			[]string{"s 1 4 × {CPU: 1}", "l 0"},
		},
		{
			"what a gang that finds no place would bring is still to come", Input{
				Groups: []Group{kindOf("s", cpus(4)), kindOf("l", cpus(16), between(0, 1))},
				Gangs:  []Gang{spread("p", 2, cpus(8)), pack("q", 4, cpus(1))}, Demand: tasks(12, cpus(1)),
			},
			[]string{"s 0", "l 1 16 × {CPU: 1}; maximum of 1", "kept 2 × {CPU: 8}: placement group p: group l is at its maximum of 1"},
		},
	})
}

func TestGangsTogether(t *testing.T) {
	a := []Group{kindOf("a", cpus(4))}
	checkRules(t, []example{
		{"together", Input{Groups: a, Nodes: []Node{node("a", 0, cpus(4), cpus(4))}, Gangs: []Gang{inOne("p", 4, cpus(1))}}, []string{"a 1"}},
		{
			"together, of different shapes", Input{Groups: []Group{kindOf("a", cpus(4)), kindOf("gpu", gpus(1))}, Gangs: []Gang{{Name: "p", Together: true, Bundles: append(tasks(2, cpus(1)), tasks(1, Resources{"GPU": 1})...)}}},
			[]string{"a 0", "gpu 1 1 × {CPU: 2, GPU: 1}"},
		},
		{
			"together where each of them may be", Input{
				Groups: []Group{kindOf("a", cpus(4), labelled("zone", "a")), kindOf("b", cpus(4), labelled("zone", "a", "disk", "b")), kindOf("c", cpus(4), labelled("disk", "b"))},
				Gangs:  []Gang{{Name: "p", Together: true, Bundles: append(tasks(1, cpus(1), in("zone", "a")), append(tasks(1, cpus(2), in("zone", "a")), tasks(1, cpus(1), in("disk", "b"))...)...)}},
			},
			[]string{"a 0", "b 1 1 × {CPU: 4}", "c 0"},
		},
		{
			"together is stronger than apart", Input{Groups: a, Gangs: []Gang{{Name: "p", Together: true, Bundles: []Demand{{Shape: cpus(1), Count: 2, Apart: []Label{{Name: "x"}}}}}}, Nodes: []Node{node("a", 0, cpus(4), nil, with("x", ""))}},
			[]string{"a 1"},
		},
		{
			"together, work with GPUs comes before other work",
			Input{Groups: []Group{kindOf("gpu", gpus(1), between(0, 1))}, Gangs: []Gang{inOne("p", 8, cpus(1)), {Name: "q", Together: true, Bundles: append(tasks(1, cpus(1)), tasks(1, Resources{"GPU": 0.5})...)}}},
			[]string{"gpu 1 1 × {CPU: 1, GPU: 0.5}; maximum of 1", "kept 1 × {CPU: 8}: placement group p: group gpu is at its maximum of 1"},
		},
		{"together is too much for one node", Input{Groups: a, Gangs: []Gang{inOne("p", 5, cpus(1))}}, []string{"a 0", "never gang 0"}},
	})
}

func TestGangsInOnePlace(t *testing.T) {
	racks := []Group{kindOf("r1", cpus(4), labelled("rack", "1"), between(0, 2)), kindOf("r2", cpus(4), labelled("rack", "2"))}
	checkRules(t, []example{
		{
			"the rack that has room, not the one that has nodes", Input{Groups: racks, Nodes: []Node{node("r1", 0, cpus(4), cpus(4), with("rack", "1"))}, Gangs: []Gang{within("rack", pack("p", 3, cpus(4)))}},
			[]string{"r1 1", "r2 3 3 × {CPU: 4}"},
		},
		{
			"the smallest rack where it fits", Input{
				Groups: racks, Gangs: []Gang{within("rack", pack("p", 1, cpus(4)))},
				Nodes:     []Node{node("r2", 0, cpus(4), cpus(4), with("rack", "2")), node("r2", 1, cpus(4), cpus(4), with("rack", "2"), idle(time.Hour)), node("r1", 0, cpus(4), cpus(4), with("rack", "1"), idle(time.Hour))},
				MayShrink: true,
			},
			[]string{"r1 1", "r2 1 idle", "drain r2-1"},
		},
		{
			"the smallest, whatever its name", Input{
				Groups: racks, Gangs: []Gang{within("rack", pack("p", 1, cpus(4)))},
				Nodes:     []Node{node("r1", 0, cpus(4), cpus(4), with("rack", "1")), node("r1", 1, cpus(4), cpus(4), with("rack", "1"), idle(time.Hour)), node("r2", 0, cpus(4), cpus(4), with("rack", "2"), idle(time.Hour))},
				MayShrink: true,
			},
			[]string{"r1 1 idle", "r2 1", "drain r1-1"},
		},
		{
			"a rack that has room before one that would have to grow", Input{
				Groups: racks, Gangs: []Gang{within("rack", pack("p", 2, cpus(4)))},
				Nodes: []Node{node("r2", 0, cpus(4), cpus(4), with("rack", "2")), node("r2", 1, cpus(4), cpus(4), with("rack", "2"))},
			},
			[]string{"r1 0", "r2 2"},
		},
		{
			"a rack that grows is used as it is first", Input{Groups: racks, Gangs: []Gang{within("rack", pack("p", 2, cpus(4)))}, Nodes: []Node{node("r1", 0, cpus(4), cpus(4), with("rack", "1"))}},
			[]string{"r1 2 1 × {CPU: 4}", "r2 0"},
		},
		{
			"not a node that another gang brought to another rack", Input{
				Groups: []Group{kindOf("r1", cpus(4), labelled("rack", "1"), between(0, 1)), racks[1]},
				Gangs:  []Gang{within("rack", spread("p", 1, cpus(2))), within("rack", Gang{Name: "q", Bundles: append(tasks(4, cpus(1)), tasks(1, cpus(0.5))...)})},
			},
			[]string{"r1 1 1 × {CPU: 2}", "r2 2 4 × {CPU: 1}, 1 × {CPU: 0.5}"},
		},
		{
			"all in one node are in one rack", Input{Groups: racks, Gangs: []Gang{within("rack", inOne("p", 4, cpus(1))), within("row", inOne("q", 4, cpus(1)))}},
			[]string{"r1 2 2 × {CPU: 4}", "r2 0"},
		},
		{
			"hosts that a new replica brings beside serve the rest of the gang", Input{
				Groups: []Group{kindOf("r", cpus(4), ofHosts(4), labelled("rack", "1"))},
				Gangs:  []Gang{within("rack", Gang{Name: "p", Bundles: append(tasks(1, cpus(4)), tasks(3, cpus(3))...)})},
			},
			[]string{"r 1 1 × {CPU: 4}, 3 × {CPU: 3}"},
		},
		{"no such label", Input{Groups: racks, Gangs: []Gang{within("row", pack("p", 2, cpus(1)))}}, []string{"r1 0", "r2 0", "never gang 0"}},
	})
}

// A replica of several hosts is one place, whatever the place is called.
func TestGangsInOneReplica(t *testing.T) {
	tpu, two := Resources{"TPU": 4}, kindOf("two", Resources{"CPU": 8, "TPU": 4}, ofHosts(2))
	half := []Node{node("slice", 0, tpu, tpu, onHost(0), with("pod", "x"))}
	rest := []Pod{coming("slice", 0, 1), coming("slice", 0, 2), coming("slice", 0, 3)}
	checkRules(t, []example{
		{"a replica of four hosts is one place", Input{Groups: []Group{slice()}, Gangs: []Gang{within("pod", pack("p", 4, tpu))}}, []string{"slice 1 4 × {TPU: 4}"}},
		{"the smaller of two", Input{Groups: []Group{slice(), two}, Gangs: []Gang{within("pod", pack("p", 2, tpu))}}, []string{"slice 0", "two 1 2 × {TPU: 4}"}},
		{"the larger if it must be", Input{Groups: []Group{slice(), two}, Gangs: []Gang{within("pod", pack("p", 3, tpu))}}, []string{"slice 1 3 × {TPU: 4}", "two 0"}},
		{
			"the one on its way first", Input{Groups: []Group{slice(), two}, Pods: append(rest[:3:3], coming("slice", 0, 0)), Gangs: []Gang{within("pod", pack("p", 2, tpu))}},
			[]string{"slice 1 2 × {TPU: 4}", "two 0"},
		},
		{
			"without accelerators for work without", Input{Groups: []Group{two, kindOf("plain", cpus(8), ofHosts(4))}, Gangs: []Gang{within("pod", pack("p", 2, cpus(8)))}},
			[]string{"two 0", "plain 1 2 × {CPU: 8}"},
		},
		{
			"with them for work with", Input{Groups: []Group{two, kindOf("plain", cpus(8), ofHosts(2))}, Gangs: []Gang{within("pod", Gang{Name: "p", Bundles: append(tasks(1, cpus(8)), tasks(1, tpu)...)})}},
			[]string{"two 1 1 × {TPU: 4}, 1 × {CPU: 8}", "plain 0"},
		},
		{
			"the group that is asked for first", Input{Groups: []Group{two, kindOf("third", Resources{"CPU": 8, "TPU": 4}, ofHosts(4), priority(1))}, Gangs: []Gang{within("pod", pack("p", 2, tpu))}},
			[]string{"two 0", "third 1 2 × {TPU: 4}"},
		},
		{"single hosts are no such place", Input{Groups: []Group{kindOf("one", tpu)}, Gangs: []Gang{within("pod", pack("p", 1, tpu))}}, []string{"one 0", "never gang 0"}},
		{"which can be too small", Input{Groups: []Group{slice()}, Gangs: []Gang{within("pod", pack("p", 5, tpu))}}, []string{"slice 0", "never gang 0"}},
		{
			"halves of two replicas are two places", Input{
				Groups: []Group{two}, Gangs: []Gang{within("pod", pack("p", 2, tpu)), within("pod", pack("q", 2, tpu))},
				Nodes: []Node{node("two", 0, tpu, nil, onHost(0)), node("two", 1, tpu, nil, onHost(0))}, Pods: []Pod{coming("two", 0, 1), coming("two", 1, 1)},
			},
			[]string{"two 2"},
		},
		{
			"also of two groups", Input{
				Groups: []Group{two, kindOf("two2", two.Resources, ofHosts(2))}, Gangs: []Gang{within("pod", pack("p", 2, tpu))},
				Nodes: []Node{
					node("two", 0, tpu, nil, onHost(0)), node("two", 0, nil, tpu, onHost(1)),
					node("two2", 0, tpu, nil, onHost(0)), node("two2", 0, nil, tpu, onHost(1)),
				},
			},
			[]string{"two 2 2 × {TPU: 4}", "two2 1"},
		},
		{"two gangs, two replicas", Input{Groups: []Group{slice()}, Gangs: []Gang{within("pod", pack("p", 4, tpu)), within("pod", pack("q", 4, tpu))}}, []string{"slice 2 8 × {TPU: 4}"}},
		{"a replica on its way is its place", Input{Groups: []Group{slice()}, Pods: append(rest, coming("slice", 0, 0)), Gangs: []Gang{within("pod", pack("p", 4, tpu))}}, []string{"slice 1 4 × {TPU: 4}"}},
		{"so is one that is half there", Input{Groups: []Group{slice()}, Nodes: half, Pods: rest, Gangs: []Gang{within("pod", pack("p", 4, tpu))}}, []string{"slice 1"}},
		{"and one of which a host is not even made", Input{Groups: []Group{slice()}, Nodes: half, Pods: rest[1:], Gangs: []Gang{within("pod", pack("p", 4, tpu))}}, []string{"slice 1"}},
	})
}

func TestReplicasOfSeveralHosts(t *testing.T) {
	four := func(replica int, changes ...func(*Node)) []Node {
		var all []Node
		for h := range 4 {
			all = append(all, node("slice", replica, Resources{"TPU": 4}, Resources{"TPU": 4}, append(changes, onHost(h))...))
		}
		return all
	}
	busy := four(0, idle(time.Hour))
	busy[2].Idle = 0
	checkRules(t, []example{
		{"a task brings four", Input{Groups: []Group{slice()}, Demand: tasks(1, Resources{"TPU": 1})}, []string{"slice 1 1 × {TPU: 1}"}},
		{"which serve sixteen", Input{Groups: []Group{slice()}, Demand: tasks(17, Resources{"TPU": 1})}, []string{"slice 2 17 × {TPU: 1}"}},
		{"a maximum of six workers has room for one", Input{Groups: []Group{slice()}, MaxNodes: 6, Demand: tasks(5, Resources{"TPU": 4})}, []string{"slice 1 4 × {TPU: 4}; maximum of 6 workers of the cluster", "kept 1 × {TPU: 4}: the cluster is at its maximum of 6 workers"}},
		{
			"hosts that a group without capacity lacks are not counted on", Input{Groups: []Group{slice(passedOver)}, Nodes: four(0)[:1], Demand: tasks(2, Resources{"TPU": 4})},
			[]string{"slice 1", "kept 1 × {TPU: 4}: group slice gets no capacity"},
		},
		{"they go together", Input{Groups: []Group{slice()}, Nodes: four(0, idle(time.Hour)), MayShrink: true}, []string{"slice 0 idle", "drain slice-0.0 slice-0.1 slice-0.2 slice-0.3"}},
		{"or not at all", Input{Groups: []Group{slice()}, Nodes: busy, MayShrink: true}, []string{"slice 1"}},
		{"nor if one leaves already", Input{Groups: []Group{slice()}, Nodes: append(four(0, idle(time.Hour))[:3:3], node("slice", 0, nil, nil, onHost(3), going)), MayShrink: true}, []string{"slice 0"}},
	})
}
