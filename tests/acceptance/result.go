package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/heliostat-dev/heliostat/tests/live"
)

// results is the directory of all results, in the repository.
var results = filepath.Join("docs", "results")

// Result is what an area's scenarios showed, in their order; those that were never played are
// not in it.
type Result struct {
	Area     string    `json:"area"`
	Outcomes []Outcome `json:"outcomes"`
}

// Outcome is what one scenario showed.
type Outcome struct {
	Scenario string `json:"scenario"`
	// Promise and Measured are sentences for people.
	Promise  string `json:"promise"`
	Measured string `json:"measured"`
	Kept     bool   `json:"kept"`
	// Seconds that the scenario took.
	Seconds float64 `json:"seconds"`
	// Commit is what it was played at, Code what head says of it, Date the day, Machine what it
	// was played on.
	Commit  string       `json:"commit"`
	Code    string       `json:"code"`
	Date    string       `json:"date"`
	Machine live.Machine `json:"machine"`
	// Table has the lines of the Markdown that tells of the samples, where the scenario has one of tables.
	Table []string `json:"table,omitempty"`
	// Latencies are what serveLatency judges.
	Latencies []live.Latency `json:"latencies,omitempty"`
	// Samples are as the scenario's test wrote them, or absent. They are kept in the area's state alone.
	Samples json.RawMessage `json:"-"`
}

// read reads what an area's scenarios have shown so far.
func read(area string) (Result, error) {
	result := Result{Area: area}
	text, err := os.ReadFile(filepath.Join(results, area+".json"))
	if errors.Is(err, fs.ErrNotExist) {
		return result, nil
	}
	if err != nil {
		return result, fmt.Errorf("read what was shown before: %w", err)
	}
	if err := json.Unmarshal(text, &result); err != nil {
		return result, fmt.Errorf("parse what was shown before: %w", err)
	}
	return result, nil
}

// of is what a scenario showed, if it was played.
func (r Result) of(scenario string) (Outcome, bool) {
	at := slices.IndexFunc(r.Outcomes, func(o Outcome) bool { return o.Scenario == scenario })
	if at < 0 {
		return Outcome{}, false
	}
	return r.Outcomes[at], true
}

// play runs a scenario, keeps its samples in a directory of state and writes the result into another one.
func (r *Result) play(ctx context.Context, s scenario, state, dir string) error {
	outcome, err := s.once(ctx, state)
	if err != nil {
		return fmt.Errorf("scenario %s: %w", s.name, err)
	}
	if err := outcome.keep(state); err != nil {
		return err
	}
	r.put(outcome)
	return r.write(dir)
}

// keep writes the outcome with its samples into the area's state.
func (o Outcome) keep(state string) error {
	o.Table = nil // the samples say more
	text, err := json.MarshalIndent(struct {
		Outcome
		Samples json.RawMessage `json:"samples,omitempty"`
	}{o, o.Samples}, "", "  ")
	if err == nil {
		err = os.WriteFile(filepath.Join(state, o.Scenario+".json"), append(text, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("keep the samples of %s: %w", o.Scenario, err)
	}
	return nil
}

// put has an outcome take the place of the scenario's former one. Outcomes of scenarios that
// the area has no more go.
func (r *Result) put(outcome Outcome) {
	var all []Outcome
	for _, scenario := range areas[r.Area] {
		before, found := r.of(scenario.name)
		switch {
		case scenario.name == outcome.Scenario:
			all = append(all, outcome)
		case found:
			all = append(all, before)
		}
	}
	r.Outcomes = all
}

// shown is the outcome of a scenario that need not be played again with the code.
func (r Result) shown(s scenario, code string) (Outcome, bool) {
	outcome, found := r.of(s.name)
	return outcome, found && outcome.Kept && outcome.holds(s, code)
}

// holds reports whether the outcome is what the scenario would show with the code; nobody knows that
// of what was played with changes that were never committed.
func (o Outcome) holds(s scenario, code string) bool {
	return o.Code == code && o.Promise == s.promise && !strings.HasSuffix(o.Commit, changed)
}

// verdict is an error where one of some scenarios did not keep its promise, or was not played with the code.
func (r Result) verdict(scenarios []scenario, code string) error {
	var broken []error
	var unplayed []string
	for _, scenario := range scenarios {
		outcome, found := r.of(scenario.name)
		switch {
		case !found || !outcome.holds(scenario, code):
			unplayed = append(unplayed, scenario.name)
		case !outcome.Kept:
			broken = append(broken, fmt.Errorf("%s: promised: %s; measured: %s", scenario.name, outcome.Promise, outcome.Measured))
		}
	}
	if len(unplayed) > 0 {
		broken = append(broken, fmt.Errorf("not played with this code: %s", strings.Join(unplayed, ", ")))
	}
	return errors.Join(broken...)
}

// write writes the JSON file and the page.
func (r Result) write(dir string) error { return live.WriteResult(dir, r.Area, r, r.page()) }

// page is the result as Markdown.
func (r Result) page() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Measured: %s\n\nMade by `make accept AREA=%s` from [%s.json](%s.json). %s\n", r.Area, r.Area, r.Area, r.Area, r.circumstances())
	b.WriteString("\n| scenario | promised | measured | kept |\n|---|---|---|---|\n")
	for _, o := range r.Outcomes {
		kept := "yes"
		if !o.Kept {
			kept = "**no**"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", o.Scenario, o.Promise, o.Measured, kept)
	}
	for _, o := range r.Outcomes {
		if len(o.Table) > 0 {
			fmt.Fprintf(&b, "\n## %s\n\n%s\n", o.Scenario, strings.Join(o.Table, "\n"))
		}
	}
	return b.String()
}

// circumstances says in a sentence each which scenarios were played when, on what and with which
// code.
func (r Result) circumstances() string {
	var order []string
	names := map[string][]string{}
	for _, o := range r.Outcomes {
		how := fmt.Sprintf("commit %s, %s, %d cores, %d GiB, Linux %s", o.Commit, o.Date, o.Machine.Cores, o.Machine.MemoryGiB, o.Machine.Kernel)
		if names[how] == nil {
			order = append(order, how)
		}
		names[how] = append(names[how], o.Scenario)
	}
	var parts []string
	for _, how := range order {
		part := strings.Join(names[how], ", ") + ": " + how
		if len(order) == 1 {
			part = "All: " + how
		}
		parts = append(parts, part+".")
	}
	unplayed := slices.DeleteFunc(namesOf(areas[r.Area]), func(name string) bool { _, found := r.of(name); return found })
	if len(unplayed) > 0 {
		parts = append(parts, "Not played yet: "+strings.Join(unplayed, ", ")+".")
	}
	return strings.Join(parts, " ")
}
