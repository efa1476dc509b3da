package decision

import "testing"

func TestWhatWaitsAndWhy(t *testing.T) {
	full := between(0, 0)
	many := func(n int, changes ...func(*Group)) []Group {
		var all []Group
		for i := range n {
			all = append(all, kindOf(string(rune('a'+i)), cpus(4), changes...))
		}
		return all
	}
	three := "kept 1 × {CPU: 1}: group a is suspended; group b is suspended; group c is suspended"
	checkRules(t, []example{
		{"each group is named", Input{Groups: many(3, closed), Demand: tasks(1, cpus(1))}, []string{"a 0 suspended", "b 0 suspended", "c 0 suspended", three}},
		{"or counted", Input{Groups: many(4, closed), Demand: tasks(1, cpus(1))}, []string{"a 0 suspended", "b 0 suspended", "c 0 suspended", "d 0 suspended", three + "; and 1 more groups"}},
		{"only those that could hold it", Input{Groups: append(many(1, closed), kindOf("gpu", gpus(1), full)), Demand: tasks(1, Resources{"GPU": 1})}, []string{"a 0 suspended", "gpu 0 maximum of 0", "kept 1 × {GPU: 1}: group gpu is at its maximum of 0"}},
		{
			"what looks alike and waits for the same is one", Input{
				Groups: many(1, full, labelled("zone", "a")), Demand: append(tasks(1, cpus(1), in("zone", "a")), tasks(2, cpus(1), in("zone", "a", "b"))...),
			},
			[]string{"a 0 maximum of 0", "kept 3 × {CPU: 1}: group a is at its maximum of 0"},
		},
		{"a group that is full and wanted by nobody says nothing", Input{Groups: many(1, between(0, 1)), Nodes: []Node{node("a", 0, cpus(0), cpus(4))}}, []string{"a 1"}},
		{
			"three shapes are named", Input{Groups: many(1), Demand: append(tasks(1, cpus(4)), append(tasks(1, cpus(3)), tasks(1, cpus(2))...)...)},
			[]string{"a 3 1 × {CPU: 4}, 1 × {CPU: 3}, 1 × {CPU: 2}"},
		},
		{
			"the fourth is counted", Input{Groups: many(1), Demand: append(append(tasks(1, cpus(4)), tasks(1, cpus(3.5))...), append(tasks(1, cpus(3)), tasks(1, cpus(2))...)...)},
			[]string{"a 4 1 × {CPU: 4}, 1 × {CPU: 3.5}, 1 × {CPU: 3} and 1 more shapes"},
		},
		{
			"of a gang, how much", Input{Groups: many(2, closed), Gangs: []Gang{{Name: "p", Bundles: append(tasks(2, cpus(1)), tasks(3, cpus(2))...)}}},
			[]string{"a 0 suspended", "b 0 suspended", "kept 5 × {CPU: 2}: placement group p: group a is suspended; group b is suspended"},
		},
		{
			"only groups that its selectors allow", Input{
				Groups: []Group{kindOf("a", cpus(4), closed, labelled("zone", "a")), kindOf("b", cpus(4), closed, labelled("zone", "b"))},
				Gangs:  []Gang{{Name: "p", Bundles: tasks(1, cpus(1)), Selectors: []Selector{in("zone", "b")}}},
			},
			[]string{"a 0 suspended", "b 0 suspended", "kept 1 × {CPU: 1}: placement group p: group b is suspended"},
		},
		{
			"the cluster's maximum, for a replica of several hosts", Input{Groups: []Group{slice(), kindOf("a", cpus(4))}, MaxNodes: 3, Demand: append(tasks(1, Resources{"TPU": 1}), tasks(3, cpus(4))...)},
			[]string{"slice 0 maximum of 3 workers of the cluster", "a 3 3 × {CPU: 4}", "kept 1 × {TPU: 1}: the cluster is at its maximum of 3 workers"},
		},
	})
}

