package sidecar

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/decision"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol"
)

// machined is a node that found out about its machine by itself.
func machined(n byte, pod string, labels map[string]string, total map[string]float64) headclient.Node {
	one := node(n, pod, headclient.Running, 0)
	one.Labels, one.Total = labels, total
	return one
}

// learned is a group after a round with some nodes of it.
func learned(m *Memory, after time.Duration, change func(*protocol.Group), nodes ...headclient.Node) decision.Group {
	var pods []protocol.Pod
	for _, one := range nodes {
		pods = append(pods, ordered(one.Instance, protocol.Ready, time.Hour))
	}
	s := seen(after, pods, nodes...)
	if change != nil {
		change(&s.Snapshot.Groups[0])
	}
	look := look(s)
	m.learn(look)
	return m.input(look).Groups[0]
}

// TestMachine_IsLearnedOfNodes: what the nodes of a group have in common the next one has, too.
func TestMachine_IsLearnedOfNodes(t *testing.T) {
	const gpu = "ray.io/accelerator-type"
	a100 := func(n byte, pod, zone string) headclient.Node {
		return machined(n, pod, map[string]string{gpu: "A100", "ray.io/availability-zone": zone, "ray.io/node-id": pod, "rack": pod},
			map[string]float64{"CPU": 8, "GPU": 4, "accelerator_type:A100": 1, "node:10.0.0.1": 1})
	}
	l4 := machined(9, "z", map[string]string{gpu: "L4"}, map[string]float64{"CPU": 4, "GPU": 2})
	known := map[string]string{gpu: "A100"}
	for name, test := range map[string]struct {
		nodes  []headclient.Node
		labels map[string]string
		amount map[string]float64
	}{
		"no node":            {nil, nil, map[string]float64{"CPU": 1}},
		"one":                {[]headclient.Node{a100(1, "a", "x")}, known, map[string]float64{"CPU": 1, "GPU": 4, "accelerator_type:A100": 1}},
		"two in other zones": {[]headclient.Node{a100(1, "a", "x"), a100(2, "b", "y")}, known, map[string]float64{"CPU": 1, "GPU": 4, "accelerator_type:A100": 1}},
		"two that differ":    {[]headclient.Node{a100(1, "a", "x"), l4}, nil, map[string]float64{"CPU": 1, "GPU": 2}},
	} {
		got := learned(NewMemory(), 0, nil, test.nodes...)
		if diff := cmp.Diff(test.labels, got.Labels); diff != "" {
			t.Errorf("%s, labels: %s", name, diff)
		}
		if diff := cmp.Diff(decision.Resources(test.amount), got.Resources); diff != "" {
			t.Errorf("%s, resources: %s", name, diff)
		}
	}
}

// TestMachine_IsKeptAndForgotten: it outlives the nodes, until the group is ordered otherwise; what is ordered wins.
func TestMachine_IsKeptAndForgotten(t *testing.T) {
	const gpu = "ray.io/accelerator-type"
	worker := machined(1, "a", map[string]string{gpu: "A100"}, map[string]float64{"CPU": 8})
	m := NewMemory()
	label := func(value string) func(*protocol.Group) {
		return func(g *protocol.Group) { g.Labels = map[string]string{gpu: value} }
	}
	for i, step := range []struct {
		change func(*protocol.Group)
		nodes  []headclient.Node
		want   string
	}{
		{nil, nil, ""},
		{nil, []headclient.Node{worker}, "A100"},
		{nil, nil, "A100"},
		{label("H100"), nil, "H100"},
		{label("H100"), []headclient.Node{worker}, "H100"},
		{nil, []headclient.Node{worker}, ""}, // it was made for another order
	} {
		if got := learned(m, time.Duration(i)*time.Minute, step.change, step.nodes...).Labels[gpu]; got != step.want {
			t.Errorf("step %d: the accelerator is %q, want %q", i, got, step.want)
		}
	}
}

// TestSlices: of TPUs, the first host of a replica has what reservations ask for, and each has its number.
func TestSlices(t *testing.T) {
	group := learned(NewMemory(), 0, func(g *protocol.Group) {
		g.Hosts, g.Resources, g.Labels = 2, map[string]float64{"TPU": 4}, map[string]string{labelPodType: "v4-16"}
	})
	if diff := cmp.Diff(decision.Resources{"TPU-v4-16-head": 1}, group.First); diff != "" || group.Numbered != labelWorkerID {
		t.Errorf("the first host has besides: %s; hosts are numbered by %q", diff, group.Numbered)
	}
	group = learned(NewMemory(), 0, func(g *protocol.Group) { g.Labels = map[string]string{labelPodType: "v4-16"} })
	if group.First != nil || group.Numbered != "" {
		t.Errorf("a group without TPUs has %v for its first host, and %q", group.First, group.Numbered)
	}
}

// TestUndetected_AreNamedUntilANodeTells: a request for GPUs fits nowhere while nobody knows that a group has them.
func TestUndetected_AreNamedUntilANodeTells(t *testing.T) {
	m := NewMemory()
	reason := func(after time.Duration, nodes ...headclient.Node) string {
		var pods []protocol.Pod
		for _, one := range nodes {
			pods = append(pods, ordered(one.Instance, protocol.Ready, time.Hour))
		}
		s := seen(after, pods, nodes...)
		s.Snapshot.Groups[0].DetectsGPUs = true
		look := look(s)
		m.learn(look)
		demand := []decision.Demand{{Shape: decision.Resources{"GPU": 2}, Count: 1}}
		told := infeasible(m.input(look), decision.Result{Infeasible: decision.Infeasible{Demand: demand}}, m.undetected(look))
		return told[0].Reason
	}
	const ask = "no group has GPU; Ray counts those of group cpu when a first worker is ready; to autoscale before, set GPU in rayResources"
	if got := reason(0); got != ask {
		t.Errorf("before a node: %q", got)
	}
	worker := machined(1, "a", nil, map[string]float64{"CPU": 8, "GPU": 1})
	if got := reason(time.Second, worker); got != "the largest group has 1 GPU" {
		t.Errorf("with a node: %q", got)
	}
	if got := reason(2 * time.Second); got != "the largest group has 1 GPU" {
		t.Errorf("after the last node: %q", got)
	}
}
