package decision

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// rule numbers a list of selectors; the first is the one that matches every node.
type rule int32

// set numbers the labels of a node, as far as something asks for them.
type set int32

const everyNode rule = 0

// Ranks that are none.
const (
	nowhere = -1
	unknown = -2
	// furthest is the last place in a list of selectors that is told from those after it.
	furthest = 120
)

// labels knows which nodes match which selectors.
type labels struct {
	names  map[string]bool
	rules  []([]Selector)
	byRule map[string]rule
	sets   []map[string]string
	bySet  map[string]set
	// ranks are by rule and set.
	ranks [][]int8
}

func newLabels() *labels {
	return &labels{
		names: map[string]bool{}, rules: [][]Selector{nil}, ranks: [][]int8{nil},
		byRule: map[string]rule{}, bySet: map[string]set{},
	}
}

// learn numbers selectors, and begins to care for the labels in them.
func (l *labels) learn(selectors []Selector) rule {
	if len(selectors) == 0 || len(selectors[0]) == 0 {
		return everyNode
	}
	key := textOf(selectors)
	number, known := l.byRule[key]
	if !known {
		number = rule(len(l.rules))
		l.byRule[key] = number
		l.rules = append(l.rules, selectors)
		l.ranks = append(l.ranks, nil)
		for _, selector := range selectors {
			for _, term := range selector {
				l.names[term.Label] = true
			}
		}
	}
	return number
}

// without numbers the rule that a node has not got a label.
func (l *labels) without(label Label) rule {
	return l.learn([]Selector{{{Label: label.Name, Not: true, Values: []string{label.Value}}}})
}

// know numbers the labels of a node. All rules must have been learned.
func (l *labels) know(of map[string]string) set {
	relevant := map[string]string{}
	for name, value := range of {
		if l.names[name] {
			relevant[name] = value
		}
	}
	var key strings.Builder
	for _, name := range slices.Sorted(maps.Keys(relevant)) {
		key.WriteString(strconv.Quote(name) + strconv.Quote(relevant[name]))
	}
	number, known := l.bySet[key.String()]
	if !known {
		number = set(len(l.sets))
		l.bySet[key.String()] = number
		l.sets = append(l.sets, relevant)
	}
	return number
}

// has reports whether labels hold a label with a value.
func (l *labels) has(on set, name, value string) bool {
	has, there := l.sets[on][name]
	return there && has == value
}

// rank is the place of the first selector that matches, or nowhere.
func (l *labels) rank(of rule, on set) int {
	if of == everyNode {
		return 0
	}
	row := l.ranks[of]
	for len(row) < len(l.sets) {
		row = append(row, unknown)
	}
	l.ranks[of] = row
	if row[on] == unknown {
		row[on] = nowhere
		if at := slices.IndexFunc(l.rules[of], func(s Selector) bool { return s.matches(l.sets[on]) }); at >= 0 {
			row[on] = int8(min(at, furthest))
		}
	}
	return int(row[on])
}

func (s Selector) matches(labels map[string]string) bool {
	for _, term := range s {
		value, there := labels[term.Label]
		if (there && slices.Contains(term.Values, value)) == term.Not {
			return false
		}
	}
	return true
}

// textOf is the same for selectors that mean the same in the same order.
func textOf(selectors []Selector) string {
	var text strings.Builder
	for _, selector := range selectors {
		var terms []string
		for _, term := range selector {
			values := slices.Sorted(slices.Values(term.Values))
			terms = append(terms, strconv.Quote(term.Label)+strconv.FormatBool(term.Not)+strings.Join(quoted(values), ""))
		}
		slices.Sort(terms)
		text.WriteString(strings.Join(terms, "") + ";")
	}
	return text.String()
}

func quoted(values []string) []string {
	all := make([]string, len(values))
	for i, value := range values {
		all[i] = strconv.Quote(value)
	}
	return all
}