func TestWhatCanNeverFit(t *testing.T) {
	two := kindOf("two", Resources{"CPU": 8, "TPU": 4}, ofHosts(2))
	racks := []Group{kindOf("plain", cpus(4), labelled("rack", "1")), kindOf("gpu", Resources{"GPU": 1}, labelled("rack", "2"))}
	both := Gang{Name: "p", Bundles: append(tasks(1, cpus(4)), tasks(1, Resources{"GPU": 1})...)}
	there := Node{Place: Place{Key: "head"}, Total: Resources{"CPU": 4, "GPU": 1}, Labels: map[string]string{"rack": "3"}}
	elsewhere := there
	elsewhere.Labels = map[string]string{"rack": "2"}
	only := "only nodes that are there could hold it, and they are in use"
	inZone := func(zone string, gang Gang) Gang { gang.Selectors = []Selector{in("zone", zone)}; return gang }
	checkRules(t, []example{
		{"gangs in the order of the input", Input{Groups: racks, Gangs: []Gang{pack("p", 1, cpus(5)), spread("q", 1, cpus(5))}}, []string{"plain 0", "gpu 0", "never gang 0", "never gang 1"}},
		{"a gang that no single rack can hold", Input{Groups: racks, Gangs: []Gang{within("rack", both)}}, []string{"plain 0", "gpu 0", "never gang 0"}},
		{"though without a rack it is possible", Input{Groups: racks, Gangs: []Gang{both}}, []string{"plain 1 1 × {CPU: 4}", "gpu 1 1 × {GPU: 1}"}},
		{
			"a rack of which a maximum keeps it out is possible", Input{Groups: append(racks[:1:1], kindOf("gpu", Resources{"GPU": 1}, labelled("rack", "1"), between(0, 0))), Gangs: []Gang{within("rack", both)}},
			[]string{"plain 0 maximum of 10", "gpu 0 maximum of 0", "kept 2 × {GPU: 1}: placement group p: group gpu is at its maximum of 0; group plain has no room for all of it up to its maximum of 10"},
		},
		{
			"so is one with a node that could hold it", Input{Groups: racks[:1], Nodes: []Node{there}, Gangs: []Gang{within("rack", pack("p", 1, Resources{"GPU": 1}))}},
			[]string{"plain 0", "kept 1 × {GPU: 1}: placement group p: " + only},
		},
		{
			"groups and nodes of a rack are one place", Input{Groups: append(racks[1:2:2], kindOf("x", cpus(1))), Nodes: []Node{elsewhere}, Gangs: []Gang{within("rack", both)}},
			[]string{"gpu 0 maximum of 10", "x 0", "kept 2 × {GPU: 1}: placement group p: group gpu has no room for all of it up to its maximum of 10"},
		},
		{
			"not a rack whose nodes its selectors exclude", Input{
				Groups: []Group{kindOf("r1", cpus(4), labelled("rack", "1", "zone", "a")), kindOf("r2", cpus(2), labelled("rack", "2", "zone", "b")), kindOf("none", cpus(4), labelled("zone", "b"))},
				Gangs:  []Gang{within("rack", inZone("b", pack("p", 1, cpus(4))))},
			},
			[]string{"r1 0", "r2 0", "none 0", "never gang 0"},
		},
		{
			"what is there of it counts as if it were empty", Input{Nodes: []Node{{Place: Place{Key: "head"}, Total: cpus(4)}}, Groups: []Group{kindOf("a", cpus(1))}, Demand: tasks(1, cpus(4)), Floor: tasks(2, cpus(4))},
			[]string{"a 0", "kept 1 × {CPU: 4}: request_resources: " + only, "kept 1 × {CPU: 4}: " + only},
		},
		{
			"unless its labels are others", Input{Nodes: []Node{{Place: Place{Key: "head"}, Total: cpus(4)}}, Groups: []Group{kindOf("a", cpus(1))}, Demand: tasks(1, cpus(4), in("zone", "a"))},
			[]string{"a 0", "never 1 × {CPU: 4}"},
		},
		{
			"all bundles must be possible", Input{Groups: []Group{two}, Gangs: []Gang{{Name: "p", Bundles: append(tasks(1, cpus(1)), tasks(1, cpus(9))...)}}},
			[]string{"two 0", "never gang 0"},
		},
		{
			"in one of the alternatives", Input{
				Groups: []Group{kindOf("a", cpus(4), labelled("zone", "a"), between(0, 0)), kindOf("b", cpus(1), labelled("zone", "b"))},
				Gangs:  []Gang{{Name: "p", Bundles: tasks(1, cpus(4)), Selectors: []Selector{in("zone", "b"), in("zone", "a")}}},
			},
			[]string{"a 0 maximum of 0", "b 0", "kept 1 × {CPU: 4}: placement group p: group a is at its maximum of 0"},
		},
	})
}

