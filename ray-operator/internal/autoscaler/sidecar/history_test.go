package sidecar

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient/fakehead"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol"
)

// histories is how many are made, each of events steps with something happening in most.
const histories, events = 100, 60

// TestHistories: whatever happens, and in whatever order, judge finds nothing; and when
// nothing happens any more, all that waits is served, and all that idles goes.
func TestHistories(t *testing.T) {
	for seed := range uint64(histories) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			h := newHistory(t, seed)
			for range events {
				h.happen()
				h.step(time.Duration(h.random.IntN(8)*250+250) * time.Millisecond)
				if t.Failed() {
					t.Fatalf("it happened: %v\nword %+v\npods %s", h.log, h.decision, h.list())
				}
			}
			h.calm()
		})
	}
}

// history is a bed to which things happen.
type history struct {
	*bed
	random *rand.Rand
	ends   []func()
	log    []string
}

func newHistory(t *testing.T, seed uint64) *history {
	random := rand.New(rand.NewPCG(seed, 0))
	plain, spot, pair := cpuGroup(6), cpuGroup(3), cpuGroup(2)
	plain.Min = random.IntN(2)
	spot.Name, spot.Priority, spot.CapacityTimeout = "spot", 5, 10*time.Second
	pair.Name, pair.Hosts, pair.Resources = "pair", 2, map[string]float64{"CPU": 1, "GPU": 1}
	h := &history{bed: newBed(t, plain, spot, pair), random: random}
	h.restarts = time.Duration(random.IntN(20)) * time.Second
	h.machines["spot"] = random.IntN(3)
	if random.IntN(3) == 0 {
		h.snapshot.MaxNodes = 8
	}
	h.meddle = func(id headclient.NodeID) {
		if h.random.IntN(4) == 0 && !h.away[id] {
			h.ends = append(h.ends, h.head.Occupy(id))
		}
	}
	return h
}

// happen makes one thing happen, or nothing.
func (h *history) happen() {
	all := []struct {
		name string
		do   func()
	}{
		{"nothing", func() {}},
		{"tasks", func() { h.ends = append(h.ends, h.head.Want(cpus(1+h.random.IntN(5)))) }},
		{"GPU tasks", func() {
			h.ends = append(h.ends, h.head.Want(fakehead.Ask{Shape: map[string]float64{"GPU": 1}, Count: 1 + h.random.IntN(3)}))
		}},
		{"a gang", func() {
			h.ends = append(h.ends, h.head.Gather(fakehead.Group{Strategy: headclient.StrictSpread, Bundles: []fakehead.Ask{cpus(1 + h.random.IntN(3))}}))
		}},
		{"what never fits", func() {
			h.ends = append(h.ends, h.head.Want(fakehead.Ask{Shape: map[string]float64{"TPU": 4}, Count: 1}))
		}},
		{"an end", h.end}, {"another end", h.end}, {"one more end", h.end},
		{"a floor", func() { h.head.Floor(cpus(h.random.IntN(3))) }},
		{"the head is away", func() { h.head.Behave(fakehead.Away) }},
		{"the head talks nonsense", func() { h.head.Behave(fakehead.Garbled) }},
		{"the head obeys without a decision", func() { h.head.Behave(fakehead.Mute) }},
		{"the head is well", func() { h.head.Behave(fakehead.Well) }}, {"the head is well again", func() { h.head.Behave(fakehead.Well) }},
		{"GCS begins anew", h.recover},
		{"some nodes are back", h.rejoin}, {"other nodes are back", h.rejoin},
		{"the head begins anew", h.restart},
		{"the autoscaler begins anew", h.begin},
		{"the operator goes", func() { h.listening = false }},
		{"the operator comes", func() { h.listening = true }}, {"the operator is back", func() { h.listening = true }},
		{"a raylet dies", h.crash},
		{"a pod goes", h.lose},
		{"machines", func() { h.machines["spot"] = h.random.IntN(4) }},
		{"an edit", func() { h.snapshot.Groups[0].Max = h.random.IntN(7) }},
		{"a suspension", func() { h.snapshot.Groups[2].Suspended = h.random.IntN(2) == 0 }},
	}
	one := all[h.random.IntN(len(all))]
	h.log = append(h.log, one.name)
	one.do()
}

