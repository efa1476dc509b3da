package sidecar

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/decision"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol"
)

var start = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

func id(n byte) headclient.NodeID { return headclient.NodeID{n} }

func node(n byte, pod string, state headclient.NodeState, idle time.Duration) headclient.Node {
	return headclient.Node{ID: id(n), Instance: pod, Type: "cpu", State: state, Idle: idle, Total: map[string]float64{"CPU": 1}}
}

func ordered(uid string, stage protocol.Stage, age time.Duration) protocol.Pod {
	return protocol.Pod{UID: uid, Group: "cpu", Stage: stage, Since: start.Add(-age)}
}

// seen is what a round sees of a calm cluster, at a time after the start.
func seen(after time.Duration, pods []protocol.Pod, nodes ...headclient.Node) Seen {
	for i := range pods {
		pods[i].Replica = i
	}
	return Seen{
		Snapshot: protocol.Snapshot{Head: "head", Groups: []protocol.Group{cpuGroup(9)}, Pods: pods}, Listening: true, Now: start.Add(after),
		Demand: headclient.Demand{Version: 1 + int64(after/time.Millisecond), Session: "s", Nodes: nodes},
	}
}

// TestMatching: pods and nodes meet by the pod's UID.
func TestMatching(t *testing.T) {
	head := headclient.Node{ID: id(99), Instance: "h", Head: true, State: headclient.Running}
	for name, test := range map[string]struct {
		pods  []protocol.Pod
		nodes []headclient.Node
		want  string
	}{
		"a worker":               {[]protocol.Pod{ordered("a", protocol.Ready, 0)}, []headclient.Node{node(1, "a", headclient.Idle, 3*time.Second)}, "node a of cpu idle 3s"},
		"ready and no node":      {[]protocol.Pod{ordered("a", protocol.Ready, 0)}, nil, "pod a"},
		"waiting":                {[]protocol.Pod{ordered("a", protocol.Waiting, time.Minute)}, nil, "pod a waiting 1m0s"},
		"on its way out":         {[]protocol.Pod{ordered("a", protocol.Leaving, 0)}, nil, "pod a going"},
		"a node on its way out":  {[]protocol.Pod{ordered("a", protocol.Leaving, 0)}, []headclient.Node{node(1, "a", headclient.Running, 0)}, "node a of cpu going"},
		"the head":               {nil, []headclient.Node{head}, "node node " + id(99).String() + " of "},
		"one of no pod":          {nil, []headclient.Node{node(1, "else", headclient.Idle, time.Hour)}, "node node " + id(1).String() + " of "},
		"drained by others":      {[]protocol.Pod{ordered("a", protocol.Ready, 0)}, []headclient.Node{node(1, "a", headclient.Draining, 0)}, "node a of cpu draining"},
		"two, one at work":       {[]protocol.Pod{ordered("a", protocol.Ready, 0)}, []headclient.Node{node(1, "a", headclient.Idle, time.Hour), node(2, "a", headclient.Running, 0)}, "node a of cpu"},
		"two that idle":          {[]protocol.Pod{ordered("a", protocol.Ready, 0)}, []headclient.Node{node(1, "a", headclient.Idle, time.Hour), node(2, "a", headclient.Idle, time.Second)}, "node a of cpu"},
		"one that says no pod":   {[]protocol.Pod{ordered("", protocol.Ready, 0)}, []headclient.Node{node(1, "", headclient.Idle, time.Hour)}, "node node " + id(1).String() + " of "},
		"waiting a quarter hour": {[]protocol.Pod{ordered("a", protocol.Waiting, 15*time.Minute)}, nil, "pod a waiting 15m0s"},
		"older than now":         {[]protocol.Pod{ordered("a", protocol.Waiting, -time.Minute)}, nil, "pod a waiting 0s"},
	} {
		m, s := NewMemory(), look(seen(0, test.pods, test.nodes...))
		m.learn(s)
		in := m.input(s)
		var got []string
		for _, n := range in.Nodes {
			text := fmt.Sprintf("node %s of %s", n.Key, n.Group)
			got = append(got, text+flags(map[string]bool{" going": n.Going, " draining": n.Draining, " idle " + n.Idle.String(): n.Idle > 0}))
		}
		for _, p := range in.Pods {
			got = append(got, "pod "+p.Key+flags(map[string]bool{" going": p.Going, " waiting " + p.Age.String(): p.Waiting, " late": p.Late}))
		}
		if text := strings.Join(got, ", "); text != test.want {
			t.Errorf("%s: %q, want %q", name, text, test.want)
		}
	}
}

