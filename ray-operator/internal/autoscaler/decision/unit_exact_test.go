package decision

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// checkExact compares two values with all their fields, unexported ones too.
func checkExact(t *testing.T, want, got any) {
	t.Helper()
	all := cmp.Exporter(func(reflect.Type) bool { return true })
	if diff := cmp.Diff(want, got, all); diff != "" {
		t.Error(diff)
	}
}

func TestDemand_KeyHoldsAllThatIsAsked(t *testing.T) {
	for _, c := range []struct {
		name string
		of   Demand
		want string
	}{
		{"amounts in the order of their names", Demand{Shape: Resources{"b": 1, "a": 2}}, `"a"20000"b"10000!`},
		{"the least amount counts", Demand{Shape: Resources{"a": 0.0001}}, `"a"1!`},
		{"an amount of nothing does not", Demand{Shape: Resources{"a": 0, "b": 1}}, `"b"10000!`},
		{
			"selectors", Demand{Selectors: []Selector{in("zone", "b", "a"), in("disk", "x")}},
			`"zone"false"a""b";"disk"false"x";!`,
		},
		{"labels to keep apart, once each", Demand{Apart: []Label{{"b", "v"}, {"a", ""}, {"b", "v"}}}, `"a""""b""v"!`},
		{"nothing", Demand{}, "!"},
		{"too much to count", Demand{Shape: Resources{"a": 1e15}}, `"a"9223372036854775807!`},
	} {
		t.Run(c.name, func(t *testing.T) { checkExact(t, c.want, c.of.keyOf()) })
	}
}

func TestWorld_PutsRequestsTogether(t *testing.T) {
	demands := []Demand{
		{Shape: cpus(1), Count: 2}, {Shape: cpus(2), Count: 0}, {Shape: cpus(2), Count: -1}, {Shape: cpus(2), Count: 1},
		{Shape: cpus(1), Count: 3},
	}
	checkExact(t, []*unit{
		{shape: cpus(1), need: vector{{0, 10000}}, count: 5, from: []int{0, 4}, key: `"CPU"10000!`},
		{shape: cpus(2), need: vector{{0, 20000}}, count: 1, from: []int{3}, key: `"CPU"20000!`},
	}, newWorld(&Input{}).unitsOf(demands))
}

func TestUnit_HoldsWhatIsAsked(t *testing.T) {
	two := Selector{{Label: "zone", Values: []string{"a"}}, {Label: "disk", Values: []string{"b"}}}
	for _, c := range []struct {
		name string
		of   Demand
		want unit
	}{
		{
			"selectors count before labels to keep apart, these once each",
			Demand{Shape: cpus(8), Selectors: []Selector{two, {}}, Apart: []Label{{Name: "x"}, {Name: "y"}, {Name: "x"}}},
			unit{shape: cpus(8), need: vector{{0, 80000}}, rules: []rule{1, 2, 3}, apart: []rule{2, 3}, terms: 2},
		},
		{
			"one accelerator is enough", Demand{Shape: Resources{"A": 2, "GPU": 1, "x": 1}},
			unit{
				shape: Resources{"A": 2, "GPU": 1, "x": 1}, need: vector{{0, 20000}, {1, 10000}, {2, 10000}},
				accelerated: true,
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.want.key = "some key"
			checkExact(t, &c.want, newWorld(&Input{}).unitOf(&c.of, "some key"))
		})
	}
}

func TestUnit_TogetherIsTheSumOfItsParts(t *testing.T) {
	parts := []*unit{
		{
			shape: Resources{"CPU": 1, "x": 2}, need: vector{{0, 10000}, {1, 20000}}, count: 2,
			rules: []rule{1, 2}, apart: []rule{2}, key: "a", terms: 1,
		},
		{shape: cpus(0.5), need: vector{{0, 5000}}, count: 3, rules: []rule{1, 3}, key: "b", terms: 2, accelerated: true},
		{shape: Resources{}, count: 1, key: "c", terms: 4},
	}
	checkExact(t, []*unit{{
		shape: Resources{"CPU": 3.5, "x": 4}, need: vector{{0, 35000}, {1, 40000}}, count: 1,
		rules: []rule{1, 3}, key: "2a3b1c", terms: 7, accelerated: true,
	}}, together(parts))
	checkExact(t, []*unit(nil), together(nil))
}

