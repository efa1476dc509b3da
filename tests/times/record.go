package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"runtime"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// recordFile holds what the last recorded whole run cost. It lies in the repository, so a fresh clone has it.
const recordFile = "docs/results/tests.json"

// Costs is the recorded cost of a whole run, in CPU-seconds of the reference machine.
type Costs struct {
	Command string `json:"command"`
	Commit  string `json:"commit"`
	Date    string `json:"date"`
	// Slowness and Cores are those of the machine that ran it.
	Slowness float64 `json:"slowness"`
	Cores    int     `json:"cores"`
	// WaitSeconds is how much longer the lanes took than their CPU time on all cores.
	WaitSeconds float64 `json:"waitSeconds"`
	// Steps, outermost containers of specs, and packages by their seconds. A step that was not run has its former cost.
	Steps      map[string]float64 `json:"steps"`
	Containers map[string]float64 `json:"containers"`
	Packages   map[string]float64 `json:"packages"`
}

// container returns the cost of a container of specs: the mean of all where it was not recorded.
func (c Costs) container(name string) float64 {
	if cost, known := c.Containers[name]; known || len(c.Containers) == 0 {
		return cost
	}
	sum := 0.0
	for _, cost := range c.Containers {
		sum += cost
	}
	return sum / float64(len(c.Containers))
}

// sum returns the cost of steps.
func (c Costs) sum(steps []string) float64 {
	sum := 0.0
	for _, step := range steps {
		sum += c.Steps[step]
	}
	return sum
}

// Change is what differs between the recorded commit and the work tree.
type Change struct {
	// Unknown is true where git does not have the recorded commit: anything may have changed then.
	Unknown bool
	Files   []string
	Areas   []Area
}

// Area is a row of tests/areas.yaml: a change below one of the Paths touches the specs in the files that match Specs, and
// the steps. A row with neither has paths that concern no spec in particular.
type Area struct {
	Paths []string `json:"paths"`
	Specs []string `json:"specs,omitempty"`
	Steps []string `json:"steps,omitempty"`
}

// touchesDirectory reports whether a file of the change lies in the directory, or below it.
func (c Change) touchesDirectory(directory string) bool {
	return slices.ContainsFunc(c.Files, func(file string) bool { return file == directory || strings.HasPrefix(file, directory+"/") })
}

// touchesSpecs reports whether the change concerns the specs in a file: it changes the file, or a path of their area.
func (c Change) touchesSpecs(file string) bool {
	if c.Unknown || slices.Contains(c.Files, file) {
		return true
	}
	return slices.ContainsFunc(c.Areas, func(a Area) bool {
		return a.has(file) && slices.ContainsFunc(a.Paths, c.touchesDirectory)
	})
}

// has reports whether the specs of a file belong to the area.
func (a Area) has(file string) bool {
	name := strings.TrimSuffix(path.Base(file), "_test.go")
	return slices.ContainsFunc(a.Specs, func(pattern string) bool {
		matches, err := path.Match(pattern, name)
		return err == nil && matches
	})
}

// touchesStep reports whether the change concerns a step as a whole.
func (c Change) touchesStep(step string) bool {
	return slices.ContainsFunc(c.Areas, func(a Area) bool {
		return slices.Contains(a.Steps, step) && slices.ContainsFunc(a.Paths, c.touchesDirectory)
	})
}

// readAreas reads tests/areas.yaml.
func readAreas(file string) ([]Area, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the areas: %w", err)
	}
	var areas []Area
	if err := yaml.UnmarshalStrict(text, &areas); err != nil {
		return nil, fmt.Errorf("parse the areas in %s: %w", file, err)
	}
	return areas, nil
}

