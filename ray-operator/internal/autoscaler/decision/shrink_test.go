package decision

import (
	"testing"
	"time"
)

func TestShrinking(t *testing.T) {
	a := func(changes ...func(*Group)) []Group { return []Group{kindOf("a", cpus(4), changes...)} }
	two := []Node{node("a", 0, cpus(4), cpus(4), idle(2*time.Minute)), node("a", 1, cpus(4), cpus(4), idle(3*time.Minute))}
	checkRules(t, []example{
		{"idle for long enough, the longest first", Input{Groups: a(), Nodes: two, MayShrink: true}, []string{"a 0 idle", "drain a-1 a-0"}},
		{"not while that is not to be trusted", Input{Groups: a(), Nodes: two}, []string{"a 2"}},
		{"not below the minimum", Input{Groups: a(between(1, 9)), Nodes: two, MayShrink: true}, []string{"a 1 minimum of 1; idle", "drain a-1"}},
		{"not what demand needs", Input{Groups: a(), Nodes: two, Demand: tasks(1, cpus(1)), MayShrink: true}, []string{"a 1 idle", "drain a-1"}},
		{"not what the floor needs", Input{Groups: a(), Nodes: two, Floor: tasks(2, cpus(3)), MayShrink: true}, []string{"a 2"}},
		{"not what a gang needs", Input{Groups: a(), Nodes: two, Gangs: []Gang{spread("p", 2, cpus(1))}, MayShrink: true}, []string{"a 2"}},
		{"not yet", Input{Groups: a(), Nodes: []Node{node("a", 0, cpus(4), cpus(4), idle(59*time.Second))}, MayShrink: true}, []string{"a 1"}},
		{"at once when that is over", Input{Groups: a(), Nodes: []Node{node("a", 0, cpus(4), cpus(4), idle(time.Minute))}, MayShrink: true}, []string{"a 0 idle", "drain a-0"}},
		{"not what runs something", Input{Groups: []Group{kindOf("a", cpus(4), func(g *Group) { g.IdleTimeout = 0 })}, Nodes: []Node{node("a", 0, cpus(4), cpus(4))}, MayShrink: true}, []string{"a 1"}},
		{"never the head", Input{Nodes: []Node{{Place: Place{Key: "head"}, Total: cpus(1), Available: cpus(1), Idle: time.Hour}}, MayShrink: true}, []string{""}[:0]},
		{"never a stranger", Input{Groups: a(), Nodes: []Node{node("b", 0, cpus(1), cpus(1), idle(time.Hour))}, MayShrink: true}, []string{"a 0"}},
		{
			"busy nodes are used before idle ones", Input{
				Groups: a(), Nodes: append(two[:1:1], node("a", 2, cpus(3), cpus(4))), Demand: tasks(1, cpus(1)), MayShrink: true,
			},
			[]string{"a 1 idle", "drain a-0"},
		},
		{
			"those that stay anyway before those that could go", Input{Groups: a(between(1, 9)), Nodes: two, Floor: tasks(1, cpus(4)), MayShrink: true},
			[]string{"a 1 minimum of 1; idle", "drain a-1"},
		},
		{
			"even if these would be fuller", Input{
				Groups: a(between(1, 9)), Nodes: []Node{two[0], node("a", 1, cpus(3), cpus(3), idle(3*time.Minute))}, Floor: tasks(1, cpus(3)), MayShrink: true,
			},
			[]string{"a 1 minimum of 1; idle", "drain a-1"},
		},
		{
			"above a maximum the idle ones are named", Input{Groups: a(between(0, 2)), Nodes: append(two[:1:1], node("a", 2, cpus(0), cpus(4)), node("a", 3, cpus(0), cpus(4))), MayShrink: true},
			[]string{"a 2 idle; maximum of 2", "drain a-0"},
		},
		{
			"above the cluster's maximum the idle ones go before those of less priority", Input{
				Groups: []Group{kindOf("a", cpus(4), priority(1)), kindOf("b", cpus(4))}, MaxNodes: 2,
				Nodes: []Node{two[0], node("a", 2, cpus(0), cpus(4)), node("b", 0, cpus(0), cpus(4))},
			},
			[]string{"a 1 maximum of 2 workers of the cluster", "b 1"},
		},
	})
}

