package sidecar

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient/fakehead"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol"
)

// TestBurst: four tasks make four workers, which go when they were idle for their time.
func TestBurst(t *testing.T) {
	b := newBed(t, cpuGroup(8))
	b.step(time.Second)
	end := b.head.Want(cpus(4))
	b.step(time.Second)
	if got := b.target("cpu"); got.Replicas != 4 || got.Reason != "4 × {CPU: 1}" {
		t.Errorf("target %+v", got)
	}
	b.until("four are at work", func() bool { return b.alive("cpu") == 4 })
	words := b.decisions
	b.steps(20)
	if b.there("cpu") != 4 || b.decisions != words {
		t.Errorf("%d workers while four tasks run, %d words more", b.there("cpu"), b.decisions-words)
	}
	end()
	b.steps(4)
	if b.alive("cpu") != 4 {
		t.Errorf("%d workers after 4 idle seconds of 5", b.alive("cpu"))
	}
	b.until("none is there", func() bool { return b.there("cpu") == 0 })
	if got := b.target("cpu"); got.Replicas != 0 || got.Reason != "idle" {
		t.Errorf("target %+v", got)
	}
	b.step(time.Second)
	if len(b.decision.Removals) != 0 {
		t.Errorf("leaving %+v", b.decision.Removals)
	}
}

// TestRayIsTold: what there could be, where metrics are, which workers are wanted and which
// are on their way.
func TestRayIsTold(t *testing.T) {
	b := newBed(t, cpuGroup(8))
	b.step(time.Second)
	if config := b.head.Configured(); len(config.GetNodeGroupConfigs()) != 1 || config.GetNodeGroupConfigs()[0].GetMaxCount() != 8 {
		t.Errorf("of kinds %v", config)
	}
	if address, _ := b.head.Stored("", "AutoscalerMetricsAddress"); address != "192.0.2.1:44217" {
		t.Errorf("of metrics at %q", address)
	}
	b.head.Want(cpus(4))
	b.step(time.Second)
	if told := b.head.Reported(); len(told.GetPendingInstanceRequests()) != 1 || told.GetPendingInstanceRequests()[0].GetCount() != 4 {
		t.Errorf("of demand %v", told)
	}
	b.step(time.Second)
	if told := b.head.Reported(); len(told.GetPendingInstances()) != 4 || len(told.GetPendingInstanceRequests()) != 0 {
		t.Errorf("with pods %v", told)
	}
	b.snapshot.Groups[0].Max = 9
	b.step(time.Second)
	if config := b.head.Configured(); config.GetNodeGroupConfigs()[0].GetMaxCount() != 9 {
		t.Errorf("of an edit %v", config)
	}
}

// TestRefused: a worker that would not go stays, and is told again when it was idle for its
// time again.
func TestRefused(t *testing.T) {
	b := newBed(t, cpuGroup(8))
	end := b.head.Want(cpus(1))
	b.until("it is at work", func() bool { return b.alive("cpu") == 1 })
	var told []time.Time
	var finish func()
	b.meddle = func(id headclient.NodeID) {
		if told = append(told, b.clock.Now()); len(told) == 1 {
			finish = b.head.Occupy(id)
		}
	}
	end()
	b.until("it was told to go", func() bool { return len(told) == 1 })
	if len(b.decision.Removals) != 0 || b.target("cpu").Replicas != 0 {
		t.Errorf("refused: %+v", b.decision)
	}
	finish()
	b.until("it has gone", func() bool { return b.there("cpu") == 0 })
	if len(told) != 2 || told[1].Sub(told[0]) < 5*time.Second {
		t.Errorf("told at %v", told)
	}
}

// TestOperatorAway: nobody is told to go while no operator listens, and all that is due
// happens when one does.
func TestOperatorAway(t *testing.T) {
	b := newBed(t, cpuGroup(8))
	end := b.head.Want(cpus(2))
	b.until("two are at work", func() bool { return b.alive("cpu") == 2 })
	end()
	b.listening = false
	b.steps(30)
	if b.alive("cpu") != 2 {
		t.Errorf("%d are alive", b.alive("cpu"))
	}
	b.listening = true
	b.until("none is there", func() bool { return b.there("cpu") == 0 })
}

