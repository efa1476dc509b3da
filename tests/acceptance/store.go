package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2/types"

	"github.com/heliostat-dev/heliostat/tests/live"
)

// storeRounds is how often a head's container is killed, and its pod deleted.
const storeRounds = 20

// storeScenarios are those of control stores.
func storeScenarios() []scenario {
	var all []scenario
	for _, store := range []string{"redis", "managed", "embedded"} {
		all = append(all, storeKills(store, storeRounds))
	}
	return append(all, storeGone, storeSweeps, storeLost, storeFaults)
}

// storeKills shows that heads come back with all that they knew. The promise begins with what clusters it is of, where the
// store does not say it.
func storeKills(store string, rounds int, of ...string) scenario {
	label := live.StoreKillsLabel + "-" + store
	return scenario{
		name: label,
		promise: strings.Join(of, "") + fmt.Sprintf("under a running workload the head's container is killed %d times and its pod deleted %[1]d times: no worker pod restarted, "+
			"no actor another, no task lost, no request failed, each recovery recorded; another pod after %.0f s at most, and back after at most %.1f times as long as by hand",
			rounds, live.PromisedCreated.Seconds(), live.PromisedAnewRatio),
		play: func(ctx context.Context, state string) (Outcome, error) {
			return shown(ctx, state, label, rounds, func(ran []types.SpecReport) (Outcome, error) {
				told, err := entries[live.Memory](ran, live.StoreKillsEntry)
				if err != nil {
					return Outcome{}, err
				}
				return remembered(told, rounds)
			})
		},
	}
}

// remembered judges what became of a cluster's work in so many rounds.
func remembered(told []live.Memory, rounds int) (Outcome, error) {
	if len(told) != 1 {
		return Outcome{}, fmt.Errorf("one spec should have ended heads, %d did", len(told))
	}
	memory := told[0]
	samples, err := json.Marshal(memory)
	wrong := append(memory.Broken(), memory.Late()...)
	measured := fmt.Sprintf("%s; back after %.1f s, by hand %.1f s (listed) and %.1f s, by hand %.1f s (answered), medians of deleted pods",
		memory, memory.Median(live.NewPod, listed), handed(memory, listed), memory.Median(live.NewPod, answered), handed(memory, answered))
	if len(wrong) > 0 {
		measured += "; " + strings.Join(wrong, ", ")
	}
	return Outcome{Measured: measured, Kept: len(wrong) == 0 && len(memory.Recoveries) >= 2*rounds, Samples: samples}, err
}

func listed(r live.Recovery) float64   { return r.Listed }
func answered(r live.Recovery) float64 { return r.Answered }

// handed is the median by hand.
func handed(memory live.Memory, of func(live.Recovery) float64) float64 {
	return live.Memory{Recoveries: memory.ByHand}.Median(live.NewPod, of)
}

// storeFaults shows what clusters make of a store in trouble.
var storeFaults = scenario{
	name: live.StoreFaultsLabel,
	promise: fmt.Sprintf("a Redis slowed, with another password, without permissions, read-only, full, stopped for 10 s and for 10 min, flushed, restored: "+
		"each told by its condition, no worker pod touched unless the memory is lost, and Ready at most %.0f s after its end", live.PromisedStoreBack.Seconds()),
	play: func(ctx context.Context, state string) (Outcome, error) {
		return shown(ctx, state, live.StoreFaultsLabel, 1, func(ran []types.SpecReport) (Outcome, error) {
			told, err := entries[live.StoreFault](ran, live.StoreFaultsEntry)
			if err != nil {
				return Outcome{}, err
			}
			return borne(told)
		})
	},
}

// borne judges what clusters made of troubles.
func borne(told []live.StoreFault) (Outcome, error) {
	if len(told) == 0 {
		return Outcome{}, errors.New("no spec gave a store trouble")
	}
	samples, err := json.Marshal(told)
	broken, slowest := 0, told[0]
	for _, one := range told {
		if one.Broken() {
			broken++
		}
		if one.Back > slowest.Back {
			slowest = one
		}
	}
	return Outcome{
		Measured: fmt.Sprintf("%d troubles, %d of them not as promised; the last back after %.1f s (%s)", len(told), broken, slowest.Back, slowest.Fault),
		Kept:     broken == 0, Samples: samples,
	}, err
}