func TestGang_HoldsWhatIsAsked(t *testing.T) {
	w := newWorld(&Input{})
	from := &Gang{
		Name: "p", Bundles: append(tasks(1, cpus(2)), tasks(3, cpus(1))...), Within: "rack",
		Selectors: []Selector{in("zone", "a"), in("zone", "b")},
	}
	checkExact(t, &gang{
		Gang: from, index: 7, rules: []rule{2, 3},
		key: `3"CPU"10000!1"CPU"20000!"rack""zone"false"a";"zone"false"b";"p"`,
		units: []*unit{
			{shape: cpus(1), need: vector{{0, 10000}}, count: 3, from: []int{1}, key: `"CPU"10000!`},
			{shape: cpus(2), need: vector{{0, 20000}}, count: 1, from: []int{0}, key: `"CPU"20000!`},
		},
	}, w.gangOf(from, 7))
	checkExact(t, map[string]bool{"rack": true, "zone": true}, w.labels.names)

	plain := &Gang{Name: "q", Bundles: tasks(1, cpus(1))}
	checkExact(t, []rule{everyNode}, w.gangOf(plain, 0).rules)
	checkExact(t, map[string]bool{"rack": true, "zone": true}, w.labels.names)
	checkExact(t, (*gang)(nil), w.gangOf(&Gang{Together: true, Bundles: tasks(0, cpus(1))}, 0))
}

func TestFirst_PutsTruthFirst(t *testing.T) {
	for _, c := range []struct {
		a, b bool
		want int
	}{{true, false, -1}, {false, true, 1}, {true, true, 0}, {false, false, 0}} {
		if got := first(c.a, c.b); got != c.want {
			t.Errorf("first(%t, %t) is %d, not %d", c.a, c.b, got, c.want)
		}
	}
}

// Each case differs in what it names, and in what comes after that the other way round.
func TestHarder_ComparesInOrder(t *testing.T) {
	apart := []rule{1}
	for _, c := range []struct {
		name         string
		first, later unit
	}{
		{"more labels to keep apart", unit{apart: []rule{1, 2}}, unit{apart: apart, terms: 2}},
		{"more terms", unit{terms: 2}, unit{terms: 1, accelerated: true}},
		{"accelerators", unit{accelerated: true}, unit{size: 2}},
		{"larger", unit{size: 2}, unit{size: 1, need: make(vector, 2)}},
		{"more kinds", unit{need: make(vector, 2), key: "b"}, unit{need: make(vector, 1), key: "a"}},
		{"key", unit{key: "a"}, unit{key: "b"}},
	} {
		if got, back := harder(&c.first, &c.later), harder(&c.later, &c.first); got != -1 || back != 1 {
			t.Errorf("%s: %d, and %d the other way round, not -1 and 1", c.name, got, back)
		}
	}
}

func TestHarderGang_ComparesInOrder(t *testing.T) {
	of := func(one unit, change func(*gang)) *gang {
		g := &gang{Gang: &Gang{}, units: []*unit{&one}}
		change(g)
		return g
	}
	sized := func(size float64, key string) func(*gang) { return func(g *gang) { g.size, g.key = size, key } }
	as := func(within string, together bool) func(*gang) {
		return func(g *gang) { g.Within, g.Together = within, together }
	}
	for _, c := range []struct {
		name         string
		first, later *gang
	}{
		{"in one place", of(unit{}, as("rack", false)), of(unit{}, as("", true))},
		{"together", of(unit{}, as("", true)), of(unit{terms: 1}, as("", false))},
		{"more labels to keep apart", of(unit{apart: []rule{1}}, sized(1, "")), of(unit{terms: 1}, sized(1, ""))},
		{"more terms", of(unit{terms: 1}, sized(1, "")), of(unit{accelerated: true}, sized(1, ""))},
		{"accelerators", of(unit{accelerated: true}, sized(1, "")), of(unit{}, sized(2, ""))},
		{"larger in all", of(unit{}, sized(2, "b")), of(unit{}, sized(1, "a"))},
		{"key", of(unit{}, sized(1, "a")), of(unit{}, sized(1, "b"))},
	} {
		if got, back := harderGang(c.first, c.later), harderGang(c.later, c.first); got != -1 || back != 1 {
			t.Errorf("%s: %d, and %d the other way round, not -1 and 1", c.name, got, back)
		}
	}
}
