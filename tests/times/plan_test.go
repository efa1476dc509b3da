package main

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// twenty are containers of five specs each that cost 60 CPU-seconds each.
func twenty() []Container {
	var all []Container
	for i := range 20 {
		all = append(all, Container{Name: fmt.Sprintf("container %d", i), Specs: 5, Cost: 60})
	}
	return all
}

func TestPlanRun_LeavesOutWhatASlowMachineCannotRun(t *testing.T) {
	// 600 s until now, 300 s of waiting, and 1,200 CPU-seconds on two cores.
	at := func(slowness float64) pace { return pace{slowness, 600, 1200, 300, 2} }
	for _, c := range []struct {
		name     string
		pace     pace
		limit    float64
		edit     func([]Container)
		leftOut  int // specs
		seconds  float64
		refusals string
	}{
		{name: "a fast machine leaves out nothing", pace: at(1), limit: 1500, seconds: 1500},
		{name: "without a limit a slow one neither", pace: at(9), seconds: 6300},
		{name: "a slower one leaves out a container", pace: at(2), limit: 2050, leftOut: 5, seconds: 2040},
		{name: "5 % are the most", pace: at(2), limit: 2039, leftOut: 5, refusals: "2.00 times as slow as the reference, so the tests would take 35 minutes and may take 34"},
		{name: "larger containers stay", pace: at(2), limit: 2050, leftOut: 2, seconds: 2040,
			edit: func(all []Container) {
				for i := range all {
					all[i].Specs = 6
				}
				all[7].Specs = 2
			}},
		{name: "what the change touches stays", pace: at(2), limit: 2050, refusals: "without the 0 of 100 specs",
			edit: func(all []Container) {
				for i := range all {
					all[i].Touched = true
				}
			}},
	} {
		containers := twenty()
		if c.edit != nil {
			c.edit(containers)
		}
		plan, err := planRun(containers, c.pace, "abc", c.limit)
		if c.refusals != "" {
			if err == nil || !strings.Contains(err.Error(), c.refusals) {
				t.Errorf("%s: the error is %v", c.name, err)
			}
			continue
		}
		if err != nil || plan.LeftOutSpecs != c.leftOut || plan.Seconds != c.seconds {
			t.Errorf("%s: planned %+v, %v", c.name, plan, err)
		}
		if (plan.lines() == "") != (c.leftOut == 0) || c.leftOut > 0 && !strings.Contains(plan.lines(), plan.LeftOut[0]) {
			t.Errorf("%s: the closing lines are %q", c.name, plan.lines())
		}
	}
}

func TestPlanRun_RotatesByCommit(t *testing.T) {
	seen := map[string]bool{}
	for i := range 200 {
		commit := fmt.Sprint("commit ", i)
		plan, err := planRun(twenty(), pace{2, 600, 1200, 300, 2}, commit, 2050)
		again, errAgain := planRun(twenty(), pace{2, 600, 1200, 300, 2}, commit, 2050)
		if err != nil || errAgain != nil || len(plan.LeftOut) != 1 || !slices.Equal(plan.LeftOut, again.LeftOut) {
			t.Fatalf("%s leaves out %v and %v, %v", commit, plan.LeftOut, again.LeftOut, err)
		}
		seen[plan.LeftOut[0]] = true
	}
	if len(seen) != 20 {
		t.Errorf("200 commits left out %d of 20 containers", len(seen))
	}
}

func TestPlanRun_NamesInOrder(t *testing.T) {
	var all []Container
	for i := range 60 {
		all = append(all, Container{Name: fmt.Sprintf("container %02d", i), Specs: 1, Cost: 10})
	}
	plan, err := planRun(all, pace{1, 0, 600, 0, 1}, "abc", 570)
	if err != nil || len(plan.LeftOut) != 3 || !slices.IsSorted(plan.LeftOut) {
		t.Errorf("left out %q, %v, want three in order", plan.LeftOut, err)
	}
	if want := fmt.Sprintf("left out, as this machine is slow: 3 of 60 specs: %s\n", strings.Join(plan.LeftOut, "; ")); plan.lines() != want {
		t.Errorf("the closing lines are %q, want %q", plan.lines(), want)
	}
}

