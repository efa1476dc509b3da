package decision

import (
	"testing"
	"time"
)

func TestBound_TakesFromEachGroupExactly(t *testing.T) {
	busy := func(group string, replica int) Node { return node(group, replica, nil, cpus(4)) }
	a, b := kindOf("a", cpus(4), between(1, 9)), kindOf("b", cpus(4), between(1, 9))
	checkRules(t, []example{
		{
			"below a minimum down to nothing",
			Input{Groups: []Group{a, b}, MaxNodes: 1, Nodes: []Node{busy("a", 0), busy("b", 0)}},
			[]string{"a 1 minimum of 1", "b 0 maximum of 1 workers of the cluster"},
		},
		{
			"but not further", Input{
				Groups: []Group{kindOf("a", cpus(4), between(2, 9)), b}, MaxNodes: 1,
				Nodes: []Node{busy("a", 0), busy("a", 1), busy("b", 0)},
			},
			[]string{"a 1 maximum of 1 workers of the cluster", "b 0 maximum of 1 workers of the cluster"},
		},
		{
			"pods on their way before busy nodes of less priority", Input{
				Groups: []Group{kindOf("a", cpus(4), priority(1)), kindOf("b", cpus(4))}, MaxNodes: 1,
				Nodes: []Node{busy("b", 0)}, Pods: []Pod{coming("a", 0, 0)},
			},
			[]string{"a 0 maximum of 1 workers of the cluster", "b 1"},
		},
		{
			"no room where others alone are too many", Input{
				Groups: []Group{kindOf("a", cpus(4))}, MaxNodes: 1,
				Nodes: []Node{busy("old", 0), busy("old", 1)}, Demand: tasks(1, cpus(1)),
			},
			[]string{
				"a 0 maximum of 1 workers of the cluster", "kept 1 × {CPU: 1}: the cluster is at its maximum of 1 workers",
			},
		},
	})
}

func TestRested_NeedsAnyTimeAtAll(t *testing.T) {
	a := kindOf("a", cpus(4), func(g *Group) { g.IdleTimeout = 0 })
	checkRules(t, []example{{
		"idle for a nanosecond where none is asked for",
		Input{Groups: []Group{a}, Nodes: []Node{node("a", 0, cpus(4), cpus(4), idle(time.Nanosecond))}, MayShrink: true},
		[]string{"a 0 idle", "drain a-0"},
	}})
}

// Of nodes that are alike the first by name is used, whatever the numbers of their replicas.
func TestHosts_AreInTheOrderOfTheirKeys(t *testing.T) {
	named := func(key string, replica int) Node {
		n := node("a", replica, cpus(4), cpus(4), idle(time.Hour))
		n.Key = key
		return n
	}
	checkRules(t, []example{{
		"the last by name goes",
		Input{
			Groups: []Group{kindOf("a", cpus(4))}, Nodes: []Node{named("y", 0), named("x", 1)},
			Demand: tasks(1, cpus(1)), MayShrink: true,
		},
		[]string{"a 1 idle", "drain y"},
	}})
}
