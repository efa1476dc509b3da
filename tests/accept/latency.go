package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/heliostat-dev/heliostat/tests/live"
	"github.com/heliostat-dev/heliostat/tests/load"
)

// serveLatency judges how long requests took in what the scenarios of all sorts of changes showed.
var serveLatency = scenario{
	name: "serve-latency",
	promise: fmt.Sprintf("in changes of every sort the longest request of each sort takes at most %d times as long as the longest of the calm times before",
		live.PromisedLatencyRatio),
	play: func(ctx context.Context, _ string) (Outcome, error) {
		_, code, err := head(ctx)
		if err != nil {
			return Outcome{}, err
		}
		shown, err := read("services")
		if err != nil {
			return Outcome{}, err
		}
		all, err := changesOf(shown, code)
		if err != nil {
			return Outcome{}, err
		}
		return swift(all)
	},
}

// changesOf are the samples of the changes of all sorts that were made with the code.
func changesOf(shown Result, code string) ([]live.Upgraded, error) {
	var all []live.Upgraded
	for _, change := range live.ServeChanges() {
		outcome, found := shown.of(live.ServeUpgradesLabel(change))
		if !found || outcome.Code != code {
			continue // swift misses it
		}
		var told []live.Upgraded
		if err := json.Unmarshal(outcome.Samples, &told); err != nil {
			return nil, fmt.Errorf("parse the samples of %s: %w", outcome.Scenario, err)
		}
		all = append(all, told...)
	}
	return all, nil
}

// latency is how long the longest requests of a sort took around changes of a sort, in milliseconds.
type latency struct {
	Change string    `json:"change"`
	Sort   load.Sort `json:"sort"`
	Calm   float64   `json:"calm"`
	During float64   `json:"during"`
}

// swift judges changes of all sorts but that which leaves the service alone: it is what the
// machine makes of another cluster's coming and going.
func swift(all []live.Upgraded) (Outcome, error) {
	changes := map[string][]live.Upgraded{}
	for _, one := range all {
		changes[one.Change] = append(changes[one.Change], one)
	}
	var samples []latency
	slow, judged := 0, 0
	for _, change := range live.ServeChanges() {
		told := changes[change]
		if len(told) == 0 {
			return Outcome{}, fmt.Errorf("no change of sort %s was made: play their scenarios first", change)
		}
		for _, sort := range load.Sorts() {
			calm, during := live.Longest(told, sort)
			samples = append(samples, latency{change, sort, calm, during})
		}
		if change != live.ChangeNothing {
			judged++
			slow += min(1, len(live.Slower(told)))
		}
	}
	text, err := json.Marshal(samples)
	return Outcome{Measured: fmt.Sprintf("in %d of %d sorts of changes it took longer", slow, judged), Kept: slow == 0, Samples: text}, err
}

// latencyTable tells of each sort of change.
func latencyTable(samples json.RawMessage) string {
	var all []latency
	if err := json.Unmarshal(samples, &all); err != nil {
		return fmt.Sprintf("parse the samples: %v\n", err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "The longest request in milliseconds, in the calm times and in the changes. In %s, a change of image, no pod may use more CPU than it asks for; "+
		"in %s the service is left alone, and another cluster of its shape comes and goes.\n\n| change |", live.ChangeLimited, live.ChangeNothing)
	rule := "\n|---|"
	for _, sort := range load.Sorts() {
		fmt.Fprintf(&b, " %s |", sort)
		rule += "---|"
	}
	b.WriteString(rule)
	last := ""
	for _, one := range all {
		if one.Change != last {
			fmt.Fprintf(&b, "\n| %s |", one.Change)
			last = one.Change
		}
		fmt.Fprintf(&b, " %.0f, %.0f |", one.Calm, one.During)
	}
	b.WriteString("\n")
	return b.String()
}
