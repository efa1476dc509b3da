package nodes

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// TestIdleSince goes through the lives of clusters, minute by minute.
func TestIdleSince(t *testing.T) {
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	at := func(minute int) time.Time { return start.Add(time.Duration(minute) * time.Minute) }
	idle := func(minutes int) headclient.State {
		node := worker(1, headclient.Idle)
		node.Idle = time.Duration(minutes) * time.Minute
		return headclient.State{Nodes: []headclient.Node{node}}
	}
	running := headclient.State{Nodes: []headclient.Node{worker(1, headclient.Running)}}
	head := headclient.Node{State: headclient.Running, Head: true}
	quiet, driver := headclient.Activity{}, headclient.Activity{Drivers: 1}
	left := func(minute int) headclient.Activity { return headclient.Activity{LastEnded: at(minute)} }
	type step struct {
		state    headclient.State
		activity headclient.Activity
		// want is the minute since when it is idle, -99 while it is active.
		want int
	}
	const active = -99
	for name, steps := range map[string][]step{
		"idle before the operator came":      {{idle(30), quiet, -30}, {idle(31), quiet, -30}},
		"a driver that left before it came":  {{idle(30), left(-10), -10}},
		"no node can tell":                   {{headclient.State{}, quiet, 0}, {headclient.State{}, quiet, 0}},
		"the head's node alone is busy":      {{headclient.State{Nodes: []headclient.Node{head}}, quiet, 0}},
		"a driver comes and goes":            {{idle(0), driver, active}, {idle(0), driver, active}, {idle(0), quiet, 1}, {idle(1), quiet, 1}},
		"it goes between two answers":        {{idle(5), quiet, -5}, {idle(5), left(1), 1}, {idle(5), left(1), 1}},
		"nodes that restart change nothing":  {{idle(30), quiet, -30}, {idle(0), quiet, -30}},
		"work without a driver":              {{running, quiet, active}, {idle(0), quiet, 0}},
		"a job, an actor":                    {{idle(9), headclient.Activity{Jobs: 1}, active}, {idle(9), headclient.Activity{Actors: 1}, active}},
		"more actors than can be counted":    {{idle(9), headclient.Activity{Uncounted: true}, active}},
		"something waits":                    {{headclient.State{Pending: 1}, quiet, active}, {headclient.State{Gangs: 1}, quiet, active}},
		"a node that drains still works":     {{headclient.State{Nodes: []headclient.Node{worker(1, headclient.Draining)}}, quiet, active}},
		"a dead node does not":               {{headclient.State{Nodes: []headclient.Node{worker(1, headclient.Dead)}}, quiet, 0}},
		"a head whose clock is ahead":        {{idle(3), left(1), -3}, {idle(4), left(1), 1}},
		"a head that says it is next year's": {{idle(3), left(600_000), -3}},
	} {
		t.Run(name, func(t *testing.T) {
			var seen Use
			for minute, step := range steps {
				seen = use(seen, step.state, step.activity, at(minute))
				if step.want == active && (!seen.Active || !seen.IdleSince.IsZero()) ||
					step.want != active && (seen.Active || !seen.IdleSince.Equal(at(step.want))) {
					t.Fatalf("minute %d: %+v, want minute %d", minute, seen, step.want)
				}
			}
		})
	}
}

// TestNodesByPod: of two nodes of one pod the livelier counts, and of the dead those that
// something was wanted of.
func TestNodesByPod(t *testing.T) {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	of := func(pod string, state headclient.NodeState) headclient.Node {
		return headclient.Node{Instance: pod, State: state, Idle: time.Minute, Total: map[string]float64{"CPU": 1, "memory": 2}}
	}
	got := nodes(Target{
		Drains:  []Drain{{Pod: "drained"}, {Pod: "unlisted"}},
		Resizes: []Resize{{Pod: "resized", Resources: map[string]float64{"CPU": 2}}},
	}, headclient.State{Nodes: []headclient.Node{
		of("twice", headclient.Idle), of("twice", headclient.Dead), of("twice", headclient.Running), of("twice", headclient.Draining),
		of("drained", headclient.Dead), of("dead", headclient.Dead), of("", headclient.Idle), of("resized", headclient.Idle),
	}}, map[types.UID]string{"resized": "no"}, now)
	want := map[types.UID]Node{
		"twice":   {State: headclient.Running},
		"drained": {State: headclient.Dead},
		"resized": {State: headclient.Idle, IdleSince: now.Add(-time.Minute), Refused: "no", Total: map[string]float64{"CPU": 1}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
