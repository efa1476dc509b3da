package main

import (
	"strings"
	"testing"

	"github.com/heliostat-dev/heliostat/tests/live"
	"github.com/heliostat-dev/heliostat/tests/load"
)

// ofAllSorts are changes of all sorts, each of which takes at most so long for fresh requests.
func ofAllSorts(longest float64) []live.Upgraded {
	var all []live.Upgraded
	for round, change := range live.ServeChanges() {
		one := through(round)
		one.Change = change
		one.Loads[0].During.Sorts[load.Fresh] = load.Count{Sent: 1, Answered: 1, Latency: load.Latency{Max: longest}}
		all = append(all, one)
	}
	return all
}

func TestLatenciesAreJudged(t *testing.T) {
	one := ofAllSorts(100)
	one[2].Loads[0].During.Sorts[load.Fresh] = load.Count{Sent: 1, Answered: 1, Latency: load.Latency{Max: 101}}
	floor := ofAllSorts(100)
	floor[len(floor)-1].Loads[0].During.Sorts[load.Fresh] = load.Count{Sent: 1, Answered: 1, Latency: load.Latency{Max: 1000}}
	for name, c := range map[string]struct {
		told []live.Upgraded
		kept bool
		says string
	}{
		"as promised":              {ofAllSorts(100), true, "in 0 of 8 sorts"},
		"one is slower":            {one, false, "in 1 of 8 sorts"},
		"all are":                  {ofAllSorts(101), false, "in 8 of 8 sorts"},
		"only the floor is slower": {floor, true, "in 0 of 8 sorts"},
	} {
		if got, err := swift(c.told); err != nil || got.Kept != c.kept || !strings.Contains(got.Measured, c.says) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if got, err := swift(ofAllSorts(100)[1:]); err == nil {
		t.Errorf("a sort that was not played passes: %+v", got)
	}
	got, err := swift(floor)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{"| image | 50, 100 | 0, 0 |", "| nothing | 50, 1000 |"} {
		if page := latencyTable(got.Samples); !strings.Contains(page, row) {
			t.Errorf("%q is not in %s", row, page)
		}
	}
}

func TestLatenciesAreThoseThatHold(t *testing.T) {
	var shown Result
	for _, one := range ofAllSorts(100) {
		shown.Outcomes = append(shown.Outcomes, Outcome{Scenario: live.ServeUpgradesLabel(one.Change), Code: "now", Samples: encoded([]live.Upgraded{one})})
	}
	all, err := changesOf(shown, "now")
	if err != nil || len(all) != len(live.ServeChanges()) {
		t.Fatalf("%d, %v", len(all), err)
	}
	shown.Outcomes[0].Code = "former"
	if all, err := changesOf(shown, "now"); err != nil || len(all) != len(live.ServeChanges())-1 {
		t.Errorf("%d, %v", len(all), err)
	}
	shown.Outcomes[1].Samples = []byte("{")
	if _, err := changesOf(shown, "now"); err == nil {
		t.Error("samples that are none pass")
	}
}
