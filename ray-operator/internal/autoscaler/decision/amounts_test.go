package decision

import (
	"math"
	"math/big"
	"strings"
	"testing"
)

// Amounts are counted in ten-thousandths, as Ray does; what is too large to be counted is more
// than any node has where it is asked for, and a large node where it is there.
func TestAmountsAreCounted(t *testing.T) {
	for _, c := range []struct {
		amount float64
		want   int64
	}{
		{1, 10000}, {0.1, 1000}, {0.0001, 1}, {0.00005, 1}, {0.00004, 0}, {0, 0}, {-1, 0}, {math.NaN(), 0}, {math.Inf(-1), 0},
		{9e14, 9e18}, {9e14 + 1, 7}, {math.Inf(1), 7},
	} {
		if got := units(c.amount, 7); got != c.want {
			t.Errorf("%g is %d units, not %d", c.amount, got, c.want)
		}
	}
	large := []Group{kindOf("a", Resources{"CPU": 1e15})}
	checkRules(t, []example{
		{"as much as can be counted", Input{Groups: large, Demand: tasks(1, cpus(9e14))}, []string{"a 1 1 × {CPU: 9e+14}"}},
		{"more than that fits nowhere", Input{Groups: large, Demand: tasks(1, cpus(1e15))}, []string{"a 0", "never 1 × {CPU: 1e+15}"}},
	})
}

func TestImplicitResources(t *testing.T) {
	const one = "node:__internal_implicit_resource_x"
	a := []Group{kindOf("a", cpus(4))}
	checkRules(t, []example{
		{"each node has one", Input{Groups: a, Demand: tasks(2, Resources{one: 1})}, []string{"a 2 2 × {" + short(one) + ": 1}"}},
		{"whatever else is asked for", Input{Groups: a, Demand: tasks(2, Resources{"CPU": 1, one: 1})}, []string{"a 2 2 × {CPU: 1, " + short(one) + ": 1}"}},
		{"of which there are parts", Input{Groups: a, Demand: tasks(2, Resources{"CPU": 1, one: 0.5})}, []string{"a 1 2 × {CPU: 1, " + short(one) + ": 0.5}"}},
		{"and no more", Input{Groups: a, Demand: tasks(2, Resources{one: 1.0001})}, []string{"a 0", "never 2 × {" + short(one) + ": 1.0001}"}},
		{
			"existing ones, too", Input{Groups: a, Nodes: []Node{node("a", 0, cpus(4), cpus(4))}, Demand: append(tasks(1, Resources{one: 1}), tasks(1, cpus(1))...)},
			[]string{"a 1"},
		},
	})
}