func TestWhatAReplicaCanNeverHold(t *testing.T) {
	tpu, two := Resources{"TPU": 4}, kindOf("two", Resources{"CPU": 8, "TPU": 4}, ofHosts(2))
	inZone := func(zone string, gang Gang) Gang { gang.Selectors = []Selector{in("zone", zone)}; return gang }
	apart := func(n int) Gang { return within("pod", spread("p", n, tpu)) }
	checkRules(t, []example{
		{"as many apart as a replica has hosts", Input{Groups: []Group{two}, Gangs: []Gang{apart(2)}}, []string{"two 1 2 × {TPU: 4}"}},
		{"but not more", Input{Groups: []Group{two}, Gangs: []Gang{within("pod", spread("p", 3, cpus(1)))}}, []string{"two 0", "never gang 0"}},
		{
			"nor what its hosts have not", Input{Groups: []Group{two, kindOf("gpu", gpus(1))}, Gangs: []Gang{within("pod", pack("p", 1, Resources{"GPU": 1}))}},
			[]string{"two 0", "gpu 0", "never gang 0"},
		},
		{
			"nor a bundle larger than each of them", Input{Groups: []Group{two, kindOf("big", cpus(16))}, Gangs: []Gang{within("pod", pack("p", 1, cpus(16)))}},
			[]string{"two 0", "big 0", "never gang 0"},
		},
		{
			"nor one whose labels it does not want", Input{
				Groups: []Group{kindOf("two", tpu, ofHosts(2), labelled("zone", "a")), kindOf("one", tpu, labelled("zone", "b"))},
				Gangs:  []Gang{within("pod", inZone("b", pack("p", 1, tpu)))},
			},
			[]string{"two 0", "one 0", "never gang 0"},
		},
		{
			"a replica that a maximum keeps out is possible", Input{Groups: []Group{kindOf("two", tpu, ofHosts(2), between(0, 0))}, Gangs: []Gang{apart(2)}},
			[]string{"two 0 maximum of 0", "kept 2 × {TPU: 4}: placement group p: group two is at its maximum of 0"},
		},
	})
}

// Of the group's maximum and the cluster's, the one is named that leaves less room.
func TestVerdicts_NameTheTighterMaximum(t *testing.T) {
	a := func(most int) []Group { return []Group{kindOf("a", cpus(4), between(0, most))} }
	busy := []Node{node("a", 0, nil, cpus(4)), node("a", 1, nil, cpus(4))}
	kept := func(n string) string {
		return "kept " + n + " × {CPU: 1}: placement group p: group a has no room for all of it up to its maximum of "
	}
	cluster := ": placement group p: the cluster has no room for all of it up to its maximum of "
	checkRules(t, []example{
		{
			"the cluster's", Input{Groups: a(10), MaxNodes: 1, Gangs: []Gang{spread("p", 2, cpus(1))}},
			[]string{"a 0 maximum of 1 workers of the cluster", "kept 2 × {CPU: 1}" + cluster + "1 workers"},
		},
		{
			"the group's", Input{Groups: a(1), MaxNodes: 5, Gangs: []Gang{spread("p", 2, cpus(1))}},
			[]string{"a 0 maximum of 1", kept("2") + "1"},
		},
		{
			"the group's where both are the same", Input{Groups: a(2), MaxNodes: 2, Gangs: []Gang{spread("p", 3, cpus(1))}},
			[]string{"a 0 maximum of 2", kept("3") + "2"},
		},
		{
			"the group's, after existing and new workers",
			Input{
				Groups: a(5), MaxNodes: 5, Nodes: busy, Demand: tasks(1, cpus(4)), Gangs: []Gang{spread("p", 4, cpus(1))},
			},
			[]string{"a 3 1 × {CPU: 4}; maximum of 5", kept("4") + "5"},
		},
		{
			"the cluster's, after new workers",
			Input{Groups: a(10), MaxNodes: 5, Demand: tasks(3, cpus(4)), Gangs: []Gang{spread("p", 6, cpus(1))}},
			[]string{"a 3 3 × {CPU: 4}; maximum of 5 workers of the cluster", "kept 6 × {CPU: 1}" + cluster + "5 workers"},
		},
		{
			"the cluster's where it ends within a replica",
			Input{Groups: []Group{slice(between(0, 2))}, MaxNodes: 7, Gangs: []Gang{pack("p", 5, Resources{"TPU": 4})}},
			[]string{"slice 0 maximum of 7 workers of the cluster", "kept 5 × {TPU: 4}" + cluster + "7 workers"},
		},
		{
			"the group's where its replicas fit in", Input{
				Groups: []Group{slice(between(0, 2))}, MaxNodes: 8, Gangs: []Gang{pack("p", 9, Resources{"TPU": 4})},
			},
			[]string{
				"slice 0 maximum of 2",
				"kept 9 × {TPU: 4}: placement group p: group slice has no room for all of it up to its maximum of 2",
			},
		},
	})
}