func flags(set map[string]bool) (text string) {
	for _, name := range []string{" going", " draining", " idle", " waiting", " late"} {
		for flag, on := range set {
			if on && strings.HasPrefix(flag, name) {
				text += flag
			}
		}
	}
	return text
}

// TestLateness: a worker that was a node a moment ago is not late however old it is, and one
// that waits for a machine never is.
func TestLateness(t *testing.T) {
	m := NewMemory()
	pods := func(stage protocol.Stage) []protocol.Pod { return []protocol.Pod{ordered("a", stage, 48*time.Hour)} }
	round := func(s Seen) bool {
		look := look(s)
		m.learn(look)
		in := m.input(look)
		return len(in.Pods) == 1 && in.Pods[0].Late
	}
	if round(seen(0, pods(protocol.Ready), node(1, "a", headclient.Running, 0))) {
		t.Error("a node is no pod")
	}
	if round(seen(time.Minute, pods(protocol.Ready))) {
		t.Error("it was a node a minute ago, and it is late")
	}
	if !round(seen(16*time.Minute, pods(protocol.Ready))) {
		t.Error("it was a node 16 minutes ago, and it is not late")
	}
	if round(seen(17*time.Minute, []protocol.Pod{ordered("b", protocol.Waiting, 48*time.Hour)})) {
		t.Error("it waits for a machine, and it is late")
	}
	if round(seen(31*time.Minute, []protocol.Pod{ordered("b", protocol.Starting, 48*time.Hour)})) {
		t.Error("it has had its machine for less than 15 minutes, and it is late")
	}
	if !round(seen(32*time.Minute, []protocol.Pod{ordered("b", protocol.Starting, 48*time.Hour)})) {
		t.Error("it has had its machine for 15 minutes, and it is not late")
	}
}

// TestGoneByPod: the node of a pod that is gone counts for nothing while Ray has not missed it.
func TestGoneByPod(t *testing.T) {
	m := NewMemory()
	s := look(seen(0, []protocol.Pod{ordered("a", protocol.Ready, 0)}, node(1, "a", headclient.Running, 0)))
	m.learn(s)
	if in := m.input(s); len(in.Nodes) != 1 {
		t.Errorf("%+v", in.Nodes)
	}
	for after := range 3 {
		s = look(seen(time.Duration(after+1)*time.Second, nil, node(1, "a", headclient.Running, 0)))
		m.learn(s)
		if in := m.input(s); len(in.Nodes) != 0 {
			t.Errorf("after %d s %+v", after+1, in.Nodes)
		}
	}
	s = look(seen(time.Hour, nil))
	m.learn(s)
	if len(m.pods) != 0 {
		t.Errorf("it remembers %v", m.pods)
	}
}

// TestSettling: when workers may go again.
func TestSettling(t *testing.T) {
	ready := []protocol.Pod{ordered("a", protocol.Ready, 0), ordered("b", protocol.Ready, 0)}
	both := []headclient.Node{node(1, "a", headclient.Idle, time.Hour), node(2, "b", headclient.Idle, time.Hour)}
	m := NewMemory()
	is := func(what string, want bool, s Seen) {
		t.Helper()
		look := look(s)
		m.learn(look)
		if got := m.input(look).MayShrink; got != want {
			t.Errorf("%s: may shrink %t", what, got)
		}
	}
	is("the first answer, one missing", false, seen(time.Second, ready, both[0]))
	is("both there", true, seen(2*time.Second, ready, both...))
	is("one missing later", true, seen(3*time.Second, ready, both[0]))
	back := seen(4*time.Second, ready, both[0])
	back.Demand.Version = 1
	is("the version fell back", false, back)
	back.Demand.Version, back.Now = 2, start.Add(63*time.Second)
	is("for nearly a minute", false, back)
	back.Demand.Version, back.Now = 3, start.Add(64*time.Second)
	is("for a minute", true, back)
	other := seen(65*time.Second, ready, both[0])
	other.Demand.Session = "t"
	is("another session", false, other)
	other.Demand.Version++
	other.Demand.Nodes = both
	is("all there", true, other)
	m.Failed()
	other.Demand.Version++
	other.Demand.Nodes = both[:1]
	is("after a failure", false, other)
	other.Demand.Version++
	other.Snapshot.Pods = append([]protocol.Pod{}, ready...)
	other.Snapshot.Pods[1].Stage = protocol.Starting
	is("the missing one is not ready", true, other)
	other.Demand.Version++
	other.Listening = false
	is("nobody listens", false, other)
}

