package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// Budget is tests/budget.yaml: ceilings in CPU-seconds of the reference machine.
type Budget struct {
	// Total bounds the sum of all steps but those of Apart, on a fresh machine too.
	Total float64 `json:"total"`
	// Apart names steps that cost much on a fresh machine only: they install and build.
	Apart []string `json:"apart"`
	// Spec bounds each spec that counts its CPU time, but for the Exceptions.
	Spec       float64     `json:"spec"`
	Exceptions []Exception `json:"exceptions"`
}

// Exception lets one spec cost more.
type Exception struct {
	// Spec is the full text of a spec.
	Spec   string  `json:"spec"`
	CPU    float64 `json:"cpu"`
	Reason string  `json:"reason"`
}

func readBudget(file string) (Budget, error) {
	var budget Budget
	text, err := os.ReadFile(file)
	if err != nil {
		return budget, fmt.Errorf("read the budget: %w", err)
	}
	if err := yaml.UnmarshalStrict(text, &budget); err != nil {
		return budget, fmt.Errorf("parse the budget %s: %w", file, err)
	}
	if budget.Total <= 0 {
		return budget, fmt.Errorf("read the budget %s: total is %.0f: give the CPU-seconds that all steps may cost", file, budget.Total)
	}
	for _, e := range budget.Exceptions {
		if e.Reason == "" || e.CPU <= budget.Spec {
			return budget, fmt.Errorf("read the exception of %q: it needs a reason and more than %.0f CPU-seconds", e.Spec, budget.Spec)
		}
	}
	return budget, nil
}

// excess is what went over the budget: ceilings that fail the run, and notes that do not.
type excess struct{ ceilings, notes []string }

// exceeded compares the times with the ceilings. Specs over their own ceiling are notes: the sum is
// what keeps the suite short, and a note says where to look.
func (b Budget) exceeded(t Times) excess {
	var over excess
	total := 0.0
	for _, step := range t.Steps {
		if !slices.Contains(b.Apart, step.Name) {
			total += t.calibrated(step.CPU)
		}
	}
	if total > b.Total {
		over.ceilings = append(over.ceilings, fmt.Sprintf("all steps: %.0f CPU-seconds of %.0f", total, b.Total))
	}
	for _, test := range t.Tests {
		if limit := b.limitOf(test); t.calibrated(test.CPU) > limit {
			over.notes = append(over.notes, fmt.Sprintf("over its budget: %.0f CPU-seconds of %.0f: %s", t.calibrated(test.CPU), limit, test.Name))
		}
	}
	return over
}

func (b Budget) limitOf(test Test) float64 {
	for _, e := range b.Exceptions {
		if e.Spec == test.Name {
			return e.CPU
		}
	}
	return b.Spec
}

// err names the ceilings that were passed and the five tests that cost most.
func (e excess) err(t Times) error {
	if len(e.ceilings) == 0 {
		return nil
	}
	lines := []string{"the tests cost more than tests/budget.yaml allows (calibrated by " + fmt.Sprintf("%.2f", t.Slowness) + "):"}
	for _, ceiling := range e.ceilings {
		lines = append(lines, "  "+ceiling)
	}
	lines = append(lines, "the five that cost most:")
	for _, test := range t.dearest(5) {
		lines = append(lines, fmt.Sprintf("  %6.1f  %s", t.calibrated(test.cost()), test.Name))
	}
	return errors.New(strings.Join(append(lines, "make these cheaper, share a cluster, or move full counts to make accept"), "\n"))
}

// calibrated turns seconds of this machine into seconds of the reference machine.
func (t Times) calibrated(seconds float64) float64 {
	if t.Slowness <= 0 {
		return seconds
	}
	return seconds / t.Slowness
}

// dearest returns the n tests of the highest cost, without those that only sum up their subtests.
func (t Times) dearest(n int) []Test {
	parents := map[string]bool{}
	for _, test := range t.Tests {
		for name := test.Name; ; {
			at := strings.LastIndex(name, "/")
			if at < 0 {
				break
			}
			name = name[:at]
			parents[test.Step+" "+name] = true
		}
	}
	leaves := slices.DeleteFunc(slices.Clone(t.Tests), func(test Test) bool { return parents[test.Step+" "+test.Name] })
	slices.SortStableFunc(leaves, func(a, b Test) int { return cmp.Compare(b.cost(), a.cost()) })
	return leaves[:min(n, len(leaves))]
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
