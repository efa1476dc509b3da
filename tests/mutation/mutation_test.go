package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const fixture = "tests/mutation/testdata/fixture"

// tried runs a package's mutants from the repository's root, with what is known in dir.
func tried(t *testing.T, name, dir string) *Outcome {
	t.Helper()
	outcome, err := try(t.Context(), name, settings{dir: dir, shortest: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return outcome
}

// left are the mutants that the fixture's test leaves on purpose.
var left = []string{"names: `slack` plus 1", "names: `slack` minus 1"}

func TestFixture(t *testing.T) {
	t.Chdir("../..")
	report := judge(fixture, tried(t, fixture, t.TempDir()), nil)
	var survived []string
	for _, s := range report.Survivors {
		survived = append(survived, s.Function+": "+s.Change)
	}
	if !slices.Equal(survived, left) {
		t.Errorf("these survive:\n%s\nwant:\n%s", strings.Join(survived, "\n"), strings.Join(left, "\n"))
	}
	if report.Mutants != 43 || report.Killed != 39 || report.TimedOut != 2 {
		t.Errorf("of %d mutants %d are killed and %d time out, want 39 and 2 of 43", report.Mutants, report.Killed, report.TimedOut)
	}
}

// TestGoesOnWhereItWas: what a binary showed is not tried again, and not believed of another.
func TestGoesOnWhereItWas(t *testing.T) {
	t.Chdir("../..")
	dir := t.TempDir()
	first := tried(t, fixture, dir)
	kept, path := left[0], filepath.Join(dir, "fates.json")
	first.Fates[kept] = Killed
	if err := first.keep(path); err != nil {
		t.Fatal(err)
	}
	if again := tried(t, fixture, dir); again.Fates[kept] != Killed {
		t.Errorf("%s was tried again and %s", kept, again.Fates[kept])
	}
	first.Binary = "another"
	if err := first.keep(path); err != nil {
		t.Fatal(err)
	}
	if again := tried(t, fixture, dir); again.Fates[kept] != Survived {
		t.Errorf("%s was believed of another binary", kept)
	}
	if text, err := os.ReadFile(fixture + "/fixture.go"); err != nil || strings.Contains(string(text), "mutantOn") {
		t.Errorf("the package itself was changed: %v", err)
	}
}

// TestScale is the sample of real code.
func TestScale(t *testing.T) {
	const name = "ray-operator/internal/scale"
	t.Chdir("../..")
	known, err := readReasons("tests/mutation/reasons.yaml")
	if err != nil {
		t.Fatal(err)
	}
	report := judge(name, tried(t, name, t.TempDir()), known[name])
	for _, wrong := range report.wrong() {
		t.Error(wrong)
	}
	if report.Mutants < 100 {
		t.Errorf("%d mutants, want at least 100", report.Mutants)
	}
}

func TestJudge(t *testing.T) {
	mutants := []Mutant{{1, "F", "a"}, {2, "F", "b"}, {3, "F", "c"}, {4, "G", "d"}}
	outcome := &Outcome{Mutants: mutants, Fates: map[string]Fate{"F: a": Killed, "F: b": TimedOut, "F: c": Survived, "G: d": Survived}}
	report := judge("p", outcome, map[string]string{"F: c": "nobody can see it", "F: a": "was never seen"})
	if report.share() != 50 {
		t.Errorf("%.1f %% were noticed, want 50", report.share())
	}
	var wrong []string
	for _, err := range report.wrong() {
		wrong = append(wrong, err.Error())
	}
	want := []string{
		"p: the tests notice 50.0 % of its mutants, promised are 90 %",
		"p: G: d survives: add a test that fails, or the reason to reasons.yaml",
		"p: F: a does not survive: take its reason out of reasons.yaml",
	}
	if !slices.Equal(wrong, want) {
		t.Errorf("wrong is\n%s\nwant\n%s", strings.Join(wrong, "\n"), strings.Join(want, "\n"))
	}
	page := (&Summary{Commit: "abc", Packages: []Report{report}}).page()
	for _, part := range []string{"| `p` | 4 | 1 | 1 | 2 | 50.0 % | 0 |", "| F | c | nobody can see it |"} {
		if !strings.Contains(page, part) {
			t.Errorf("the page lacks %q:\n%s", part, page)
		}
	}
}