// TestSettling_BeginsAgainAfterAFailure: however long the former answers went on.
func TestSettling_BeginsAgainAfterAFailure(t *testing.T) {
	ready := []protocol.Pod{ordered("a", protocol.Ready, 0), ordered("b", protocol.Ready, 0)}
	a, b := node(1, "a", headclient.Idle, time.Hour), node(2, "b", headclient.Idle, time.Hour)
	r := &rounds{Memory: NewMemory()}
	r.see(seen(0, ready, a, b))
	if !r.see(seen(time.Hour, ready, a)).MayShrink {
		t.Error("without a failure, one that is missing later counts")
	}
	r.Failed()
	for after, want := range []bool{false, false, true} {
		if got := r.see(seen(time.Hour+time.Duration(1+30*after)*time.Second, ready, a)).MayShrink; got != want {
			t.Errorf("%d s after the first answer may shrink %t, want %t", 30*after, got, want)
		}
	}
}

// TestCapacityDoubles: each time that a group gets nothing it is passed over for twice as
// long, at most ten minutes, and after a success from the beginning.
func TestCapacityDoubles(t *testing.T) {
	group := protocol.Group{CapacityTimeout: time.Minute}
	var c capacity
	now := start
	var pauses []time.Duration
	for range 6 {
		since := now
		for !c.passed(now) {
			now = now.Add(time.Second)
			c.learn(group, backlog{2, since}, false, now)
		}
		if waited := now.Sub(since); waited != time.Minute {
			t.Errorf("passed over after %s", waited)
		}
		pauses = append(pauses, c.until.Sub(now))
		now = c.until
	}
	if diff := cmp.Diff([]time.Duration{1 * time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 10 * time.Minute, 10 * time.Minute}, pauses); diff != "" {
		t.Error(diff)
	}
	c.learn(group, backlog{}, true, now)
	if c.failures != 0 || c.passed(now) {
		t.Errorf("after a success %+v", c)
	}
	c.learn(group, backlog{1, start}, false, now.Add(59*time.Second))
	if c.passed(now.Add(59 * time.Second)) {
		t.Error("passed over although one joined within the minute")
	}
	group.CapacityTimeout = 0
	c.learn(group, backlog{1, start}, false, now.Add(time.Hour))
	if c.passed(now.Add(time.Hour)) {
		t.Error("passed over without a timeout")
	}
	for _, long := range []time.Duration{time.Hour, 365 * 24 * time.Hour} {
		c = capacity{failures: 62}
		c.learn(protocol.Group{CapacityTimeout: long}, backlog{1, start}, false, start.Add(long))
		if got := c.until.Sub(c.from); got != long {
			t.Errorf("of %s passed over for %s", long, got)
		}
	}
}

