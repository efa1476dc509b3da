package sidecar

import (
	"slices"
	"testing"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/decision"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol"
)

// rounds is a memory with what its last round saw.
type rounds struct {
	*Memory
	sight *sight
}

func (r *rounds) see(s Seen) decision.Input {
	r.sight = look(s)
	r.learn(r.sight)
	return r.input(r.sight)
}

func (r *rounds) removals() []protocol.Removal {
	return r.Memory.removals(r.sight, r.parting(r.sight, nil))
}

// workers are two that are ready, a and b, on nodes 1 and 2.
func workers() []protocol.Pod {
	return []protocol.Pod{ordered("a", protocol.Ready, time.Hour), ordered("b", protocol.Ready, time.Hour)}
}

// TestToldToGo: who was told to go takes no work from then on, and has gone when Ray knows
// the node no more.
func TestToldToGo(t *testing.T) {
	r := &rounds{Memory: NewMemory()}
	a, b := node(1, "a", headclient.Idle, time.Hour), node(2, "b", headclient.Running, 0)
	r.see(seen(0, workers(), a, b))
	r.leaving.took(victim{pod: "a", node: a.ID}, start)
	in := r.see(seen(time.Second, workers(), a, b))
	if at := slices.IndexFunc(in.Nodes, func(n decision.Node) bool { return n.Key == "a" }); at < 0 || !in.Nodes[at].Draining {
		t.Errorf("told, and it counts: %+v", in.Nodes)
	}
	if want := []protocol.Removal{{Pod: "a", Node: a.ID.String(), Reason: protocol.Idle}}; !slices.Equal(r.removals(), want) {
		t.Errorf("told: %+v", r.removals())
	}
	in = r.see(seen(2*time.Second, workers(), b))
	if len(in.Pods) != 1 || !in.Pods[0].Going || len(r.removals()) != 1 || !r.removals()[0].Drained {
		t.Errorf("gone: %+v, %+v", in.Pods, r.removals())
	}
	r.see(seen(3*time.Second, workers()[1:], b))
	if len(r.removals()) != 0 {
		t.Errorf("its pod is gone: %+v", r.removals())
	}
}

// TestNotHeard: who was told to go, and goes on as before, is a worker again after a while.
func TestNotHeard(t *testing.T) {
	r := &rounds{Memory: NewMemory()}
	a := node(1, "a", headclient.Idle, time.Hour)
	r.see(seen(0, workers()[:1], a))
	r.leaving.took(victim{pod: "a", node: a.ID}, start)
	for after, leaving := range []int{1, 1, 1, 1, 1, 1, 1, 1, 1, 0} {
		r.see(seen(time.Duration(after+1)*time.Second, workers()[:1], a))
		if got := len(r.removals()); got != leaving {
			t.Errorf("after %d s %d leave", after+1, got)
		}
	}
}

// TestGoneInDoubt: while it is not sure that the head knows its nodes, none has gone because
// it is not listed; and another head need not know of a drain.
func TestGoneInDoubt(t *testing.T) {
	r := &rounds{Memory: NewMemory()}
	a, b := node(1, "a", headclient.Idle, time.Hour), node(2, "b", headclient.Running, 0)
	r.see(seen(0, workers(), a, b))
	r.leaving.took(victim{pod: "a", node: a.ID}, start)
	r.Failed()
	r.see(seen(time.Second, workers()))
	if got := r.removals(); len(got) != 1 || got[0].Drained {
		t.Errorf("after a failure, none listed: %+v", got)
	}
	r.see(seen(2*time.Second, workers(), b))
	r.see(seen(3*time.Second, workers(), b))
	if got := r.removals(); len(got) != 1 || !got[0].Drained {
		t.Errorf("the other is listed: %+v", got)
	}

	r = &rounds{Memory: NewMemory()}
	r.see(seen(time.Minute, workers(), a, b))
	r.leaving.took(victim{pod: "a", node: a.ID}, start)
	anew := seen(61*time.Second, workers(), b)
	anew.Demand.Version = 1
	r.see(anew)
	anew.Demand.Version = 2
	r.see(anew)
	if got := r.removals(); len(got) != 0 {
		t.Errorf("with another head: %+v", got)
	}
}

// TestAdopted: a node that drains was told to by somebody: its pod may be taken when it is
// gone.
func TestAdopted(t *testing.T) {
	r := &rounds{Memory: NewMemory()}
	b := node(2, "b", headclient.Running, 0)
	r.see(seen(0, workers(), node(1, "a", headclient.Draining, 0), b))
	if got := r.removals(); len(got) != 1 || got[0].Pod != "a" || got[0].Drained {
		t.Errorf("it drains: %+v", got)
	}
	r.see(seen(time.Second, workers(), b))
	if got := r.removals(); len(got) != 1 || !got[0].Drained {
		t.Errorf("it is gone: %+v", got)
	}
	r = &rounds{Memory: NewMemory()}
	leaving := workers()
	leaving[0].Stage = protocol.Leaving
	r.see(seen(0, leaving, node(1, "a", headclient.Draining, 0), b))
	if got := r.removals(); len(got) != 0 {
		t.Errorf("the operator's own: %+v", got)
	}
}