// TestHeadSilent: without an answer, or with nonsense for one, the last decision stands. The
// operator is told after ten seconds, and hears when it is over.
func TestHeadSilent(t *testing.T) {
	for mood, words := range map[fakehead.Mood]string{
		fakehead.Away: "no answer", fakehead.Garbled: "not what Ray says", fakehead.Passive: "refuses", fakehead.Hung: "no answer",
	} {
		b := newBed(t, cpuGroup(8))
		end := b.head.Want(cpus(2))
		b.until("two are at work", func() bool { return b.alive("cpu") == 2 })
		end()
		b.head.Behave(mood)
		if mood == fakehead.Hung {
			b.timeout = 50 * time.Millisecond
			b.loop.hangUp() // the next connection has it
		}
		targets, told := slices.Clone(b.decision.Targets), b.decisions
		b.steps(9)
		if b.decisions != told || b.alive("cpu") != 2 {
			t.Errorf("mood %d: %d words more, %d alive", mood, b.decisions-told, b.alive("cpu"))
		}
		if b.loop.memory.settling.over {
			t.Errorf("mood %d: the next answer would be trusted", mood)
		}
		b.steps(5)
		if !strings.Contains(b.decision.Error, words) || !slices.Equal(b.decision.Targets, targets) || b.decisions != told+1 {
			t.Errorf("mood %d: after 14 s %+v, %d words more", mood, b.decision, b.decisions-told)
		}
		b.timeout = time.Minute
		b.head.Behave(fakehead.Well)
		b.step(time.Second)
		if b.decision.Error != "" {
			t.Errorf("mood %d: it is over, and the decision is %+v", mood, b.decision)
		}
		b.until("none is there", func() bool { return b.there("cpu") == 0 })
	}
}

// TestHeadBeginsAnew: a GCS that lost its memory serves demand at once, and nobody goes
// until all are back, or a minute is over.
func TestHeadBeginsAnew(t *testing.T) {
	b := newBed(t, cpuGroup(8))
	end := b.head.Want(cpus(3))
	b.until("three are at work", func() bool { return b.alive("cpu") == 3 })
	end()
	b.step(time.Second)
	reports := b.head.Calls("ReportClusterConfig")
	b.head.Recover()
	for _, one := range b.pods {
		b.away[one.node] = true
	}
	b.step(time.Second)
	if b.head.Calls("ReportClusterConfig") != reports+1 || b.head.Reported() == nil {
		t.Error("the head was not told again what there could be")
	}
	b.head.Rejoin(b.pods[0].node)
	delete(b.away, b.pods[0].node)
	b.steps(30)
	if b.alive("cpu") != 3 || b.target("cpu").Replicas != 3 || len(b.decision.Removals) != 0 {
		t.Errorf("with one of three back: %+v", b.decision)
	}
	b.head.Rejoin()
	clear(b.away)
	b.until("none is there", func() bool { return b.there("cpu") == 0 })
}

// TestAfterAMinute: a worker that never comes back keeps the others for a minute at most.
func TestAfterAMinute(t *testing.T) {
	b := newBed(t, cpuGroup(8))
	b.restarts = 0
	end := b.head.Want(cpus(2))
	b.until("two are at work", func() bool { return b.alive("cpu") == 2 })
	end()
	b.head.Kill(b.pods[0].node)
	b.pods[0].alive = false
	b.begin()
	b.steps(60)
	if b.alive("cpu") != 1 {
		t.Errorf("%d alive within the minute", b.alive("cpu"))
	}
	b.steps(10)
	if b.alive("cpu") != 0 {
		t.Errorf("%d alive after it", b.alive("cpu"))
	}
}

// TestAutoscalerBeginsAnew: it takes up what it finds, half-drained workers included.
func TestAutoscalerBeginsAnew(t *testing.T) {
	b := newBed(t, cpuGroup(8))
	end := b.head.Want(cpus(4))
	b.until("four are at work", func() bool { return b.alive("cpu") == 4 })
	end()
	for range 40 {
		b.begin()
		b.step(time.Second)
		b.step(250 * time.Millisecond)
	}
	b.until("none is there", func() bool { return b.there("cpu") == 0 })
}

// TestCameBack: a worker that was drained, and that the kubelet started again before its pod
// was taken, is a worker like any other.
func TestCameBack(t *testing.T) {
	b := newBed(t, cpuGroup(8))
	end := b.head.Want(cpus(1))
	b.until("it is at work", func() bool { return b.alive("cpu") == 1 })
	end()
	b.until("it is drained", func() bool { return len(b.decision.Removals) == 1 && b.decision.Removals[0].Drained })
	b.join(b.pods[0])
	b.head.Want(cpus(1))
	decision := b.decision
	b.decision = protocol.Decision{} // the operator is slow
	b.step(time.Second)
	if len(b.decision.Removals) != 0 || b.target("cpu").Replicas != 1 {
		t.Errorf("before %+v, after %+v", decision, b.decision)
	}
}

