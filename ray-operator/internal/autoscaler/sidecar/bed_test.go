package sidecar

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient/fakehead"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol"
)

// bed is a cluster without Kubernetes: a fake head, workers that join it some time after
// they were made, an operator that does what words say, and the loop. What must never be is
// looked for after each step.
type bed struct {
	t     testing.TB
	clock *clocktesting.FakeClock
	head  *fakehead.Head
	loop  *Loop

	snapshot  protocol.Snapshot
	listening bool
	decision  protocol.Decision
	decisions int
	changed   chan struct{}

	pods []*worker
	made int
	// machines are how many workers of a group find one; no entry is as many as come.
	machines map[string]int
	// joins is how long a worker takes from its machine to Ray, restarts how long until the
	// kubelet starts one again that is no node any more; 0 is never.
	joins, restarts time.Duration
	// timeout is of calls to the head, in real time: long, so that a busy machine is no fault.
	timeout time.Duration
	// meddle is called before a node is told to go.
	meddle func(headclient.NodeID)
	// away are nodes that GCS does not know since it began again.
	away map[headclient.NodeID]bool
}

// worker is a pod with its node.
type worker struct {
	protocol.Pod
	node  headclient.NodeID
	alive bool
	since time.Time
}

func newBed(t testing.TB, groups ...protocol.Group) *bed {
	t.Helper()
	clock := clocktesting.NewFakeClock(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC))
	head, err := fakehead.Start(clock)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(head.Close)
	head.Join(fakehead.Member{Instance: "the head's", Head: true})
	b := &bed{
		t: t, clock: clock, head: head, listening: true, changed: make(chan struct{}, 1), machines: map[string]int{},
		joins: 2 * time.Second, restarts: 30 * time.Second, timeout: time.Minute, away: map[headclient.NodeID]bool{},
		snapshot: protocol.Snapshot{Head: "head", Pace: "Default", Groups: groups},
	}
	b.begin()
	t.Cleanup(func() { b.loop.hangUp() })
	return b
}

// begin is a new process of the autoscaler.
func (b *bed) begin() {
	if b.loop != nil {
		b.loop.hangUp()
	}
	b.decision = protocol.Decision{}
	b.loop = &Loop{
		Link: b, Clock: b.clock, Log: slog.New(slog.DiscardHandler), Metrics: NewMetrics(b.clock), Address: "192.0.2.1:44217",
		heard: b.clock.Now(),
		Dial: func() (Head, error) {
			client, err := headclient.Dial(b.head.Address(), headclient.Options{Timeout: b.timeout})
			return watched{client, b}, err
		},
	}
}

// watched sees which nodes are told to go.
type watched struct {
	Head
	bed *bed
}

func (w watched) Drain(ctx context.Context, drain headclient.Drain) (headclient.Verdict, error) {
	b := w.bed
	if !b.listening {
		b.t.Errorf("node %s is told to go while no operator listens", drain.Node)
	}
	if b.meddle != nil {
		b.meddle(drain.Node)
	}
	verdict, err := w.Head.Drain(ctx, drain)
	if err == nil && verdict.Accepted && !b.away[drain.Node] {
		for _, one := range b.pods {
			if one.node == drain.Node {
				one.alive, one.since = false, b.clock.Now()
			}
		}
	}
	return verdict, err
}

// Snapshot, Changed and Say are a Link's.
func (b *bed) Snapshot() (protocol.Snapshot, bool) { return b.snapshot, b.listening }
func (b *bed) Changed() <-chan struct{}            { return b.changed }
func (b *bed) Say(decision protocol.Decision) error {
	b.decision = decision
	b.decisions++
	return nil
}

// step lets time go by, workers and the operator do their part, and makes a round.
func (b *bed) step(by time.Duration) {
	b.t.Helper()
	b.clock.Step(by)
	b.kubelet()
	if b.listening {
		b.operate()
	}
	b.order()
	b.loop.round(b.t.Context())
	b.judge()
}

// steps makes as many steps of a second.
func (b *bed) steps(count int) {
	b.t.Helper()
	for range count {
		b.step(time.Second)
	}
}

// until makes steps until something is so.
func (b *bed) until(what string, so func() bool) {
	b.t.Helper()
	for range 200 {
		if so() {
			return
		}
		b.step(time.Second)
	}
	b.t.Fatalf("in 200 s it did not come to that: %s\nword %+v\npods %s", what, b.decision, b.list())
}

func (b *bed) list() (text string) {
	for _, one := range b.pods {
		text += fmt.Sprintf("%s stage %d alive %t\n", one.UID, one.Stage, one.alive)
	}
	return text
}

// kubelet brings workers on their way.
func (b *bed) kubelet() {
	used := map[string]int{}
	for _, one := range b.pods {
		if one.Stage != protocol.Waiting {
			used[one.Group]++
		}
	}
	now := b.clock.Now()
	for _, one := range b.pods {
		most, limited := b.machines[one.Group]
		switch {
		case one.Stage == protocol.Waiting && (!limited || used[one.Group] < most):
			used[one.Group]++
			one.Stage, one.since = protocol.Starting, now
		case one.Stage == protocol.Starting && now.Sub(one.since) >= b.joins,
			one.Stage == protocol.Ready && !one.alive && b.restarts > 0 && now.Sub(one.since) >= b.restarts:
			b.join(one)
		}
	}
}

