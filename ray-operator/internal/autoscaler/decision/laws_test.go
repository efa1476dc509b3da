package decision

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestOrderOfListsDoesNotMatter(t *testing.T) {
	for seed := range rounds(t, 400) {
		d := seeded(seed)
		in := d.input()
		// Never and targets are in the order of the input: compared by what they are of.
		if diff := cmp.Diff(plainly(in, Decide(in)), plainly(in, Decide(in))); diff != "" {
			t.Fatalf("seed %d: the same input twice: %s", seed, diff)
		}
		other := d.shuffled(in)
		if diff := cmp.Diff(plainly(in, Decide(in)), plainly(other, Decide(other))); diff != "" {
			t.Fatalf("seed %d: %s\n%s", seed, diff, shown(in))
		}
	}
}

// plainly is a decision in which nothing is an index, and nothing follows the input's order.
func plainly(in Input, d Result) any {
	slices.SortFunc(d.Targets, func(a, b Target) int { return strings.Compare(a.Group, b.Group) })
	var gangs []string
	for _, i := range d.Infeasible.Gangs {
		gangs = append(gangs, in.Gangs[i].Name)
	}
	slices.Sort(gangs)
	var never []string
	for _, demand := range slices.Concat(d.Infeasible.Demand, d.Infeasible.Floor) {
		never = append(never, fmt.Sprintf("%d × %s", demand.Count, demand.keyOf()))
	}
	slices.Sort(never)
	return []any{d.Targets, d.Drain, d.Release, d.Kept, gangs, never}
}

// applied is the world after a decision was carried out, and before anything else happened:
// who was named is gone, and new pods have just been made.
func applied(in Input, d Result) Input {
	in.Nodes = slices.DeleteFunc(slices.Clone(in.Nodes), func(n Node) bool { return slices.Contains(d.Drain, n.Key) })
	in.Pods = slices.DeleteFunc(slices.Clone(in.Pods), func(p Pod) bool { return slices.Contains(d.Release, p.Key) })
	for i, g := range in.Groups {
		alive, _ := present(&in, g.Name)
		number := 1000
		for _, p := range in.Pods {
			number = max(number, p.Replica+1)
		}
		for r := range max(0, d.Targets[i].Replicas-alive) {
			for h := range max(1, g.Hosts) {
				place := Place{Key: fmt.Sprintf("%s-%d-%d", g.Name, number+r, h), Group: g.Name, Replica: number + r, Host: h}
				in.Pods = append(in.Pods, Pod{Place: place, Waiting: true})
			}
		}
	}
	return in
}

// someoneElseChooses tells a decision that takes away more than it names: there is more than
// a maximum allows.
func someoneElseChooses(in Input, d Result) bool {
	for i, g := range in.Groups {
		if alive, _ := present(&in, g.Name); d.Targets[i].Replicas < alive-len(named(&in, d, g.Name)) {
			return true
		}
	}
	return false
}

func sizes(d Result) map[string]int {
	all := map[string]int{}
	for _, target := range d.Targets {
		all[target.Group] = target.Replicas
	}
	return all
}

// Where nothing was on its way before and nothing is kept waiting, what was decided is decided
// again when it has been carried out.
func TestADecisionThatIsCarriedOutIsLeftAlone(t *testing.T) {
	tried := 0
	for seed := range rounds(t, 800) {
		in := seeded(seed).input()
		in.Pods, in.Pace, in.Floor = nil, Aggressive, nil
		for i := range in.Groups {
			in.Groups[i].Min = 0
		}
		for i := range in.Nodes {
			in.Nodes[i].Draining, in.Nodes[i].Going = false, false
		}
		d := Decide(in)
		if len(d.Kept) > 0 || someoneElseChooses(in, d) {
			continue
		}
		tried++
		after := applied(in, d)
		again := Decide(after)
		if diff := cmp.Diff(sizes(d), sizes(again)); diff != "" || len(again.Drain)+len(again.Release) > 0 {
			t.Fatalf("seed %d: %s, drain %v, release %v\n%s", seed, diff, again.Drain, again.Release, shown(in))
		}
	}
	if tried < 100 {
		t.Fatalf("%d inputs could be tried, which is too few", tried)
	}
}

// Whatever was there before, a few rounds come to rest, and pods are never made and given
// back in turn.
func TestRoundsComeToRest(t *testing.T) {
	for seed := range rounds(t, 400) {
		in := seeded(seed).input()
		if wrong := restless(in); wrong != "" {
			t.Fatalf("seed %d: %s\n%s", seed, wrong, shown(in))
		}
	}
}

const manyRounds = 30

// restless carries decisions out until nothing changes, and says what is wrong with that.
func restless(in Input) string {
	gone, last := map[string]bool{}, Result{}
	for round := range manyRounds {
		d := Decide(in)
		if round > 0 && cmp.Equal(sizes(d), sizes(last)) && len(d.Drain)+len(d.Release) == 0 {
			return ""
		}
		for i, g := range in.Groups {
			// The first rounds replace pods that were late when they began.
			if round > 3 && gone[g.Name] && d.Targets[i].Replicas > last.Targets[i].Replicas {
				return fmt.Sprintf("in round %d %s grows again after it gave back", round, g.Name)
			}
			gone[g.Name] = gone[g.Name] || len(named(&in, d, g.Name)) > 0
		}
		in, last = applied(in, d), d
		for i := range in.Pods {
			in.Pods[i].Age += 5 * time.Second
		}
	}
	return fmt.Sprintf("no rest after %d rounds", manyRounds)
}