// TestDemandWhileDrained: workers that are gone are taken before others come in their place.
func TestDemandWhileDrained(t *testing.T) {
	b := newBed(t, cpuGroup(2))
	b.restarts = 0
	end := b.head.Want(cpus(2))
	b.until("two are at work", func() bool { return b.alive("cpu") == 2 })
	told := 0
	b.meddle = func(headclient.NodeID) {
		if told++; told == 2 {
			b.head.Want(cpus(2)) // it is seen when they are gone
		}
	}
	end()
	b.until("two were told to go", func() bool { return told == 2 })
	b.until("two others are at work", func() bool { return b.alive("cpu") == 2 && b.there("cpu") == 2 })
}

// TestHostsGoTogether: of a replica none may be taken before all are gone, and one that would
// not go is told again later.
func TestHostsGoTogether(t *testing.T) {
	group := cpuGroup(2)
	group.Hosts = 3
	b := newBed(t, group)
	b.restarts = 0
	end := b.head.Want(cpus(3))
	b.until("three hosts are at work", func() bool { return b.alive("cpu") == 3 })
	var finish func()
	var told int
	b.meddle = func(id headclient.NodeID) {
		if told++; told == 2 {
			finish = b.head.Occupy(id)
		}
	}
	end()
	b.until("one would not go", func() bool { return told == 2 })
	b.steps(3)
	if b.alive("cpu") != 2 || b.there("cpu") != 3 || slices.ContainsFunc(b.decision.Removals, func(l protocol.Removal) bool { return l.Drained }) {
		t.Errorf("%d of %d alive: %+v", b.alive("cpu"), b.there("cpu"), b.decision)
	}
	finish()
	b.until("all have gone", func() bool { return b.there("cpu") == 0 })
}

// TestNextGroupInLine: a group that gets no machine is passed over for the next one, gives its
// waiting pods back, and is taken up again later, each time for longer.
func TestNextGroupInLine(t *testing.T) {
	spot, bought := cpuGroup(4), cpuGroup(4)
	spot.Name, spot.Priority, spot.CapacityTimeout = "spot", 10, 20*time.Second
	bought.Name = "bought"
	b := newBed(t, spot, bought)
	b.machines["spot"] = 1
	b.head.Want(cpus(3))
	b.step(time.Second)
	if b.target("spot").Replicas != 3 || b.target("bought").Replicas != 0 {
		t.Fatalf("%+v", b.decision)
	}
	b.until("the next group serves", func() bool { return b.alive("bought") == 2 && b.alive("spot") == 1 })
	if b.there("spot") != 1 || b.there("bought") != 2 {
		t.Errorf("of spot %d, bought %d", b.there("spot"), b.there("bought"))
	}
	if failed := b.head.Reported().GetFailedInstanceRequests(); len(failed) != 1 || failed[0].GetCount() != 2 {
		t.Errorf("Ray is told of %v", failed)
	}
	b.steps(60)
	b.head.Want(cpus(1))
	b.until("it is tried again", func() bool { return b.there("spot") == 2 })
	b.until("and passed over again", func() bool { return b.alive("bought") == 3 })
	if got := b.loop.memory.groups["spot"].capacity; got.failures != 2 || got.until.Sub(got.from) != 40*time.Second {
		t.Errorf("%+v", got)
	}
	b.machines["spot"] = 4
	b.steps(60)
	b.head.Want(cpus(1))
	b.until("there are machines again", func() bool { return b.alive("spot") == 2 })
	if got := b.loop.memory.groups["spot"].capacity; got.failures != 0 {
		t.Errorf("after a success %+v", got)
	}
}

// TestInfeasible: what can never fit is named, once, told to Ray as it came, and starts
// nothing.
func TestInfeasible(t *testing.T) {
	b := newBed(t, cpuGroup(8))
	b.step(time.Second)
	words := b.decisions
	b.head.Want(fakehead.Ask{Shape: map[string]float64{"CPU": 1, "GPU": 16}, Count: 2})
	b.steps(10)
	want := []protocol.Infeasible{{Shape: "{CPU: 1, GPU: 16}", Count: 2, Reason: "no group has GPU"}}
	if !slices.Equal(b.decision.Infeasible, want) || b.decisions != words+1 || b.there("cpu") != 0 {
		t.Errorf("%d words more, %d pods, %+v", b.decisions-words, b.there("cpu"), b.decision)
	}
	b.head.Want(fakehead.Ask{Shape: map[string]float64{"CPU": 1, "GPU": 16}, Count: 1})
	if b.steps(10); b.decisions != words+1 {
		t.Errorf("more of it cost %d words", b.decisions-words-1)
	}
	b.steps(120)
	if want[0].Count = 3; !slices.Equal(b.decision.Infeasible, want) || b.decisions != words+2 {
		t.Errorf("after half a minute %d words more: %+v", b.decisions-words, b.decision)
	}
	told := b.head.Reported().GetInfeasibleResourceRequests()
	if len(told) != 1 || told[0].GetResourcesBundle()["GPU"] != 16 || len(told[0].GetLabelSelectors()) != 1 {
		t.Errorf("Ray is told %v", told)
	}
}