// Above a maximum the place of those counts for nothing that are likely to go.
func TestAboveAMaximum(t *testing.T) {
	a := func(changes ...func(*Group)) []Group { return []Group{kindOf("a", cpus(4), changes...)} }
	one := between(0, 1)
	busy := func(group string, replica int) Node { return node(group, replica, nil, cpus(4)) }
	checkRules(t, []example{
		{"that of the last", Input{Groups: a(one), Nodes: []Node{node("a", 1, cpus(4), cpus(4)), busy("a", 0)}, Demand: tasks(1, cpus(4))}, []string{"a 1 maximum of 1", "kept 1 × {CPU: 4}: group a is at its maximum of 1"}},
		{"that of pods before that of nodes", Input{Groups: a(one), Nodes: []Node{node("a", 1, cpus(4), cpus(4))}, Pods: []Pod{coming("a", 0, 0)}, Demand: tasks(1, cpus(4))}, []string{"a 1 maximum of 1"}},
		{
			"that of pods that wait for a machine before that of others",
			Input{Groups: a(one), Pods: []Pod{coming("a", 0, 0, waits(11*time.Second)), coming("a", 1, 0)}, Demand: tasks(1, cpus(4))},
			[]string{"a 1 1 × {CPU: 4}; not needed; maximum of 1", "release a-0.0"},
		},
		{
			"that of those idle for longest", Input{
				Groups: a(one), Nodes: []Node{node("a", 0, cpus(4), cpus(4), idle(2*time.Hour)), node("a", 1, cpus(4), cpus(4), idle(time.Hour))}, Demand: tasks(1, cpus(4)), MayShrink: true,
			},
			[]string{"a 1 idle; maximum of 1", "drain a-0"},
		},
	})
}

func TestAboveTheClustersMaximum(t *testing.T) {
	a := []Group{kindOf("a", cpus(4))}
	busy := func(group string, replica int) Node { return node(group, replica, nil, cpus(4)) }
	var slices []Node
	for replica := range 2 {
		for host := range 4 {
			slices = append(slices, node("slice", replica, nil, nil, onHost(host)))
		}
	}
	checkRules(t, []example{
		{"of groups alike the last has fewer", Input{Groups: []Group{kindOf("a", cpus(4)), kindOf("b", cpus(4))}, MaxNodes: 1, Nodes: []Node{busy("a", 0), busy("b", 0)}}, []string{"a 1", "b 0 maximum of 1 workers of the cluster"}},
		{"before that the one of less priority", Input{Groups: []Group{kindOf("a", cpus(4)), kindOf("b", cpus(4), priority(1))}, MaxNodes: 1, Nodes: []Node{busy("a", 0), busy("b", 0)}}, []string{"a 0 maximum of 1 workers of the cluster", "b 1"}},
		{
			"a minimum is kept as long as another group can have fewer",
			Input{Groups: []Group{kindOf("a", cpus(4), priority(1)), kindOf("b", cpus(4), between(1, 9))}, MaxNodes: 1, Nodes: []Node{busy("a", 0), busy("b", 0), busy("b", 1)}},
			[]string{"a 0 maximum of 1 workers of the cluster", "b 1 minimum of 1; maximum of 1 workers of the cluster"},
		},
		{
			"and not longer", Input{Groups: []Group{kindOf("a", cpus(4), between(2, 9)), kindOf("b", cpus(4), between(2, 9))}, MaxNodes: 3, Nodes: []Node{busy("a", 0), busy("a", 1), busy("b", 0), busy("b", 1)}},
			[]string{"a 2 minimum of 2", "b 1 maximum of 3 workers of the cluster"},
		},
		{
			"not more replicas than have the pods that are too many", Input{Groups: []Group{slice(), kindOf("b", cpus(4), priority(1))}, MaxNodes: 5, Nodes: append(slices, busy("b", 0))},
			[]string{"slice 1 maximum of 5 workers of the cluster", "b 1"},
		},
		{
			"nor fewer", Input{Groups: []Group{slice(), kindOf("b", cpus(4), priority(1))}, MaxNodes: 8, Nodes: append(slices, busy("b", 0))},
			[]string{"slice 1 maximum of 8 workers of the cluster", "b 1"},
		},
		{
			"what that leaves is room", Input{Groups: []Group{slice(), kindOf("b", cpus(4), priority(1))}, MaxNodes: 8, Nodes: append(slices, busy("b", 0)), Demand: tasks(9, cpus(4))},
			[]string{"slice 1 maximum of 8 workers of the cluster", "b 4 3 × {CPU: 4}; maximum of 8 workers of the cluster", "kept 6 × {CPU: 4}: the cluster is at its maximum of 8 workers"},
		},
		{
			"workers of groups that there are not count", Input{Groups: a, MaxNodes: 2, Nodes: []Node{node("old", 0, nil, nil)}, Demand: tasks(3, cpus(4))},
			[]string{"a 1 1 × {CPU: 4}; maximum of 2 workers of the cluster", "kept 2 × {CPU: 4}: the cluster is at its maximum of 2 workers"},
		},
		{
			"the head does not", Input{Groups: a, MaxNodes: 1, Nodes: []Node{{Place: Place{Key: "head"}}}, Demand: tasks(1, cpus(4))}, []string{"a 1 1 × {CPU: 4}"},
		},
		{
			"nor do those that leave", Input{Groups: a, MaxNodes: 1, Nodes: []Node{node("old", 0, cpus(4), nil, draining), node("old", 1, cpus(4), nil, going), node("a", 0, cpus(4), nil, going)}, Demand: tasks(1, cpus(4))},
			[]string{"a 1 1 × {CPU: 4}"},
		},
	})
}

