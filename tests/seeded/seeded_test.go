package main

import (
	"errors"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func faultsOfTree(t *testing.T) []Fault {
	t.Helper()
	faults, err := readFaults("faults")
	if err != nil {
		t.Fatal(err)
	}
	return faults
}

// TestFaults_Apply keeps the list from falling behind the product.
func TestFaults_Apply(t *testing.T) {
	for _, fault := range faultsOfTree(t) {
		seeded, plain, err := fault.seed("../..")
		if err != nil {
			t.Errorf("%s: %v", fault.ID, err)
			continue
		}
		if !strings.HasSuffix(fault.File, ".go") {
			continue
		}
		for text := range slices.Values([]string{plain, seeded}) {
			if _, err := parser.ParseFile(token.NewFileSet(), fault.File, text, parser.SkipObjectResolution); err != nil {
				t.Errorf("%s does not parse: %v", fault.ID, err)
			}
		}
	}
}

func TestFaults_CoverEachArea(t *testing.T) {
	counts := map[string]int{}
	for _, fault := range faultsOfTree(t) {
		counts[fault.Area]++
	}
	for _, area := range areas() {
		if counts[area] < leastOfArea {
			t.Errorf("%d faults of %s, want at least %d", counts[area], area, leastOfArea)
		}
	}
}

func TestCheck_RefusesBadRows(t *testing.T) {
	good := Fault{ID: "a", Sort: "s", Breaks: "b", File: "f", Old: "o"}
	idle, nameless := good, good
	idle.New, nameless.ID = idle.Old, ""
	bad := map[string][]Fault{"twice": {good, good}, "changes nothing": {idle}, "without id": {nameless}}
	for name, rows := range bad {
		if check(rows) == nil {
			t.Errorf("rows are accepted: %s", name)
		}
	}
	if err := check([]Fault{good}); err != nil {
		t.Error(err)
	}
}

func TestSeed_WantsTextOnce(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "f"), []byte("one two two"), 0o644); err != nil {
		t.Fatal(err)
	}
	seeded, plain, err := Fault{File: "f", Old: "one", New: "1"}.seed(root)
	if err != nil || seeded != "1 two two" || plain != "one two two" {
		t.Errorf("seeded %q, plain %q, %v", seeded, plain, err)
	}
	for _, fault := range []Fault{{File: "f", Old: "two"}, {File: "f", Old: "three"}, {File: "g", Old: "one"}} {
		var away *notThereError
		if _, _, err := fault.seed(root); !errors.As(err, &away) {
			t.Errorf("seed %q into %s: %v, want that it is not there", fault.Old, fault.File, err)
		}
	}
}

func TestFirstFailure(t *testing.T) {
	const of = `"Package":"github.com/heliostat-dev/heliostat/ray-operator/internal/job"`
	fails := func(test string) string { return `{"Action":"fail",` + of + `,"Test":"` + test + `"}` }
	says := func(text string) string { return `{"Action":"output",` + of + `,"Output":"` + text + `"}` }
	for name, tt := range map[string]struct {
		events []string
		want   string
	}{
		"passed":  {[]string{`{"Action":"pass",` + of + `,"Test":"TestA"}`}, ""},
		"subtest": {[]string{fails("TestA/b"), fails("TestA")}, "job TestA/b"},
		"timeout": {[]string{says("panic: test timed out after 3m0s"), fails("TestB")}, "job TestB (timeout)"},
		"panic":   {[]string{says("panic: oh"), fails("")}, "job (panic)"},
		"build":   {[]string{fails("")}, ""},
	} {
		found, _ := firstFailure(strings.NewReader(strings.Join(tt.events, "\n")))
		if got := found.name(); got != tt.want {
			t.Errorf("%s: found by %q, want %q", name, got, tt.want)
		}
	}
}

func TestNearest_OwnPackageFirst(t *testing.T) {
	tests := []string{"x_test.go"}
	all := []listed{
		{ImportPath: module + "/a", Imports: []string{module + "/b"}, TestGoFiles: tests},
		{ImportPath: module + "/b", Imports: []string{module + "/c"}, TestGoFiles: tests},
		{ImportPath: module + "/c", TestGoFiles: tests},
		{ImportPath: module + "/d", TestImports: []string{module + "/c"}, TestGoFiles: tests},
		{ImportPath: module + "/e", Imports: []string{module + "/d"}, TestGoFiles: tests},
		{ImportPath: module + "/tests/e2e", Imports: []string{module + "/c"}, TestGoFiles: tests},
		{ImportPath: module + "/untested", Imports: []string{module + "/c"}},
	}
	var names []string
	for _, one := range nearest(all, module+"/c") {
		names = append(names, strings.TrimPrefix(one.ImportPath, module+"/"))
	}
	if want := []string{"c", "b", "d", "a"}; !slices.Equal(names, want) {
		t.Errorf("the packages are %v, want %v", names, want)
	}
}

func TestResults_ForgetChangedRows(t *testing.T) {
	fault, results := Fault{ID: "a", Area: "job", File: "f", Old: "o", New: "n"}, Results{}
	results.put(fault, "before", Outcome{Commit: "c1", Layer: "unit", Test: "job TestA"})
	results.put(fault, "after", Outcome{Commit: "c2", Missed: []string{"unit"}})
	page := results.page([]Fault{fault})
	for _, part := range []string{"unit: `job TestA`", "**survives** unit", "| unit | 1 | 0 |", "| survives | 0 | 1 |"} {
		if !strings.Contains(page, part) {
			t.Errorf("the page lacks %q:\n%s", part, page)
		}
	}
	fault.New = "another"
	if known := results.of(fault, "before"); known.Commit != "" {
		t.Errorf("of a changed row is known %v, want nothing", known)
	}
}
