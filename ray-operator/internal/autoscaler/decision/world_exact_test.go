package decision

import (
	"fmt"
	"testing"
	"time"
)

func TestReplica_CountsItsPods(t *testing.T) {
	nodes := func(idle ...time.Duration) []*host {
		var all []*host
		for _, of := range idle {
			all = append(all, &host{node: &Node{Idle: of}})
		}
		return all
	}
	pods := func(ages ...time.Duration) []*host {
		var all []*host
		for _, of := range ages {
			all = append(all, &host{pod: &Pod{Age: of}})
		}
		return all
	}
	other := func(n Node, p Pod) []*host { return []*host{{node: &n}, {pod: &p}} }
	for _, c := range []struct {
		name  string
		hosts int64
		of    []*host
		want  replica
	}{
		{"idle as long as the first", 2, nodes(2, 3), replica{nodes: 2, idle: 2}},
		{"idle as long as the second", 2, nodes(3, 2), replica{nodes: 2, idle: 2}},
		{"idle for less than nothing is busy", 1, nodes(-5), replica{nodes: 1}},
		{"as old as the first", 2, pods(2, 3), replica{pods: 2, age: 2}},
		{"as old as the second", 2, pods(3, 2), replica{pods: 2, age: 2}},
		{"late ones", 2, other(Node{}, Pod{Late: true}), replica{nodes: 1, pods: 1, late: 1}},
		{"replaced ones", 2, other(Node{}, Pod{Replace: true}), replica{nodes: 1, pods: 1, replace: true}},
		{"waiting ones", 2, other(Node{}, Pod{Waiting: true}), replica{nodes: 1, pods: 1, waiting: 1}},
		{"a draining node takes it along", 2, other(Node{Draining: true}, Pod{}), replica{nodes: 1, pods: 1, going: true}},
		{"so does one that goes", 2, other(Node{Going: true}, Pod{}), replica{nodes: 1, pods: 1, going: true}},
		{"so does a pod", 2, other(Node{}, Pod{Going: true}), replica{nodes: 1, pods: 1, going: true}},
		{"two of three are lacking", 3, nodes(0), replica{nodes: 1, lacking: 2}},
		{"more than there must be lack nothing", 1, nodes(0, 0), replica{nodes: 2}},
		{"as many as may lack", 4097, nodes(0), replica{nodes: 1, lacking: 4096}},
		{"one more does not count", 4098, nodes(0), replica{nodes: 1, lacking: 4096}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := replica{hosts: c.of}
			r.count(c.hosts)
			r.hosts = nil
			checkExact(t, c.want, r)
		})
	}
}

// What goes stays so, whatever comes after it.
func TestReplica_GoesWithAnyOfItsPods(t *testing.T) {
	leaving, staying := &host{node: &Node{Going: true}}, &host{node: &Node{}, host: 1}
	podLeaving, podStaying := &host{pod: &Pod{Going: true}, host: 2}, &host{pod: &Pod{}, host: 3}
	for _, c := range [][]*host{
		{leaving, staying}, {leaving, podStaying}, {podLeaving, podStaying}, {staying, podLeaving},
	} {
		r := replica{hosts: c}
		if r.count(2); !r.going {
			t.Errorf("%+v and %+v stay", c[0], c[1])
		}
	}
}

func TestReplica_OrdersItsPodsByHostThenKey(t *testing.T) {
	r := replica{hosts: []*host{
		{host: 1, key: "a", node: &Node{}}, {host: 0, key: "c", node: &Node{}}, {host: 0, key: "b", node: &Node{}},
	}}
	r.count(2)
	var got []string
	for _, h := range r.hosts {
		got = append(got, h.key)
	}
	checkExact(t, []string{"b", "c", "a"}, got)
}

func TestWorld_BoundsGroups(t *testing.T) {
	for _, c := range []struct {
		name               string
		of                 Group
		hosts, least, most int64
	}{
		{"as they are", Group{Min: 2, Max: 3, Hosts: 4}, 4, 2, 3},
		{"one host at least", Group{Max: 3}, 1, 0, 3},
		{"no maximum below nothing", Group{Min: -1, Max: -1, Hosts: 1}, 1, 0, 0},
		{"no minimum below nothing", Group{Min: -1, Max: 3, Hosts: 1}, 1, 0, 3},
		{"no minimum above the maximum", Group{Min: 4, Max: 3, Hosts: 1}, 1, 3, 3},
		{"nothing at all", Group{}, 1, 0, 0},
		{"nothing where it is closed", Group{Min: 2, Max: 3, Hosts: 2, Closed: true}, 2, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newWorld(&Input{Groups: []Group{c.of}}).groups[0]
			checkExact(t, []int64{c.hosts, c.least, c.most}, []int64{g.hosts, g.least, g.most})
		})
	}
}