func TestGivingBack(t *testing.T) {
	a := func(changes ...func(*Group)) []Group { return []Group{kindOf("a", cpus(4), changes...)} }
	half := func(timeout, age time.Duration) Input {
		return Input{
			Groups: []Group{slice(func(g *Group) { g.IdleTimeout = timeout })}, MayShrink: true,
			Nodes: []Node{node("slice", 0, nil, nil, onHost(0), idle(time.Hour))}, Pods: []Pod{coming("slice", 0, 1, waits(age))},
		}
	}
	pods := []Pod{coming("a", 0, 0, waits(11*time.Second)), coming("a", 1, 0, waits(12*time.Second)), coming("a", 2, 0, waits(9*time.Second)), coming("a", 3, 0)}
	checkRules(t, []example{
		{"what waits for a machine and is not needed", Input{Groups: a(), Pods: pods}, []string{"a 2 not needed", "release a-0.0 a-1.0"}},
		{
			"after ten seconds", Input{Groups: a(), Pods: []Pod{coming("a", 0, 0, waits(10*time.Second)), coming("a", 1, 0, waits(10*time.Second-1))}},
			[]string{"a 1 not needed", "release a-0.0"},
		},
		{
			"the last ones, where not all may go", Input{Groups: a(between(1, 2)), Pods: []Pod{coming("a", 0, 0, waits(time.Minute)), coming("a", 1, 0, waits(time.Minute)), coming("a", 2, 0, waits(time.Minute))}},
			[]string{"a 1 minimum of 1; not needed; maximum of 2", "release a-1.0 a-2.0"},
		},
		{"those that start are used first", Input{Groups: a(), Pods: pods, Demand: tasks(2, cpus(4))}, []string{"a 3 2 × {CPU: 4}; not needed", "release a-0.0"}},
		{"not below the minimum", Input{Groups: a(between(4, 9)), Pods: pods}, []string{"a 4 minimum of 4"}},
		{"what the floor needs is needed", Input{Groups: a(), Pods: pods, Floor: tasks(4, cpus(4))}, []string{"a 4 request_resources"}},
		{"all that wait, where there is no capacity", Input{Groups: a(passedOver), Pods: pods, Demand: tasks(2, cpus(4))}, []string{"a 1 1 × {CPU: 4}; no capacity", "release a-0.0 a-1.0 a-2.0", "kept 1 × {CPU: 4}: group a gets no capacity"}},
		{
			"late ones, once nothing needs them", Input{Groups: a(), Pods: []Pod{coming("a", 0, 0, late, aged), coming("a", 1, 0, late)}},
			[]string{"a 1 not needed", "release a-0.0"},
		},
		{
			"late ones before others", Input{Groups: a(), Pods: []Pod{coming("a", 0, 0, late, aged), coming("a", 1, 0, waits(time.Minute))}, Demand: tasks(1, cpus(4))},
			[]string{"a 1 1 × {CPU: 4}; not needed", "release a-0.0"},
		},
		{
			"a replica that is half there goes when it rests", Input{
				Groups: []Group{slice()}, MayShrink: true, Nodes: []Node{node("slice", 0, nil, nil, onHost(0), idle(time.Hour))},
				Pods: []Pod{coming("slice", 0, 1, waits(time.Hour)), coming("slice", 0, 2, waits(time.Hour)), coming("slice", 0, 3, waits(time.Hour))},
			},
			[]string{"slice 0 idle", "drain slice-0.0", "release slice-0.1 slice-0.2 slice-0.3"},
		},
		{"when its pods wait for as long as it is idle", half(time.Minute, time.Minute), []string{"slice 0 idle", "drain slice-0.0", "release slice-0.1"}},
		{"not before that", half(time.Minute, time.Minute-1), []string{"slice 1"}},
		{"and ten seconds at least", half(time.Second, 10*time.Second), []string{"slice 0 idle", "drain slice-0.0", "release slice-0.1"}},
		{"even if they are idle for less", half(time.Second, 10*time.Second-1), []string{"slice 1"}},
		{
			"the youngest of its pods counts", func() Input {
				in := half(time.Minute, time.Hour)
				in.Pods = append(in.Pods, coming("slice", 0, 2, waits(time.Second)))
				return in
			}(), []string{"slice 1"},
		},
	})
}

