package main

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestFindGone(t *testing.T) {
	there := repository{
		scenarios: map[string][]string{"jobs": {"freed", "stopped"}},
		makefile:  "accept:\n\t@AREA=$(AREA) run\nbench:\n\t@run bench\n\ndemo demo-down: X = 1\nbench-fleet: bin/x ## Measure\n\t@run -n $(N)\n",
		tests:     map[string][]string{"ray-operator/internal/cluster": {"TestSize"}, "hack/tools/chart": {"TestRights"}},
		faults:    []string{"f"},
	}
	found := func(layer, test string) string {
		return `[{"id": "f", "after": {"layer": "` + layer + `", "test": "` + test + `"}}]`
	}
	for name, tt := range map[string]struct{ file, text, want string }{
		"area and scenarios":           {"a.json", `{"area": "jobs", "outcomes": [{"scenario": "freed"}]}`, ""},
		"area is gone":                 {"a.json", `{"area": "queue", "outcomes": []}`, `no area "queue": delete`},
		"scenario is gone":             {"a.json", `{"area": "jobs", "outcomes": [{"scenario": "lost"}]}`, `area jobs has no scenario "lost": delete`},
		"command":                      {"a.json", `{"command": "make bench-fleet N=5"}`, ""},
		"target is gone":               {"a.json", `{"command": "make bench-jobs"}`, "no target bench-jobs: delete"},
		"target ends differently":      {"a.json", `{"command": "make fleet"}`, "no target fleet"},
		"recipe is no target":          {"a.json", `{"command": "make run"}`, "no target run"},
		"second target of a rule":      {"a.json", `{"command": "make demo-down"}`, ""},
		"variable is gone":             {"a.json", `{"command": "make bench-fleet M=5"}`, "no variable M"},
		"another program":              {"a.json", `{"command": "bench"}`, "no command of make"},
		"nothing made it":              {"a.json", `{"packages": []}`, "nothing says how"},
		"test":                         {"a.json", found("unit", "cluster TestSize"), ""},
		"subtest":                      {"a.json", found("unit", "cluster TestSize/grows/call-1-fail"), ""},
		"test of the chart":            {"a.json", found("chart", "hack/tools/chart TestRights"), ""},
		"test is gone":                 {"a.json", found("unit", "cluster TestSiz"), "cluster has no test TestSiz: run go run ./tests/seeded -only f"},
		"package is gone":              {"a.json", found("unit", "job TestSize"), "no package job"},
		"hung without a name":          {"a.json", found("unit", "cluster  (timeout)"), ""},
		"package that hung is gone":    {"a.json", found("unit", "job  (timeout)"), "no package job"},
		"fault is gone":                {"a.json", `[{"id": "g"}]`, "no fault g: remove"},
		"survived":                     {"a.json", found("", ""), ""},
		"spec":                         {"a.json", found("e2e", "a cluster is there"), ""},
		"page":                         {"a.md", "Made by `make bench`, or `make bench-fleet N=2` and `make it so`.", "no target it"},
		"page of an area":              {"a.md", "Made by `make accept AREA=jobs`.", ""},
		"page of an area that is gone": {"a.md", "Made by `make accept AREA=queue`.", "no area queue"},
		"page without commands":        {"a.md", "Ran for days.", ""},
	} {
		t.Run(name, func(t *testing.T) {
			one, err := parseFile("docs/results/"+tt.file, []byte(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			said := ""
			if err := errors.Join(findGone([]file{one}, there)...); err != nil {
				said = err.Error()
			}
			if tt.want == "" && said != "" || !strings.Contains(said, tt.want) {
				t.Errorf("findGone says %q, want %q", said, tt.want)
			}
			if said != "" && !strings.HasPrefix(said, "docs/results/"+tt.file+": ") {
				t.Errorf("findGone says %q, which does not begin with the file", said)
			}
		})
	}
}

func TestParseFile_RefusesBadJSON(t *testing.T) {
	for _, text := range []string{"", "{", `[{"id": 1}]`} {
		if _, err := parseFile("docs/results/a.json", []byte(text)); err == nil || !strings.Contains(err.Error(), "a.json") {
			t.Errorf("parseFile(%q) gives %v, want an error with the name of the file", text, err)
		}
	}
}

func TestAges(t *testing.T) {
	old, unknown := fault{ID: "old"}, fault{ID: "unknown"}
	old.After.Commit, unknown.After.Commit = "c1", "c0"
	files := []file{
		{Name: "bench.json", Command: "make bench", Commit: "c3", Date: "2026-03-03"},
		{Name: "jobs.json", Area: "jobs", Outcomes: []outcome{{Commit: "c3", Date: "2026-03-03"}, {Commit: "c2+changes", Date: "2026-02-02"}}},
		{Name: "faults.json", Faults: []fault{{ID: "untried"}, unknown, old}},
		{Name: "page.md"},
		{Name: "empty.json", Area: "empty"},
	}
	if got, want := commitsOf(files), []string{"c0", "c1", "c2+changes", "c3"}; !cmp.Equal(got, want) {
		t.Errorf("the commits are %q, want %q", got, want)
	}
	history := map[string]known{"c1": {"2026-01-01", 9}, "c3": {"2026-03-03", 0}}
	var said strings.Builder
	if err := printAges(&said, listAges(files, history), time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)); err != nil {
		t.Fatal(err)
	}
	want := `oldest result of  days  date        commit      commits since  made by
faults.json       62    2026-01-01  c1          9              go run ./tests/seeded
jobs.json         30    2026-02-02  c2+changes  unknown        make accept AREA=jobs
bench.json        1     2026-03-03  c3          0              make bench
`
	if diff := cmp.Diff(want, said.String()); diff != "" {
		t.Errorf("the table (- wanted, + printed):\n%s", diff)
	}
	if got := (age{date: "soon"}).days(time.Time{}); got != "unknown" {
		t.Errorf("an age without a date is %q, want unknown", got)
	}
}
