package decision

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"
)

// rounds is how many random inputs a property is tried on: HELIOSTAT_AUTOSCALE_N, or few.
func rounds(t *testing.T, few int) int {
	t.Helper()
	text := os.Getenv("HELIOSTAT_AUTOSCALE_N")
	if text == "" {
		return few
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("read HELIOSTAT_AUTOSCALE_N: %v", err)
	}
	return n
}

// dice makes random inputs.
type dice struct{ *rand.Rand }

func seeded(seed int) dice { return dice{rand.New(rand.NewPCG(uint64(seed), 7))} }

func (d dice) one(odds int) bool { return d.IntN(odds) == 0 }

func pick[T any](d dice, of ...T) T { return of[d.IntN(len(of))] }

func (d dice) shape() Resources {
	shape := Resources{"CPU": pick(d, 0.1, 0.5, 1, 1, 2, 3, 4, 7)}
	switch d.IntN(7) {
	case 6:
		shape["first"] = 1
	case 0:
		shape["GPU"] = pick(d, 0.5, 1, 2, 4)
	case 1:
		shape["memory"] = float64(1+d.IntN(16)) * (1 << 30)
	case 2:
		shape["special"] = 0.001
	case 3:
		delete(shape, "CPU")
	}
	return shape
}

func (d dice) selectors() []Selector {
	if !d.one(4) {
		return pick(d, nil, []Selector{{}})
	}
	var all []Selector
	for range 1 + d.IntN(2) {
		if d.one(4) {
			all = append(all, Selector{{Label: "number", Not: d.one(4), Values: []string{pick(d, "0", "1")}}})
			continue
		}
		all = append(all, Selector{{Label: pick(d, "zone", "disk"), Not: d.one(4), Values: []string{pick(d, "a", "b")}}})
	}
	return all
}

func (d dice) demand(most int) Demand {
	return Demand{Shape: d.shape(), Selectors: d.selectors(), Count: 1 + d.IntN(most)}
}

func (d dice) group(i int) Group {
	g := Group{
		Name: fmt.Sprintf("g%d", i), Max: d.IntN(12), Hosts: 1, IdleTimeout: time.Minute, Priority: d.IntN(2),
		Resources: Resources{"CPU": pick(d, 1.0, 2, 4, 8, 16), "memory": float64(4+d.IntN(60)) * (1 << 30)},
		Labels:    map[string]string{"group": fmt.Sprint(i)}, PassedOver: d.one(8), Closed: d.one(12),
	}
	if d.one(3) {
		g.Min = d.IntN(g.Max + 1)
	}
	if d.one(5) {
		g.Hosts = 2 + d.IntN(3)
	}
	if d.one(3) {
		g.Resources["GPU"] = pick(d, 1.0, 4, 8)
	}
	if d.one(2) {
		g.Labels["zone"] = pick(d, "a", "b")
	}
	if d.one(3) {
		g.Labels["rack"] = pick(d, "r1", "r2")
	}
	if d.one(6) {
		g.Resources["special"] = 1
	}
	if d.one(10) {
		g.Failing = "ImageNotFound"
	}
	if d.one(4) { // as of a TPU slice
		g.First, g.Numbered = Resources{"first": 1}, "number"
	}
	return g
}

// people puts nodes and pods of a group into an input.
func (d dice) people(in *Input, g *Group) {
	for r := range d.IntN(g.Max + 2) {
		joined, going := d.IntN(3), d.one(12)
		for h := range g.Hosts {
			place := Place{Key: fmt.Sprintf("%s-%d-%d", g.Name, r, h), Group: g.Name, Replica: r, Host: h}
			switch {
			case g.Hosts > 1 && d.one(12) && h > 0:
			case joined == 0 || joined == 1 && d.one(3):
				age := time.Duration(d.IntN(40)) * time.Second
				late := d.one(8)
				in.Pods = append(in.Pods, Pod{
					Place: place, Waiting: d.one(2), Age: age, Late: late, Replace: late && d.one(2), Going: going && d.one(2),
				})
			default:
				in.Nodes = append(in.Nodes, d.node(place, g, going))
			}
		}
	}
}

