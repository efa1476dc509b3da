package view

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/heliostat-dev/heliostat/apiserver/spelling"
)

// Bounds of a query.
const (
	defaultLimit = 100
	maxLimit     = 500
	maxNames     = 200
	maxName      = 253
	maxText      = 256
	maxLabels    = 4096
)

// Query asks for lines.
type Query struct {
	// Kinds and Namespaces to look at; none means all.
	Kinds, Namespaces []string
	// Labels is a label selector as kubectl takes it.
	Labels        string
	Phases, Codes []string
	// Text is looked for in names, owners, codes and messages, regardless of case.
	Text string
	// Sort is one of Sorts, with "-" before it for the reverse order. By default it is the name.
	Sort string
	// Limit is how many lines a page has, 100 where it is 0.
	Limit int
	// Continue is what the page before has.
	Continue string
	// May reports whether the caller may list a kind in a namespace, or everywhere where that is empty.
	May func(kind, namespace string) bool
}

// Finding is one field of a query that cannot be used.
type Finding struct{ Field, Message, Remedy string }

// Findings are all that is wrong with a query. They are an error.
type Findings []Finding

// Error implements error.
func (all Findings) Error() string {
	texts := make([]string, 0, len(all))
	for _, one := range all {
		texts = append(texts, one.Field+": "+one.Message+": "+one.Remedy)
	}
	return "read the query: " + strings.Join(texts, "; ")
}

func (all *Findings) add(field, message, remedy string) {
	*all = append(*all, Finding{field, message, remedy})
}

// err returns the findings, or nil where there are none.
func (all Findings) err() error {
	if len(all) == 0 {
		return nil
	}
	return all
}

// Filter says which lines a query is about.
type Filter struct {
	kinds      []string
	namespaces map[string]bool
	labels     labels.Selector
	phases     []string
	codes      []string
	text       string
	hash       uint64
}

// NewFilter reads what a query is about. It fails with Findings.
func NewFilter(q Query) (*Filter, error) {
	f, all := filterOf(q)
	return f, all.err()
}

func filterOf(q Query) (*Filter, Findings) {
	var all Findings
	f := &Filter{kinds: sorted(q.Kinds), phases: sorted(q.Phases), codes: sorted(q.Codes), text: strings.ToLower(q.Text)}
	for _, kind := range f.kinds {
		if !slices.Contains(kinds, kind) {
			all.add("kinds", fmt.Sprintf("there is no kind %q", cut(kind)), spelling.Remedy(kind, kinds))
		}
	}
	if len(f.kinds) == 0 {
		f.kinds = Kinds()
	}
	for _, names := range []struct {
		field string
		given []string
	}{{"kinds", q.Kinds}, {"namespaces", q.Namespaces}, {"phases", q.Phases}, {"codes", q.Codes}} {
		switch {
		case len(names.given) > maxNames:
			all.add(names.field, fmt.Sprintf("%s has %d entries", names.field, len(names.given)),
				fmt.Sprintf("give at most %d", maxNames))
		case slices.ContainsFunc(names.given, func(name string) bool { return name == "" || len(name) > maxName }):
			all.add(names.field, names.field+" has an entry that is empty or too long",
				fmt.Sprintf("give 1 to %d characters each", maxName))
		}
	}
	if len(q.Namespaces) > 0 {
		f.namespaces = map[string]bool{}
		for _, namespace := range q.Namespaces {
			f.namespaces[namespace] = true
		}
	}
	if len(q.Text) > maxText {
		all.add("text", fmt.Sprintf("text has %d bytes", len(q.Text)), fmt.Sprintf("give at most %d", maxText))
	}
	f.labels = labels.Everything()
	if len(q.Labels) > maxLabels {
		all.add("labels", fmt.Sprintf("labels has %d bytes", len(q.Labels)), fmt.Sprintf("give at most %d", maxLabels))
	} else if selector, err := labels.Parse(q.Labels); err != nil {
		all.add("labels", "labels is no label selector: "+cut(err.Error()), `give one such as "team=a,tier in (x,y)"`)
	} else {
		f.labels = selector
	}
	f.hash = hashOf(strings.Join(f.kinds, ","), strings.Join(slices.Sorted(maps.Keys(f.namespaces)), ","), f.labels.String(),
		strings.Join(f.phases, "\x00"), strings.Join(f.codes, "\x00"), f.text)
	return f, all
}

// sorted returns texts in order, each once.
func sorted(texts []string) []string { return slices.Compact(slices.Sorted(slices.Values(texts))) }

// Covers reports whether the filter is about a kind in a namespace.
func (f *Filter) Covers(place Place) bool {
	return slices.Contains(f.kinds, place.Kind) && (f.namespaces == nil || f.namespaces[place.Namespace])
}

// Asked returns the places whose rights have to be known: those that the filter names, or each kind everywhere.
func (f *Filter) Asked() []Place {
	namespaces := []string{everywhere}
	if f.namespaces != nil {
		namespaces = slices.Sorted(maps.Keys(f.namespaces))
	}
	var places []Place
	for _, kind := range f.kinds {
		for _, namespace := range namespaces {
			places = append(places, Place{kind, namespace})
		}
	}
	return places
}

// IsOpen reports whether the filter names no namespaces.
func (f *Filter) IsOpen() bool { return f.namespaces == nil }

// Matches reports whether a line is one of those that the filter is about. There is none where the line is nil.
func (f *Filter) Matches(l *Line) bool {
	if l == nil || !f.Covers(Place{l.Kind, l.Namespace}) {
		return false
	}
	if len(f.phases) > 0 && !slices.Contains(f.phases, l.Phase) || len(f.codes) > 0 && !slices.Contains(f.codes, l.Code) {
		return false
	}
	return f.labels.Matches(labels.Set(l.Labels)) && f.hasText(l)
}

func (f *Filter) hasText(l *Line) bool {
	if f.text == "" {
		return true
	}
	return slices.ContainsFunc([]string{l.Name, l.Owner, l.Code, l.Message}, func(text string) bool {
		return strings.Contains(strings.ToLower(text), f.text)
	})
}

// cut bounds what is repeated of a caller's text.
func cut(text string) string {
	if len(text) > maxName {
		text = text[:maxName]
	}
	return strings.ToValidUTF8(text, "")
}
