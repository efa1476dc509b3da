package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

const (
	resultsFile = "docs/results/seeded-faults.json"
	pageFile    = "docs/results/seeded-faults.md"
)

// Outcome is what the layers made of a fault.
type Outcome struct {
	Commit string `json:"commit,omitempty"`
	// Layer and Test found the fault; both are empty where none did.
	Layer string `json:"layer,omitempty"`
	Test  string `json:"test,omitempty"`
	// Missed are the layers that were asked and did not find it.
	Missed  []string `json:"missed,omitempty"`
	Seconds float64  `json:"seconds,omitempty"`
	// Away says why the fault could not be put into this commit.
	Away string `json:"away,omitempty"`
}

func (o Outcome) String() string {
	switch {
	case o.Away != "":
		return "not there: " + o.Away
	case o.Layer != "":
		return fmt.Sprintf("found by %s: %s (%.0f s)", o.Layer, o.Test, o.Seconds)
	case o.Commit == "":
		return "not tried"
	default:
		return fmt.Sprintf("survives %s (%.0f s)", strings.Join(o.Missed, ", "), o.Seconds)
	}
}

// cell is the outcome in the table.
func (o Outcome) cell() string {
	switch {
	case o.Layer != "":
		return o.Layer + ": `" + strings.ReplaceAll(o.Test, "|", "/") + "`"
	case o.Away != "" || o.Commit == "":
		return o.String()
	default:
		return "**survives** " + strings.Join(o.Missed, ", ")
	}
}

// Result is what is known of a row.
type Result struct {
	ID     string  `json:"id"`
	Hash   string  `json:"hash"`
	Before Outcome `json:"before,omitzero"`
	After  Outcome `json:"after,omitzero"`
}

// Results are those of all rows, by id.
type Results map[string]Result

func readResults(path string) (Results, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Results{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the results: %w", err)
	}
	var rows []Result
	if err := json.Unmarshal(text, &rows); err != nil {
		return nil, fmt.Errorf("read the results in %s: %w", path, err)
	}
	all := Results{}
	for _, row := range rows {
		all[row.ID] = row
	}
	return all, nil
}

// of returns what is known of a fault, nothing if its row has changed since.
func (r Results) of(fault Fault, as string) Outcome {
	known := r[fault.ID]
	switch {
	case known.Hash != fault.hash():
		return Outcome{}
	case as == "before":
		return known.Before
	default:
		return known.After
	}
}

func (r Results) put(fault Fault, as string, outcome Outcome) {
	known := r[fault.ID]
	if known.Hash != fault.hash() {
		known = Result{ID: fault.ID, Hash: fault.hash()}
	}
	if as == "before" {
		known.Before = outcome
	} else {
		known.After = outcome
	}
	r[fault.ID] = known
}

// write keeps the rows that the list still has, in its order.
func (r Results) write(faults []Fault) error {
	rows := []Result{}
	for _, fault := range faults {
		if known, ok := r[fault.ID]; ok && known.Hash == fault.hash() {
			rows = append(rows, known)
		}
	}
	text, err := json.MarshalIndent(rows, "", "  ")
	if err != nil {
		return fmt.Errorf("print the results: %w", err)
	}
	if err := os.WriteFile(resultsFile, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	if err := os.WriteFile(pageFile, []byte(r.page(faults)), 0o644); err != nil {
		return fmt.Errorf("write the page of the results: %w", err)
	}
	return nil
}

// page is the table for people.
func (r Results) page(faults []Fault) string {
	var b strings.Builder
	b.WriteString("# Seeded faults\n\n")
	b.WriteString("Written by `go run ./tests/seeded` from `tests/seeded/faults/`. Each fault was in the product alone.\n")
	b.WriteString("The layers were asked from the cheapest to the dearest, and the first test that failed is named.\n")
	b.WriteString("A test that ran into its timeout counts as one that failed, and the name says so.\n\n")
	b.WriteString(r.counts(faults))
	area := ""
	for _, fault := range faults {
		if fault.Area != area {
			area = fault.Area
			fmt.Fprintf(&b, "\n## %s\n\n", area)
			b.WriteString("| fault | sort | what it breaks | before | after |\n|---|---|---|---|---|\n")
		}
		before, after := r.of(fault, "before"), r.of(fault, "after")
		cells := []string{fault.ID, fault.Sort, fault.Breaks, before.cell(), after.cell()}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	return b.String()
}

// counts say how many faults each layer found.
func (r Results) counts(faults []Fault) string {
	var b strings.Builder
	b.WriteString("| | before | after |\n|---|---|---|\n")
	found := map[string]map[string]int{"before": {}, "after": {}}
	for as, counts := range found {
		for _, fault := range faults {
			outcome := r.of(fault, as)
			counts[cmp.Or(outcome.Layer, state(outcome))]++
		}
	}
	for _, name := range append(layerNames(), survives, notThere, notTried) {
		if found["before"][name]+found["after"][name] > 0 {
			fmt.Fprintf(&b, "| %s | %d | %d |\n", name, found["before"][name], found["after"][name])
		}
	}
	return b.String()
}

const (
	survives = "survives"
	notThere = "not there"
	notTried = "not tried"
)

func state(outcome Outcome) string {
	switch {
	case outcome.Away != "":
		return notThere
	case outcome.Commit == "":
		return notTried
	default:
		return survives
	}
}
