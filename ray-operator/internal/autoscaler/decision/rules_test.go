package decision

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const gib = float64(1 << 30)

func cpus(n float64) Resources { return Resources{"CPU": n} }

func gpus(n float64) Resources { return Resources{"CPU": 8, "GPU": n} }

// kindOf is a group of up to ten workers; changes make it another.
func kindOf(name string, has Resources, changes ...func(*Group)) Group {
	g := Group{Name: name, Max: 10, Hosts: 1, Resources: has, IdleTimeout: time.Minute}
	for _, change := range changes {
		change(&g)
	}
	return g
}

func between(least, most int) func(*Group) { return func(g *Group) { g.Min, g.Max = least, most } }
func priority(n int) func(*Group)          { return func(g *Group) { g.Priority = n } }
func ofHosts(n int) func(*Group)           { return func(g *Group) { g.Hosts = n } }
func passedOver(g *Group)                  { g.PassedOver = true }
func failing(g *Group)                     { g.Failing = "ImageNotFound" }
func closed(g *Group)                      { g.Closed = true }
func labelled(pairs ...string) func(*Group) {
	return func(g *Group) {
		g.Labels = map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			g.Labels[pairs[i]] = pairs[i+1]
		}
	}
}

// node is a worker of a group of single hosts, as its replica.
func node(group string, replica int, free, total Resources, changes ...func(*Node)) Node {
	n := Node{Place: Place{Key: fmt.Sprintf("%s-%d", group, replica), Group: group, Replica: replica}, Available: free, Total: total}
	for _, change := range changes {
		change(&n)
	}
	return n
}

func idle(long time.Duration) func(*Node) { return func(n *Node) { n.Idle = long } }
func onHost(number int) func(*Node) {
	return func(n *Node) { n.Host, n.Key = number, fmt.Sprintf("%s.%d", n.Key, number) }
}
func with(label, value string) func(*Node) {
	return func(n *Node) { n.Labels = map[string]string{label: value} }
}
func draining(n *Node) { n.Draining = true }
func going(n *Node)    { n.Going = true }

func coming(group string, replica, number int, changes ...func(*Pod)) Pod {
	p := Pod{Place: Place{Key: fmt.Sprintf("%s-%d.%d", group, replica, number), Group: group, Replica: replica, Host: number}, Age: time.Second}
	for _, change := range changes {
		change(&p)
	}
	return p
}

func waits(age time.Duration) func(*Pod) { return func(p *Pod) { p.Waiting, p.Age = true, age } }
func aged(p *Pod)                        { p.Age = time.Hour }
func late(p *Pod)                        { p.Late = true }
func replaced(p *Pod)                    { p.Late, p.Replace = true, true }

func tasks(n int, shape Resources, selectors ...Selector) []Demand {
	return []Demand{{Shape: shape, Count: n, Selectors: selectors}}
}

func in(label string, values ...string) Selector { return Selector{{Label: label, Values: values}} }

func spread(name string, n int, shape Resources) Gang {
	return Gang{Name: name, Bundles: []Demand{{Shape: shape, Count: n, Apart: []Label{{Name: "_PG_" + name}}}}}
}

// said is a decision in few words: the sizes with reasons, and whatever else there is.
func said(d Result) string {
	var all []string
	for _, t := range d.Targets {
		all = append(all, strings.TrimSpace(fmt.Sprintf("%s %d %s", t.Group, t.Replicas, t.Reason)))
	}
	add := func(what string, of []string) {
		if len(of) > 0 {
			all = append(all, what+" "+strings.Join(of, " "))
		}
	}
	add("drain", d.Drain)
	add("release", d.Release)
	for _, never := range d.Infeasible.Demand {
		all = append(all, fmt.Sprintf("never %d × %s", never.Count, never.Shape))
	}
	for _, never := range d.Infeasible.Floor {
		all = append(all, fmt.Sprintf("never floor %d × %s", never.Count, never.Shape))
	}
	for _, gang := range d.Infeasible.Gangs {
		all = append(all, fmt.Sprintf("never gang %d", gang))
	}
	for _, kept := range d.Kept {
		all = append(all, fmt.Sprintf("kept %d × %s: %s", kept.Count, kept.Shape, kept.Why))
	}
	return strings.Join(all, "\n")
}

// example is a case: an input and what is said of it.
type example struct {
	name string
	in   Input
	want []string
}