func (h *history) end() {
	if len(h.ends) > 0 {
		i := h.random.IntN(len(h.ends))
		h.ends[i]()
		h.ends = slices.Delete(h.ends, i, i+1)
	}
}

func (h *history) recover() {
	h.head.Recover()
	for _, one := range h.pods {
		if one.alive {
			h.away[one.node] = true
		}
	}
}

func (h *history) rejoin() {
	for id := range h.away {
		if h.random.IntN(2) == 0 {
			h.head.Rejoin(id)
			delete(h.away, id)
		}
	}
}

// restart ends the head with all that runs; the kubelet starts workers again that are there.
func (h *history) restart() {
	h.head.Restart()
	h.head.Join(fakehead.Member{Instance: "the head's", Head: true})
	clear(h.away)
	h.ends = nil
	for _, one := range h.pods {
		if one.alive {
			one.alive, one.since = false, h.clock.Now()
		}
	}
	h.restarts = 5 * time.Second
}

func (h *history) crash() {
	for _, one := range h.pods {
		if one.alive && !h.away[one.node] && h.random.IntN(3) == 0 {
			h.head.Kill(one.node)
			one.alive, one.since = false, h.clock.Now()
			return
		}
	}
}

func (h *history) lose() {
	if len(h.pods) > 0 {
		gone := h.pods[h.random.IntN(len(h.pods))]
		h.remove(func(one *worker) bool { return one.Group == gone.Group && one.Replica == gone.Replica })
	}
}

// calm ends all trouble, and asks that what waits is served, and that what idles goes.
func (h *history) calm() {
	h.t.Helper()
	h.head.Behave(fakehead.Well)
	h.head.Rejoin()
	clear(h.away)
	h.listening, h.meddle, h.restarts = true, nil, 5*time.Second
	h.snapshot.MaxNodes, h.snapshot.Groups[0].Max, h.snapshot.Groups[2].Suspended = 0, 6, false
	for len(h.ends) > 0 {
		h.end()
	}
	h.head.Floor()
	end := h.head.Want(cpus(4))
	h.until("four tasks are served", func() bool { return h.serving() == 4 })
	end()
	h.until("only the minimum is there", func() bool {
		return len(h.pods) == h.snapshot.Groups[0].Min && h.there("cpu") == len(h.pods) && len(h.decision.Removals) == 0 && len(h.decision.Infeasible) == 0
	})
}

// serving counts the CPUs that are at work.
func (h *history) serving() (count int) {
	client, err := headclient.Dial(h.head.Address(), headclient.Options{})
	if err != nil {
		h.t.Fatal(err)
	}
	demand, err := client.Demand(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	if err := client.Close(); err != nil {
		h.t.Fatal(err)
	}
	for _, node := range demand.Nodes {
		count += int(node.Total["CPU"] - node.Available["CPU"])
	}
	return count
}

// TestShuffledSnapshots: the order of pods in orders changes nothing of the decision.
func TestShuffledSnapshots(t *testing.T) {
	h := newHistory(t, 1)
	h.head.Want(cpus(5))
	h.steps(10)
	for range 10 {
		words := h.decisions
		h.random.Shuffle(len(h.pods), func(i, j int) { h.pods[i], h.pods[j] = h.pods[j], h.pods[i] })
		h.step(250 * time.Millisecond)
		if h.decisions != words {
			t.Fatalf("another decision: %+v", h.decision)
		}
	}
	if got := h.target("cpu"); got == (protocol.Target{Replicas: -1}) {
		t.Error("there is no target")
	}
}