func (d dice) node(place Place, g *Group, going bool) Node {
	has, labels := g.host(place.Host)
	n := Node{Place: place, Total: Resources{"node:10.0.0.1": 1}, Available: Resources{"node:10.0.0.1": 1}, Labels: labels, Going: going, Draining: d.one(15)}
	busy := d.one(2)
	for name, total := range has {
		n.Total[name], n.Available[name] = total, total
		if busy {
			n.Available[name] = total * float64(d.IntN(5)) / 4
		}
	}
	if !busy {
		n.Idle = time.Duration(d.IntN(120)) * time.Second
	}
	return n
}

func (d dice) gang(i int) Gang {
	g := Gang{Name: fmt.Sprintf("pg%d", i), Together: d.one(5)}
	for range 1 + d.IntN(2) {
		bundle := d.demand(5)
		if d.one(3) {
			bundle.Apart = []Label{{Name: fmt.Sprintf("_PG_%d", i)}}
		}
		g.Bundles = append(g.Bundles, bundle)
	}
	if d.one(3) {
		g.Within = pick(d, "rack", "zone", "slice")
	}
	if d.one(5) {
		g.Selectors = d.selectors()
	}
	return g
}

func (d dice) input() Input {
	in := Input{Pace: pick(d, Conservative, Default, Aggressive, ""), MayShrink: !d.one(4)}
	for i := range 1 + d.IntN(4) {
		g := d.group(i)
		in.Groups = append(in.Groups, g)
		d.people(&in, &g)
	}
	in.Nodes = append(in.Nodes, Node{Place: Place{Key: "head"}, Total: Resources{"CPU": 2}, Available: Resources{"CPU": pick(d, 0.0, 2)}})
	for range d.IntN(5) {
		in.Demand = append(in.Demand, d.demand(12))
	}
	for i := range d.IntN(4) {
		in.Gangs = append(in.Gangs, d.gang(i))
	}
	if d.one(3) {
		in.Floor = append(in.Floor, d.demand(8))
	}
	if d.one(4) {
		in.MaxNodes = 1 + d.IntN(20)
	}
	return in
}

// shuffled has the same in another order.
func (d dice) shuffled(in Input) Input {
	in.Groups, in.Nodes, in.Pods = slices.Clone(in.Groups), slices.Clone(in.Nodes), slices.Clone(in.Pods)
	in.Demand, in.Floor, in.Gangs = slices.Clone(in.Demand), slices.Clone(in.Floor), slices.Clone(in.Gangs)
	d.Shuffle(len(in.Groups), func(i, j int) { in.Groups[i], in.Groups[j] = in.Groups[j], in.Groups[i] })
	d.Shuffle(len(in.Nodes), func(i, j int) { in.Nodes[i], in.Nodes[j] = in.Nodes[j], in.Nodes[i] })
	d.Shuffle(len(in.Pods), func(i, j int) { in.Pods[i], in.Pods[j] = in.Pods[j], in.Pods[i] })
	d.Shuffle(len(in.Demand), func(i, j int) { in.Demand[i], in.Demand[j] = in.Demand[j], in.Demand[i] })
	d.Shuffle(len(in.Floor), func(i, j int) { in.Floor[i], in.Floor[j] = in.Floor[j], in.Floor[i] })
	d.Shuffle(len(in.Gangs), func(i, j int) { in.Gangs[i], in.Gangs[j] = in.Gangs[j], in.Gangs[i] })
	return in
}

func TestEveryDecisionStands(t *testing.T) {
	for seed := range rounds(t, 1000) {
		in := seeded(seed).input()
		p := planFor(&in)
		if wrong := judged(p, p.result()); len(wrong) > 0 {
			t.Fatalf("seed %d: %q\n%s", seed, wrong, shown(in))
		}
	}
}

// shown returns an input as text, for a person who looks for a fault.
func shown(in Input) string {
	text, err := json.MarshalIndent(in, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(text)
}