func checkRules(t *testing.T, cases []example) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := planFor(&c.in)
			if diff := cmp.Diff(strings.Join(c.want, "\n"), said(p.result())); diff != "" {
				t.Error(diff)
			}
			if wrong := judged(p, p.result()); len(wrong) > 0 {
				t.Error(wrong)
			}
		})
	}
}

func TestGrowth(t *testing.T) {
	a := func(changes ...func(*Group)) []Group { return []Group{kindOf("a", cpus(4), changes...)} }
	checkRules(t, []example{
		{"nothing wanted, nothing made", Input{Groups: a()}, []string{"a 0"}},
		{"the minimum", Input{Groups: a(between(2, 10))}, []string{"a 2 minimum of 2"}},
		{"of one host if nothing is said", Input{Groups: a(ofHosts(0)), Demand: tasks(1, cpus(1))}, []string{"a 1 1 × {CPU: 1}"}},
		{"a minimum below nothing is none", Input{Groups: a(between(-2, 1)), Nodes: []Node{node("a", 0, cpus(4), cpus(4), idle(time.Hour))}, MayShrink: true}, []string{"a 0 idle", "drain a-0"}},
		{"a task", Input{Groups: a(), Demand: tasks(1, cpus(1))}, []string{"a 1 1 × {CPU: 1}"}},
		{"ten tenths fit into one", Input{Groups: a(), Demand: tasks(40, cpus(0.1))}, []string{"a 1 40 × {CPU: 0.1}"}},
		{"one more tenth does not", Input{Groups: a(), Demand: tasks(41, cpus(0.1))}, []string{"a 2 41 × {CPU: 0.1}"}},
		{"alike requests are put together", Input{Groups: a(), Demand: append(tasks(2, cpus(4)), tasks(1, cpus(4), Selector{})...)}, []string{"a 3 3 × {CPU: 4}"}},
		{"what needs nothing needs a node", Input{Groups: a(), Demand: tasks(9, Resources{})}, []string{"a 1 9 × {}"}},
		{"it has one: the head", Input{Groups: a(), Nodes: []Node{{Place: Place{Key: "head"}}}, Demand: tasks(9, Resources{})}, []string{"a 0"}},
		{
			"free nodes first", Input{Groups: a(), Nodes: []Node{node("a", 0, cpus(3), cpus(4))}, Demand: tasks(4, cpus(1))},
			[]string{"a 2 1 × {CPU: 1}"},
		},
		{
			"then pods on their way, counted once", Input{Groups: a(), Pods: []Pod{coming("a", 0, 0), coming("a", 1, 0)}, Demand: tasks(8, cpus(1))},
			[]string{"a 2 8 × {CPU: 1}"},
		},
		{
			"late ones stand for their demand", Input{Groups: a(), Pods: []Pod{coming("a", 0, 0, late)}, Demand: tasks(4, cpus(1))},
			[]string{"a 1 4 × {CPU: 1}"},
		},
		{
			"those that leave are not there",
			Input{Groups: a(), Nodes: []Node{node("a", 0, cpus(4), cpus(4), draining), node("a", 1, cpus(4), cpus(4), going)}, Demand: tasks(4, cpus(1))},
			[]string{"a 1 4 × {CPU: 1}"},
		},
		{
			"the maximum", Input{Groups: a(between(0, 2)), Demand: tasks(3, cpus(4))},
			[]string{"a 2 2 × {CPU: 4}; maximum of 2", "kept 1 × {CPU: 4}: group a is at its maximum of 2"},
		},
		{
			"the cluster's maximum", Input{Groups: a(), MaxNodes: 1, Demand: tasks(3, cpus(4))},
			[]string{"a 1 1 × {CPU: 4}; maximum of 1 workers of the cluster", "kept 2 × {CPU: 4}: the cluster is at its maximum of 1 workers"},
		},
		{
			"a maximum that is lower than what is there", Input{Groups: a(between(0, 1)), Nodes: []Node{node("a", 0, cpus(0), cpus(4)), node("a", 1, cpus(0), cpus(4))}},
			[]string{"a 1 maximum of 1"},
		},
		{"too large for any node", Input{Groups: a(), Demand: tasks(2, cpus(9))}, []string{"a 0", "never 2 × {CPU: 9}"}},
		{"not there at all", Input{Groups: a(), Demand: tasks(2, gpus(9))}, []string{"a 0", "never 2 × {CPU: 8, GPU: 9}"}},
		{
			"only a node that is there could hold it",
			Input{Groups: a(), Nodes: []Node{{Place: Place{Key: "head"}, Total: cpus(16)}}, Demand: tasks(1, cpus(9))},
			[]string{"a 0", "kept 1 × {CPU: 9}: only nodes that are there could hold it, and they are in use"},
		},
		{"a closed group", Input{Groups: a(closed, between(1, 4)), Demand: tasks(1, cpus(1))}, []string{"a 0 suspended", "kept 1 × {CPU: 1}: group a is suspended"}},
		{
			"many shapes", Input{Groups: a(), Demand: append(append(tasks(1, cpus(4)), tasks(1, cpus(3))...), append(tasks(1, cpus(2)), append(tasks(1, cpus(1)), tasks(1, cpus(0.5))...)...)...)},
			[]string{"a 3 1 × {CPU: 4}, 1 × {CPU: 3}, 1 × {CPU: 1} and 2 more shapes"},
		},
		{
			"memory in words", Input{Groups: []Group{kindOf("a", Resources{"CPU": 4, "memory": 16 * gib})}, Demand: tasks(1, Resources{"memory": 1.5 * gib})},
			[]string{"a 1 1 × {memory: 1.5GiB}"},
		},
	})
}