func (b *bed) join(one *worker) {
	group := b.group(one.Group)
	one.Stage, one.alive = protocol.Ready, true
	one.node = b.head.Join(fakehead.Member{Instance: one.UID, Type: one.Group, Total: group.Resources, Labels: group.Labels})
}

func (b *bed) group(name string) protocol.Group {
	at := slices.IndexFunc(b.snapshot.Groups, func(g protocol.Group) bool { return g.Name == name })
	return b.snapshot.Groups[at]
}

// operate does what the decision says: more replicas at once, fewer only by those that are
// given back.
func (b *bed) operate() {
	if b.decision.Head != b.snapshot.Head {
		return
	}
	given := map[string]bool{}
	for _, removal := range b.decision.Removals {
		given[removal.Pod] = removal.Drained
	}
	for _, target := range b.decision.Targets {
		b.resize(target, given)
	}
}

func (b *bed) resize(target protocol.Target, given map[string]bool) {
	replicas := map[int]bool{} // and whether all of the replica is given back
	for _, one := range b.pods {
		if one.Group == target.Group {
			all, seen := replicas[one.Replica]
			replicas[one.Replica] = given[one.UID] && (all || !seen)
		}
	}
	spare := len(replicas) - target.Replicas
	for replica, all := range replicas {
		if all && spare > 0 {
			b.remove(func(one *worker) bool { return one.Group == target.Group && one.Replica == replica })
			spare--
		}
	}
	for ; spare < 0; spare++ {
		b.create(target.Group)
	}
}

func (b *bed) create(group string) {
	b.made++
	for host := range max(1, b.group(group).Hosts) {
		b.pods = append(b.pods, &worker{
			Pod: protocol.Pod{
				UID: fmt.Sprintf("%s-%d-%d", group, b.made, host), Group: group, Replica: b.made, Host: host, Stage: protocol.Waiting, Since: b.clock.Now(),
			},
			since: b.clock.Now(),
		})
	}
}

func (b *bed) remove(which func(*worker) bool) {
	b.pods = slices.DeleteFunc(b.pods, func(one *worker) bool {
		if which(one) && one.alive {
			b.head.Kill(one.node)
		}
		return which(one)
	})
}

func (b *bed) order() {
	b.snapshot.Pods = nil
	for _, one := range b.pods {
		b.snapshot.Pods = append(b.snapshot.Pods, one.Pod)
	}
}

// judge looks for what must never be.
func (b *bed) judge() {
	b.t.Helper()
	if died := b.head.Died(); died != "" {
		b.t.Fatalf("the head died: %s", died)
	}
	taken := b.taken()
	if !b.loop.trouble.IsZero() {
		return // an old decision stands, which bounds and workers may have left behind
	}
	for _, one := range b.pods {
		if taken[replica{one.Group, one.Replica}] && one.alive && !b.away[one.node] {
			b.t.Errorf("%s is alive, and a host of its replica may be taken: %+v", one.UID, b.decision.Removals)
		}
	}
	for _, target := range b.decision.Targets {
		if group := b.group(target.Group); target.Replicas > group.Max || target.Replicas < 0 || group.Suspended && target.Replicas > 0 {
			b.t.Errorf("target %+v of a group of at most %d", target, group.Max)
		}
	}
}

// taken are the replicas of which something may be taken. Nothing of it may be alive.
func (b *bed) taken() map[replica]bool {
	b.t.Helper()
	drained := map[string]string{}
	for _, removal := range b.decision.Removals {
		if removal.Drained {
			drained[removal.Pod] = removal.Node
		}
	}
	taken := map[replica]bool{}
	for _, one := range b.pods {
		node, may := drained[one.UID]
		if may && one.alive && node == one.node.String() {
			b.t.Errorf("%s may be taken, and its node %s is alive", one.UID, node)
		}
		if may {
			taken[replica{one.Group, one.Replica}] = true
		}
	}
	return taken
}

// alive counts the workers of a group that are nodes, there those that have a pod.
func (b *bed) alive(group string) int {
	return b.count(func(one *worker) bool { return one.Group == group && one.alive })
}

func (b *bed) there(group string) int {
	return b.count(func(one *worker) bool { return one.Group == group })
}

func (b *bed) count(which func(*worker) bool) (count int) {
	for _, one := range b.pods {
		if which(one) {
			count++
		}
	}
	return count
}

// target is the decision's of a group.
func (b *bed) target(group string) protocol.Target {
	for _, target := range b.decision.Targets {
		if target.Group == group {
			return target
		}
	}
	return protocol.Target{Replicas: -1}
}

func cpuGroup(most int) protocol.Group {
	return protocol.Group{Name: "cpu", Max: most, Hosts: 1, IdleTimeout: 5 * time.Second, Resources: map[string]float64{"CPU": 1}}
}

func cpus(count int) fakehead.Ask {
	return fakehead.Ask{Shape: map[string]float64{"CPU": 1}, Count: count}
}