func TestTextOfShapes(t *testing.T) {
	for _, c := range []struct {
		shape Resources
		want  string
	}{
		{nil, "{}"},
		{Resources{"CPU": 1, "GPU": 0, "a": 0.5}, "{CPU: 1, a: 0.5}"},
		{Resources{"a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "f": 1}, "{a: 1, b: 1, c: 1, d: 1, e: 1, f: 1}"},
		{Resources{"a": 1, "b": 1, "c": 1, "d": 1, "e": 1, "f": 1, "g": 1, "h": 1}, "{a: 1, b: 1, c: 1, d: 1, e: 1, f: 1, …}"},
		{Resources{"memory": 1 << 30}, "{memory: 1GiB}"},
		{Resources{"memory": 1<<30 - 1<<20}, "{memory: 1023MiB}"},
		{Resources{"memory": 1 << 20}, "{memory: 1MiB}"},
		{Resources{"memory": 1536}, "{memory: 1.5KiB}"},
		{Resources{"memory": 1 << 10}, "{memory: 1KiB}"},
		{Resources{"memory": 1023}, "{memory: 1023}"},
		{Resources{"memory": 1 << 50}, "{memory: 1048576GiB}"},
		{Resources{"memory": 2e9}, "{memory: 1.86GiB}"},
		{Resources{"object_store_memory": 3 << 30}, "{object_store_memory: 3GiB}"},
		{Resources{"CPU": 1 << 30}, "{CPU: 1.073741824e+09}"},
		{Resources{"memory": 1e-9}, "{memory: 1e-09}"},
		{Resources{strings.Repeat("ä", 40): 1}, "{" + strings.Repeat("ä", 40) + ": 1}"},
		{Resources{strings.Repeat("ä", 41): 1}, "{" + strings.Repeat("ä", 39) + "…: 1}"},
		{Resources{"\x1f ~\x7fä": 1}, "{? ~?ä: 1}"},
	} {
		if got := c.shape.String(); got != c.want {
			t.Errorf("%v is %q, not %q", map[string]float64(c.shape), got, c.want)
		}
	}
}

// counted is a vector as a map.
func (v vector) counted() map[kind]int64 {
	all := map[kind]int64{}
	for _, a := range v {
		all[a.kind] = a.n
	}
	return all
}

// vector draws amounts of a few kinds, of which those below 0 are implicit.
func (d dice) vector(amounts ...int64) vector {
	var v vector
	for of := kind(-2); of < 4; of++ {
		if d.one(2) {
			v = append(v, amount{of, pick(d, amounts...)})
		}
	}
	return v
}

// ascends reports whether a vector has each kind once, in order.
func (v vector) ascends() bool {
	for i := range v[:max(len(v)-1, 0)] {
		if v[i].kind >= v[i+1].kind {
			return false
		}
	}
	return true
}

func TestVectorsAreArithmetic(t *testing.T) {
	for seed := range rounds(t, 2000) {
		d := seeded(seed)
		v, need, times := d.vector(0, 1, 7, perOne, 12_345, mostOfNode), d.vector(1, 7, perOne), int64(d.IntN(4))
		has := func(of kind) int64 {
			if n, there := v.counted()[of]; there || of >= 0 {
				return n
			}
			return perOne
		}
		fits, all := tooMuch, v.plus(need, times)
		for of, n := range need.counted() {
			fits = min(fits, has(of)/n)
			want := v.counted()[of] + n*times
			if want > mostOfNode {
				want = tooMuch
			}
			if all.of(of) != want {
				t.Fatalf("seed %d: %v + %d × %v is %v", seed, v, times, need, all)
			}
		}
		if got := v.fits(need); got != fits {
			t.Fatalf("seed %d: %v fits %d times into %v, not %d times", seed, need, fits, v, got)
		}
		left := v.less(need, min(fits, times))
		if !all.ascends() || !left.ascends() {
			t.Fatalf("seed %d: of %v and %v become %v and %v, not each kind once in order", seed, v, need, all, left)
		}
		for of := kind(-2); of < 4; of++ {
			want := has(of)
			if n, takes := need.counted()[of]; takes {
				want -= n * min(fits, times)
			}
			if v.of(of) != has(of) || left.of(of) != want {
				t.Fatalf("seed %d: %v less %d × %v is %v", seed, v, min(fits, times), need, left)
			}
		}
	}
}

func TestSumsAndProductsStopAtTheMost(t *testing.T) {
	most := big.NewInt(tooMuch)
	bounded := func(of *big.Int) int64 {
		if of.Cmp(most) > 0 {
			return tooMuch
		}
		return of.Int64()
	}
	numbers := []int64{0, 1, 2, 3, perOne, 1 << 31, tooMuch / 3, tooMuch / 2, tooMuch/2 + 1, mostOfNode, tooMuch - 1, tooMuch}
	for _, a := range numbers {
		for _, b := range numbers {
			if got, want := sum(a, b), bounded(new(big.Int).Add(big.NewInt(a), big.NewInt(b))); got != want {
				t.Errorf("%d + %d is %d, not %d", a, b, got, want)
			}
			if got, want := product(a, b), bounded(new(big.Int).Mul(big.NewInt(a), big.NewInt(b))); got != want {
				t.Errorf("%d × %d is %d, not %d", a, b, got, want)
			}
			want := bounded(new(big.Int).Add(big.NewInt(a), big.NewInt(b)))
			if want > mostOfNode {
				want = tooMuch
			}
			if got := (vector{{1, a}}).plus(vector{{1, b}}, 1).of(1); got != want {
				t.Errorf("%d and %d of a kind are %d, not %d", a, b, got, want)
			}
		}
	}
}