// TestLabelsAlone_AreDemand: what asks for nothing but a node off the head, as the driver of a gang does, gets a worker where there
// is none, and no other one beside a worker that is full.
func TestLabelsAlone_AreDemand(t *testing.T) {
	const label = "ray.io/node-group"
	d := Input{Pace: Default, MaxNodes: 10, Groups: []Group{kindOf("a", cpus(4), labelled(label, "a"))}}
	d.Nodes = []Node{{Place: Place{Key: "head"}, Labels: map[string]string{label: "headgroup"}, Total: cpus(1), Available: cpus(1)}}
	d.Demand = tasks(1, Resources{}, Selector{{Label: label, Not: true, Values: []string{"headgroup"}}})
	if got := said(Decide(d)); got != "a 1 1 × {}" {
		t.Errorf("without a worker it is %s", got)
	}
	d.Nodes = append(d.Nodes, node("a", 0, cpus(0), cpus(4), with(label, "a")))
	if got := said(Decide(d)); !strings.HasPrefix(got, "a 1") {
		t.Errorf("with a worker that is full it is %s", got)
	}
}

func TestChoiceOfGroup(t *testing.T) {
	small, large := kindOf("small", cpus(4)), kindOf("large", cpus(16))
	gpu := kindOf("gpu", gpus(4))
	spot, steady := kindOf("spot", cpus(4), priority(1)), kindOf("steady", cpus(4))
	checkRules(t, []example{
		{"little work, little waste", Input{Groups: []Group{small, large}, Demand: tasks(3, cpus(1))}, []string{"small 1 3 × {CPU: 1}", "large 0"}},
		{"much work, few nodes", Input{Groups: []Group{small, large}, Demand: tasks(34, cpus(1))}, []string{"small 1 2 × {CPU: 1}", "large 2 32 × {CPU: 1}"}},
		{"GPUs for GPU work", Input{Groups: []Group{small, gpu}, Demand: tasks(1, Resources{"GPU": 1})}, []string{"small 0", "gpu 1 1 × {GPU: 1}"}},
		{"and not for other", Input{Groups: []Group{gpu, small}, Demand: tasks(2, cpus(4))}, []string{"gpu 0", "small 2 2 × {CPU: 4}"}},
		{"but if nothing else will do", Input{Groups: []Group{gpu, small}, Demand: tasks(1, cpus(8))}, []string{"gpu 1 1 × {CPU: 8}", "small 0"}},
		{
			"other work goes where a GPU node is needed anyway",
			Input{Groups: []Group{gpu, small}, Demand: append(tasks(1, Resources{"GPU": 1}), tasks(1, cpus(4))...)},
			[]string{"gpu 1 1 × {GPU: 1}, 1 × {CPU: 4}", "small 0"},
		},
		{
			"an existing GPU node comes last", Input{
				Groups: []Group{gpu, small}, Demand: tasks(1, cpus(1)),
				Nodes: []Node{node("gpu", 0, gpus(4), gpus(4), idle(time.Hour)), node("small", 0, cpus(4), cpus(4), idle(time.Second))}, MayShrink: true,
			},
			[]string{"gpu 0 idle", "small 1", "drain gpu-0"},
		},
		{"priority before waste", Input{Groups: []Group{small, kindOf("large", cpus(16), priority(1))}, Demand: tasks(1, cpus(1))}, []string{"small 0", "large 1 1 × {CPU: 1}"}},
		{"the next group when the first is full", Input{Groups: []Group{steady, spot}, Demand: tasks(12, cpus(4))}, []string{"steady 2 2 × {CPU: 4}", "spot 10 10 × {CPU: 4}"}},
		{
			"the next group when the first gets nothing",
			Input{Groups: []Group{kindOf("spot", cpus(4), priority(1), passedOver, between(1, 9)), steady}, Demand: tasks(2, cpus(4)), Pods: []Pod{coming("spot", 0, 0, waits(time.Minute)), coming("spot", 1, 0, waits(time.Second))}},
			[]string{"spot 1 minimum of 1; no capacity", "steady 2 2 × {CPU: 4}", "release spot-1.0"},
		},
	})
}

