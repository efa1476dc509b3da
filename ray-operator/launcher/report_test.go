package launcher_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/heliostat-dev/heliostat/ray-operator/launcher"
)

// reported is the report of the design page.
func reported() launcher.Report {
	at := time.Unix(1_760_000_000, 0).UTC()
	return launcher.Report{
		State: launcher.Gathering, Round: 3, Restarts: 2, Losses: 1, Replicas: 4, Ready: 3, Started: at,
		Waiting: "1 of 4 × {CPU: 4, GPU: 1} missing",
		Last: &launcher.End{
			Time: at, Kind: launcher.Exit, Process: "worker/3", Pod: "demo-gpu-1-x", Node: "10.0.0.7", Code: 137,
			Message: "ended by SIGKILL", Lines: []string{"…"},
		},
		Lost: []string{"demo-gpu-1-x"}, Page: &launcher.Page{Pod: "demo-cpu-0-x", Port: 20007},
	}
}

func TestParseReport_ReadsThatOfTheDesign(t *testing.T) {
	report, is := launcher.ParseReport(onPage(t, `"ready"`))
	if diff := cmp.Diff(reported(), report); !is || diff != "" {
		t.Errorf("%t: %s", is, diff)
	}
}

// changed returns the report of the design page with another value at a place.
func changed(t *testing.T, path string, value any) []byte {
	t.Helper()
	var report map[string]any
	if err := json.Unmarshal(onPage(t, `"ready"`), &report); err != nil {
		t.Fatal(err)
	}
	at := report
	key, within, nested := strings.Cut(path, ".")
	if nested {
		at, key = report[key].(map[string]any), within
	}
	at[key] = value
	data, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestParseReport_TakesWhatALauncherWrites(t *testing.T) {
	for path, values := range map[string][]any{
		"state":     {"Gathering", "Running", "Ended"},
		"round":     {0, 1, 99_999},
		"ready":     {0, 4},
		"started":   {0, 1},
		"last":      {nil},
		"last.time": {0},
		"last.kind": {"Exit", "Lost", "OutOfMemory", "Drained", "NotFound", "DiskFull", "Unreachable", "PortTaken", "Gather"},
		"last.code": {0, 255},
		"lost":      {nil, []string{}},
		"page":      {nil},
		"page.port": {1, 65535},
		"later":     {"a field that is not known yet"},
	} {
		for _, value := range values {
			if _, is := launcher.ParseReport(changed(t, path, value)); !is {
				t.Errorf("with %s %v it is none", path, value)
			}
		}
	}
	if report, is := launcher.ParseReport(changed(t, "ready", 5)); !is || report.Ready != report.Replicas {
		t.Errorf("%d of %d are ready, %t", report.Ready, report.Replicas, is)
	}
	if report, is := launcher.ParseReport([]byte(`{"version": 1, "state": "Running"}`)); !is || report.Last != nil || !report.Started.IsZero() {
		t.Errorf("%t: %+v", is, report)
	}
}

func TestParseReport_RefusesWhatNoLauncherWrites(t *testing.T) {
	for path, values := range map[string][]any{
		"version":   {0, 2, -1, "1", nil},
		"state":     {"", "running", "Pending", 7, nil},
		"round":     {-1, 100_000, 1.5, 1e30, "3"},
		"restarts":  {-1, 100_000},
		"losses":    {-1, 100_000},
		"replicas":  {-1, 1025},
		"ready":     {-1, 1025},
		"started":   {-1, 253_402_300_800, 1e300},
		"waiting":   {7, []string{}},
		"last":      {"Exit", []string{}},
		"last.time": {-1, 253_402_300_800},
		"last.kind": {"", "exit", "Whim"},
		"last.code": {-1, 256},
		"lost":      {"a pod", []int{1}},
		"page":      {"a pod", []string{}},
		"page.pod":  {"", 7, "a\x1b", strings.Repeat("a", 254)},
		"page.port": {0, -1, 65536, "80"},
	} {
		for _, value := range values {
			if report, is := launcher.ParseReport(changed(t, path, value)); is {
				t.Errorf("with %s %v it is %+v", path, value, report)
			}
		}
	}
	good := string(onPage(t, `"ready"`))
	for name, data := range map[string]string{
		"nothing":       "",
		"null":          "null",
		"a list":        "[" + good + "]",
		"two reports":   good + good,
		"half a report": good[:len(good)/2],
		"no UTF-8":      strings.Replace(good, "SIGKILL", "\xff", 1),
		"too long":      good + strings.Repeat(" ", launcher.MaxReport+1-len(good)),
		"deep":          strings.Repeat("[", launcher.MaxReport),
	} {
		if report, is := launcher.ParseReport([]byte(data)); is {
			t.Errorf("%s is %+v", name, report)
		}
	}
	if _, is := launcher.ParseReport([]byte(good + strings.Repeat(" ", launcher.MaxReport-len(good)))); !is {
		t.Errorf("%d bytes are no report", launcher.MaxReport)
	}
}

func TestParseReport_CleansAndCutsTexts(t *testing.T) {
	const dirty, clean = "a\x00b\x1b[31mc\u202ed\te\nf\u009bgrün 漢字 🌞", "ab[31mcd e fgrün 漢字 🌞"
	for path, of := range map[string]func(launcher.Report) string{
		"waiting":      func(r launcher.Report) string { return r.Waiting },
		"last.process": func(r launcher.Report) string { return r.Last.Process },
		"last.pod":     func(r launcher.Report) string { return r.Last.Pod },
		"last.node":    func(r launcher.Report) string { return r.Last.Node },
		"last.message": func(r launcher.Report) string { return r.Last.Message },
	} {
		report, is := launcher.ParseReport(changed(t, path, dirty))
		if !is || of(report) != clean {
			t.Errorf("%s is %q, %t", path, of(report), is)
		}
	}
	many := make([]string, 40)
	for i := range many {
		many[i] = fmt.Sprintf("%d\x07", i)
	}
	for path, c := range map[string]struct {
		of    func(launcher.Report) []string
		first string
		count int
	}{
		"lost":       {func(r launcher.Report) []string { return r.Lost }, "32", 8},
		"last.lines": {func(r launcher.Report) []string { return r.Last.Lines }, "20", 20},
	} {
		report, is := launcher.ParseReport(changed(t, path, many))
		if got := c.of(report); !is || len(got) != c.count || got[0] != c.first || got[c.count-1] != "39" {
			t.Errorf("%s is %q, %t", path, got, is)
		}
	}
}

func TestReport_HasSameMeaning(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*launcher.Report)
		same   bool
	}{
		"nothing":            {func(*launcher.Report) {}, true},
		"when it started":    {func(r *launcher.Report) { r.Started = r.Started.Add(time.Second) }, true},
		"when a round ended": {func(r *launcher.Report) { r.Last.Time = r.Last.Time.Add(time.Second) }, true},
		"that it started":    {func(r *launcher.Report) { r.Started = time.Time{} }, false},
		"the state":          {func(r *launcher.Report) { r.State = launcher.Running }, false},
		"the round":          {func(r *launcher.Report) { r.Round++ }, false},
		"restarts":           {func(r *launcher.Report) { r.Restarts++ }, false},
		"losses":             {func(r *launcher.Report) { r.Losses++ }, false},
		"replicas":           {func(r *launcher.Report) { r.Replicas++ }, false},
		"what is ready":      {func(r *launcher.Report) { r.Ready-- }, false},
		"what is missing":    {func(r *launcher.Report) { r.Waiting = "" }, false},
		"the last end":       {func(r *launcher.Report) { r.Last = nil }, false},
		"its code":           {func(r *launcher.Report) { r.Last.Code = 1 }, false},
		"its lines":          {func(r *launcher.Report) { r.Last.Lines = nil }, false},
		"a pod that is lost": {func(r *launcher.Report) { r.Lost = append(r.Lost, "another") }, false},
	} {
		former, report := reported(), reported()
		c.change(&report)
		if report.HasSameMeaning(former) != c.same || former.HasSameMeaning(report) != c.same {
			t.Errorf("with %s changed it means the same: %t", name, !c.same)
		}
		if diff := cmp.Diff(reported(), former); diff != "" {
			t.Errorf("it was changed: %s", diff)
		}
	}
}

// FuzzReport holds every report to the bounds, and to be the same when it is read again.
func FuzzReport(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		report, is := launcher.ParseReport(data)
		if !is {
			if diff := cmp.Diff(launcher.Report{}, report); diff != "" {
				t.Errorf("what is no report has %s", diff)
			}
			return
		}
		if report.Ready > report.Replicas || report.Replicas > 1024 || report.Round < 0 || report.Started.Year() > 9999 {
			t.Errorf("%+v", report)
		}
		texts := append([]string{report.Waiting}, report.Lost...)
		if last := report.Last; last != nil {
			texts = append(append(texts, last.Process, last.Pod, last.Node, last.Message), last.Lines...)
		}
		size := 0
		for _, text := range texts {
			if size += len(text); !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsGraphic(r) }) {
				t.Errorf("%q is not fit to be shown", text)
			}
		}
		if size > launcher.MaxReport || len(report.Lost) > 8 {
			t.Errorf("it has texts of %d bytes, and %d pods that are lost", size, len(report.Lost))
		}
		if again, is := launcher.ParseReport(data); !is || !again.HasSameMeaning(report) {
			t.Errorf("read again it is %+v", again)
		}
	})
}
