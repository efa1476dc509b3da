package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2/types"
)

// mostLeftOut is the share of the specs that a run on a slow machine may leave out.
const mostLeftOut = 0.05

// Container is an outermost container of specs, or a spec outside of any. A run plays all of it or nothing.
type Container struct {
	Name  string
	Specs int
	// Cost is in CPU-seconds of the reference machine, and Touched reports whether the change concerns its specs.
	Cost    float64
	Touched bool
}

// Plan is what a whole run plays: in which order, and without which specs.
type Plan struct {
	// Seconds is the predicted length of the whole run, without what is left out, and Limit what it may take; 0 is no limit.
	Seconds float64 `json:"seconds"`
	Limit   float64 `json:"limit"`
	Specs   int     `json:"specs"`
	// LeftOut names containers, and LeftOutSpecs counts their specs.
	LeftOut      []string `json:"leftOut,omitempty"`
	LeftOutSpecs int      `json:"leftOutSpecs,omitempty"`
	// Excused names containers of which the run plays no spec, because a filter of labels leaves them all out.
	Excused []string `json:"excused,omitempty"`
	// Priorities order containers: the highest one runs first.
	Priorities map[string]int `json:"priorities"`
}

// pace is what the length of a run follows from.
type pace struct {
	slowness float64
	// elapsed is how long the run has taken until now, and rest the recorded CPU-seconds of the lanes that follow.
	elapsed, rest float64
	// wait is how long lanes wait whatever the machine is, and cores share their CPU time.
	wait  float64
	cores int
}

// seconds returns the predicted length of a run that leaves out specs of a cost in CPU-seconds.
func (p pace) seconds(leftOut float64) float64 {
	return p.elapsed + p.wait + (p.rest-leftOut)*p.slowness/float64(p.cores)
}

// planRun orders containers, and leaves some out where the run would take longer than limit seconds. Those that the change
// touches stay. The commit decides which of the others go, so that the next commit leaves out others. It returns an error
// where more than mostLeftOut of the specs would have to go.
func planRun(containers []Container, p pace, commit string, limit float64) (Plan, error) {
	plan := Plan{Limit: limit, Priorities: priorities(containers)}
	for i := range containers {
		plan.Specs += containers[i].Specs
	}
	most, saved := int(mostLeftOut*float64(plan.Specs)), 0.0
	for _, c := range rotated(containers, commit) {
		if limit == 0 || p.seconds(saved) <= limit {
			break
		}
		if c.Touched || plan.LeftOutSpecs+c.Specs > most {
			continue
		}
		plan.LeftOut = append(plan.LeftOut, c.Name)
		plan.LeftOutSpecs += c.Specs
		saved += c.Cost
	}
	plan.Seconds = p.seconds(saved)
	if limit > 0 && plan.Seconds > limit {
		return plan, fmt.Errorf("this machine is %.2f times as slow as the reference, so the tests would take %.0f minutes and may take %.0f; "+
			"without the %d of %d specs that may be left out, they still would: use a faster machine, or make the tests cheaper",
			p.slowness, p.seconds(0)/60, limit/60, plan.LeftOutSpecs, plan.Specs)
	}
	slices.Sort(plan.LeftOut)
	return plan, nil
}

// rotated returns the containers in an order that follows from the commit.
func rotated(containers []Container, commit string) []Container {
	key := func(c Container) string {
		sum := sha256.Sum256([]byte(commit + "\n" + c.Name))
		return string(sum[:])
	}
	return slices.SortedFunc(slices.Values(containers), func(a, b Container) int { return cmp.Compare(key(a), key(b)) })
}

// priorities put what the change touches first, and then what costs most.
func priorities(containers []Container) map[string]int {
	const touched = 1 << 20 // above any cost
	of := map[string]int{}
	for _, c := range containers {
		of[c.Name] = int(c.Cost)
		if c.Touched {
			of[c.Name] += touched
		}
	}
	return of
}

// lines returns what the end of a run prints of the plan.
func (p Plan) lines() string {
	if len(p.LeftOut) == 0 {
		return ""
	}
	return fmt.Sprintf("left out, as this machine is slow: %d of %d specs: %s\n", p.LeftOutSpecs, p.Specs, strings.Join(p.LeftOut, "; "))
}

