package decision

import (
	"testing"
	"time"
)

// What comes after a gang is foreseen as it is: how much of it, where it may go, the hardest first.
func TestLookahead_IsExact(t *testing.T) {
	zone, disk := labelled("zone", "a"), labelled("disk", "y")
	small, large := kindOf("s", cpus(4), zone), kindOf("l", cpus(16), zone)
	zoned := func(gang Gang) Gang {
		gang.Bundles[0].Selectors = []Selector{in("zone", "a")} // which brings it before others
		return gang
	}
	onDisk := pack("q", 12, cpus(1))
	onDisk.Selectors = []Selector{in("disk", "y")}
	checkRules(t, []example{
		{
			"the hardest first", Input{
				Groups: []Group{small, large}, Gangs: []Gang{zoned(pack("p", 4, cpus(1))), pack("q", 3, cpus(3))},
				Demand: tasks(1, cpus(12)),
			},
			[]string{"s 0", "l 2 4 × {CPU: 1}, 3 × {CPU: 3}, 1 × {CPU: 12}"},
		},
		{
			"only where the selectors of its gang allow it", Input{
				Groups: []Group{small, large, kindOf("d", cpus(16), disk)}, Gangs: []Gang{zoned(pack("p", 4, cpus(1))), onDisk},
			},
			[]string{"s 1 4 × {CPU: 1}", "l 0", "d 1 12 × {CPU: 1}"},
		},
		{
			"on nodes that one gang of many alike must not use", Input{
				Groups: []Group{small, large},
				Nodes:  []Node{node("old", 0, cpus(12), nil, with("_PG_p", "")), node("old", 1, cpus(12), nil)},
				Gangs:  []Gang{within("zone", pack("y", 1, cpus(4))), spread("p", 1, cpus(12)), spread("q", 1, cpus(12))},
			},
			[]string{"s 1 1 × {CPU: 4}", "l 0"},
		},
		{
			"not the gang itself", Input{
				Groups: []Group{kindOf("s", cpus(3)), kindOf("l", cpus(4))}, Gangs: []Gang{pack("p", 3, cpus(1))},
			},
			[]string{"s 1 3 × {CPU: 1}", "l 0"},
		},
		{
			"nor less than nothing of one that needs no new node", Input{
				Groups: []Group{small, large}, Nodes: []Node{node("old", 0, cpus(1), nil, with("zone", "a"))},
				Gangs: []Gang{zoned(pack("p", 1, cpus(1))), pack("q", 14, cpus(1))},
			},
			[]string{"s 4 14 × {CPU: 1}", "l 0"},
		},
	})
}

func TestWheres_TriesPlacesInOrder(t *testing.T) {
	two := func(name string, cpu float64) Group { return kindOf(name, cpus(cpu), ofHosts(2)) }
	checkRules(t, []example{
		{
			"racks to grow by their names", Input{
				Groups: []Group{kindOf("a", cpus(4), labelled("rack", "2")), kindOf("b", cpus(4), labelled("rack", "1"))},
				Gangs:  []Gang{within("rack", pack("p", 1, cpus(4)))},
			},
			[]string{"a 0", "b 1 1 × {CPU: 4}"},
		},
		{
			"the smaller replica, though little smaller", Input{
				Groups: []Group{two("a", 10), two("b", 9)}, Gangs: []Gang{within("pod", pack("p", 2, cpus(9)))},
			},
			[]string{"a 0", "b 1 2 × {CPU: 9}"},
		},
		{
			"the rack whose node may go, as before another one's went", Input{
				Groups: []Group{kindOf("a", cpus(8)), kindOf("b", cpus(4))}, MayShrink: true,
				Gangs: []Gang{within("rack", pack("p", 1, cpus(1)))},
				Nodes: []Node{
					node("a", 0, cpus(8), cpus(8), with("rack", "2"), idle(time.Hour)), node("b", 0, cpus(1), cpus(4), with("rack", "1")),
				},
			},
			[]string{"a 1", "b 1"},
		},
	})
}

// TestWheres_TakesTheFirstReplicaThatIsHalfThere: at each of many times, as the order of a map is another one each time.
func TestWheres_TakesTheFirstReplicaThatIsHalfThere(t *testing.T) {
	tpu := Resources{"TPU": 4}
	in := Input{Groups: []Group{slice()}, MayShrink: true, Gangs: []Gang{within("pod", pack("p", 4, tpu))}}
	for replica, pod := range []string{"x", "y"} {
		in.Nodes = append(in.Nodes, node("slice", replica, tpu, tpu, onHost(0), with("pod", pod), idle(time.Hour)))
		for host := 1; host < 4; host++ {
			in.Pods = append(in.Pods, coming("slice", replica, host, waits(time.Hour)))
		}
	}
	for range 16 {
		checkRules(t, []example{{
			"and gives the other one back", in, []string{"slice 1 idle", "drain slice-1.0", "release slice-1.1 slice-1.2 slice-1.3"},
		}})
	}
}