func TestPriorities_PutTheChangeFirst(t *testing.T) {
	of := priorities([]Container{{Name: "cheap", Cost: 3}, {Name: "dear", Cost: 90}, {Name: "touched", Cost: 1, Touched: true}})
	if of["touched"] <= of["dear"] || of["dear"] <= of["cheap"] {
		t.Errorf("priorities are %v", of)
	}
}

func TestReadContainers_CountsSpecs(t *testing.T) {
	const report = `[{"SpecReports": [
 {"LeafNodeType": "BeforeSuite", "State": "passed"},
 {"ContainerHierarchyTexts": ["a cluster"], "ContainerHierarchyLocations": [{"FileName": "/x/tests/e2e/hosts_test.go"}],
  "LeafNodeType": "It", "LeafNodeText": "one", "LeafNodeLocation": {"FileName": "/x/tests/e2e/work_test.go"}, "State": "passed"},
 {"ContainerHierarchyTexts": ["a cluster"], "ContainerHierarchyLocations": [{"FileName": "/x/tests/e2e/hosts_test.go"}],
  "LeafNodeType": "It", "LeafNodeText": "two", "LeafNodeLocation": {"FileName": "/x/tests/e2e/hosts_test.go"}, "State": "passed"},
 {"LeafNodeType": "It", "LeafNodeText": "alone", "LeafNodeLocation": {"FileName": "/x/tests/e2e/idle_test.go"}, "State": "passed"},
 {"LeafNodeType": "It", "LeafNodeText": "left out", "State": "skipped"},
 {"LeafNodeType": "It", "LeafNodeText": "pending", "State": "pending"},
 {"ContainerHierarchyTexts": ["a cluster"], "LeafNodeType": "It", "LeafNodeText": "left out of it", "State": "skipped"}]}]`
	change := Change{Files: []string{"tests/e2e/work_test.go"}}
	got, excused, err := readContainers(strings.NewReader(report), Costs{Containers: map[string]float64{"a cluster": 12}}, change)
	want := []Container{{"a cluster", 2, 12, true}, {"alone", 1, 12, false}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("read %+v, %v, want %+v", got, err, want)
	}
	if want := []string{"left out", "pending"}; !slices.Equal(excused, want) {
		t.Errorf("excused are %q, want %q", excused, want)
	}
	if got, _, err := readContainers(strings.NewReader("["), Costs{}, change); err == nil {
		t.Errorf("a broken report gave %v", got)
	}
}

func TestChange_TouchesSpecsAndSteps(t *testing.T) {
	areas := []Area{
		{Paths: []string{"ray-operator/internal/service"}, Specs: []string{"service_*"}},
		{Paths: []string{"web", "helm-chart/values.yaml"}, Steps: []string{"web"}},
	}
	for _, c := range []struct {
		name        string
		change      Change
		specs, step bool // those of service_life_test.go, and the step web
	}{
		{"nothing changed", Change{}, false, false},
		{"its own file changed", Change{Files: []string{"tests/e2e/service_life_test.go"}}, true, false},
		{"another file changed", Change{Files: []string{"tests/e2e/hosts_test.go"}}, false, false},
		{"its area changed", Change{Files: []string{"ray-operator/internal/service/decide.go"}}, true, false},
		{"a directory of a longer name changed", Change{Files: []string{"ray-operator/internal/services/decide.go"}}, false, false},
		{"the page changed", Change{Files: []string{"web/src/main.tsx"}}, false, true},
		{"a path that is a file changed", Change{Files: []string{"helm-chart/values.yaml"}}, false, true},
		{"git does not have the commit", Change{Unknown: true}, true, false},
	} {
		c.change.Areas = areas
		if got := c.change.touchesSpecs("tests/e2e/service_life_test.go"); got != c.specs {
			t.Errorf("%s: touches the specs: %v", c.name, got)
		}
		if got := c.change.touchesStep("web"); got != c.step {
			t.Errorf("%s: touches the step: %v", c.name, got)
		}
	}
}

