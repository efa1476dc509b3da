// Package reason is the catalogue of reasons: for everything that a condition, an
// event or a group's status may say, one code, one message and one remedy.
//
// In: the values that a message names. Out: the code, for programs, and a text for
// people that ends with what helps. Operator, servers and CLI share it, so that
// the same cause reads the same everywhere, and can take the remedy off a text again.
//
// It is pure, and it never looks at the cluster to find a cause: who finds it
// fills in the values. A value must not change with every second: a status is
// written whenever its text changes, so texts say "since", never "for".
package reason

import (
	"fmt"
	"slices"
)

// Severity says what a reason asks of the people who read it.
type Severity int

const (
	// Fine: nothing to do.
	Fine Severity = iota
	// Progress: it resolves by itself.
	Progress
	// Warning: a user has to act, or should know.
	Warning
)

// String is the severity's name.
func (s Severity) String() string { return [...]string{"Fine", "Progress", "Warning"}[s] }

// Reason is one entry of the catalogue.
type Reason struct {
	// Code is the stable CamelCase name that programs compare.
	Code     string
	Severity Severity
	// When says in what situation it is used; for the reference.
	When string
	// Message says what is the case; a format for fmt.Sprintf.
	Message string
	// Remedy says what helps; empty where nothing has to be done. A format too, for the
	// values that the message leaves over.
	Remedy string
	// Cases are kinds of the cause that have a remedy of their own.
	Cases []Case
}

// Case is a kind of a cause with its own remedy.
type Case struct{ Kind, Remedy string }

// Finding is a reason with the values of one case.
type Finding struct {
	// Code is the reason's code.
	Code string
	// Text is the message with the remedy at its end.
	Text string
}

// In is the reason with the remedy for a kind of its cause, or as it is when it has
// none for that kind.
func (r Reason) In(kind string) Reason {
	for _, c := range r.Cases {
		if c.Kind == kind {
			r.Remedy = c.Remedy
		}
	}
	return r
}

// Of fills the values of one case into the reason's message and then its remedy. Values may be others' words:
// they become printable, and so short that the text has at most 1 KiB. Where a sentence of theirs begins like a
// remedy of the reason, they lose the ends of their sentences, so that Split finds the true remedy.
func (r Reason) Of(values ...any) Finding {
	format := r.Message
	if r.Remedy != "" {
		format += seam + r.Remedy
	}
	for limit := longestValue; ; limit /= 2 {
		short := shorten(values, limit)
		text := fmt.Sprintf(format, short...)
		if len(text) > longestText && limit > shortestValue {
			continue
		}
		if forms[r.Code].begins(text) > forms[r.Code].begins(format) {
			runOn(short)
			text = fmt.Sprintf(format, short...)
		}
		return Finding{Code: r.Code, Text: text}
	}
}

// About is the finding with what it is about in front: "3 of 8 workers of gpu: …".
func (f Finding) About(subject string) Finding {
	f.Text = subject + ": " + f.Text
	return f
}

// Severity is that of the finding's reason. A code that the catalogue does not know
// is a Warning.
func (f Finding) Severity() Severity {
	if r, ok := Lookup(f.Code); ok {
		return r.Severity
	}
	return Warning
}

// Rank is the place of the finding's reason in the catalogue: of two findings of one
// severity, that of the lower rank is told first.
func (f Finding) Rank() int {
	if at, ok := index[f.Code]; ok {
		return at
	}
	return len(catalogue)
}

// Lookup finds a reason by its code.
func Lookup(code string) (Reason, bool) {
	at, ok := index[code]
	if !ok {
		return Reason{}, false
	}
	return catalogue[at], true
}

// Section is a part of the catalogue under a heading.
type Section struct {
	Title   string
	Reasons []Reason
}

// Sections is the catalogue as the reference shows it. Within a severity, what stands
// first outranks what stands later when only one finding can be told.
func Sections() []Section {
	return []Section{
		obstacles(), refusals(), pods(), passing(), states(), events(), autoscaling(), controlStore(), history(),
		jobObstacles(), jobEnds(), jobProgress(), jobStates(), schedules(), serviceObstacles(), serviceProgress(), serviceStates(),
		outputs(),
	}
}

// Catalogue lists every reason, in the order of Sections.
func Catalogue() []Reason { return slices.Clone(catalogue) }

// The catalogue and the places of its codes, never changed.
var (
	catalogue = flat()
	index     = indexed()
)

func flat() []Reason {
	var all []Reason
	for _, section := range Sections() {
		all = append(all, section.Reasons...)
	}
	return all
}

func indexed() map[string]int {
	places := map[string]int{}
	for at, r := range catalogue {
		places[r.Code] = at
	}
	return places
}
