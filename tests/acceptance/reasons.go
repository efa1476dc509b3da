package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/onsi/ginkgo/v2/types"

	"github.com/heliostat-dev/heliostat/tests/live"
)

var reasons = scenario{
	name: "reasons",
	promise: fmt.Sprintf("whatever keeps a head or a worker from running, the status says why and what helps at most %.0f s after Kubernetes shows it",
		promisedTold.Seconds()),
	play: playReasons,
}

// playReasons plays the causes that need a kubelet as specs, and those for which the API server makes no pod on one of
// its own.
func playReasons(ctx context.Context, state string) (Outcome, error) {
	var told []live.Told
	var failed error
	if _, err := onNodes(ctx, []string{"--gpus", "2"}, func(kubeconfig string) (Outcome, error) {
		var ran []types.SpecReport
		ran, failed = specs(ctx, kubeconfig, state, "reasons", "-judge")
		var err error
		if told, err = entries[live.Told](ran, live.ToldEntry); err == nil && len(told) == 0 {
			err = errors.New("no spec reported a time")
		}
		return Outcome{}, err
	}); err != nil {
		return Outcome{}, errors.Join(failed, err)
	}
	notMade, failedToo, err := podsNotMade(ctx, state)
	if err != nil {
		return Outcome{}, errors.Join(failed, failedToo, err)
	}
	told, failed = append(told, notMade...), errors.Join(failed, failedToo)
	samples, err := json.Marshal(told)
	return Outcome{Measured: summarise(told, failed), Kept: failed == nil && late(told) == 0, Samples: samples}, err
}

// podsNotMade plays the causes that need no kubelet. The first error is of what failed, the second says that nothing is
// known.
func podsNotMade(ctx context.Context, state string) (told []live.Told, failed, err error) {
	text, failed, err := measured(ctx, state, "TestReasons_PodsThatAreNotMade")
	if err != nil {
		return nil, failed, err
	}
	told, err = parse[live.Told](text)
	return told, failed, err
}

// late counts those that were told later than promised.
func late(told []live.Told) int {
	count := 0
	for _, t := range told {
		if t.Seconds > promisedTold.Seconds() {
			count++
		}
	}
	return count
}

func summarise(told []live.Told, failed error) string {
	longest := told[0]
	for _, t := range told {
		if t.Seconds > longest.Seconds {
			longest = t
		}
	}
	text := fmt.Sprintf("%d causes, %d of them told too late; the longest took %.1f s (%s)", len(told), late(told), longest.Seconds, longest.Cause)
	if failed != nil {
		text += failedSpecs
	}
	return text
}

func escaped(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

func reasonsTable(samples json.RawMessage) string {
	var told []live.Told
	if err := json.Unmarshal(samples, &told); err != nil {
		return fmt.Sprintf("parse the samples: %v\n", err)
	}
	var b strings.Builder
	b.WriteString("Seconds from when a condition of a pod, an event or the refusal of a request shows the cause until the status names it.\n\n" +
		"| cause | of | reason | told as | s |\n|---|---|---|---|---|\n")
	for _, t := range told {
		fmt.Fprintf(&b, "| %s | %s | `%s` | %s | %.1f |\n", escaped(t.Cause), t.Of, t.Reason, escaped(t.Message), t.Seconds)
	}
	return b.String()
}
