package decision

import "testing"

// From nine tenths on a node is full, and of groups whose nodes would be full the larger grows.
func TestGrow_FullnessEndsAtNineTenths(t *testing.T) {
	of := func(a, b float64, n int, each float64) Input {
		return Input{Groups: []Group{kindOf("a", cpus(a)), kindOf("b", cpus(b))}, Demand: tasks(n, cpus(each))}
	}
	checkRules(t, []example{
		{"the larger of two at nine tenths", of(10, 20, 2, 9), []string{"a 0", "b 1 2 × {CPU: 9}"}},
		{"the larger, named first", of(20, 10, 2, 9), []string{"a 1 2 × {CPU: 9}", "b 0"}},
		{"the larger, though the smaller is fuller", of(4, 16, 15, 1), []string{"a 0", "b 1 15 × {CPU: 1}"}},
		{"the same, named first", of(16, 4, 15, 1), []string{"a 1 15 × {CPU: 1}", "b 0"}},
	})
}

func TestFilling_CountsWhatANodeWouldHold(t *testing.T) {
	apart := func(n float64) Demand { return Demand{Shape: cpus(n), Count: 1, Apart: []Label{{Name: "x"}}} }
	checkRules(t, []example{
		{
			"not two that are kept apart", Input{
				Groups: []Group{kindOf("s", cpus(2)), kindOf("l", cpus(3))}, Demand: []Demand{apart(2), apart(1)},
			},
			[]string{"s 2 1 × {CPU: 2}, 1 × {CPU: 1}", "l 0"},
		},
		{
			"nothing of a node is no less than nothing of another", Input{
				Groups: []Group{kindOf("a", Resources{"x": 1}), kindOf("b", cpus(4))},
				Demand: append(tasks(1, Resources{}), tasks(1, cpus(5))...),
			},
			[]string{"a 1 1 × {}", "b 0", "never 1 × {CPU: 5}"},
		},
	})
}

func TestFilling_LooksAt128Kinds(t *testing.T) {
	in := Input{Groups: []Group{kindOf("a", cpus(100_000))}}
	for i := range 130 {
		in.Demand = append(in.Demand, tasks(1, cpus(float64(1+i)))...)
	}
	p := planFor(&in)
	if f := p.main.filling(0, wantings(p.world.demand, nil, everyNode), nil); len(f.parts) != 128 {
		t.Errorf("of 130 kinds of requests a node would get %d", len(f.parts))
	}
}

func TestOpen_CountsNewPodsOnce(t *testing.T) {
	shapes := append(append(tasks(1, cpus(4)), tasks(1, cpus(3))...), tasks(1, cpus(2))...)
	checkRules(t, []example{{
		"three nodes that are opened one after the other",
		Input{Groups: []Group{kindOf("a", cpus(4))}, MaxNodes: 3, Demand: shapes},
		[]string{"a 3 1 × {CPU: 4}, 1 × {CPU: 3}, 1 × {CPU: 2}"},
	}})
}

func TestOpen_KnowsHowLargeNewNodesAre(t *testing.T) {
	large, small := Resources{"CPU": 8, "x": 1}, Resources{"CPU": 4, "y": 1}
	checkPlaces(t, []putting{{
		"the smaller of the hosts that have nothing yet",
		Input{
			Groups: []Group{kindOf("large", large, ofHosts(2)), kindOf("small", small, ofHosts(2))},
			Demand: append(append(tasks(1, large), tasks(1, small)...), tasks(1, cpus(1))...),
		},
		[]string{
			"large/new0/0: 1 × {CPU: 8, x: 1}", "small/new0/0: 1 × {CPU: 4, y: 1}", "small/new0/1: 1 × {CPU: 1}",
		},
	}})
}