func TestLabels(t *testing.T) {
	zones := []Group{kindOf("a", cpus(4), labelled("zone", "a")), kindOf("b", cpus(4), labelled("zone", "b"))}
	checkRules(t, []example{
		{"a label", Input{Groups: zones, Demand: tasks(1, cpus(1), in("zone", "b"))}, []string{"a 0", "b 1 1 × {CPU: 1}"}},
		{"not a label", Input{Groups: zones, Demand: tasks(1, cpus(1), Selector{{Label: "zone", Not: true, Values: []string{"a"}}})}, []string{"a 0", "b 1 1 × {CPU: 1}"}},
		{"the first selector of two", Input{Groups: zones, Demand: tasks(1, cpus(1), in("zone", "b"), Selector{})}, []string{"a 0", "b 1 1 × {CPU: 1}"}},
		{"the second if need be", Input{Groups: zones, Demand: tasks(1, cpus(1), in("zone", "c"), in("zone", "b"))}, []string{"a 0", "b 1 1 × {CPU: 1}"}},
		{
			"the last of very many selectors", Input{Groups: zones, Demand: tasks(1, cpus(1), append(slices.Repeat([]Selector{in("zone", "c")}, 300), in("zone", "b"))...)},
			[]string{"a 0", "b 1 1 × {CPU: 1}"},
		},
		{"no node has the label", Input{Groups: zones, Demand: tasks(1, cpus(1), in("zone", "c"))}, []string{"a 0", "b 0", "never 1 × {CPU: 1}"}},
		{
			"a pod on its way has its group's labels", Input{Groups: zones, Demand: tasks(1, cpus(1), in("zone", "b")), Pods: []Pod{coming("b", 0, 0)}},
			[]string{"a 0", "b 1 1 × {CPU: 1}"},
		},
		{
			"a node's own resources are not a new node's", Input{
				Groups: []Group{kindOf("a", Resources{"CPU": 4, "node:10.0.0.1": 1})}, Demand: tasks(1, Resources{"node:10.0.0.1": 0.1}),
			},
			[]string{"a 0", "never 1 × {node:10.0.0.1: 0.1}"},
		},
		{
			"of implicit resources each node has one", Input{Groups: zones[:1], Demand: tasks(3, Resources{implicit + "x": 0.5})},
			[]string{"a 2 3 × {node:__internal_implicit_resource_x: 0.5}"},
		},
	})
}

// What is on its way is used before new nodes are made, even if these would be fuller.
func TestOnTheirWayFirst(t *testing.T) {
	small, large := kindOf("small", cpus(4)), kindOf("large", cpus(16))
	checkRules(t, []example{
		{
			"nodes on their way before new ones that would be fuller", Input{Groups: []Group{small, large}, Pods: []Pod{coming("large", 0, 0)}, Demand: tasks(1, cpus(1))},
			[]string{"small 0", "large 1 1 × {CPU: 1}"},
		},
		{
			"those that the minimum asks for, too", Input{Groups: []Group{small, kindOf("large", cpus(16), between(1, 9))}, Demand: tasks(1, cpus(1))},
			[]string{"small 0", "large 1 minimum of 1; 1 × {CPU: 1}"},
		},
		{
			"and those that the floor asks for", Input{Groups: []Group{small, large}, Floor: tasks(1, cpus(9)), Demand: tasks(1, cpus(1))},
			[]string{"small 0", "large 1 request_resources; 1 × {CPU: 1}"},
		},
		{
			"the floor, too, takes first what is on its way", Input{Groups: []Group{small, large}, Pods: []Pod{coming("large", 0, 0)}, Floor: tasks(1, cpus(1))},
			[]string{"small 0", "large 1 request_resources"},
		},
		{
			"they do not count twice", Input{
				Groups: []Group{kindOf("a", cpus(4), between(0, 3))}, MaxNodes: 3, Pods: []Pod{coming("a", 0, 0), coming("a", 1, 0)}, Demand: tasks(3, cpus(4)),
			},
			[]string{"a 3 3 × {CPU: 4}"},
		},
		{
			"what is used up of them is new", Input{Groups: []Group{small, large}, Pods: []Pod{coming("large", 0, 0)}, Demand: tasks(20, cpus(1))},
			[]string{"small 1 4 × {CPU: 1}", "large 1 16 × {CPU: 1}"},
		},
	})
}

