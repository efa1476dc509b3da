package decision

import "testing"

// slices are of TPUs, as Ray knows them: the first host stands for all, and each has a number.
func slicesOf(hosts int, changes ...func(*Group)) Group {
	changes = append([]func(*Group){ofHosts(hosts), labelled("ray.io/tpu-pod-type", "v4-16"), func(g *Group) {
		g.First, g.Numbered = Resources{"TPU-v4-16-head": 1}, "ray.io/tpu-worker-id"
	}}, changes...)
	return kindOf("v4", Resources{"CPU": 8, "TPU": 4}, changes...)
}

// onWorker is what reserve_tpu_slice asks for of one host.
func onWorker(number string) []Selector {
	return []Selector{{{Label: "ray.io/tpu-worker-id", Values: []string{number}}, {Label: "ray.io/tpu-pod-type", Values: []string{"v4-16"}}}}
}

func headOf(count int) []Demand {
	return []Demand{{Shape: Resources{"TPU-v4-16-head": 1}, Count: count, Selectors: onWorker("0")}}
}

// TestHostsThatDiffer: a group of slices grows by what only one host of each has.
func TestHostsThatDiffer(t *testing.T) {
	tpus, v4 := Resources{"TPU": 4}, []Group{slicesOf(2)}
	reservation := Gang{Name: "p", Bundles: headOf(1)}
	checkRules(t, []example{
		{"a reservation makes a slice", Input{Groups: v4, Gangs: []Gang{reservation}}, []string{"v4 1 1 × {TPU-v4-16-head: 1}"}},
		{
			"two make two, as each has one first host", Input{Groups: v4, Gangs: []Gang{reservation, {Name: "q", Bundles: headOf(1)}}},
			[]string{"v4 2 2 × {TPU-v4-16-head: 1}"},
		},
		{"so do tasks", Input{Groups: v4, Demand: headOf(3)}, []string{"v4 3 3 × {TPU-v4-16-head: 1}"}},
		{
			"work for all hosts fills the slice that a reservation makes", Input{Groups: v4, Demand: append(headOf(1), tasks(2, tpus)...)},
			[]string{"v4 1 1 × {TPU-v4-16-head: 1}, 2 × {TPU: 4}"},
		},
		{"work for any host fills whole slices", Input{Groups: v4, Demand: tasks(7, tpus)}, []string{"v4 4 7 × {TPU: 4}"}},
		{
			"work for the second host makes a slice for each", Input{Groups: v4, Demand: tasks(2, tpus, in("ray.io/tpu-worker-id", "1"))},
			[]string{"v4 2 2 × {TPU: 4}"},
		},
		{
			"no slice has a third host", Input{Groups: v4, Demand: tasks(1, tpus, in("ray.io/tpu-worker-id", "2"))},
			[]string{"v4 0", "never 1 × {TPU: 4}"},
		},
		{
			"a slice of one host is first and only", Input{Groups: []Group{slicesOf(1)}, Demand: headOf(2)},
			[]string{"v4 2 2 × {TPU-v4-16-head: 1}"},
		},
		{
			"the maximum holds", Input{Groups: []Group{slicesOf(2, between(0, 1))}, Demand: headOf(2)},
			[]string{"v4 1 1 × {TPU-v4-16-head: 1}; maximum of 1", "kept 1 × {TPU-v4-16-head: 1}: group v4 is at its maximum of 1"},
		},
		{
			"a slice whose first host is still to come serves the reservation", Input{
				Groups: v4, Gangs: []Gang{reservation}, Nodes: []Node{node("v4", 0, tpus, tpus, onHost(1))},
			},
			[]string{"v4 1"},
		},
		{
			"one whose second host is still to come does not", Input{
				Groups: v4, Gangs: []Gang{reservation}, Nodes: []Node{node("v4", 0, tpus, tpus, onHost(0), with("ray.io/tpu-worker-id", "0"))},
			},
			[]string{"v4 2 1 × {TPU-v4-16-head: 1}"},
		},
		{
			"pods on their way serve it", Input{
				Groups: v4, Gangs: []Gang{reservation}, Pods: []Pod{coming("v4", 0, 0), coming("v4", 0, 1)},
			},
			[]string{"v4 1 1 × {TPU-v4-16-head: 1}"},
		},
	})
}
