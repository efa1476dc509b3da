package decision

import (
	gocmp "cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// putting is an input, and what lies where then: each node, there or new, with what it gets.
type putting struct {
	name string
	in   Input
	want []string
}

func checkPlaces(t *testing.T, cases []putting) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := planFor(&c.in)
			on := map[string][]string{}
			for _, l := range traced(p, p.main) {
				on[l.box] = append(on[l.box], fmt.Sprintf("%d × %s", l.count, l.demand.Shape))
			}
			var got []string
			for _, box := range slices.Sorted(maps.Keys(on)) {
				got = append(got, box+": "+strings.Join(on[box], ", "))
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if wrong := judged(p, p.result()); len(wrong) > 0 {
				t.Error(wrong)
			}
		})
	}
}

// Among nodes: those that are there, those on their way, new ones; the earlier selector; without
// accelerators for work without; those that stay anyway; the tightest; the least idle.
func TestChoiceOfNode(t *testing.T) {
	a := []Group{kindOf("a", cpus(4))}
	task := tasks(1, cpus(1))
	checkPlaces(t, []putting{
		{"there before on its way", Input{Groups: a, Nodes: []Node{node("a", 1, cpus(4), cpus(4))}, Pods: []Pod{coming("a", 0, 0)}, Demand: tasks(1, cpus(3))}, []string{"a-1: 1 × {CPU: 3}"}},
		{"on its way before new", Input{Groups: []Group{kindOf("a", cpus(3)), kindOf("b", cpus(4))}, Pods: []Pod{coming("b", 0, 0)}, Demand: tasks(1, cpus(3))}, []string{"b/0/0: 1 × {CPU: 3}"}},
		{
			"hosts of a replica that is half there before whole ones on their way",
			Input{
				Groups: []Group{slice()}, Nodes: []Node{node("slice", 1, nil, nil, onHost(0))},
				Pods:   []Pod{coming("slice", 0, 0), coming("slice", 0, 1), coming("slice", 0, 2), coming("slice", 0, 3), coming("slice", 1, 2)},
				Demand: tasks(3, Resources{"TPU": 4}),
			},
			[]string{"slice/1/1: 1 × {TPU: 4}", "slice/1/2: 1 × {TPU: 4}", "slice/1/3: 1 × {TPU: 4}"},
		},
		{
			"its hosts there before those on their way",
			Input{
				Groups: []Group{slice()}, Nodes: []Node{node("slice", 0, Resources{"TPU": 4}, Resources{"TPU": 4}, onHost(3))},
				Pods: []Pod{coming("slice", 0, 0), coming("slice", 0, 1), coming("slice", 0, 2)}, Demand: tasks(1, Resources{"TPU": 1}),
			},
			[]string{"slice-0.3: 1 × {TPU: 1}"},
		},
		{"the tightest", Input{Groups: a, Nodes: []Node{node("a", 0, cpus(3), cpus(4)), node("a", 1, cpus(2), cpus(4)), node("a", 2, cpus(4), cpus(4))}, Demand: task}, []string{"a-1: 1 × {CPU: 1}"}},
		{
			"in all that is asked for", Input{
				Groups: []Group{kindOf("a", Resources{"CPU": 4, "x": 4})}, Demand: append(tasks(1, Resources{"CPU": 1}), tasks(1, Resources{"CPU": 9, "x": 1})...),
				Nodes: []Node{node("a", 0, Resources{"CPU": 2, "x": 4}, nil), node("a", 1, Resources{"CPU": 3, "x": 1}, nil)},
			},
			[]string{"a-1: 1 × {CPU: 1}"},
		},
		{"the least idle of those alike", Input{Groups: a, MayShrink: true, Nodes: []Node{node("a", 0, cpus(4), cpus(4), idle(30*time.Second)), node("a", 1, cpus(4), cpus(4), idle(10*time.Second)), node("a", 2, cpus(4), cpus(4), idle(20*time.Second))}, Demand: task}, []string{"a-1: 1 × {CPU: 1}"}},
	})
}