// readRecord returns the recorded costs and what has changed since.
func readRecord() (Costs, Change, error) {
	var costs Costs
	text, err := os.ReadFile(recordFile)
	if err != nil {
		return costs, Change{}, fmt.Errorf("read the recorded costs: %w", err)
	}
	if err := json.Unmarshal(text, &costs); err != nil {
		return costs, Change{}, fmt.Errorf("parse the recorded costs in %s: %w", recordFile, err)
	}
	areas, err := readAreas("tests/areas.yaml")
	if err != nil {
		return costs, Change{}, err
	}
	change := Change{Areas: areas}
	change.Files, err = listChanges(costs.Commit)
	change.Unknown = err != nil
	return costs, change, nil
}

// listChanges returns the files that differ from a commit, new ones and both names of renamed ones included.
func listChanges(commit string) ([]string, error) {
	var files []string
	for _, args := range [][]string{{"diff", "--name-only", "--no-renames", "-z", commit, "--"}, {"ls-files", "--others", "--exclude-standard", "-z"}} {
		text, err := exec.Command("git", args...).Output()
		if err != nil {
			return nil, fmt.Errorf("ask git what differs from %s: %w", commit, err)
		}
		files = append(files, strings.FieldsFunc(string(text), func(r rune) bool { return r == 0 })...)
	}
	return files, nil
}

// record is the command "times record": it writes the costs of the last whole run into the repository.
func record(args []string) error {
	flags := flag.NewFlagSet("record", flag.ContinueOnError)
	dir := flags.String("dir", ".state/times", "directory of the steps' files")
	commit := flags.String("commit", "", "commit that the run was of")
	if err := flags.Parse(args); err != nil {
		return err
	}
	times, err := readTimes(*dir)
	if err != nil {
		return err
	}
	if len(times.Plan.Priorities) == 0 {
		return errors.New(`record the costs: the last run was no whole one: run "make test" first`)
	}
	former, _, err := readRecord()
	if err != nil {
		return err
	}
	costs := times.costs(former)
	costs.Commit, costs.Date, costs.Cores = *commit, time.Now().UTC().Format(time.DateOnly), runtime.NumCPU()
	text, err := json.MarshalIndent(costs, "", "  ")
	if err == nil {
		err = os.WriteFile(recordFile, append(text, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("write the recorded costs: %w", err)
	}
	return nil
}

// costs returns what a run cost. Steps, containers and packages that it did not run keep their former cost.
func (t Times) costs(former Costs) Costs {
	costs := Costs{Command: "make test", Slowness: t.Slowness, Steps: map[string]float64{}, Containers: map[string]float64{}, Packages: map[string]float64{}}
	lanes, spent := map[string]float64{}, 0.0
	for _, step := range t.Steps {
		costs.Steps[step.Name] = round(t.calibrated(step.CPU))
		if step.Skipped != "" && step.Wall == 0 {
			costs.Steps[step.Name] = former.Steps[step.Name]
		}
		if isSideBySide(step.Lane) {
			lanes[step.Lane] += step.Wall
			spent += step.CPU
		}
	}
	longest := 0.0
	for _, wall := range lanes {
		longest = max(longest, wall)
	}
	costs.WaitSeconds = round(max(0, longest-spent/float64(runtime.NumCPU())))
	for _, test := range t.Tests {
		if test.Container != "" {
			costs.Containers[test.Container] = round(costs.Containers[test.Container] + t.calibrated(test.CPU))
		}
	}
	for _, name := range t.Plan.LeftOut {
		costs.Containers[name] = former.container(name)
	}
	for _, name := range t.Plan.Excused {
		if cost, recorded := former.Containers[name]; recorded {
			costs.Containers[name] = cost
		}
	}
	maps.Copy(costs.Packages, former.Packages) // Go has the results of some in its cache
	for name, seconds := range t.Packages {
		delete(costs.Packages, name)
		if seconds >= 1 {
			costs.Packages[name] = round(t.calibrated(seconds))
		}
	}
	return costs
}

// isSideBySide reports whether steps of a lane run beside those of others.
func isSideBySide(lane string) bool {
	return slices.Contains([]string{"clusters", "services", "static"}, lane)
}

func round(seconds float64) float64 { return float64(int(seconds*10+0.5)) / 10 }