// TestIdleAnew: a node that would not go is idle only since then, until it was at work.
func TestIdleAnew(t *testing.T) {
	r := &rounds{Memory: NewMemory()}
	a := node(1, "a", headclient.Idle, time.Hour)
	r.see(seen(0, workers()[:1], a))
	r.leaving.balked(victim{pod: "a", node: a.ID}, start)
	for _, after := range []time.Duration{time.Second, time.Minute} {
		a.Idle = time.Hour + after
		if in := r.see(seen(after, workers()[:1], a)); in.Nodes[0].Idle != after {
			t.Errorf("after %s idle for %s", after, in.Nodes[0].Idle)
		}
	}
	a.Idle = time.Second
	r.see(seen(2*time.Minute, workers()[:1], a))
	a.Idle = 2 * time.Hour
	if in := r.see(seen(3*time.Minute, workers()[:1], a)); in.Nodes[0].Idle != 2*time.Hour {
		t.Errorf("after it was at work, idle for %s", in.Nodes[0].Idle)
	}
}

// TestRestOfAReplica: when a part of a replica has gone, the others are told once they all
// idle, and only while somebody listens.
func TestRestOfAReplica(t *testing.T) {
	pods := func() []protocol.Pod {
		return []protocol.Pod{ordered("a", protocol.Ready, time.Hour), ordered("b", protocol.Ready, time.Hour), ordered("c", protocol.Ready, time.Hour)}
	}
	together := func(s Seen) Seen {
		for i := range s.Snapshot.Pods {
			s.Snapshot.Pods[i].Replica, s.Snapshot.Pods[i].Host = 0, i
		}
		s.Snapshot.Groups[0].Hosts = 3
		return s
	}
	a, b, c := node(1, "a", headclient.Idle, time.Hour), node(2, "b", headclient.Idle, time.Hour), node(3, "c", headclient.Running, 0)
	r := &rounds{Memory: NewMemory()}
	r.see(together(seen(0, pods(), a, b, c)))
	r.leaving.took(victim{pod: "a", node: a.ID}, start)
	told := func(s Seen) (names []string) {
		r.see(s)
		for _, hosts := range r.victims(r.sight, decision.Result{}) {
			for _, v := range hosts {
				names = append(names, v.pod)
			}
		}
		return names
	}
	if got := told(together(seen(time.Second, pods(), b, c))); len(got) != 0 {
		t.Errorf("one is at work: %v", got)
	}
	c.State, c.Idle = headclient.Idle, 6*time.Second
	if got := told(together(seen(2*time.Second, pods(), b, c))); !slices.Equal(got, []string{"b", "c"}) {
		t.Errorf("all idle: %v", got)
	}
	alone := together(seen(3*time.Second, pods(), b, c))
	alone.Listening = false
	if got := told(alone); len(got) != 0 {
		t.Errorf("nobody listens: %v", got)
	}
	if got := r.removals(); len(got) != 1 || got[0].Drained {
		t.Errorf("a part has gone: %+v", got)
	}
}

// TestGivenBackTogether: a pod on its way to a replica of which a part was told to go is
// given back with it, when that has gone.
func TestGivenBackTogether(t *testing.T) {
	pods := func() []protocol.Pod {
		pair := []protocol.Pod{ordered("a", protocol.Ready, time.Hour), ordered("b", protocol.Waiting, time.Hour)}
		return pair
	}
	together := func(s Seen) Seen {
		s.Snapshot.Pods[1].Replica, s.Snapshot.Pods[1].Host = 0, 1
		return s
	}
	a := node(1, "a", headclient.Idle, time.Hour)
	r := &rounds{Memory: NewMemory()}
	r.see(together(seen(0, pods(), a)))
	r.leaving.took(victim{pod: "a", node: a.ID}, start)
	for after, drained := range []bool{false, true} {
		nodes := []headclient.Node{a}[:1-after]
		r.see(together(seen(time.Duration(after+1)*time.Second, pods(), nodes...)))
		want := []protocol.Removal{
			{Pod: "a", Node: a.ID.String(), Reason: protocol.Idle, Drained: drained}, {Pod: "b", Reason: protocol.Unneeded, Drained: drained},
		}
		if got := r.removals(); !slices.Equal(got, want) {
			t.Errorf("after %d s %+v", after+1, got)
		}
	}
}