// Sizes are shares of what the largest group has, or numbers where no group has any.
func TestWorld_MeasuresByTheLargestGroup(t *testing.T) {
	w := newWorld(&Input{
		Groups: []Group{kindOf("b", cpus(16)), kindOf("a", Resources{"CPU": 4, "memory": 8, "GPU": 0})},
		Demand: append(tasks(1, Resources{"CPU": 4, "memory": 1}), tasks(1, Resources{"CPU": 1, "x": 3})...),
		Gangs:  []Gang{{Bundles: append(tasks(2, cpus(4)), tasks(3, cpus(8))...)}},
		Floor:  append(tasks(1, cpus(4)), tasks(1, cpus(8))...),
	})
	checkExact(t, map[kind]float64{0: 160_000, 1: 80_000}, w.scale)
	checkExact(t, []int{1, 0}, w.order)
	var got []string
	for _, g := range w.groups {
		got = append(got, fmt.Sprintf("%s, the %dth: %g, %t", g.Name, g.index, g.size, g.accelerated))
	}
	for _, one := range append(append(w.demand, w.floor...), w.gangs[0].units...) {
		got = append(got, fmt.Sprintf("%s: %g, on groups %d", one.shape, one.size, one.holds))
	}
	checkExact(t, []string{
		"a, the 1th: 1.25, false", "b, the 0th: 1, false",
		"{CPU: 1, x: 3}: 3, on groups [-1 -1]", "{CPU: 4, memory: 1}: 0.25, on groups [0 -1]",
		"{CPU: 8}: 0.5, on groups [-1 0]", "{CPU: 4}: 0.25, on groups [0 0]",
		"{CPU: 8}: 0.5, on groups [-1 0]", "{CPU: 4}: 0.25, on groups [0 0]",
	}, got)
	if got := w.gangs[0].size; got != 2 {
		t.Errorf("three of a half and two of a quarter are %g, not 2", got)
	}
	if got := w.bulk(vector{{0, 40_000}, {2, 5_000}}); got != 0.75 {
		t.Errorf("a quarter of the largest and half of what there is none of are %g, not 0.75", got)
	}
}

func TestWorld_AddsTheRanksOfRules(t *testing.T) {
	w := newWorld(&Input{})
	second := w.labels.learn([]Selector{in("zone", "x"), in("zone", "a")})
	third := w.labels.learn([]Selector{in("disk", "x"), in("disk", "y"), in("disk", "a")})
	never := w.labels.learn([]Selector{in("zone", "x")})
	on := w.labels.know(map[string]string{"zone": "a", "disk": "a"})
	for _, c := range []struct {
		rules []rule
		want  int
	}{
		{nil, 0}, {[]rule{everyNode}, 0}, {[]rule{second}, 1}, {[]rule{second, third}, 3}, {[]rule{second, never}, nowhere},
	} {
		if got := w.matches(c.rules, on); got != c.want {
			t.Errorf("rules %d have rank %d, not %d", c.rules, got, c.want)
		}
	}
}

// The pods of a replica that is half there count, late or not, unless they have no capacity.
func TestWorld_ListsHosts(t *testing.T) {
	at := func(key, group string, replica, number int) Place {
		return Place{Key: key, Group: group, Replica: replica, Host: number}
	}
	w := newWorld(&Input{
		Groups: []Group{kindOf("g", cpus(4), ofHosts(2)), kindOf("h", cpus(4), ofHosts(2), passedOver)},
		Nodes: []Node{
			{Place: Place{Key: "x"}}, {Place: at("d", "g", 0, 0)}, {Place: at("b", "g", 1, 0)}, {Place: at("m", "g", 3, 0)},
			{Place: at("k", "h", 0, 0)}, {Place: at("i", "h", 1, 0)},
		},
		Pods: []Pod{
			{Place: at("c", "g", 1, 1)}, {Place: at("e", "g", 2, 0)}, {Place: at("f", "g", 2, 1)},
			{Place: at("n", "g", 3, 1), Late: true}, {Place: at("j", "h", 1, 1), Waiting: true}, {Place: at("l", "h", 0, 1)},
		},
	})
	var got []string
	for _, h := range w.hosts() {
		got = append(got, fmt.Sprintf("%s %t %t", h.key, h.node != nil, h.pod != nil))
	}
	checkExact(t, []string{
		"b true false", "c false true", "d true false", "d false false",
		"i true false", "k true false", "l false true", "m true false", "n false true", "x true false",
	}, got)
}