// Sizes that divide each other leave no room for luck: more demand never wants fewer nodes.
func TestMoreDemandNeverWantsFewerNodes(t *testing.T) {
	for seed := range rounds(t, 800) {
		d := seeded(seed)
		in := Input{Pace: Aggressive, Groups: []Group{
			{Name: "a", Max: 1 << 30, Hosts: 1, Resources: Resources{"CPU": 8}}, {Name: "b", Max: 1 << 30, Hosts: 1, Resources: Resources{"CPU": 8}},
		}}
		for i := range d.IntN(6) {
			in.Nodes = append(in.Nodes, Node{Place: Place{Key: fmt.Sprint(i), Group: "a", Replica: i}, Available: Resources{"CPU": float64(d.IntN(9))}})
		}
		for range 1 + d.IntN(4) {
			in.Demand = append(in.Demand, Demand{Shape: Resources{"CPU": pick(d, 0.25, 0.5, 1, 2, 4, 8)}, Count: d.IntN(40)})
		}
		more := in
		more.Demand = slices.Clone(in.Demand)
		if d.one(2) {
			more.Demand[d.IntN(len(more.Demand))].Count += 1 + d.IntN(10)
		} else {
			more.Demand = append(more.Demand, Demand{Shape: Resources{"CPU": pick(d, 0.25, 0.5, 1, 2, 4, 8)}, Count: 1 + d.IntN(9)})
		}
		if few, many := nodesOf(Decide(in)), nodesOf(Decide(more)); many < few {
			t.Fatalf("seed %d: %d nodes, with more demand %d\n%s", seed, few, many, shown(in))
		}
	}
}

func nodesOf(d Result) int {
	all := 0
	for _, target := range d.Targets {
		all += target.Replicas
	}
	return all
}

// What can never fit is a matter of shapes alone: neither other demand nor maxima change it.
func TestNeverDoesNotDependOnTheRest(t *testing.T) {
	for seed := range rounds(t, 400) {
		d := seeded(seed)
		in := d.input()
		before := Decide(in)
		more := in
		more.Demand = append(slices.Clone(in.Demand), d.demand(2000))
		more.Gangs = append(slices.Clone(in.Gangs), d.gang(99))
		after := Decide(more)
		for _, demand := range before.Infeasible.Demand {
			if !slices.ContainsFunc(after.Infeasible.Demand, func(x Demand) bool { return x.keyOf() == demand.keyOf() }) {
				t.Fatalf("seed %d: %s fits when there is more demand", seed, demand.Shape)
			}
		}
		for _, demand := range after.Infeasible.Demand {
			same := func(x Demand) bool { return x.keyOf() == demand.keyOf() }
			if slices.ContainsFunc(in.Demand, same) && !slices.ContainsFunc(before.Infeasible.Demand, same) {
				t.Fatalf("seed %d: %s never fits when there is more demand\n%s", seed, demand.Shape, shown(in))
			}
		}
		for _, i := range after.Infeasible.Gangs {
			if i < len(in.Gangs) && !slices.Contains(before.Infeasible.Gangs, i) {
				t.Fatalf("seed %d: gang %d never fits when there is more demand", seed, i)
			}
		}
	}
}

// A hostile head may say anything that is a number.
func TestAbsurdAmountsAndCounts(t *testing.T) {
	odd := []float64{1e15, 9.3e14, 4.7e14, 1e-9, 1e-4, 0, 1}
	counts := []int{1, math.MaxInt32, 1 << 31, math.MaxInt64, 0, -1}
	for seed := range rounds(t, 150) {
		d := seeded(seed)
		in := d.input()
		for i := range in.Demand {
			in.Demand[i].Shape["CPU"] = odd[d.IntN(len(odd))]
			in.Demand[i].Shape["odd"] = odd[d.IntN(len(odd))]
			in.Demand[i].Count = counts[d.IntN(len(counts))]
		}
		for i := range in.Gangs {
			in.Gangs[i].Bundles[0].Count = counts[d.IntN(len(counts))]
		}
		for i := range in.Groups {
			in.Groups[i].Resources["odd"] = odd[d.IntN(len(odd))]
			in.Groups[i].Resources["CPU"] = odd[d.IntN(len(odd))]
		}
		if d.one(3) {
			in.Groups[0].Max = math.MaxInt32
		}
		for i, target := range Decide(in).Targets {
			if g := in.Groups[i]; target.Replicas < 0 || target.Replicas > g.Max {
				t.Fatalf("seed %d: %s is to have %d", seed, g.Name, target.Replicas)
			}
		}
	}
}

func FuzzDecide(f *testing.F) {
	for seed := range 20 {
		f.Add(seed, 1.0, 1, 0)
	}
	f.Add(3, 1e15, math.MaxInt64, math.MaxInt32)
	f.Fuzz(func(t *testing.T, seed int, amount float64, count, most int) {
		in := seeded(seed).input()
		if len(in.Demand) > 0 && amount >= 0 && amount <= 1e15 {
			in.Demand[0].Shape["CPU"], in.Demand[0].Count = amount, count
		}
		// The judge looks at nodes one by one.
		in.Groups[0].Max = max(in.Groups[0].Max, min(most, 1000))
		p := planFor(&in)
		if wrong := judged(p, p.result()); len(wrong) > 0 {
			t.Fatalf("%q\n%s", wrong, shown(in))
		}
	})
}