func TestOrder_PutsTheChangeFirst(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e"}
	costs := map[string]float64{"b": 5, "d": 9, "e": 1}
	order(names, func(name string) bool { return name == "e" || name == "b" }, func(name string) float64 { return costs[name] })
	if got := strings.Join(names, " "); got != "b e d a c" {
		t.Errorf("ordered %s", got)
	}
	change := Change{Files: []string{"cli/app/app.go", "cli/job/testdata/a.yaml"}}
	for directory, want := range map[string]bool{"cli/app": true, "cli/job": true, "cli": false, "cli/apps": false} {
		if got := change.touchesPackage(directory); got != want {
			t.Errorf("touchesPackage(%s) = %v", directory, got)
		}
	}
}

func TestReadRecord_FindsTheChange(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "tests/areas.yaml", "- paths: [cli]\n  specs: [pages]\n")
	write(t, "cli/a former name.go", "package cli\n")
	write(t, recordFile, "{}")
	git := func(args ...string) string {
		out, err := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...).Output()
		if err != nil {
			t.Fatalf("git %v: %v", args, err)
		}
		return strings.TrimSpace(string(out))
	}
	git("init", "-q")
	git("add", ".")
	git("commit", "-q", "-m", "a")
	write(t, recordFile, `{"commit": "`+git("rev-parse", "HEAD")+`"}`)
	if err := os.Rename("cli/a former name.go", "new.go"); err != nil {
		t.Fatal(err)
	}
	git("add", ".")
	write(t, "untracked.go", "")
	_, change, err := readRecord()
	if want := []string{"cli/a former name.go", recordFile, "new.go", "untracked.go"}; err != nil || change.Unknown || !slices.Equal(change.Files, want) {
		t.Errorf("it read %+v, %v, want the files %q", change, err, want)
	}
	write(t, recordFile, `{"commit": "0123456789"}`)
	if _, change, err := readRecord(); err != nil || !change.Unknown {
		t.Errorf("of a commit that git does not have it read %+v, %v", change, err)
	}
}

func TestRecord_IsOfWholeRuns(t *testing.T) {
	dir := written(t, map[string]string{"run.json": `{"slowness": 1}`})
	if err := record([]string{"-dir", dir}); err == nil || !strings.Contains(err.Error(), "no whole one") {
		t.Errorf("the error is %v", err)
	}
}

func TestTimes_CostsForTheRecord(t *testing.T) {
	times := sample(t)
	times.Steps = append(times.Steps, Step{Name: "lint", Lane: "static", Skipped: "unchanged"})
	times.Steps[0].Wall, times.Steps[1].Lane = 700, "static"
	times.Packages = map[string]float64{"ray-operator/internal/cluster": 30, "cli": 0.2}
	times.Tests = append(times.Tests, Test{Container: "a cluster", CPU: 10})
	times.Plan.LeftOut = []string{"a service"}
	times.Plan.Excused = []string{"a contract", "one without a record"}
	costs := times.costs(Costs{
		Steps:      map[string]float64{"lint": 60, "e2e": 1},
		Containers: map[string]float64{"a service": 40, "a contract": 7, "one that is gone": 5},
		Packages:   map[string]float64{"ray-operator/internal/job": 20, "cli": 3},
	})
	if want := map[string]float64{"e2e": 75, "unit": 25, "lint": 60}; !maps.Equal(costs.Steps, want) {
		t.Errorf("steps cost %v, want %v", costs.Steps, want)
	}
	if want := map[string]float64{"a cluster": 35, "a service": 40, "a contract": 7}; !maps.Equal(costs.Containers, want) {
		t.Errorf("containers cost %v, want %v", costs.Containers, want)
	}
	if want := map[string]float64{"ray-operator/internal/cluster": 15, "ray-operator/internal/job": 20}; !maps.Equal(costs.Packages, want) {
		t.Errorf("packages cost %v, want %v", costs.Packages, want)
	}
	if want := round(700 - 200/float64(runtime.NumCPU())); costs.WaitSeconds != want {
		t.Errorf("the lanes wait %v s, want %v", costs.WaitSeconds, want)
	}
	if mean := (Costs{Containers: map[string]float64{"a": 10, "b": 30}}).container("new"); mean != 20 {
		t.Errorf("a container without a record costs %v", mean)
	}
	if cost := (Costs{}).container("new"); cost != 0 {
		t.Errorf("without any record a container costs %v", cost)
	}
}