// TestInfeasible_Texts: what can never fit, in words.
func TestInfeasible_Texts(t *testing.T) {
	groups := []decision.Group{
		{Name: "cpu", Resources: decision.Resources{"CPU": 4, "memory": 8 << 30}},
		{Name: "gpu", Resources: decision.Resources{"CPU": 2, "GPU": 8}, Labels: map[string]string{"zone": "a"}},
	}
	shape := func(r decision.Resources) decision.Demand { return decision.Demand{Shape: r, Count: 3} }
	zone := []decision.Selector{{{Label: "zone", Values: []string{"b"}}}}
	for want, demand := range map[string]decision.Demand{
		"the largest group has 8 GPU":                                   shape(decision.Resources{"GPU": 16, "CPU": 1}),
		"the largest group has 8GiB memory":                             shape(decision.Resources{"memory": 1 << 40}),
		"no group has TPU":                                              shape(decision.Resources{"TPU": 1}),
		"no group has all of it on one node":                            shape(decision.Resources{"GPU": 1, "CPU": 3}),
		"no group that is large enough has the labels that it asks for": {Shape: decision.Resources{"GPU": 1}, Selectors: zone, Count: 3},
	} {
		in := decision.Input{Groups: groups, Demand: []decision.Demand{demand}}
		got := infeasible(in, decision.Result{Infeasible: decision.Infeasible{Demand: in.Demand}}, nil)
		if len(got) != 1 || got[0].Reason != want || got[0].Count != 3 || got[0].Shape != demand.Shape.String() {
			t.Errorf("%+v, want %s", got, want)
		}
	}
	in := decision.Input{Groups: groups, Gangs: []decision.Gang{
		{Bundles: []decision.Demand{shape(decision.Resources{"GPU": 4})}, Together: true},
		{Bundles: []decision.Demand{shape(decision.Resources{"GPU": 1}), shape(decision.Resources{"TPU": 1})}},
		{Bundles: []decision.Demand{shape(decision.Resources{"GPU": 1})}, Within: "rack"},
		{Bundles: []decision.Demand{shape(decision.Resources{"GPU": 1})}, Within: "rack"},
	}}
	got := infeasible(in, decision.Result{Infeasible: decision.Infeasible{Gangs: []int{0, 1, 2, 3, 77}, Floor: []decision.Demand{shape(decision.Resources{"GPU": 9})}}}, nil)
	want := []protocol.Infeasible{
		{Shape: "placement group of 3 × {GPU: 1}", Count: 2, Reason: "no nodes that groups have can hold all of its bundles at once"},
		{Shape: "placement group of 3 × {GPU: 1} + 3 × {TPU: 1}", Count: 1, Reason: "no group has TPU"},
		{Shape: "placement group of 3 × {GPU: 4} on one node", Count: 1, Reason: "the largest group has 8 GPU"},
		{Shape: "{GPU: 9}", Count: 3, Reason: "the largest group has 8 GPU, which request_resources asks for"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := why(shape(decision.Resources{"CPU": 1}), nil); got != "there are no groups of workers" {
		t.Error(got)
	}
}

// TestGangs: what of a placement group binds the decision.
func TestGangs(t *testing.T) {
	bundle := headclient.Request{
		Shape: map[string]float64{"CPU": 1}, Count: 2, Selectors: []headclient.Selector{{{Label: "zone", Not: true, Values: []string{"a"}}}},
		Constraints: []headclient.Constraint{{Label: "_PG_1", Apart: true}, {Label: "_PG_1"}},
	}
	for name, test := range map[string]struct {
		gang headclient.Gang
		want decision.Gang
	}{
		"strict pack":  {headclient.Gang{Strategy: headclient.StrictPack}, decision.Gang{Together: true}},
		"strict rack":  {headclient.Gang{Locality: headclient.Locality{Label: "rack", Strategy: headclient.StrictPack}}, decision.Gang{Within: "rack"}},
		"rather rack":  {headclient.Gang{Locality: headclient.Locality{Label: "rack", Strategy: headclient.Pack}}, decision.Gang{}},
		"nodes of one": {headclient.Gang{Locality: headclient.Locality{Selector: headclient.Selector{{Label: "a"}}}}, decision.Gang{Selectors: []decision.Selector{{{Label: "a"}}}}},
	} {
		test.gang.Group, test.gang.Bundles = "g", []headclient.Request{bundle}
		test.want.Name, test.want.Bundles = "g", []decision.Demand{{
			Shape: decision.Resources{"CPU": 1}, Count: 2, Apart: []decision.Label{{Name: "_PG_1"}},
			Selectors: []decision.Selector{{{Label: "zone", Not: true, Values: []string{"a"}}}},
		}}
		if diff := cmp.Diff(test.want, gangOf(test.gang), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestKeys: requests that ask for different things are told apart.
func TestKeys(t *testing.T) {
	one := decision.Selector{{Label: "a", Values: []string{"b", "c"}}}
	seen := map[string]int{}
	for i, demand := range []decision.Demand{
		{}, {Shape: decision.Resources{"a": 1}}, {Shape: decision.Resources{"a": 2}}, {Shape: decision.Resources{"a=1 b": 1}}, {Shape: decision.Resources{"a": 1, "b": 1}},
		{Selectors: []decision.Selector{one}}, {Selectors: []decision.Selector{one, one}}, {Selectors: []decision.Selector{{{Label: "a", Values: []string{"b c"}}}}},
		{Selectors: []decision.Selector{{{Label: "a", Not: true, Values: []string{"b", "c"}}}}}, {Selectors: []decision.Selector{append(one, one...)}},
		{Apart: []decision.Label{{Name: "a"}}}, {Apart: []decision.Label{{Name: "a", Value: "b"}}},
	} {
		if other, same := seen[key(demand)]; same {
			t.Errorf("%d and %d are the same: %s", i, other, key(demand))
		}
		seen[key(demand)] = i
	}
}

// TestShapes: what Ray's libraries are told that there could be.
func TestShapes(t *testing.T) {
	resources := map[string]float64{"CPU": 4}
	got := shapes(protocol.Snapshot{MaxNodes: 10, Groups: []protocol.Group{
		{Name: "a", Min: 1, Max: 3, Hosts: 2, Resources: resources}, {Name: "b", Max: 90, Hosts: 1, Resources: resources}, {Name: "c", Max: 5, Suspended: true},
	}})
	want := []headclient.Shape{{Name: "a", Resources: resources, Min: 2, Max: 6}, {Name: "b", Resources: resources, Max: 10}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	changed := maps.Clone(resources)
	changed["CPU"] = 5
	if other := want[0]; !equalShapes(want[0], got[0]) || equalShapes(want[0], headclient.Shape{Name: other.Name, Min: 2, Max: 6, Resources: changed}) {
		t.Error("shapes are not compared")
	}
}
