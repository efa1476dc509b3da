package sidecar

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/decision"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol"
)

// stalled is a group of whose workers none starts, beside an operator that obeys.
type stalled struct {
	*Memory
	t        *testing.T
	group    protocol.Group
	tasks    int
	pods     []protocol.Pod
	nodes    []headclient.Node
	made     int
	decision protocol.Decision
	told     []headclient.Failed
}

// round makes a round at a time after the start, does what it says, and gives who was replaced.
func (c *stalled) round(after time.Duration) (replaced []string) {
	c.t.Helper()
	s := seen(after, c.pods, c.nodes...)
	s.Snapshot.Groups = []protocol.Group{c.group}
	s.Demand.Requests = []headclient.Request{{Shape: map[string]float64{"CPU": 1}, Count: c.tasks}}
	sight := look(s)
	c.learn(sight)
	in := c.input(sight)
	result := decision.Decide(in)
	c.decision, c.told = c.Memory.decision(sight, in, result), c.failed(sight)
	for _, removal := range c.decision.Removals {
		if removal.Drained && removal.Reason == protocol.Late {
			replaced = append(replaced, removal.Pod)
		}
		c.pods = slices.DeleteFunc(c.pods, func(p protocol.Pod) bool { return removal.Drained && p.UID == removal.Pod })
	}
	for len(c.pods) < c.decision.Targets[0].Replicas {
		c.pods = append(c.pods, protocol.Pod{UID: fmt.Sprintf("%02d", c.made), Group: "cpu", Stage: protocol.Waiting, Since: s.Now})
		c.made++
	}
	return replaced
}

func (c *stalled) place(why string) {
	for i := range c.pods {
		c.pods[i].Stage, c.pods[i].Why = protocol.Starting, why
	}
}

// TestStuckGroup: a group that cannot start stays as large as its demand, one of its pods is replaced at a time with
// pauses that double, and it says how they fail.
func TestStuckGroup(t *testing.T) {
	c := &stalled{Memory: NewMemory(), t: t, group: cpuGroup(64), tasks: 4}
	c.round(0)
	var got []string
	for minute := range 6 * 60 {
		c.place("ImageNotFound")
		for _, uid := range c.round(time.Duration(minute) * time.Minute) {
			got = append(got, fmt.Sprintf("%d min: %s", minute, uid))
		}
		if len(c.pods) != 4 || c.decision.Targets[0].Replicas != 4 {
			t.Fatalf("after %d minutes %d pods, and a target of %d", minute, len(c.pods), c.decision.Targets[0].Replicas)
		}
	}
	if diff := cmp.Diff([]string{"15 min: 00", "30 min: 01", "60 min: 02", "120 min: 03", "240 min: 04"}, got); diff != "" {
		t.Error(diff)
	}
	c.tasks = 40
	c.round(6 * time.Hour)
	if len(c.pods) != 4 || !strings.Contains(c.decision.Targets[0].Reason, "its newest workers fail: ImageNotFound") {
		t.Errorf("with more tasks it has %d pods: %+v", len(c.pods), c.decision.Targets)
	}
	if len(c.told) != 1 || c.told[0].Count != 4 || c.told[0].Reason != "the newest workers fail: ImageNotFound" {
		t.Errorf("Ray hears %+v", c.told)
	}
	c.nodes = []headclient.Node{node(1, c.pods[3].UID, headclient.Running, 0)}
	c.round(6*time.Hour + 2*time.Second)
	if len(c.pods) != 41 || len(c.told) != 0 { // it works, and 40 tasks wait
		t.Errorf("its newest worker has joined, and it has %d pods: %+v", len(c.pods), c.told)
	}
}

// TestStuckGroup_ReplacesAllOnceOneStarts: what keeps late pods from starting is over then.
func TestStuckGroup_ReplacesAllOnceOneStarts(t *testing.T) {
	c := &stalled{Memory: NewMemory(), t: t, group: cpuGroup(64), tasks: 4}
	c.round(0)
	c.place("")
	c.round(time.Second)
	c.nodes = []headclient.Node{node(1, c.pods[0].UID, headclient.Running, 0)}
	c.tasks = 3
	c.round(14 * time.Minute)
	if got := c.round(16 * time.Minute); len(got) != 3 || len(c.pods) != 4 {
		t.Errorf("%q are replaced, and there are %d pods", got, len(c.pods))
	}
}

// TestStuckGroup_KeepsItsPlaceInAQueue: pods that wait for machines are neither replaced nor doubled.
func TestStuckGroup_KeepsItsPlaceInAQueue(t *testing.T) {
	c := &stalled{Memory: NewMemory(), t: t, group: cpuGroup(64), tasks: 4}
	c.group.Min = 2
	for hour := range 48 {
		if got := c.round(time.Duration(hour) * time.Hour); len(got) > 0 || c.made != 4 {
			t.Fatalf("after %d hours %q are replaced, and %d were made", hour, got, c.made)
		}
	}
}

// TestStuckGroup_GivesBackWorkersRayForgot: a worker that was a node and is none for long is replaced as well.
func TestStuckGroup_GivesBackWorkersRayForgot(t *testing.T) {
	c := &stalled{Memory: NewMemory(), t: t, group: cpuGroup(64), tasks: 1}
	c.round(0)
	c.pods[0].Stage = protocol.Ready
	c.nodes, c.tasks = []headclient.Node{node(1, c.pods[0].UID, headclient.Running, 0)}, 0
	c.round(time.Minute)
	c.nodes, c.tasks = nil, 1
	c.round(2 * time.Minute)
	c.round(16*time.Minute + time.Second)
	if len(c.decision.Removals) != 1 || c.decision.Removals[0].Node != id(1).String() || !c.decision.Removals[0].Drained {
		t.Errorf("it leaves: %+v", c.decision.Removals)
	}
}