// Accelerators are kept for work that asks for them, but the earlier selector comes first.
func TestChoiceOfNodeByKind(t *testing.T) {
	a, task, late := []Group{kindOf("a", cpus(4))}, tasks(1, cpus(1)), idle(2*time.Minute)
	inZone := func(zone string, n Node) Node { n.Labels = map[string]string{"zone": zone}; return n }
	gpu := kindOf("gpu", Resources{"CPU": 4, "GPU": 1})
	gpuNode := node("gpu", 0, Resources{"CPU": 1, "GPU": 1}, Resources{"CPU": 4, "GPU": 1})
	checkPlaces(t, []putting{
		{"those that stay before those that could go", Input{Groups: a, MayShrink: true, Nodes: []Node{node("a", 0, cpus(2), cpus(4), late), node("a", 1, cpus(4), cpus(4))}, Demand: task}, []string{"a-1: 1 × {CPU: 1}"}},
		{
			"without accelerators for work without, though these would be tighter",
			Input{Groups: append(a, gpu), Nodes: []Node{gpuNode, node("a", 0, cpus(4), cpus(4))}, Demand: task}, []string{"a-0: 1 × {CPU: 1}"},
		},
		{
			"also where that could go", Input{Groups: append(a, gpu), MayShrink: true, Nodes: []Node{gpuNode, node("a", 0, cpus(4), cpus(4), late)}, Demand: task},
			[]string{"a-0: 1 × {CPU: 1}"},
		},
		{
			"work with accelerators takes the tightest of all", Input{Groups: append(a, gpu), Nodes: []Node{gpuNode, node("gpu", 1, Resources{"CPU": 4, "GPU": 1}, nil)}, Demand: tasks(1, Resources{"GPU": 0.5})},
			[]string{"gpu-0: 1 × {GPU: 0.5}"},
		},
		{
			"a node that has none any more is as good as one without", Input{Groups: append(a, gpu), Nodes: []Node{node("gpu", 0, cpus(1), Resources{"CPU": 1, "GPU": 0}), node("a", 0, cpus(4), cpus(4))}, Demand: task},
			[]string{"gpu-0: 1 × {CPU: 1}"},
		},
		{
			"the earlier selector", Input{
				Groups: a, Nodes: []Node{inZone("a", node("a", 0, cpus(1), cpus(4))), inZone("b", node("a", 1, cpus(4), cpus(4)))},
				Demand: tasks(1, cpus(1), in("zone", "b"), in("zone", "a")),
			},
			[]string{"a-1: 1 × {CPU: 1}"},
		},
		{
			"even if that has accelerators", Input{
				Groups: append(a, gpu), Nodes: []Node{inZone("a", node("a", 0, cpus(1), cpus(4))), inZone("b", gpuNode)},
				Demand: tasks(1, cpus(1), in("zone", "b"), in("zone", "a")),
			},
			[]string{"gpu-0: 1 × {CPU: 1}"},
		},
		{
			"not what is not there any more", Input{Groups: a, Nodes: []Node{node("a", 0, Resources{"x": 2}, nil), node("a", 1, Resources{"y": 2}, nil)}, Demand: append(tasks(2, Resources{"x": 1}), tasks(1, Resources{"y": 1})...)},
			[]string{"a-0: 2 × {x: 1}", "a-1: 1 × {y: 1}"},
		},
		{"full ones first, then a part of one", Input{Groups: a, Nodes: []Node{node("a", 0, cpus(4), nil), node("a", 1, cpus(4), nil), node("a", 2, cpus(4), nil)}, Demand: tasks(6, cpus(1))}, []string{"a-0: 4 × {CPU: 1}", "a-1: 2 × {CPU: 1}"}},
	})
}

// Of a node that is not there yet all is known from its group.
func TestChoiceOfNodeToCome(t *testing.T) {
	task := tasks(1, cpus(1))
	checkPlaces(t, []putting{
		{
			"a host on its way has its group's accelerators", Input{
				Groups: []Group{kindOf("fast", Resources{"CPU": 4, "GPU": 1}, ofHosts(2)), kindOf("plain", cpus(8), ofHosts(2))}, Demand: task,
				Nodes: []Node{node("fast", 0, nil, nil, onHost(0)), node("plain", 0, nil, nil, onHost(0))},
			},
			[]string{"plain/0/1: 1 × {CPU: 1}"},
		},
		{
			"and its size", Input{
				Groups: []Group{kindOf("large", cpus(8), ofHosts(2)), kindOf("small", cpus(4), ofHosts(2))}, Demand: task,
				Nodes: []Node{node("large", 0, nil, nil, onHost(0)), node("small", 0, nil, nil, onHost(0))},
			},
			[]string{"small/0/1: 1 × {CPU: 1}"},
		},
		{
			"a new node has its group's accelerators", Input{
				Groups: []Group{kindOf("fast", Resources{"CPU": 2, "GPU": 1}), kindOf("plain", cpus(8))},
				Gangs:  []Gang{pack("p", 1, Resources{"GPU": 1}), pack("q", 1, cpus(5)), pack("r", 1, cpus(2))},
			},
			[]string{"fast/new0/0: 1 × {GPU: 1}", "plain/new0/0: 1 × {CPU: 5}, 1 × {CPU: 2}"},
		},
	})
}