// TestReportsArePaced: Ray is told each five seconds, and at once when something changed.
func TestReportsArePaced(t *testing.T) {
	b := newBed(t, cpuGroup(8))
	b.step(250 * time.Millisecond)
	before := b.head.Calls("ReportAutoscalingState")
	for range 40 { // 10 s
		b.step(250 * time.Millisecond)
	}
	if got := b.head.Calls("ReportAutoscalingState") - before; got != 2 {
		t.Errorf("%d reports in ten seconds", got)
	}
}

// TestHostileSnapshots: a caller who knows the token may order what they like: nothing breaks, and
// what follows is within what they ordered.
func TestHostileSnapshots(t *testing.T) {
	for name, snapshot := range map[string]protocol.Snapshot{
		"nothing":           {Head: "head"},
		"turned bounds":     {Head: "head", Groups: []protocol.Group{{Name: "cpu", Min: 9, Max: 3, Hosts: 1, Resources: map[string]float64{"CPU": 1}}}},
		"below zero":        {Head: "head", MaxNodes: -1, Groups: []protocol.Group{{Name: "cpu", Min: -5, Max: -1, Hosts: -2}}},
		"no such pace":      {Head: "head", Pace: "Warp", Groups: []protocol.Group{{Name: "cpu", Max: 3}}},
		"absurd sizes":      {Head: "head", Groups: []protocol.Group{{Name: "cpu", Max: 1 << 30, Hosts: 1 << 30, Resources: map[string]float64{"CPU": 1e300}}}},
		"pods of no group":  {Head: "head", Pods: []protocol.Pod{{UID: "a", Group: "none", Stage: protocol.Ready}}},
		"the same pod":      {Head: "head", Groups: []protocol.Group{cpuGroup(3)}, Pods: []protocol.Pod{{UID: "a", Group: "cpu"}, {UID: "a", Group: "cpu", Replica: 1}}},
		"pods without name": {Head: "head", Groups: []protocol.Group{cpuGroup(3)}, Pods: []protocol.Pod{{Group: "cpu"}, {Group: "cpu"}}},
		"the head as a pod": {Head: "head", Groups: []protocol.Group{cpuGroup(3)}, Pods: []protocol.Pod{{UID: "the head's", Group: "cpu", Stage: protocol.Ready}}},
		"a stage of none":   {Head: "head", Groups: []protocol.Group{cpuGroup(3)}, Pods: []protocol.Pod{{UID: "a", Group: "cpu", Stage: 99, Replica: -1, Host: -7}}},
	} {
		b := newBed(t, snapshot.Groups...)
		b.snapshot = snapshot
		b.head.Want(cpus(5))
		for range 100 {
			b.clock.Step(time.Second)
			b.loop.round(t.Context())
			for _, target := range b.decision.Targets {
				if target.Replicas < 0 || target.Replicas > max(0, b.group(target.Group).Max) {
					t.Fatalf("%s: %+v", name, target)
				}
			}
		}
		if b.head.Calls("DrainNode") != 0 || b.head.Died() != "" {
			t.Errorf("%s: %d drains, the head died: %q", name, b.head.Calls("DrainNode"), b.head.Died())
		}
	}
}

// deaf is a head that takes no configuration.
type deaf struct {
	Head
	kind  headclient.Kind
	asked *int
}

func (d deaf) Configure(context.Context, []headclient.Shape) error {
	*d.asked++
	return &headclient.Error{Kind: d.kind, Err: errors.New("it would not")}
}

// TestDeafHead: what Ray cannot be told keeps it from hearing nothing else; what it does not
// know how to be told it is told once.
func TestDeafHead(t *testing.T) {
	for kind, want := range map[headclient.Kind]int{headclient.Unsupported: 1, headclient.Refused: 5} {
		b := newBed(t, cpuGroup(8))
		asked, dial := 0, b.loop.Dial
		b.loop.Dial = func() (Head, error) {
			head, err := dial()
			return deaf{head, kind, &asked}, err
		}
		b.steps(5)
		if address, _ := b.head.Stored("", "AutoscalerMetricsAddress"); asked != want || b.head.Reported() == nil || address == "" {
			t.Errorf("%s: asked %d times, told %v, metrics at %q", kind, asked, b.head.Reported(), address)
		}
	}
}