// storeGone shows that deletion waits for no Redis, and leaves no key.
var storeGone = scenario{
	name: live.StoreGoneLabel,
	promise: fmt.Sprintf("a deleted cluster is gone after %.0f s, with its keys; while its Redis is away after %.0f s, and its keys %.0f s after it is back",
		live.PromisedStoreGone.Seconds(), live.PromisedAwayGone.Seconds(), live.PromisedKeysGone.Seconds()),
	play: func(ctx context.Context, state string) (Outcome, error) {
		return shown(ctx, state, live.StoreGoneLabel, 1, func(ran []types.SpecReport) (Outcome, error) {
			all := Outcome{Kept: true}
			samples := map[string]json.RawMessage{}
			var measured []string
			for _, part := range goneParts {
				told, err := entries[string](ran, part.entry)
				if err != nil {
					return Outcome{}, err
				}
				one, err := judge(told, part.promised)
				if err != nil {
					return Outcome{}, fmt.Errorf("%s: %w", part.entry, err)
				}
				all.Kept = all.Kept && one.Kept
				samples[part.entry] = one.Samples
				measured = append(measured, part.entry+": "+one.Measured)
			}
			text, err := json.Marshal(samples)
			all.Measured, all.Samples = strings.Join(measured, "; "), text
			return all, err
		})
	},
}

// goneParts are what is measured of deletions.
var goneParts = []struct {
	entry    string
	promised time.Duration
}{
	{live.StoreGoneEntry, live.PromisedStoreGone}, {live.AwayGoneEntry, live.PromisedAwayGone}, {live.KeysGoneEntry, live.PromisedKeysGone},
}

// storeLost shows how soon there is a head elsewhere when its node is lost.
var storeLost = within(live.StoreLostLabel, live.StoreLostEntry, promisedStoreLost, 1,
	"a head whose node is lost is on another one after %.0f s, the worker with it, and no two heads write, %d time each: in a Redis of the operator's, of the user's, on a volume of both nodes")

func memoryTable(samples json.RawMessage) string {
	var memory live.Memory
	if err := json.Unmarshal(samples, &memory); err != nil {
		return fmt.Sprintf("parse the samples: %v\n", err)
	}
	var b strings.Builder
	b.WriteString("Seconds from the head's end until there was another pod, the head listed its workers, the cluster was Ready, and an actor answered a new driver.\n\n" +
		"| how | times | | shortest | median | longest |\n|---|---|---|---|---|---|\n")
	byHand := slices.Clone(memory.ByHand)
	for i := range byHand {
		byHand[i].How = "deleted and made again by hand"
	}
	all := append(slices.Clone(memory.Recoveries), byHand...)
	for _, how := range []string{live.InPlace, live.NewPod, "deleted and made again by hand"} {
		for _, part := range []struct {
			what string
			of   func(live.Recovery) float64
		}{{"created", func(r live.Recovery) float64 { return r.Created }}, {"listed", listed}, {"Ready", func(r live.Recovery) float64 { return r.Ready }}, {"answered", answered}} {
			seconds := secondsOf(all, how, part.of)
			if len(seconds) == 0 || slices.Max(seconds) == 0 {
				continue
			}
			fmt.Fprintf(&b, "| %s | %d | %s | %.1f | %.1f | %.1f |\n", how, len(seconds), part.what, seconds[0], seconds[len(seconds)/2], seconds[len(seconds)-1])
		}
	}
	b.WriteString("\nUntil the cluster was Ready again:\n\n" + histogram(all))
	return b.String()
}

// secondsOf are those of the recoveries of a sort, in order.
func secondsOf(all []live.Recovery, how string, of func(live.Recovery) float64) []float64 {
	var seconds []float64
	for _, r := range all {
		if r.How == how {
			seconds = append(seconds, of(r))
		}
	}
	slices.Sort(seconds)
	return seconds
}

// histogram counts recoveries by the whole seconds until Ready.
func histogram(all []live.Recovery) string {
	counts, least, most := map[string]map[int]int{live.InPlace: {}, live.NewPod: {}}, math.MaxInt, 0
	for _, r := range all {
		if counts[r.How] != nil {
			second := int(r.Ready)
			counts[r.How][second]++
			least, most = min(least, second), max(most, second)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "| s | %s | %s |\n|---|---|---|\n", live.InPlace, live.NewPod)
	for second := least; second <= most; second++ {
		fmt.Fprintf(&b, "| %d–%d | %s | %s |\n", second, second+1, strings.Repeat("▇", counts[live.InPlace][second]), strings.Repeat("▇", counts[live.NewPod][second]))
	}
	return b.String()
}

func faultsTable(samples json.RawMessage) string {
	var told []live.StoreFault
	if err := json.Unmarshal(samples, &told); err != nil {
		return fmt.Sprintf("parse the samples: %v\n", err)
	}
	var b strings.Builder
	b.WriteString("Seconds until the condition ControlStoreReady said so, that the trouble lasted, and from its end until the cluster was Ready on the store again.\n\n" +
		"| trouble | told as | told after | lasted | back after | worker pods touched |\n|---|---|---|---|---|---|\n")
	for _, t := range told {
		fmt.Fprintf(&b, "| %s | `%s` | %.1f | %.0f | %.1f | %d |\n", t.Fault, t.Reason, t.Told, t.Lasted, t.Back, t.Touched)
	}
	return b.String()
}
