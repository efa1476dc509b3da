package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// Result is what an area's scenarios showed on one machine.
type Result struct {
	Area     string    `json:"area"`
	Commit   string    `json:"commit"`
	Date     string    `json:"date"`
	Machine  Machine   `json:"machine"`
	Outcomes []Outcome `json:"outcomes"`
}

// Machine says what sort of machine it was, not which.
type Machine struct {
	Cores     int    `json:"cores"`
	MemoryGiB int    `json:"memoryGiB"`
	Kernel    string `json:"kernel"`
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
	// Samples are as the scenario's test wrote them, or absent.
	Samples json.RawMessage `json:"samples,omitempty"`
}

func describeMachine() Machine {
	var info syscall.Sysinfo_t
	var name syscall.Utsname
	machine := Machine{Cores: runtime.NumCPU()}
	if syscall.Sysinfo(&info) == nil {
		machine.MemoryGiB = int((info.Totalram*uint64(info.Unit) + 1<<29) >> 30)
	}
	if syscall.Uname(&name) == nil {
		for _, c := range name.Release {
			if c == 0 || c == '-' {
				break // what follows is the builder's own
			}
			machine.Kernel += string(rune(c))
		}
	}
	return machine
}

// write writes the JSON file and the page.
func (r Result) write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the directory of results: %w", err)
	}
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", r.Area, err)
	}
	if err := os.WriteFile(filepath.Join(dir, r.Area+".json"), append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, r.Area+".md"), []byte(r.page()), 0o644); err != nil {
		return fmt.Errorf("write results: %w", err)
	}
	return nil
}

// page is the result as Markdown.
func (r Result) page() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Measured: %s\n\nMade by `make accept AREA=%s` from [%s.json](%s.json). Commit %s, %s, %d cores, %d GiB, Linux %s.\n",
		r.Area, r.Area, r.Area, r.Area, r.Commit, r.Date, r.Machine.Cores, r.Machine.MemoryGiB, r.Machine.Kernel)
	b.WriteString("\n| scenario | promised | measured | kept |\n|---|---|---|---|\n")
	for _, o := range r.Outcomes {
		kept := "yes"
		if !o.Kept {
			kept = "**no**"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", o.Scenario, o.Promise, o.Measured, kept)
	}
	for _, o := range r.Outcomes {
		if table := tables[o.Scenario]; table != nil && len(o.Samples) > 0 {
			fmt.Fprintf(&b, "\n## %s\n\n%s", o.Scenario, table(o.Samples))
		}
	}
	return b.String()
}
