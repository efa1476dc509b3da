package main

import (
	"fmt"
	"strings"
)

// table returns the steps' cost, the ten tests that cost most, and what was not run, as Markdown.
func (t Times) table() string {
	var b strings.Builder
	b.WriteString("\n| step | lane | wall s | CPU s | calibrated |\n|---|---|---:|---:|---:|\n")
	var cpu float64
	for _, step := range t.Steps {
		cpu += step.CPU
		name := step.Name
		if step.Failed {
			name += " (FAILED)"
		}
		fmt.Fprintf(&b, "| %s | %s | %.0f | %.0f | %.0f |\n", name, step.Lane, step.Wall, step.CPU, t.calibrated(step.CPU))
	}
	fmt.Fprintf(&b, "| all | | %.0f | %.0f | %.0f |\n", t.Wall, cpu, t.calibrated(cpu))
	fmt.Fprintf(&b, "\nOne CPU-second of the budget is %.2f here.\n", t.Slowness)
	b.WriteString("\n| the ten that cost most | step | wall s | CPU s |\n|---|---|---:|---:|\n")
	for _, test := range t.dearest(10) {
		counted := "not counted"
		if test.CPU > 0 {
			counted = fmt.Sprintf("%.1f", test.CPU)
		}
		fmt.Fprintf(&b, "| %s | %s | %.1f | %s |\n", strings.ReplaceAll(test.Name, "|", "\\|"), test.Step, test.Wall, counted)
	}
	b.WriteString(t.skipped())
	return b.String()
}

// skipped lists what was not run, and why.
func (t Times) skipped() string {
	var b strings.Builder
	for _, step := range t.Steps {
		if step.Skipped != "" {
			fmt.Fprintf(&b, "not run: %s: %s\n", step.Name, step.Skipped)
		}
	}
	if b.Len() == 0 {
		return "\nEverything was run.\n"
	}
	return "\n" + b.String()
}