func TestFloor(t *testing.T) {
	a := func(changes ...func(*Group)) []Group { return []Group{kindOf("a", cpus(4), changes...)} }
	busy := []Node{node("a", 0, cpus(0), cpus(4))}
	checkRules(t, []example{
		{"is against totals", Input{Groups: a(), Nodes: busy, Floor: tasks(4, cpus(1))}, []string{"a 1"}},
		{"what is missing is made", Input{Groups: a(), Nodes: busy, Floor: tasks(5, cpus(1))}, []string{"a 2 request_resources"}},
		{"and is there for demand, too", Input{Groups: a(), Nodes: busy, Floor: tasks(5, cpus(1)), Demand: tasks(4, cpus(1))}, []string{"a 2 request_resources; 4 × {CPU: 1}"}},
		{"up to the maximum", Input{Groups: a(between(0, 1)), Nodes: busy, Floor: tasks(5, cpus(1))}, []string{"a 1 maximum of 1", "kept 1 × {CPU: 1}: request_resources: group a is at its maximum of 1"}},
		{
			"it counts for the cluster's maximum", Input{
				Groups: append(a(), kindOf("b", cpus(4), labelled("zone", "b"))), MaxNodes: 2, Floor: tasks(2, cpus(4), Selector{{Label: "zone", Not: true, Values: []string{"b"}}}),
				Demand: tasks(1, cpus(1), in("zone", "b")),
			},
			[]string{"a 2 request_resources", "b 0 maximum of 2 workers of the cluster", "kept 1 × {CPU: 1}: the cluster is at its maximum of 2 workers"},
		},
		{"of what can be", Input{Groups: a(), Floor: tasks(5, cpus(5))}, []string{"a 0", "never floor 5 × {CPU: 5}"}},
	})
}

