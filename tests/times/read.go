package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/onsi/ginkgo/v2/types"
)

// Times is what a run cost. Seconds are as measured, not yet divided by Slowness.
type Times struct {
	// Slowness of the machine, 1 for the one that set the budget.
	Slowness float64 `json:"slowness"`
	// Wall is the whole run, of which steps share parts.
	Wall  float64 `json:"wallSeconds"`
	Steps []Step  `json:"steps"`
	Tests []Test  `json:"tests"`
	// Packages of Go tests by their wall time, without those whose results were cached.
	Packages map[string]float64 `json:"packages,omitempty"`
	// Plan is empty where nothing was planned.
	Plan Plan `json:"plan"`
}

// Step is one layer's run.
type Step struct {
	Name string  `json:"name"`
	Lane string  `json:"lane"`
	Wall float64 `json:"wallSeconds"`
	// CPU counts the step's processes and those of its local Kubernetes.
	CPU    float64 `json:"cpuSeconds"`
	Failed bool    `json:"failed,omitempty"`
	// Skipped says why the step, or a part of it, was not run.
	Skipped string `json:"skipped,omitempty"`
}

// Test is one test or spec.
type Test struct {
	Step string  `json:"step"`
	Name string  `json:"name"`
	Wall float64 `json:"wallSeconds"`
	// CPU is what its local Kubernetes used meanwhile; zero where nothing counted it.
	CPU float64 `json:"cpuSeconds,omitempty"`
	// Container is the outermost one of a spec, or its own name.
	Container string `json:"-"`
}

// cost is what tests are compared by: CPU time where it was counted, wall time elsewhere.
func (t Test) cost() float64 {
	if t.CPU > 0 {
		return t.CPU
	}
	return t.Wall
}

// readTimes reads the files of all steps in dir. A step without a file of tests has none.
func readTimes(dir string) (Times, error) {
	var times Times
	run, err := os.ReadFile(filepath.Join(dir, "run.json"))
	if err != nil {
		return times, fmt.Errorf("read the run: %w", err)
	}
	if err := json.Unmarshal(run, &times); err != nil {
		return times, fmt.Errorf("parse the run: %w", err)
	}
	times.Packages = map[string]float64{}
	if times.Plan, err = readPlan(dir); err != nil {
		return times, err
	}
	names, err := filepath.Glob(filepath.Join(dir, "*.step"))
	if err != nil {
		return times, fmt.Errorf("list the steps in %s: %w", dir, err)
	}
	for _, name := range names {
		if err := times.addStep(name); err != nil {
			return times, err
		}
	}
	return times, nil
}

func (t *Times) addStep(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read step %s: %w", file, err)
	}
	var step Step
	if err := json.Unmarshal(text, &step); err != nil {
		return fmt.Errorf("parse step %s: %w", file, err)
	}
	t.Steps = append(t.Steps, step)
	base := strings.TrimSuffix(file, ".step")
	for suffix, read := range map[string]func(string, io.Reader) ([]Test, error){".go.json": t.readGo, ".ginkgo.json": readGinkgo} {
		f, err := os.Open(base + suffix)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read the tests of step %s: %w", step.Name, err)
		}
		tests, err := read(step.Name, f)
		_ = f.Close() // it was only read
		if err != nil {
			return fmt.Errorf("parse the tests of step %s: %w", step.Name, err)
		}
		t.Tests = append(t.Tests, tests...)
	}
	return nil
}

// event is a line of go test -json.
type event struct {
	Action, Package, Test string
	Elapsed               float64
}

// readPlan reads the plan of the run, if there is one.
func readPlan(dir string) (Plan, error) {
	var plan Plan
	text, err := os.ReadFile(filepath.Join(dir, "plan.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return plan, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &plan)
	}
	if err != nil {
		return plan, fmt.Errorf("read the plan: %w", err)
	}
	return plan, nil
}

// readGo returns the tests and subtests of go test -json that ended, and adds up the time of their packages.
func (t *Times) readGo(step string, r io.Reader) ([]Test, error) {
	var tests []Test
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			continue // what a build prints is among the events
		}
		if e.Action != "pass" && e.Action != "fail" {
			continue
		}
		if e.Test == "" {
			t.Packages[shortPackage(e.Package)] += e.Elapsed
			continue
		}
		tests = append(tests, Test{Step: step, Name: shortPackage(e.Package) + "." + e.Test, Wall: e.Elapsed})
	}
	return tests, lines.Err()
}

// shortPackage drops the module from a package's path.
func shortPackage(path string) string {
	return strings.TrimPrefix(path, "github.com/heliostat-dev/heliostat/")
}

// cpuEntry is the report entry in which a spec says how many CPU-seconds its local Kubernetes used.
const cpuEntry = "cpu"

// readGinkgo returns the specs of a Ginkgo report that ran.
func readGinkgo(step string, r io.Reader) ([]Test, error) {
	var suites []types.Report
	if err := json.NewDecoder(r).Decode(&suites); err != nil {
		return nil, err
	}
	var tests []Test
	for _, suite := range suites {
		for i := range suite.SpecReports {
			spec := &suite.SpecReports[i]
			if spec.State.Is(types.SpecStateSkipped | types.SpecStatePending) {
				continue
			}
			cpu, err := specCPU(spec)
			if err != nil {
				return nil, fmt.Errorf("spec %q: %w", spec.FullText(), err)
			}
			test := Test{Step: step, Name: spec.FullText(), Wall: spec.RunTime.Seconds(), CPU: cpu}
			if test.Name == "" {
				test.Name = spec.LeafNodeType.String()
			} else {
				test.Container = outermost(spec)
			}
			tests = append(tests, test)
		}
	}
	return tests, nil
}

func specCPU(spec *types.SpecReport) (float64, error) {
	var sum float64
	for _, entry := range spec.ReportEntries {
		if entry.Name != cpuEntry {
			continue
		}
		var seconds float64
		if err := json.Unmarshal([]byte(entry.Value.AsJSON), &seconds); err != nil {
			return 0, fmt.Errorf("parse its CPU time %q: %w", entry.Value.AsJSON, err)
		}
		sum += seconds
	}
	return sum, nil
}

// write writes the times as JSON.
func (t Times) write(file string) error {
	text, err := json.MarshalIndent(t, "", " ")
	if err != nil {
		return fmt.Errorf("encode the times: %w", err)
	}
	if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the times: %w", err)
	}
	return nil
}
