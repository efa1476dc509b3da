package sidecar

import (
	"fmt"
	"testing"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/decision"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol"
)

// glance is what one round sees: so many CPUs free of four on a worker, or no worker below 0, and so many tasks that wait.
type glance struct {
	at            time.Duration
	free          float64
	tasks, larger int
}

func (g glance) seen() Seen {
	pods := []protocol.Pod{ordered("a", protocol.Ready, time.Hour)}
	s := seen(g.at, pods)
	if g.free >= 0 {
		worker := node(1, "a", headclient.Running, 0)
		worker.Total, worker.Available = map[string]float64{"CPU": 4}, map[string]float64{"CPU": g.free}
		s.Demand.Nodes = []headclient.Node{worker}
	}
	s.Snapshot.Groups[0].Resources = map[string]float64{"CPU": 4}
	s.Demand.Requests = []headclient.Request{
		{Shape: map[string]float64{"CPU": 1}, Count: g.tasks}, {Shape: map[string]float64{"CPU": 2}, Count: g.larger},
	}
	return s
}

// TestRecent_CountsNoTaskTwice: what nodes have taken is not counted as waiting, though Ray says so for a second more.
func TestRecent_CountsNoTaskTwice(t *testing.T) {
	const round = 250 * time.Millisecond
	for name, test := range map[string]struct {
		rounds []glance
		want   string
	}{
		"a burst that just fits":                  {[]glance{{0, 4, 0, 0}, {round, 0, 4, 0}}, "0 0: 1"},
		"a burst that is one too large":           {[]glance{{0, 4, 0, 0}, {round, 0, 5, 0}}, "1 0: 2"},
		"a burst of two shapes that just fits":    {[]glance{{0, 4, 0, 0}, {round, 0, 2, 1}}, "0 0: 1"},
		"a burst that is taken bit by bit":        {[]glance{{0, 4, 0, 0}, {round, 2, 4, 0}, {2 * round, 0, 4, 0}}, "0 0: 1"},
		"what waits and nothing was taken":        {[]glance{{0, 0, 0, 0}, {round, 0, 4, 0}}, "4 0: 2"},
		"what waits while all is free":            {[]glance{{0, 4, 0, 0}, {round, 4, 4, 0}}, "4 0: 1"},
		"what still waits a pull later":           {[]glance{{0, 4, 0, 0}, {round, 0, 4, 0}, {4 * round, 0, 4, 0}, {6 * round, 0, 4, 0}}, "4 0: 2"},
		"what waited before something was taken":  {[]glance{{0, 0, 2, 0}, {3 * round, 0, 2, 0}, {5 * round, 2, 2, 0}, {6 * round, 0, 2, 0}}, "2 0: 2"},
		"a node that came and was full at once":   {[]glance{{0, -1, 4, 0}, {round, 0, 4, 0}}, "0 0: 1"},
		"a full node that an old autoscaler left": {[]glance{{0, 0, 4, 0}}, "4 0: 2"},
		"what is freed and taken again":           {[]glance{{0, 0, 0, 0}, {round, 3, 0, 0}, {2 * round, 0, 3, 0}}, "0 0: 1"},
		"rounds that take longer than a pull":     {[]glance{{0, 4, 0, 0}, {2 * time.Second, 0, 4, 0}}, "0 0: 1"},
		"and the next one of these":               {[]glance{{0, 4, 0, 0}, {2 * time.Second, 0, 4, 0}, {4 * time.Second, 0, 4, 0}}, "4 0: 2"},
	} {
		m, got := NewMemory(), ""
		for _, g := range test.rounds {
			s := look(g.seen())
			m.learn(s)
			in := m.input(s)
			got = fmt.Sprintf("%d %d: %d", in.Demand[0].Count, in.Demand[1].Count, decision.Decide(in).Targets[0].Replicas)
		}
		if got != test.want {
			t.Errorf("%s: tasks and larger ones that wait, and workers: %s, want %s", name, got, test.want)
		}
	}
}

// TestRecent_KeepsRequestsApart: what one kind of request waits for is not what another was taken for.
func TestRecent_KeepsRequestsApart(t *testing.T) {
	plain := headclient.Request{Shape: map[string]float64{"CPU": 1}, Selectors: []headclient.Selector{{}}}
	chosen := plain
	chosen.Selectors = []headclient.Selector{{{Label: "zone", Values: []string{"a"}}}}
	bare := headclient.Request{Shape: map[string]float64{"CPU": 1}}
	if requestKey(&plain) != requestKey(&bare) || requestKey(&plain) == requestKey(&chosen) {
		t.Errorf("%q, %q and %q", requestKey(&plain), requestKey(&bare), requestKey(&chosen))
	}
}