// The fullest group grows: what of a node is used most counts, of accelerators for work with them.
func TestFullest(t *testing.T) {
	checkRules(t, []example{
		{
			"for GPU work what counts is that the GPUs are used",
			Input{Groups: []Group{kindOf("few", Resources{"CPU": 32, "GPU": 1}), kindOf("many", Resources{"CPU": 16, "GPU": 4})}, Demand: tasks(1, Resources{"CPU": 8, "GPU": 1})},
			[]string{"few 1 1 × {CPU: 8, GPU: 1}", "many 0"},
		},
		{
			"what a node has nothing of is no share of it",
			Input{Groups: []Group{kindOf("none", Resources{"CPU": 4, "x": 0, "GPU": 0}), kindOf("some", Resources{"CPU": 8, "x": 1})}, Demand: append(tasks(1, cpus(4)), tasks(1, Resources{"x": 2})...)},
			[]string{"none 1 1 × {CPU: 4}", "some 0", "never 1 × {x: 2}"},
		},
		{
			"whatever is used most counts, even if it is in no other group",
			Input{Groups: []Group{kindOf("disk", Resources{"CPU": 8, "disk": 1}), kindOf("other", Resources{"CPU": 8, "disk": 8})}, Demand: tasks(1, Resources{"CPU": 1, "disk": 1})},
			[]string{"disk 1 1 × {CPU: 1, disk: 1}", "other 0"},
		},
		{
			"a replica of several hosts counts as a whole",
			Input{Groups: []Group{kindOf("one", cpus(12)), kindOf("four", cpus(4), ofHosts(4))}, Demand: tasks(1, cpus(4))},
			[]string{"one 1 1 × {CPU: 4}", "four 0"},
		},
		{
			"and is right where all of it is used",
			Input{Groups: []Group{kindOf("one", cpus(6)), kindOf("four", cpus(4), ofHosts(4))}, Demand: tasks(4, cpus(4))},
			[]string{"one 0", "four 1 4 × {CPU: 4}"},
		},
		{
			"its other hosts serve what comes after", Input{Groups: []Group{slice()}, Demand: append(tasks(1, Resources{"TPU": 4}), tasks(3, cpus(8))...)},
			[]string{"slice 1 1 × {TPU: 4}, 3 × {CPU: 8}"},
		},
		{
			"of two that are made the same use of the smaller",
			Input{
				Groups: []Group{kindOf("more", Resources{"CPU": 4, "memory": 256 * gib}), kindOf("plain", Resources{"CPU": 4, "memory": 16 * gib})},
				Demand: tasks(1, Resources{"CPU": 1, "memory": gib}),
			},
			[]string{"more 0", "plain 1 1 × {CPU: 1, memory: 1GiB}"},
		},
	})
}

// Accelerators are kept for work that asks for them, whatever their vendor.
func TestAccelerators(t *testing.T) {
	for _, name := range []string{"GPU", "TPU", "NPU", "HPU", "neuron_cores", "RBLN", "FURIOSA"} {
		groups := []Group{kindOf("fast", Resources{"CPU": 4, name: 1}), kindOf("plain", cpus(8))}
		checkRules(t, []example{
			{"not for other work: " + name, Input{Groups: groups, Demand: append(tasks(1, cpus(4)), tasks(1, Resources{"custom": 1, name: 0})...)}, []string{"fast 0", "plain 1 1 × {CPU: 4}", "never 1 × {custom: 1}"}},
			{"for work with " + name, Input{Groups: groups, Demand: tasks(1, Resources{name: 1})}, []string{"fast 1 1 × {" + name + ": 1}", "plain 0"}},
			{
				"a node with " + name, Input{
					Groups: groups, Nodes: []Node{node("fast", 0, cpus(1), Resources{"CPU": 4, name: 1}), node("plain", 0, cpus(2), cpus(8), idle(time.Hour))}, Demand: tasks(1, cpus(1)), MayShrink: true,
				},
				[]string{"fast 1", "plain 1"},
			},
		})
	}
}
