package decision

import (
	"cmp"
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Ray counts resources in units of 1/10000, so that ten requests of 0.1 fit into 1.
const perOne = 10000

// A node has at most so many units, and a request for more fits nowhere: sums and products
// stay below 2^63.
const (
	mostOfNode = int64(9e18)
	tooMuch    = int64(math.MaxInt64)
)

// implicit begins the names of resources of which every node has 1 without saying so.
const implicit = "node:__internal_implicit_resource_"

// accelerators are resources of which other work must not take the nodes.
var accelerators = map[string]bool{"GPU": true, "TPU": true, "NPU": true, "HPU": true, "neuron_cores": true, "RBLN": true, "FURIOSA": true}

// units are an amount in units of 1/10000, or instead where it is above what can be counted.
func units(amount float64, instead int64) int64 {
	switch scaled := math.Round(amount * perOne); {
	case !(scaled > 0):
		return 0
	case scaled > float64(mostOfNode):
		return instead
	default:
		return int64(scaled)
	}
}

// kind is a resource that something asks for; those below 0 are implicit.
type kind int32

// amount is so many units of a kind.
type amount struct {
	kind kind
	n    int64
}

// vector is amounts in the order of their kinds. It is never changed once made.
type vector []amount

// kinds numbers the names that something asks for.
type kinds struct {
	byName      map[string]kind
	accelerator map[kind]bool
}

// learn makes a vector of what is asked for, with names that are new.
func (k *kinds) learn(asked Resources) vector {
	need := vector{}
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		n := units(asked[name], tooMuch)
		if n == 0 {
			continue
		}
		of, known := k.byName[name]
		if !known {
			of = kind(len(k.byName))
			if strings.HasPrefix(name, implicit) {
				of = -1 - of
			}
			k.byName[name] = of
			k.accelerator[of] = accelerators[name]
		}
		need = append(need, amount{of, n})
	}
	return need.sorted()
}

// know makes a vector of what a node has, without what nobody asks for.
func (k *kinds) know(has Resources) vector {
	have := make(vector, 0, min(len(has), 8))
	for name, n := range has {
		if of, known := k.byName[name]; known {
			have = append(have, amount{of, units(n, mostOfNode)})
		}
	}
	return have.sorted()
}

func (v vector) sorted() vector {
	slices.SortFunc(v, func(a, b amount) int { return cmp.Compare(a.kind, b.kind) })
	return v
}

// key is the same for the same amounts.
func (v vector) key() string {
	var key []byte
	for _, a := range v {
		key = binary.AppendVarint(binary.AppendVarint(key, int64(a.kind)), a.n)
	}
	return string(key)
}

// of is how much there is of a kind.
func (v vector) of(wanted kind) int64 {
	for _, a := range v {
		if a.kind == wanted {
			return a.n
		}
	}
	if wanted < 0 {
		return perOne
	}
	return 0
}

// fits is how often a need fits; what needs nothing fits without end.
func (v vector) fits(need vector) int64 {
	times, at := tooMuch, 0
	for _, n := range need {
		for at < len(v) && v[at].kind < n.kind {
			at++
		}
		free := int64(0)
		switch {
		case at < len(v) && v[at].kind == n.kind:
			free = v[at].n
		case n.kind < 0:
			free = perOne
		}
		if free < n.n {
			return 0
		}
		times = min(times, free/n.n)
	}
	return times
}

// less is what is left when a need was taken some times, which must fit.
func (v vector) less(need vector, times int64) vector {
	return v.merged(need, perOne, func(has, n int64) int64 { return has - n*times })
}

// plus adds a need some times; what becomes too much stays so.
func (v vector) plus(need vector, times int64) vector {
	return v.merged(need, 0, func(has, n int64) int64 {
		if more := product(n, times); has <= mostOfNode && more <= mostOfNode-has {
			return has + more
		}
		return tooMuch
	})
}

// merged changes the amounts of a vector that another one has as well. Of what only the other
// one has there is nothing, or so much where it is implicit.
func (v vector) merged(other vector, implied int64, change func(has, n int64) int64) vector {
	all := make(vector, 0, len(v)+len(other))
	at := 0
	for _, o := range other {
		for ; at < len(v) && v[at].kind < o.kind; at++ {
			all = append(all, v[at])
		}
		has := int64(0)
		if at < len(v) && v[at].kind == o.kind {
			has = v[at].n
			at++
		} else if o.kind < 0 {
			has = implied
		}
		all = append(all, amount{o.kind, change(has, o.n)})
	}
	return append(all, v[at:]...)
}

// product is a × b of numbers that are not negative, at most tooMuch.
func product(a, b int64) int64 {
	if b != 0 && a > tooMuch/b {
		return tooMuch
	}
	return a * b
}

// sum is a + b of numbers that are not negative, at most tooMuch.
func sum(a, b int64) int64 {
	if a > tooMuch-b {
		return tooMuch
	}
	return a + b
}

// namesShown is of how many kinds a shape's text speaks.
const namesShown = 6

// String is a shape for people, such as "{CPU: 4, memory: 16GiB}".
func (r Resources) String() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(r)) {
		if r[name] == 0 {
			continue
		}
		if len(parts) == namesShown {
			parts = append(parts, "…")
			break
		}
		parts = append(parts, short(name)+": "+quantity(name, r[name]))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// short keeps a name that a stranger chose printable and within 40 characters.
func short(name string) string {
	runes := []rune(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, name))
	if len(runes) > 40 {
		return string(runes[:39]) + "…"
	}
	return string(runes)
}

func quantity(name string, amount float64) string {
	format, unit := byte('g'), ""
	if name == "memory" || name == "object_store_memory" {
		for _, larger := range []struct {
			name string
			size float64
		}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
			if amount >= larger.size {
				format, unit, amount = 'f', larger.name, math.Round(amount/larger.size*100)/100
				break
			}
		}
	}
	return strconv.FormatFloat(amount, format, -1, 64) + unit
}