// Candidates come in the order of before, whatever theirs was.
func TestQueueIsInOrder(t *testing.T) {
	for seed := range rounds(t, 200) {
		d := seeded(seed)
		var q queue
		for range d.IntN(20) {
			q = append(q, candidate{grade: d.IntN(3), room: float64(d.IntN(3)), group: d.IntN(3), from: int64(d.IntN(3))})
		}
		want := slices.SortedFunc(slices.Values(q), func(a, b candidate) int {
			return gocmp.Or(gocmp.Compare(a.grade, b.grade), gocmp.Compare(a.room, b.room), gocmp.Compare(a.group, b.group), gocmp.Compare(a.from, b.from))
		})
		q.order()
		var got []candidate
		for next, ok := q.pop(); ok; next, ok = q.pop() {
			got = append(got, next)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: %v, not %v", seed, got, want)
		}
	}
}

// The hardest first: kept apart, labels, accelerators, then the largest.
func TestOrderOfShapes(t *testing.T) {
	zoned := kindOf("a", cpus(4), labelled("zone", "a"), between(0, 1))
	plain := kindOf("b", cpus(4), between(0, 1))
	inA := func(n int, cpu float64) []Demand { return tasks(n, cpus(cpu), in("zone", "a")) }
	last := "kept 1 × {CPU: 4}: group a is at its maximum of 1; group b is at its maximum of 1"
	checkRules(t, []example{
		{"labels before size", Input{Groups: []Group{zoned, plain}, Demand: append(tasks(1, cpus(4)), inA(1, 1)...)}, []string{"a 1 1 × {CPU: 1}", "b 1 1 × {CPU: 4}"}},
		{"with gangs, too", Input{Groups: []Group{zoned, plain}, Gangs: []Gang{pack("p", 1, cpus(4)), {Name: "q", Bundles: inA(1, 1)}}}, []string{"a 1 1 × {CPU: 1}", "b 1 1 × {CPU: 4}"}},
		{"with gangs on one node as well", Input{Groups: []Group{zoned, plain}, Gangs: []Gang{inOne("p", 4, cpus(1)), {Name: "q", Together: true, Bundles: inA(1, 1)}}}, []string{"a 1 1 × {CPU: 1}", "b 1 1 × {CPU: 4}"}},
		{
			"apart before labels", Input{Groups: []Group{zoned, plain}, Gangs: []Gang{{Name: "p", Bundles: inA(1, 4)}, spread("q", 2, cpus(4))}},
			[]string{"a 1 1 × {CPU: 4}; maximum of 1", "b 1 1 × {CPU: 4}", "kept 1 × {CPU: 4}: placement group p: group a is at its maximum of 1"},
		},
		{
			"accelerators before size", Input{Groups: []Group{kindOf("gpu", Resources{"CPU": 4, "GPU": 1}, between(0, 1))}, Demand: append(tasks(1, cpus(4)), tasks(1, Resources{"CPU": 1, "GPU": 0.1})...)},
			[]string{"gpu 1 1 × {CPU: 1, GPU: 0.1}; maximum of 1", "kept 1 × {CPU: 4}: group gpu is at its maximum of 1"},
		},
		{"the largest first", Input{Groups: []Group{plain}, Demand: append(tasks(1, cpus(1)), tasks(1, cpus(4))...)}, []string{"b 1 1 × {CPU: 4}; maximum of 1", "kept 1 × {CPU: 1}: group b is at its maximum of 1"}},
		{
			"relative to the largest group", Input{Groups: []Group{kindOf("b", Resources{"CPU": 4, "x": 1000}, between(0, 1))}, Demand: append(tasks(1, Resources{"CPU": 1, "x": 900}), tasks(1, cpus(4))...)},
			[]string{"b 1 1 × {CPU: 4}; maximum of 1", "kept 1 × {CPU: 1, x: 900}: group b is at its maximum of 1"},
		},
		{
			"of gangs the one that is largest in all", Input{Groups: []Group{kindOf("b", cpus(4), between(0, 2))}, Gangs: []Gang{pack("p", 1, cpus(4)), pack("q", 5, cpus(1))}},
			[]string{"b 2 5 × {CPU: 1}; maximum of 2", "kept 1 × {CPU: 4}: placement group p: group b is at its maximum of 2"},
		},
		{"gangs before tasks", Input{Groups: []Group{zoned, plain}, Gangs: []Gang{spread("p", 2, cpus(1))}, Demand: tasks(1, cpus(4))}, []string{"a 1 1 × {CPU: 1}; maximum of 1", "b 1 1 × {CPU: 1}; maximum of 1", last}},
		{"the floor before gangs", Input{Groups: []Group{plain}, Floor: tasks(1, cpus(1)), Gangs: []Gang{pack("p", 4, cpus(1))}}, []string{"b 1 request_resources; 4 × {CPU: 1}"}},
		{
			"those alike but for what they are kept apart from are not one", Input{Groups: []Group{kindOf("b", cpus(4))}, Demand: []Demand{{Shape: cpus(1), Count: 3}, {Shape: cpus(1), Count: 3, Apart: []Label{{Name: "x"}}}}},
			[]string{"b 3 6 × {CPU: 1}"},
		},
	})
}

