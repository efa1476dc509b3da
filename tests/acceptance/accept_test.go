package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/tests/internal/loadgen"
	"github.com/heliostat-dev/heliostat/tests/live"
)

func TestAnOutcomeSaysHowItCameAbout(t *testing.T) {
	s := scenario{name: "s", promise: "p", play: func(context.Context, string) (Outcome, error) { return Outcome{Measured: "m", Kept: true}, nil }}
	outcome, err := s.once(t.Context(), t.TempDir())
	if err != nil || outcome.Scenario != "s" || outcome.Promise != "p" || outcome.Commit == "" || outcome.Code == "" || outcome.Date == "" || outcome.Machine.Cores < 1 {
		t.Errorf("%+v, %v", outcome, err)
	}
	s.play = func(context.Context, string) (Outcome, error) { return Outcome{}, errors.New("no root") }
	if _, err := s.once(t.Context(), t.TempDir()); err == nil {
		t.Error("what showed nothing passed for an outcome")
	}
}

func TestWhatWasShownIsNotPlayedAgain(t *testing.T) {
	s := scenario{name: "start", promise: "soon"}
	for name, c := range map[string]struct {
		before Outcome
		shown  bool
	}{
		"kept":                  {Outcome{Scenario: "start", Promise: "soon", Kept: true, Commit: "a", Code: "now"}, true},
		"broken":                {Outcome{Scenario: "start", Promise: "soon", Commit: "a", Code: "now"}, false},
		"with former code":      {Outcome{Scenario: "start", Promise: "soon", Kept: true, Commit: "a", Code: "former"}, false},
		"another promise":       {Outcome{Scenario: "start", Promise: "late", Kept: true, Commit: "a", Code: "now"}, false},
		"changes not committed": {Outcome{Scenario: "start", Promise: "soon", Kept: true, Commit: "a" + changed, Code: "now"}, false},
		"another scenario":      {Outcome{Scenario: "up-down", Promise: "soon", Kept: true, Commit: "a", Code: "now"}, false},
	} {
		if _, shown := (Result{Outcomes: []Outcome{c.before}}).shown(s, "now"); shown != c.shown {
			t.Errorf("%s: it counts as shown: %t", name, shown)
		}
	}
}

func TestAnAreaIsKeptWhenAllOfItWasPlayedWithItsCode(t *testing.T) {
	result := Result{Area: "first-light"}
	promised := map[string]string{}
	for _, scenario := range areas[result.Area] {
		promised[scenario.name] = scenario.promise
	}
	for _, step := range []struct {
		outcome Outcome
		says    string
	}{
		{Outcome{Scenario: "start", Kept: true, Code: "now"}, "not played with this code: up-down"},
		{Outcome{Scenario: "up-down", Kept: true, Code: "former"}, "not played with this code: up-down"},
		{Outcome{Scenario: "up-down", Measured: "a mount", Code: "now"}, "up-down: promised: " + promised["up-down"] + "; measured: a mount"},
		{Outcome{Scenario: "up-down", Kept: true, Code: "now"}, ""},
		{Outcome{Scenario: "start", Promise: "less", Kept: true, Code: "now"}, "not played with this code: start"},
	} {
		if step.outcome.Promise == "" {
			step.outcome.Promise = promised[step.outcome.Scenario]
		}
		result.put(step.outcome)
		if err := result.verdict(areas[result.Area], "now"); step.says == "" && err != nil || step.says != "" && (err == nil || err.Error() != step.says) {
			t.Errorf("after %+v: %v, want %q", step.outcome, err, step.says)
		}
	}
	if names := []string{result.Outcomes[0].Scenario, result.Outcomes[1].Scenario}; !slices.Equal(names, namesOf(areas[result.Area])) {
		t.Errorf("the outcomes are in the order %v", names)
	}
}

func TestScenariosThatAreAsked_AreJudgedAlone(t *testing.T) {
	result := Result{Area: "first-light"}
	upDown := areas[result.Area][slices.Index(namesOf(areas[result.Area]), "up-down")]
	result.put(Outcome{Scenario: upDown.name, Promise: upDown.promise, Kept: true, Code: "now"})
	for name, want := range map[string]string{"up-down": "", "start": "not played with this code: start"} {
		chosen, err := asked(result.Area, []string{name})
		if err != nil {
			t.Fatal(err)
		}
		if err := result.verdict(chosen, "now"); want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("of %s alone: %v, want %q", name, err, want)
		}
	}
}