// readContainers reads the report of a dry run of the specs, without those that the filter of labels leaves out. It also
// returns the names of the containers of which the filter leaves out every spec.
func readContainers(r io.Reader, costs Costs, change Change) (containers []Container, excused []string, err error) {
	var suites []types.Report
	if err := json.NewDecoder(r).Decode(&suites); err != nil {
		return nil, nil, fmt.Errorf("parse the report of the dry run: %w", err)
	}
	at := map[string]int{}
	for _, suite := range suites {
		for i := range suite.SpecReports {
			spec := &suite.SpecReports[i]
			if spec.LeafNodeType != types.NodeTypeIt {
				continue
			}
			name := outermost(spec)
			if spec.State.Is(types.SpecStateSkipped | types.SpecStatePending) {
				excused = append(excused, name)
				continue
			}
			if _, known := at[name]; !known {
				at[name] = len(containers)
				containers = append(containers, Container{Name: name, Cost: costs.container(name)})
			}
			c := &containers[at[name]]
			c.Specs++
			c.Touched = c.Touched || slices.ContainsFunc(filesOf(spec), change.touchesSpecs)
		}
	}
	slices.Sort(excused)
	excused = slices.DeleteFunc(slices.Compact(excused), func(name string) bool { _, played := at[name]; return played })
	return containers, excused, nil
}

// outermost returns the name of the outermost container of a spec, or its own.
func outermost(spec *types.SpecReport) string {
	return append(slices.Clone(spec.ContainerHierarchyTexts), spec.LeafNodeText)[0]
}

// filesOf returns the files that a spec and its containers are in, as paths from the root of the repository.
func filesOf(spec *types.SpecReport) []string {
	var files []string
	for _, location := range append(slices.Clone(spec.ContainerHierarchyLocations), spec.LeafNodeLocation) {
		file := location.FileName
		if at := strings.LastIndex(file, specDirectory); at >= 0 {
			file = file[at:]
		}
		files = append(files, file)
	}
	return files
}

// specDirectory has all specs on real Ray.
const specDirectory = "tests/e2e/"

// makePlan is the command "times plan". Its arguments are the steps of the lanes that will run.
func makePlan(args []string) error {
	flags := flag.NewFlagSet("plan", flag.ContinueOnError)
	dir := flags.String("dir", ".state/times", "directory with specs.json, the report of a dry run; plan.json is written there")
	commit := flags.String("commit", "", "commit whose hash chooses what is left out")
	slowness := flags.Float64("slowness", 1, "CPU time of this machine as a multiple of the reference machine's")
	elapsed := flags.Float64("elapsed", 0, "seconds that the run has taken until now")
	limit := flags.Float64("limit", 0, "seconds that the whole run may take; 0 is no limit")
	cores := flags.Int("cores", 2, "cores of this machine")
	if err := flags.Parse(args); err != nil {
		return err
	}
	costs, change, err := readRecord()
	if err != nil {
		return err
	}
	f, err := os.Open(*dir + "/specs.json")
	if err != nil {
		return fmt.Errorf("open the report of the dry run: %w", err)
	}
	defer func() { _ = f.Close() }() // it was only read
	containers, excused, err := readContainers(f, costs, change)
	if err != nil {
		return err
	}
	steps := flags.Args()
	plan, err := planRun(containers, pace{*slowness, *elapsed, costs.sum(steps), costs.WaitSeconds, *cores}, *commit, *limit)
	if err != nil {
		return err
	}
	plan.Excused = excused
	text, err := json.MarshalIndent(plan, "", " ")
	if err == nil {
		err = os.WriteFile(*dir+"/plan.json", text, 0o644)
	}
	if err != nil {
		return fmt.Errorf("write the plan: %w", err)
	}
	if plan.Limit > 0 {
		fmt.Printf("predicted: %.0f minutes of %.0f\n", plan.Seconds/60, plan.Limit/60)
	}
	fmt.Print(plan.lines())
	return nil
}
