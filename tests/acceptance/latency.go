package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/heliostat-dev/heliostat/tests/internal/loadgen"
	"github.com/heliostat-dev/heliostat/tests/live"
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
		return judgeLatencies(shown, code)
	},
}

// latency is that of requests of a sort around changes of a sort.
type latency struct {
	Change string `json:"change"`
	live.Latency
}

// judgeLatencies judges changes of all sorts that were made with the code, but that which leaves the service
// alone: it is what the machine makes of another cluster's coming and going.
func judgeLatencies(shown Result, code string) (Outcome, error) {
	var samples []latency
	slow, judged := 0, 0
	for _, change := range live.ServeChanges() {
		label := live.ServeUpgradesLabel(change)
		outcome, found := shown.of(label)
		if !found || outcome.Code != code || len(outcome.Latencies) == 0 {
			return Outcome{}, fmt.Errorf("find latencies of %s with this code: play the scenario %s first", change, label)
		}
		for _, one := range outcome.Latencies {
			samples = append(samples, latency{change, one})
		}
		if change != live.ChangeNothing {
			judged++
			if slices.ContainsFunc(outcome.Latencies, live.Latency.IsSlow) {
				slow++
			}
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
	for _, sort := range loadgen.Sorts() {
		fmt.Fprintf(&b, " %s |", sort)
		rule += "---|"
	}
	b.WriteString(rule + "\n")
	for _, change := range live.ServeChanges() {
		fmt.Fprintf(&b, "| %s |", change)
		for _, sort := range loadgen.Sorts() {
			at := slices.IndexFunc(all, func(l latency) bool { return l.Change == change && l.Sort == sort })
			if at < 0 {
				b.WriteString("  |")
				continue
			}
			fmt.Fprintf(&b, " %.0f, %.0f |", all[at].Calm, all[at].During)
		}
		b.WriteString("\n")
	}
	return b.String()
}