func TestPace(t *testing.T) {
	a := func(changes ...func(*Group)) []Group {
		return []Group{kindOf("a", cpus(1), append([]func(*Group){between(0, 1000)}, changes...)...)}
	}
	want := tasks(500, cpus(1))
	joined := []Node{node("a", 0, nil, cpus(1)), node("a", 1, nil, cpus(1)), node("a", 2, nil, cpus(1))}
	var many []Node
	for i := range 121 {
		many = append(many, node("a", i, nil, cpus(1)))
	}
	checkRules(t, []example{
		{"a hundred", Input{Groups: a(), Demand: want}, []string{"a 100 500 × {CPU: 1}; at most 100 on their way"}},
		{"those on their way among them", Input{Groups: a(), Demand: want, Pods: []Pod{coming("a", 0, 0)}}, []string{"a 100 500 × {CPU: 1}; at most 100 on their way"}},
		{"no limit", Input{Groups: a(), Demand: want, Pace: Aggressive}, []string{"a 500 500 × {CPU: 1}"}},
		{"one to begin with", Input{Groups: a(), Demand: want, Pace: Conservative}, []string{"a 1 500 × {CPU: 1}; at most 1 on their way"}},
		{"as many as have joined", Input{Groups: a(), Demand: want, Pace: Conservative, Nodes: joined}, []string{"a 6 500 × {CPU: 1}; at most 3 on their way"}},
		{
			"late ones hold up nobody", Input{Groups: a(), Demand: want, Pace: Conservative, Nodes: joined, Pods: []Pod{coming("a", 8, 0, late), coming("a", 9, 0, late)}},
			[]string{"a 8 500 × {CPU: 1}; at most 3 on their way"},
		},
		{"as many as have joined, if these are more than a hundred", Input{Groups: a(), Demand: want, Nodes: many}, []string{"a 242 500 × {CPU: 1}; at most 121 on their way"}},
		{"workers of groups that there are not have joined, too", Input{Groups: a(), Demand: want, Pace: Conservative, Nodes: []Node{node("old", 0, nil, nil), node("old", 1, nil, nil)}}, []string{"a 2 500 × {CPU: 1}; at most 2 on their way"}},
		{
			"what is on its way leaves less", Input{Groups: a(), Demand: want, Pace: Conservative, Nodes: joined, Pods: []Pod{coming("a", 8, 0), coming("a", 9, 0)}},
			[]string{"a 6 500 × {CPU: 1}; at most 3 on their way"},
		},
		{
			"what the minimum asks for, too", Input{Groups: []Group{slice(between(1, 9)), kindOf("a", cpus(9))}, Pace: Conservative, Nodes: joined, Demand: tasks(7, cpus(9))},
			[]string{"slice 1 minimum of 1", "a 3 7 × {CPU: 9}; at most 3 on their way"},
		},
		{
			"what was asked for first comes first", Input{
				Groups: []Group{kindOf("a", cpus(4), labelled("zone", "a")), kindOf("b", cpus(4), labelled("zone", "b"))}, Pace: Conservative,
				Nodes:  []Node{node("old", 0, nil, nil), node("old", 1, nil, nil), node("old", 2, nil, nil)},
				Demand: append(tasks(2, cpus(4), in("zone", "b")), tasks(2, cpus(3), in("zone", "a"))...),
			},
			[]string{"a 1 2 × {CPU: 3}; at most 3 on their way", "b 2 2 × {CPU: 4}"},
		},
		{
			"and again what was asked for after that", Input{
				Groups: []Group{kindOf("a", cpus(4), labelled("zone", "a")), kindOf("b", cpus(4), labelled("zone", "b"))}, Pace: Conservative,
				Nodes: []Node{node("old", 0, nil, nil), node("old", 1, nil, nil), node("old", 2, nil, nil)}, Pods: []Pod{coming("a", 0, 0)},
				Gangs:  []Gang{{Name: "p", Bundles: tasks(2, cpus(4), in("zone", "a"))}},
				Demand: append(tasks(2, cpus(4), in("zone", "b")), tasks(2, cpus(3), in("zone", "a"))...),
			},
			[]string{"a 2 2 × {CPU: 4}, 2 × {CPU: 3}; at most 3 on their way", "b 1 2 × {CPU: 4}; at most 3 on their way"},
		},
		{"all that the minimum asks for", Input{Groups: a(between(7, 1000)), Pace: Conservative}, []string{"a 7 minimum of 7"}},
		{
			"a gang comes bit by bit when the pace is less than it is", Input{Groups: a(), Pace: Conservative, Nodes: joined, Gangs: []Gang{spread("p", 5, cpus(1))}},
			[]string{"a 6 5 × {CPU: 1}; at most 3 on their way"},
		},
	})
}

func TestPace_CountsTheHostsOfReplicas(t *testing.T) {
	checkRules(t, []example{
		{
			"a replica is never parted",
			Input{Groups: []Group{slice()}, Demand: tasks(8, Resources{"TPU": 4}), Pace: Conservative},
			[]string{"slice 1 8 × {TPU: 4}; at most 1 on their way"},
		},
		{
			"a replica takes the place of all its hosts", Input{
				Groups: []Group{slice(), kindOf("a", cpus(9))}, Pace: Conservative,
				Nodes: []Node{
					node("old", 0, nil, nil), node("old", 1, nil, nil), node("old", 2, nil, nil), node("old", 3, nil, nil),
				},
				Demand: append(tasks(4, Resources{"TPU": 4}), tasks(3, cpus(9))...),
			},
			[]string{"slice 1 4 × {TPU: 4}", "a 0 3 × {CPU: 9}; at most 4 on their way"},
		},
	})
}
