package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// written fills a directory as tests/run.sh does.
func written(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func sample(t *testing.T) Times {
	t.Helper()
	times, err := readTimes(written(t, map[string]string{
		"run.json":  `{"slowness": 2, "wallSeconds": 100}`,
		"unit.step": `{"name": "unit", "lane": "code", "wallSeconds": 30, "cpuSeconds": 50}`,
		"unit.go.json": `{"Action":"run","Package":"github.com/heliostat-dev/heliostat/x","Test":"TestA"}
# a line of a compiler
{"Action":"pass","Package":"github.com/heliostat-dev/heliostat/x","Test":"TestA/story","Elapsed":7}
{"Action":"pass","Package":"github.com/heliostat-dev/heliostat/x","Test":"TestA","Elapsed":9}
{"Action":"pass","Package":"github.com/heliostat-dev/heliostat/x","Elapsed":12}`,
		"e2e.step": `{"name": "e2e", "lane": "clusters", "wallSeconds": 70, "cpuSeconds": 150, "skipped": "contract: unchanged"}`,
		"e2e.ginkgo.json": `[{"SpecReports": [
 {"ContainerHierarchyTexts": ["a cluster"], "LeafNodeText": "starts", "State": "passed", "RunTime": 5000000000,
  "ReportEntries": [{"Name": "cpu", "Value": {"AsJSON": "60"}}, {"Name": "other", "Value": {"AsJSON": "\"x\""}}]},
 {"LeafNodeText": "left out", "State": "skipped"}]}]`,
	}))
	if err != nil {
		t.Fatal(err)
	}
	return times
}

func TestReadTimes_JoinsStepsAndTests(t *testing.T) {
	times := sample(t)
	if len(times.Steps) != 2 || len(times.Tests) != 3 || times.Wall != 100 || times.Packages["x"] != 12 {
		t.Fatalf("read %+v", times)
	}
	table := times.table()
	for _, want := range []string{"| unit | code | 30 | 50 | 25 |", "| all | | 100 | 200 | 100 |",
		"| a cluster starts | e2e | 5.0 | 60.0 |", "| x.TestA/story | unit | 7.0 | not counted |", "not run: e2e: contract: unchanged"} {
		if !strings.Contains(table, want) {
			t.Errorf("the table lacks %q:\n%s", want, table)
		}
	}
	if strings.Contains(table, "x.TestA |") || strings.Contains(table, "left out") {
		t.Errorf("the table has a sum of subtests, or a spec that did not run:\n%s", table)
	}
}

func TestReadTimes_RefusesBrokenFiles(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"no run":        {},
		"broken step":   {"run.json": "{}", "unit.step": "{"},
		"broken report": {"run.json": "{}", "e2e.step": `{"name":"e2e"}`, "e2e.ginkgo.json": "["},
		"CPU no number": {"run.json": "{}", "e2e.step": `{"name":"e2e"}`,
			"e2e.ginkgo.json": `[{"SpecReports":[{"State":"passed","ReportEntries":[{"Name":"cpu","Value":{"AsJSON":"x"}}]}]}]`},
	} {
		if times, err := readTimes(written(t, files)); err == nil {
			t.Errorf("%s: read %+v", name, times)
		}
	}
}

func TestBudget_Exceeded(t *testing.T) {
	times := sample(t) // calibrated: unit 25, e2e 75, the spec 30
	for _, c := range []struct {
		name     string
		budget   Budget
		ceilings string
		notes    int
	}{
		{"all within", Budget{Total: 100, Spec: 30}, "", 0},
		{"total over", Budget{Total: 99, Spec: 30}, "all steps: 100 CPU-seconds of 99", 0},
		{"a step apart does not count", Budget{Total: 75, Apart: []string{"unit"}, Spec: 30}, "", 0},
		{"a spec over is a note", Budget{Total: 100, Spec: 25}, "", 1},
		{"an exception lets it", Budget{Total: 100, Spec: 25, Exceptions: []Exception{{"a cluster starts", 31, "why"}}}, "", 0},
	} {
		over := c.budget.exceeded(times)
		if got := strings.Join(over.ceilings, ";"); got != c.ceilings || len(over.notes) != c.notes {
			t.Errorf("%s: ceilings %q, notes %q", c.name, got, over.notes)
		}
		err := over.err(times)
		if (err == nil) != (c.ceilings == "") {
			t.Errorf("%s: error %v", c.name, err)
		}
		if err != nil && !strings.Contains(err.Error(), "30.0  a cluster starts") {
			t.Errorf("%s: the error does not name the dearest: %v", c.name, err)
		}
	}
}

func TestBudget_OfTheRepositoryIsRead(t *testing.T) {
	budget, err := readBudget("../budget.yaml")
	if err != nil || budget.Total <= 0 || budget.Spec <= 0 {
		t.Errorf("read %+v, %v", budget, err)
	}
	for text, want := range map[string]string{
		"spec: 25\ntotal: 1\nexceptions: [{spec: x, cpu: 20, reason: y}]": `exception of "x"`,
		"spec: 25": "give the CPU-seconds",
	} {
		bad := written(t, map[string]string{"budget.yaml": text})
		if budget, err := readBudget(filepath.Join(bad, "budget.yaml")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q was read as %+v, %v, want an error about %s", text, budget, err, want)
		}
	}
}

func TestMeasureSlowness_IsPositive(t *testing.T) {
	if slowness := measureSlowness(); slowness <= 0 || slowness > 100 {
		t.Errorf("measured %v", slowness)
	}
}
