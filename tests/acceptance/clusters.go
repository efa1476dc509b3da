package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/onsi/ginkgo/v2/types"

	"github.com/heliostat-dev/heliostat/tests/live"
)

// Full counts of what the specs on real Ray do once.
const (
	busyRounds = 10
	rollRounds = 10
)

// timed are scenarios that show how long something takes at most.
var timed = []scenario{
	within(live.BusyLabel, live.BusyEntry, promisedBusy, busyRounds,
		"a cluster that is deleted while a task runs on each of its workers leaves nothing behind after %.0f s, %d times"),
	within(live.CutOffLabel, live.CutOffEntry, promisedCutOff, 1,
		"a worker on a node that is cut off has a successor at work after %.0f s, %d time"),
	within(live.CordonLabel, live.CordonEntry, live.PromisedCordon+promisedBusy, 1,
		"a head that no eviction moves may be evicted %.0f s after its node was cordoned, %d time"),
}

// token shows what becomes of a cluster whose token changes, at each place that it can come from.
var token = passing(live.TokenLabel, "a cluster waits for the Secret of its token, tells of another token under its pods and takes it with the next head, "+
	"gets a new token with the next head after its token was deleted, and another one when it is made again under its name")

// strategies shows how pods are replaced for an edit.
var strategies = passing(live.StrategiesLabel, "with maxSurge 1 and maxUnavailable 0 there are never fewer workers than wanted; "+
	"with Recreate all pods are made again at once, and the choice of it alone replaces none")

// leftBehind shows what becomes of objects and actors on a worker that leaves.
var leftBehind = passing(live.LeftBehindLabel, "a worker that must leave stays for its objects and actors until drainSeconds are over; "+
	"what is lost then is what docs/clusters.md says")

// passing makes a scenario of specs with a label that pass.
func passing(label, promise string) scenario {
	return scenario{name: label, promise: promise, play: func(ctx context.Context, state string) (Outcome, error) {
		return shown(ctx, state, label, 1, countPlayed)
	}}
}

// countPlayed is the outcome of specs that pass.
func countPlayed(ran []types.SpecReport) (Outcome, error) {
	return Outcome{Measured: fmt.Sprintf("%d specs played", len(ran)), Kept: len(ran) > 0}, nil
}

// within makes a scenario of specs with a label that report seconds.
func within(label, entry string, promised time.Duration, rounds int, promise string) scenario {
	return scenario{
		name: label, promise: fmt.Sprintf(promise, promised.Seconds(), rounds),
		play: func(ctx context.Context, state string) (Outcome, error) {
			return shown(ctx, state, label, rounds, func(ran []types.SpecReport) (Outcome, error) {
				told, err := entries[string](ran, entry)
				if err != nil {
					return Outcome{}, err
				}
				return judge(told, promised)
			})
		},
	}
}

// judge compares times like "1.2 s" with what is promised.
func judge(told []string, promised time.Duration) (Outcome, error) {
	var seconds []float64
	for _, text := range told {
		var one float64
		if _, err := fmt.Sscanf(text, "%f s", &one); err != nil {
			return Outcome{}, fmt.Errorf("parse %q as seconds: %w", text, err)
		}
		seconds = append(seconds, one)
	}
	if len(seconds) == 0 {
		return Outcome{}, errors.New("no spec reported a time")
	}
	samples, err := json.Marshal(seconds)
	least, most := slices.Min(seconds), slices.Max(seconds)
	return Outcome{
		Measured: fmt.Sprintf("%d times, %.1f to %.1f s", len(seconds), least, most),
		Kept:     most <= promised.Seconds(), Samples: samples,
	}, err
}

// rolling shows that no task is lost while workers are replaced.
var rolling = scenario{
	name:    live.RollLabel,
	promise: fmt.Sprintf("all workers replaced %d times under a stream of tasks that nothing may run twice: none lost", rollRounds),
	play: func(ctx context.Context, state string) (Outcome, error) {
		return shown(ctx, state, live.RollLabel, rollRounds, func(ran []types.SpecReport) (Outcome, error) {
			rolls, err := entries[live.Roll](ran, live.RollEntry)
			if err != nil {
				return Outcome{}, err
			}
			return count(rolls)
		})
	},
}

func count(rolls []live.Roll) (Outcome, error) {
	if len(rolls) == 0 {
		return Outcome{}, errors.New("no spec reported tasks")
	}
	done, lost := 0, 0
	for _, roll := range rolls {
		done += roll.Done
		lost += roll.Lost
	}
	samples, err := json.Marshal(rolls)
	return Outcome{Measured: fmt.Sprintf("%d times, %d tasks done, %d lost", len(rolls), done, lost), Kept: lost == 0, Samples: samples}, err
}

// failedSpecs is recorded where specs failed. Which ones is on the screen: the error has paths of the machine.
const failedSpecs = "; specs failed"

// shown runs specs in full, and returns what read makes of their report.
func shown(ctx context.Context, state, label string, rounds int, read func([]types.SpecReport) (Outcome, error)) (Outcome, error) {
	return onNodes(ctx, nil, showSpecs(ctx, state, label, rounds, read))
}

// showSpecs returns a function that runs specs in full where a kubeconfig leads, and returns what read makes of their report.
func showSpecs(ctx context.Context, state, label string, rounds int, read func([]types.SpecReport) (Outcome, error)) func(string) (Outcome, error) {
	return func(kubeconfig string) (Outcome, error) {
		ran, failed := specs(ctx, kubeconfig, state, label, "-full", "-judge", fmt.Sprintf("-rounds=%d", rounds))
		outcome, err := read(ran)
		if err != nil {
			return Outcome{}, errors.Join(failed, err)
		}
		if failed != nil {
			outcome.Kept, outcome.Measured = false, outcome.Measured+failedSpecs
		}
		return outcome, nil
	}
}