// Which of two gangs or tasks gets the last place does not depend on who is named first.
func TestOrderOfEqualsIsFixed(t *testing.T) {
	g := []Group{kindOf("a", Resources{"CPU": 1, "x": 2, "y": 2}, between(0, 1))}
	x, y := tasks(2, Resources{"CPU": 0.5, "x": 1}), tasks(2, Resources{"CPU": 0.5, "y": 1})
	p, q := Gang{Name: "p", Bundles: x}, Gang{Name: "q", Bundles: y}
	same := Gang{Name: "q", Bundles: x}
	for _, pair := range [][2]Input{
		{{Groups: g, Gangs: []Gang{p, q}}, {Groups: g, Gangs: []Gang{q, p}}},
		{{Groups: g, Gangs: []Gang{p, same}}, {Groups: g, Gangs: []Gang{same, p}}},
		{{Groups: g, Demand: append(x[:1:1], y...)}, {Groups: g, Demand: append(y[:1:1], x...)}},
		{{Groups: g, Floor: append(x[:1:1], y...)}, {Groups: g, Floor: append(y[:1:1], x...)}},
	} {
		if diff := cmp.Diff(said(Decide(pair[0])), said(Decide(pair[1]))); diff != "" {
			t.Error(diff)
		}
	}
}

// Demand is shape × count, nodes are classes × count: the cost follows the number of these.
func TestAlikeIsOne(t *testing.T) {
	in := Input{Groups: []Group{kindOf("a", cpus(4), between(0, 1000)), kindOf("gpu", gpus(1))}}
	for i := range 100 {
		of := map[string]string{"zone": "a", "host": fmt.Sprint(i)}
		in.Nodes = append(in.Nodes, Node{
			Place: Place{Key: fmt.Sprint(i), Group: "a", Replica: i}, Labels: of,
			Available: Resources{"CPU": 2, "node:" + fmt.Sprint(i): 1}, Total: Resources{"CPU": 4, "unasked": float64(i)},
		})
		inZone, onDisk := Term{Label: "zone", Values: []string{"a", "b"}}, Term{Label: "disk", Values: []string{"x"}, Not: true}
		same := Term{Label: "zone", Values: []string{"b", "a"}}
		in.Demand = append(in.Demand, Demand{Shape: Resources{"CPU": 1, "none": 0}, Selectors: []Selector{{inZone, onDisk}}, Count: 1})
		in.Demand = append(in.Demand, Demand{Shape: Resources{"CPU": 1}, Selectors: []Selector{{onDisk, same}}, Count: 1})
		in.Gangs = append(in.Gangs, Gang{Bundles: []Demand{
			{Shape: cpus(1), Apart: []Label{{Name: "p"}, {Name: "q"}}, Count: 1}, {Shape: cpus(1), Apart: []Label{{Name: "q"}, {Name: "p"}}, Count: 1},
		}})
	}
	p := planFor(&in)
	if p.main.there != 1 || len(p.demand) != 1 || len(p.gangs[0].units) != 1 {
		t.Errorf("nodes that are all alike are %d classes, requests that are %d shapes", p.main.there, len(p.demand))
	}
	for _, c := range []struct {
		what   string
		change func(*Node)
	}{
		{"that it is of another kind", func(n *Node) { n.Available = Resources{"GPU": 2} }},
		{"what is free", func(n *Node) { n.Available = cpus(1) }},
		{"a label that something asks for", func(n *Node) { n.Labels = map[string]string{"zone": "b"} }},
		{"accelerators", func(n *Node) { n.Total = gpus(1) }},
		{"that it could go", func(n *Node) { n.Idle = time.Hour }},
	} {
		other := in
		other.MayShrink = true
		other.Nodes = slices.Clone(in.Nodes)
		c.change(&other.Nodes[50])
		if got := planFor(&other).main.there; got != 2 {
			t.Errorf("one node that differs in %s makes %d classes, not 2", c.what, got)
		}
	}
	// One after the other is not both at once.
	both := []Selector{{{Label: "zone", Values: []string{"a"}}, {Label: "disk", Values: []string{"x"}}}}
	either := []Selector{both[0][1:], both[0][:1]}
	in.Demand = []Demand{{Shape: cpus(1), Selectors: both, Count: 1}, {Shape: cpus(1), Selectors: either, Count: 1}}
	if got := len(planFor(&in).demand); got != 2 {
		t.Errorf("two that ask for other labels are %d shapes", got)
	}
	// What nothing is asked for costs nothing at all.
	in.Demand = in.Demand[:0]
	if got := planFor(&in).main.there; got != 1 {
		t.Errorf("without demand there are %d classes", got)
	}
}
