package decision

import (
	"testing"
	"time"
)

// TestLatePods: a pod that does not start asks for no second one, whether it is replaced or not.
func TestLatePods(t *testing.T) {
	a := func(changes ...func(*Group)) []Group { return []Group{kindOf("a", cpus(4), changes...)} }
	want := tasks(2, cpus(4))
	two := []Pod{coming("a", 0, 0, late), coming("a", 1, 0, late)}
	checkRules(t, []example{
		{"both stand for the two tasks", Input{Groups: a(), Pods: two, Demand: want}, []string{"a 2 2 × {CPU: 4}"}},
		{"also with a pace", Input{Groups: a(), Pods: two, Demand: want, Pace: Conservative}, []string{"a 2 2 × {CPU: 4}"}},
		{
			"one is replaced, one for one", Input{Groups: a(), Pods: []Pod{coming("a", 0, 0, replaced), two[1]}, Demand: want},
			[]string{"a 2 2 × {CPU: 4}; 1 too late to start replaced", "release a-0.0"},
		},
		{
			"one of the minimum, too", Input{Groups: a(between(2, 2)), Pods: []Pod{coming("a", 0, 0, replaced), two[1]}},
			[]string{"a 2 minimum of 2; 1 too late to start replaced", "release a-0.0"},
		},
		{
			"not where nothing needs it", Input{Groups: a(), Pods: []Pod{coming("a", 0, 0, replaced)}},
			[]string{"a 0 1 too late to start replaced", "release a-0.0"},
		},
		{
			"hosts that idle beside a late one go with it", Input{
				Groups: []Group{kindOf("a", cpus(4), ofHosts(2))}, MayShrink: true, Demand: tasks(2, cpus(4)),
				Nodes: []Node{node("a", 0, cpus(4), cpus(4), onHost(0), idle(time.Hour))}, Pods: []Pod{coming("a", 0, 1, replaced, aged)},
			},
			[]string{"a 1 2 × {CPU: 4}; 1 too late to start replaced", "drain a-0.0", "release a-0.1"},
		},
		{
			"hosts at work beside a late one stay", Input{
				Groups: []Group{kindOf("a", cpus(4), ofHosts(2))}, MayShrink: true,
				Nodes: []Node{node("a", 0, nil, cpus(4), onHost(0))}, Pods: []Pod{coming("a", 0, 1, replaced, aged)},
			},
			[]string{"a 1"},
		},
		{
			"pods that start count where others of the group get no capacity", Input{
				Groups: []Group{kindOf("a", cpus(4), passedOver), kindOf("b", cpus(4))}, Demand: want, Pods: []Pod{coming("a", 0, 0)},
			},
			[]string{"a 1 1 × {CPU: 4}", "b 1 1 × {CPU: 4}"},
		},
	})
}

// TestFailingGroup: a group whose newest pods all fail alike grows only for its minimum and for what is replaced.
func TestFailingGroup(t *testing.T) {
	a := func(changes ...func(*Group)) []Group {
		return []Group{kindOf("a", cpus(4), append(changes, failing)...)}
	}
	two := []Pod{coming("a", 0, 0, late), coming("a", 1, 0, late)}
	three := append([]Pod{coming("a", 2, 0)}, two...)
	checkRules(t, []example{
		{
			"a group whose newest pods fail does not grow", Input{Groups: a(), Pods: three, Demand: tasks(9, cpus(4))},
			[]string{
				"a 3 3 × {CPU: 4}; its newest workers fail: ImageNotFound",
				"kept 6 × {CPU: 4}: group a does not grow while its newest workers fail: ImageNotFound",
			},
		},
		{
			"except for its minimum", Input{Groups: a(between(4, 9)), Pods: three, Demand: tasks(9, cpus(4))},
			[]string{
				"a 4 minimum of 4; 4 × {CPU: 4}; its newest workers fail: ImageNotFound",
				"kept 5 × {CPU: 4}: group a does not grow while its newest workers fail: ImageNotFound",
			},
		},
		{
			"and for what is replaced", Input{Groups: a(), Pods: []Pod{coming("a", 0, 0, replaced), two[1]}, Demand: tasks(9, cpus(4))},
			[]string{
				"a 2 2 × {CPU: 4}; 1 too late to start replaced; its newest workers fail: ImageNotFound", "release a-0.0",
				"kept 7 × {CPU: 4}: group a does not grow while its newest workers fail: ImageNotFound",
			},
		},
		{
			"once for what is both", Input{Groups: a(between(2, 9)), Pods: []Pod{coming("a", 0, 0, replaced), two[1]}, Demand: tasks(9, cpus(4))},
			[]string{
				"a 2 minimum of 2; 2 × {CPU: 4}; 1 too late to start replaced; its newest workers fail: ImageNotFound", "release a-0.0",
				"kept 7 × {CPU: 4}: group a does not grow while its newest workers fail: ImageNotFound",
			},
		},
		{
			"another group serves what it cannot", Input{Groups: append(a(), kindOf("b", cpus(4))), Pods: three, Demand: tasks(5, cpus(4))},
			[]string{"a 3 3 × {CPU: 4}; its newest workers fail: ImageNotFound", "b 2 2 × {CPU: 4}"},
		},
	})
}
