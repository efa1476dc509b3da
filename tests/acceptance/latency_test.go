package main

import (
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/tests/internal/loadgen"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// ofAllSorts is what changes of all sorts showed, each of which takes at most so long for fresh requests.
func ofAllSorts(longest float64) Result {
	var shown Result
	for _, change := range live.ServeChanges() {
		shown.Outcomes = append(shown.Outcomes, Outcome{
			Scenario: live.ServeUpgradesLabel(change), Code: "now",
			Latencies: []live.Latency{{Sort: loadgen.Fresh, Calm: 50, During: longest}},
		})
	}
	return shown
}

func TestLatenciesAreJudged(t *testing.T) {
	one := ofAllSorts(100)
	one.Outcomes[2].Latencies[0].During = 101
	floor := ofAllSorts(100)
	floor.Outcomes[len(floor.Outcomes)-1].Latencies[0].During = 1000
	for name, c := range map[string]struct {
		shown Result
		kept  bool
		says  string
	}{
		"as promised":              {ofAllSorts(100), true, "in 0 of 8 sorts"},
		"one is slower":            {one, false, "in 1 of 8 sorts"},
		"all are":                  {ofAllSorts(101), false, "in 8 of 8 sorts"},
		"only the floor is slower": {floor, true, "in 0 of 8 sorts"},
	} {
		got, err := judgeLatencies(c.shown, "now")
		if err != nil || got.Kept != c.kept || !strings.Contains(got.Measured, c.says) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	got, err := judgeLatencies(floor, "now")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{"| image | 50, 100 |  |", "| nothing | 50, 1000 |"} {
		if page := latencyTable(got.Samples); !strings.Contains(page, row) {
			t.Errorf("%q is not in %s", row, page)
		}
	}
}

func TestLatenciesAreThoseThatHold(t *testing.T) {
	for name, spoil := range map[string]func(*Outcome){
		"never played":      func(o *Outcome) { o.Scenario = "another" },
		"with former code":  func(o *Outcome) { o.Code = "former" },
		"without latencies": func(o *Outcome) { o.Latencies = nil },
	} {
		shown := ofAllSorts(100)
		spoil(&shown.Outcomes[1])
		got, err := judgeLatencies(shown, "now")
		if err == nil || !strings.Contains(err.Error(), "play the scenario serve-upgrades-code first") {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