// Documentation and other tests may change after an area was played, and what it is about may not.
func TestCodeIsWhatOutcomesAreOf(t *testing.T) {
	t.Chdir(t.TempDir())
	git := func(arguments ...string) {
		t.Helper()
		base := []string{"-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"}
		if out, err := exec.CommandContext(t.Context(), "git", append(base, arguments...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", arguments, err, out)
		}
	}
	write := func(file, text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := head(t.Context()); err == nil {
		t.Error("it finds a commit where there is none")
	}
	git("init", "-q")
	write("ray-operator/main.go", "1")
	git("add", ".")
	git("commit", "-qm", "1")
	_, before, err := head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		file                  string
		commit, marked, other bool
	}{
		{"docs/results/a.json", false, false, false},
		{"docs/a.svg", true, false, false},
		{"ray-operator/README.md", true, false, false},
		{"tests/e2e/a.go", false, true, false},
		{"tests/e2e/a.go", true, false, false},
		{"ray-operator/main_test.go", true, false, false},
		{"ray-operator/more.go", false, true, true},
		{"ray-operator/main.go", false, true, true},
		{"ray-operator/main.go", true, false, true},
		{"tests/imagebuild/a", true, false, true},
	} {
		write(step.file, "2")
		if step.commit {
			git("add", ".")
			git("commit", "-q", "--allow-empty", "-m", "2")
		}
		commit, code, err := head(t.Context())
		if err != nil || strings.HasSuffix(commit, changed) != step.marked || (code != before) != step.other {
			t.Errorf("after a change of %+v it is %s, %s, %v", step, commit, code, err)
		}
	}
}

// played is what a scenario of the area "first-light" has written into the directories of results and of state.
func played(t *testing.T) (results, state string) {
	t.Helper()
	t.Chdir("../..") // in which head finds a commit
	results, state = t.TempDir(), t.TempDir()
	s := scenario{name: "start", promise: "soon", play: func(context.Context, string) (Outcome, error) {
		return Outcome{
			Measured: "late", Latencies: []live.Latency{{Sort: loadgen.Kept, During: 7}},
			Samples: json.RawMessage(
				`[{"byHand":{"listed":10,"ready":11},"operator":{"unlisted":10,"listed":10.25,"ready":11.5}}]`),
		}, nil
	}}
	result := Result{Area: "first-light"}
	if err := result.play(t.Context(), s, state, results); err != nil {
		t.Fatal(err)
	}
	return results, state
}

func TestAResultIsWrittenAsDataAndAsPage(t *testing.T) {
	results, _ := played(t)
	page := contents(t, filepath.Join(results, "first-light.md"))
	for _, want := range []string{
		"All: commit ", "Not played yet: up-down.", "| start | soon | late | **no** |",
		"| 1 | 10.00 | 11.00 | 10.25 | 11.50 | 1.25 |",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q:\n%s", want, page)
		}
	}
	text := contents(t, filepath.Join(results, "first-light.json"))
	var again Result
	if err := json.Unmarshal([]byte(text), &again); err != nil || len(again.Outcomes) != 1 {
		t.Fatalf("read back %+v, %v", again, err)
	}
	if again.page() != page {
		t.Errorf("the page of what was read back is\n%s\nwant\n%s", again.page(), page)
	}
	if machine := again.Outcomes[0].Machine; machine.Cores < 1 || machine.Kernel == "" {
		t.Errorf("the machine is %+v", machine)
	}
	if latencies := again.Outcomes[0].Latencies; len(latencies) != 1 || latencies[0].During != 7 {
		t.Errorf("the latencies are %v", latencies)
	}
	if host, _ := os.Hostname(); host != "" && strings.Contains(text, host) {
		t.Errorf("the name of the machine, %s, is in the result", host)
	}
}

func TestPlay_KeepsRawSamplesInTheStateAlone(t *testing.T) {
	results, state := played(t)
	if text := contents(t, filepath.Join(results, "first-light.json")); strings.Contains(text, "unlisted") {
		t.Errorf("the data have raw samples:\n%s", text)
	}
	var kept struct {
		Commit, Measured string
		Samples          []any
	}
	if err := json.Unmarshal([]byte(contents(t, filepath.Join(state, "start.json"))), &kept); err != nil {
		t.Fatal(err)
	}
	if len(kept.Samples) != 1 || kept.Measured != "late" || kept.Commit == "" {
		t.Errorf("the state keeps %+v", kept)
	}
}

func contents(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestAPageSaysHowEachOutcomeCameAbout(t *testing.T) {
	result := Result{Area: "first-light"}
	for _, name := range namesOf(areas[result.Area]) {
		result.put(Outcome{Scenario: name, Commit: name + "s-commit", Date: "1999-12-31"})
	}
	for _, want := range []string{"up-down: commit up-downs-commit, 1999-12-31, ", "start: commit starts-commit, "} {
		if page := result.page(); !strings.Contains(page, want) {
			t.Errorf("it does not say %q:\n%s", want, page)
		}
	}
}

func TestScenariosAreAskedForByTheirNames(t *testing.T) {
	for _, c := range []struct {
		area  string
		only  []string
		asked int
	}{{"first-light", nil, 2}, {"first-light", []string{"start"}, 1}, {"first-light", []string{"start", "end"}, -1}, {"last-light", nil, -1}} {
		if got, err := asked(c.area, c.only); (err != nil) != (c.asked < 0) || err == nil && len(got) != c.asked {
			t.Errorf("%s %v: %d scenarios, %v", c.area, c.only, len(got), err)
		}
	}
}
