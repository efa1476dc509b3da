package decision

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// unit is requests that are all alike.
type unit struct {
	shape Resources
	need  vector
	// rules are what a node's labels must satisfy, apart those of them that a node no longer
	// satisfies once it has one of these requests.
	rules, apart []rule
	count        int64
	// from are the indices in the input's list of what was put together here.
	from []int
	key  string
	// terms, accelerated and size tell how hard it is to place: size is relative to the
	// largest group.
	terms       int
	accelerated bool
	size        float64
	// holds are, by group, the rank of its selectors on an empty node there, or nowhere.
	holds []int
}

// gang is a placement group in the packer's terms.
type gang struct {
	*Gang
	index int
	key   string
	units []*unit
	// rules are the alternatives that bind all its nodes.
	rules []rule
	size  float64
}

// keyOf is the same for requests of the same shape.
func (d *Demand) keyOf() string {
	var key strings.Builder
	for _, name := range slices.Sorted(maps.Keys(d.Shape)) {
		if n := units(d.Shape[name], tooMuch); n > 0 {
			key.WriteString(strconv.Quote(name) + strconv.Itoa(int(n)))
		}
	}
	key.WriteString(textOf(d.Selectors))
	var apart []string
	for _, label := range d.Apart {
		apart = append(apart, strconv.Quote(label.Name)+strconv.Quote(label.Value))
	}
	slices.Sort(apart)
	return key.String() + strings.Join(slices.Compact(apart), "") + "!"
}

// unitsOf puts together what is alike. Where counts are absent or negative nothing is asked for.
func (w *world) unitsOf(demands []Demand) []*unit {
	byKey := map[string]*unit{}
	var all []*unit
	for i := range demands {
		demand := &demands[i]
		if demand.Count <= 0 {
			continue
		}
		key := demand.keyOf()
		one := byKey[key]
		if one == nil {
			one = w.unitOf(demand, key)
			byKey[key] = one
			all = append(all, one)
		}
		one.count = sum(one.count, int64(demand.Count))
		one.from = append(one.from, i)
	}
	return all
}

func (w *world) unitOf(demand *Demand, key string) *unit {
	one := &unit{shape: demand.Shape, key: key, need: w.kinds.learn(demand.Shape)}
	if selects := w.labels.learn(demand.Selectors); selects != everyNode {
		one.rules = append(one.rules, selects)
		one.terms = len(demand.Selectors[0])
	}
	for _, label := range demand.Apart {
		if bars := w.labels.without(label); !slices.Contains(one.apart, bars) {
			one.apart = append(one.apart, bars)
			one.rules = append(one.rules, bars)
		}
	}
	for _, part := range one.need {
		one.accelerated = one.accelerated || w.kinds.accelerator[part.kind]
	}
	return one
}

// together makes one request of all of a gang's.
func together(parts []*unit) []*unit {
	if len(parts) == 0 {
		return nil
	}
	merged := &unit{shape: Resources{}, count: 1}
	for _, part := range parts {
		for name, n := range part.shape {
			merged.shape[name] += n * float64(part.count)
		}
		merged.need = merged.need.plus(part.need, part.count)
		for _, of := range part.rules {
			if !slices.Contains(merged.rules, of) && !slices.Contains(part.apart, of) {
				merged.rules = append(merged.rules, of)
			}
		}
		merged.terms += part.terms
		merged.accelerated = merged.accelerated || part.accelerated
		merged.key += strconv.Itoa(int(part.count)) + part.key
	}
	return []*unit{merged}
}

// gangOf makes a gang, nil if it asks for nothing.
func (w *world) gangOf(from *Gang, index int) *gang {
	bundles := w.unitsOf(from.Bundles)
	slices.SortFunc(bundles, func(a, b *unit) int { return strings.Compare(a.key, b.key) })
	if from.Together {
		bundles = together(bundles)
	}
	if len(bundles) == 0 {
		return nil
	}
	g := &gang{Gang: from, index: index, units: bundles, rules: []rule{everyNode}}
	if w.labels.learn(from.Selectors) != everyNode {
		g.rules = nil
		for _, alternative := range from.Selectors {
			g.rules = append(g.rules, w.labels.learn([]Selector{alternative}))
		}
	}
	if from.Within != "" {
		w.labels.names[from.Within] = true
	}
	var key strings.Builder
	for _, one := range bundles {
		key.WriteString(strconv.Itoa(int(one.count)) + one.key)
	}
	g.key = key.String() + strconv.Quote(from.Within) + textOf(from.Selectors) + strconv.Quote(from.Name)
	return g
}

// harder orders by difficulty, the hardest first: those that are kept apart, labels,
// accelerators, size. The rest makes the order the same each time.
func harder(a, b *unit) int {
	return cmp.Or(
		cmp.Compare(len(b.apart), len(a.apart)), cmp.Compare(b.terms, a.terms), first(a.accelerated, b.accelerated),
		cmp.Compare(b.size, a.size), cmp.Compare(len(b.need), len(a.need)), strings.Compare(a.key, b.key),
	)
}

// harderGang orders gangs likewise: what must lie in one place comes first.
func harderGang(a, b *gang) int {
	return cmp.Or(
		first(a.Within != "", b.Within != ""), first(a.Together, b.Together), harderFirst(a.units[0], b.units[0]),
		cmp.Compare(b.size, a.size), strings.Compare(a.key, b.key),
	)
}

// harderFirst is harder without the last word, which a gang's own size and key have.
func harderFirst(a, b *unit) int {
	return cmp.Or(cmp.Compare(len(b.apart), len(a.apart)), cmp.Compare(b.terms, a.terms), first(a.accelerated, b.accelerated))
}

// first puts what is true before what is not.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}
