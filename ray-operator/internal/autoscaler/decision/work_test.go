package decision

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

const gibi = float64(1 << 30)

// load is a large cluster: of ten groups, each worker busy and unlike each other one, with
// tasks of many shapes and placement groups of every strategy that wait.
type load struct{ nodes, pending, shapes, gangs int }

func (l load) input() Input {
	d := seeded(l.nodes)
	in := Input{Pace: Aggressive, MayShrink: true, MaxNodes: 4 * l.nodes}
	for i := range 10 {
		size := float64(int(8) << (i % 4))
		g := Group{
			Name: fmt.Sprintf("g%d", i), Max: 4 * l.nodes / 10, Hosts: 1, IdleTimeout: time.Minute,
			Resources: Resources{"CPU": size, "memory": size * 4 * gibi}, Labels: map[string]string{"zone": pick(d, "a", "b")},
		}
		if i >= 7 {
			g.Resources["GPU"] = size / 8
		}
		in.Groups = append(in.Groups, g)
	}
	for i := range l.nodes {
		g := &in.Groups[i%10]
		node := Node{Place: Place{Key: fmt.Sprintf("pod-%d", i), Group: g.Name, Replica: i / 10}, Labels: g.Labels, Total: Resources{}, Available: Resources{}}
		for name, total := range g.Resources {
			node.Total[name], node.Available[name] = total, total*d.Float64()
		}
		address := fmt.Sprintf("node:10.0.%d.%d", i/256, i%256)
		node.Total[address], node.Available[address] = 1, 1
		node.Total["object_store_memory"], node.Available["object_store_memory"] = gibi, gibi*d.Float64()
		in.Nodes = append(in.Nodes, node)
	}
	for i := range l.shapes {
		shape := Resources{"CPU": float64(1 + i%16), "memory": float64(1+i) * gibi / 8}
		demand := Demand{Shape: shape, Selectors: []Selector{{}}, Count: l.pending / l.shapes}
		if i%10 == 0 {
			shape["GPU"] = float64(1 + i%3)
		}
		if i%10 == 1 {
			demand.Selectors = []Selector{{{Label: "zone", Values: []string{"a"}}}, {}}
		}
		in.Demand = append(in.Demand, demand)
	}
	for i := range l.gangs {
		bundle := Demand{Shape: Resources{"CPU": 4}, Count: 8}
		gang := Gang{Name: fmt.Sprintf("pg-%d", i), Together: i%4 == 3}
		switch i % 4 {
		case 1:
			bundle.Apart = []Label{{Name: "_PG_" + gang.Name}}
		case 2:
			bundle.Shape["GPU"] = 1
		}
		gang.Bundles = []Demand{bundle}
		in.Gangs = append(in.Gangs, gang)
	}
	return in
}

var loads = []struct {
	load
	most time.Duration
}{
	{load{500, 3_000, 50, 30}, 20 * time.Millisecond},
	{load{2_000, 10_000, 50, 100}, 100 * time.Millisecond},
	{load{10_000, 100_000, 200, 100}, time.Second},
}

func BenchmarkDecide(b *testing.B) {
	for _, l := range loads {
		b.Run(fmt.Sprintf("nodes=%d/pending=%d/shapes=%d/gangs=%d", l.nodes, l.pending, l.shapes, l.gangs), func(b *testing.B) {
			in := l.input()
			b.ReportAllocs()
			for b.Loop() {
				Decide(in)
			}
		})
	}
}

// The cost is bounded whatever is asked for: counted in looks at classes, because a test
// shares its machine with others.
func TestTheWorkIsBounded(t *testing.T) {
	for _, l := range loads {
		in := l.input()
		p := planFor(&in)
		if spent := p.floor.work + p.main.work; spent > mostWork/4 {
			t.Errorf("%+v takes %d looks, of at most %d", l.load, spent, mostWork)
		}
		for _, want := range p.demand {
			if want.left > 0 {
				t.Errorf("%+v: %d × %s have no place", l.load, want.left, want.shape)
			}
		}
	}
	// What is hostile takes what it may, and ends.
	hostile := load{2_000, 1 << 40, 20_000, 4_000}.input()
	for i := range hostile.Gangs {
		hostile.Gangs[i].Within = "host"
	}
	for i := range hostile.Nodes {
		hostile.Nodes[i].Labels = map[string]string{"host": fmt.Sprint(i)}
	}
	p := planFor(&hostile)
	v := p.verdicts()
	if !slices.ContainsFunc(v.kept, func(k Kept) bool {
		return strings.HasSuffix(k.Why, "more kinds of requests wait than one round looks at")
	}) {
		t.Error("nobody is told that not all of a hostile demand was looked at")
	}
	if most := mostWork * 3 / 2; p.main.work > most || v.looks > most || len(v.kept) == 0 {
		t.Errorf("a hostile demand took %d looks and %d at what never fits, of at most %d, and kept %d waiting", p.main.work, v.looks, mostWork, len(v.kept))
	}
}
