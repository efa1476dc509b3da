package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/onsi/ginkgo/v2/types"

	"github.com/heliostat-dev/heliostat/tests/internal/loadgen"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// Full counts of services.
const (
	// serveRounds is how often a service goes through each sort of change.
	serveRounds = 20
	// limitedRounds and floorRounds are for live.ChangeLimited and live.ChangeNothing, which are
	// there for their latencies.
	limitedRounds, floorRounds = 5, 10
	// proxyRounds are for live.ChangeHAProxy.
	proxyRounds = 5
	// worldRequests is how many requests are sent through upgrades in the World, and
	// worldUpgrades how many upgrades that takes there.
	worldRequests, worldUpgrades = 200_000, 4_400
	// apiRequests are sent through apiUpgrades at least on a real API server.
	apiRequests, apiUpgrades = 200_000, 200
)

// serviceScenarios are those of services.
func serviceScenarios() []scenario {
	all := append(serviceWorlds(), manyUpgrades, crashedUpgrades, serveBad, serveSick, serveCut, serveInPlace, serveGateway,
		passing(live.ServeExamplesLabel, "each example of a service runs as it is, and answers"),
		serveAutoscaled, passing(live.ServeNeighboursLabel, "beside a service that is broken in each of five ways, and through a restart of the head they share, another one loses no request"),
		passing(live.ServeUnattendedLabel, "a service whose workers keep their proxies for 100 s loses no request where Serve scales it down while no operator runs for 45 s, and is led to the replica that is left by the next one"),
		passing(live.ServeGroupsLabel, "a group of workers that is added to the cluster of a service, and removed while its worker takes requests, leaves cluster and pods as they are, and no request is lost"))
	for _, change := range live.ServeChanges() {
		all = append(all, serveUpgrades(change))
	}
	return append(all, serveLatency, serveUpgrades(live.ChangeHAProxy), serveUpgrades(live.ChangeGRPC))
}

// manyUpgrades asks a service at each moment of its upgrades, without Ray.
var manyUpgrades = scenario{
	name:    "service-requests",
	promise: fmt.Sprintf("%d requests through upgrades of all sorts, with fake heads: none lost", worldRequests),
	play: func(ctx context.Context, _ string) (Outcome, error) {
		c := exec.CommandContext(ctx, "go", "test", "-v", "-count=1", "-timeout", "60m", "./ray-operator/internal/service",
			"-run", "^TestManyUpgrades$", "-points=none", fmt.Sprintf("-upgrades=%d", worldUpgrades))
		output, failed := c.CombinedOutput()
		return countedRequests(string(output), failed), ctx.Err()
	},
}

var requestsSent = regexp.MustCompile(`(\d+) requests in (\d+) upgrades, none lost`)

// countedRequests judges what the test of many upgrades said.
func countedRequests(output string, failed error) Outcome {
	const enough = 400
	found := requestsSent.FindStringSubmatch(output)
	if found == nil {
		return Outcome{Measured: "the test failed: " + output[max(0, len(output)-enough):]}
	}
	requests, _ := strconv.Atoi(found[1]) // the expression lets digits through only
	return Outcome{Measured: found[0], Kept: failed == nil && requests >= worldRequests}
}

// serveUpgrades shows that changes of a sort lose no request on real Ray. The specs also show what is promised beside that.
func serveUpgrades(change string, also ...string) scenario {
	label, rounds := live.ServeUpgradesLabel(change), roundsOf(change)
	return scenario{
		name: label,
		promise: strings.Join(append([]string{fmt.Sprintf("through %d changes of sort %s, under requests of all sorts and with the operator killed at random moments, no request fails; "+
			"two clusters live at most %.0f s longer than the switch takes", rounds, change, live.PromisedTwoClusters.Seconds())}, also...), "; "),
		play: func(ctx context.Context, state string) (Outcome, error) {
			return shown(ctx, state, label, rounds, func(ran []types.SpecReport) (Outcome, error) {
				told, err := entries[live.Upgraded](ran, live.ServeUpgradesEntry)
				if err != nil {
					return Outcome{}, err
				}
				return lossless(told, rounds)
			})
		},
	}
}

// roundsOf is how often a service goes through a sort of change.
func roundsOf(change string) int {
	switch change {
	case live.ChangeLimited:
		return limitedRounds
	case live.ChangeHAProxy:
		return proxyRounds
	case live.ChangeEncrypted:
		return encryptedRounds
	case live.ChangeNothing:
		return floorRounds
	default:
		return serveRounds
	}
}

// lossless judges what became of requests in so many changes.
func lossless(told []live.Upgraded, rounds int) (Outcome, error) {
	if len(told) == 0 {
		return Outcome{}, errors.New("no spec changed a service")
	}
	samples, err := json.Marshal(told)
	sent, failed := 0, 0
	var wrong []string
	for _, one := range told {
		s, f := one.Count()
		sent, failed = sent+s, failed+f
		for _, what := range append(one.Broken(), one.Late()...) {
			wrong = append(wrong, fmt.Sprintf("round %d: %s", one.Round, what))
		}
	}
	measured := fmt.Sprintf("%d changes, %d of %d requests failed", len(told), failed, sent)
	if len(wrong) > 0 {
		measured += "; " + strings.Join(wrong, ", ")
	}
	return Outcome{
		Measured: measured, Kept: len(wrong) == 0 && len(told) >= rounds, Samples: samples, Latencies: live.Latencies(told),
	}, err
}

// serveAutoscaled shows that upgrades of a service that Serve scales lose no request, and that it sleeps and wakes.
var serveAutoscaled = scenario{
	name: live.ServeAutoscaledLabel,
	promise: fmt.Sprintf("a service that autoscales from 1 to 4 replicas under its load is followed %d times by a version that is as warm (code, image, shape), with the operator killed "+
		"in every second one: no request fails, no version is taken back, half of the requests take at most %.1f times as long as before; it sleeps and wakes %d times",
		serveRounds, live.PromisedMedianRatio, serveRounds/2),
	play: func(ctx context.Context, state string) (Outcome, error) {
		return shown(ctx, state, live.ServeAutoscaledLabel, serveRounds, func(ran []types.SpecReport) (Outcome, error) {
			told, err := entries[live.Upgraded](ran, live.ServeUpgradesEntry)
			if err != nil {
				return Outcome{}, err
			}
			return warm(told, serveRounds)
		})
	},
}

// warm is lossless, and judges the median of requests as well.
func warm(told []live.Upgraded, rounds int) (Outcome, error) {
	outcome, err := lossless(told, rounds)
	if err != nil {
		return Outcome{}, err
	}
	var ratios []float64
	for _, one := range told {
		ratios = append(ratios, one.MedianRatios()...)
	}
	if len(ratios) == 0 {
		return Outcome{}, errors.New("no request was timed")
	}
	slices.Sort(ratios)
	ratio := ratios[len(ratios)/2]
	outcome.Measured += fmt.Sprintf("; half of the requests took %.2f times as long", ratio)
	outcome.Kept = outcome.Kept && ratio <= live.PromisedMedianRatio
	return outcome, nil
}

// serveGateway shows that a gateway divides requests as the status tells.
var serveGateway = scenario{
	name: live.ServeGatewayLabel,
	promise: fmt.Sprintf("behind a gateway, Traefik, a new version gets the percentage of the requests that the status tells, within %d points, and no request fails",
		live.Near),
	play: func(ctx context.Context, state string) (Outcome, error) {
		return shown(ctx, state, live.ServeGatewayLabel, 1, func(ran []types.SpecReport) (Outcome, error) {
			told, err := entries[live.Divided](ran, live.ServeGatewayEntry)
			if err != nil {
				return Outcome{}, err
			}
			return divided(told)
		})
	},
}

// divided judges how a gateway divided requests.
func divided(told []live.Divided) (Outcome, error) {
	if len(told) == 0 {
		return Outcome{}, errors.New("no spec went through a gateway")
	}
	samples, err := json.Marshal(told)
	var measured, wrong []string
	for _, one := range told {
		measured, wrong = append(measured, one.String()), append(wrong, one.Broken()...)
	}
	return Outcome{Measured: strings.Join(measured, "; "), Kept: len(wrong) == 0, Samples: samples}, err
}

// serveBad shows that versions that cannot serve are taken back.
var serveBad = scenario{
	name: live.ServeBadLabel,
	promise: fmt.Sprintf("a version that cannot serve never gets a request and is taken back: the same processes go on, no request fails, and the status names the cause %.0f s after it can be seen",
		live.PromisedServeTold.Seconds()),
	play: func(ctx context.Context, state string) (Outcome, error) {
		return shown(ctx, state, live.ServeBadLabel, 1, func(ran []types.SpecReport) (Outcome, error) {
			told, err := entries[live.TakenBack](ran, live.ServeBadEntry)
			if err != nil {
				return Outcome{}, err
			}
			return takenBack(told)
		})
	},
}

// takenBack judges how bad versions ended.
func takenBack(told []live.TakenBack) (Outcome, error) {
	if len(told) == 0 {
		return Outcome{}, errors.New("no spec tried a version that cannot serve")
	}
	samples, err := json.Marshal(told)
	broken := slices.DeleteFunc(slices.Clone(told), func(t live.TakenBack) bool { return !t.Broken() && !t.Late() })
	measured := fmt.Sprintf("%d sorts of versions, %d of them not as promised", len(told), len(broken))
	for _, one := range broken {
		measured += "; " + one.String()
	}
	return Outcome{Measured: measured, Kept: len(broken) == 0, Samples: samples}, err
}

// serveSick shows how soon a version that sickens has no requests any more.
var serveSick = within(live.ServeSickLabel, live.ServeSickEntry, promisedServeBack, 1,
	"a version that sickens when it has half of the requests has none after %.0f s, %d time")

// serveCut shows how soon nobody is sent to a worker that cannot be reached.
var serveCut = within(live.ServeCutLabel, live.ServeCutEntry, promisedServeCut, 1,
	"a worker whose node is cut off gets no more requests after %.0f s, %d time, and none fails from then on")

// serveInPlace shows that workers are replaced where they are without a request lost.
var serveInPlace = within(live.ServeInPlaceLabel, live.ServeInPlaceEntry, promisedServeInPlace, 1,
	"two workers are replaced where they are, and no request fails; all is well with the new ones, and has been for 10 s, after %.0f s, %d time; a head too, and what fails is taken back with its pods")

// upgradesTable tells of changes of a sort.
func upgradesTable(samples json.RawMessage) string {
	var told []live.Upgraded
	if err := json.Unmarshal(samples, &told); err != nil {
		return fmt.Sprintf("parse the samples: %v\n", err)
	}
	if len(told) == 0 {
		return "no change was made\n"
	}
	kills, beyond, seconds := 0, 0.0, make([]float64, 0, len(told))
	for _, one := range told {
		kills, beyond, seconds = kills+one.Kills, max(beyond, one.Both-one.Switch), append(seconds, one.Seconds)
	}
	slices.Sort(seconds)
	var b strings.Builder
	fmt.Fprintf(&b, "%d changes of %.0f to %.0f s, median %.0f s; the operator was killed %d times; two clusters lived %.1f s longer than the switch took, at most.\n\n",
		len(told), seconds[0], seconds[len(seconds)-1], seconds[len(seconds)/2], kills, beyond)
	b.WriteString("What became of requests in the calm times and in the changes, and how many answers, or parts of answers, took at most so many milliseconds.\n\n| requests | sent | failed |")
	for _, bound := range loadgen.Bounds() {
		fmt.Fprintf(&b, " %.0f |", bound)
	}
	b.WriteString(" more | longest |\n|---|---|---|" + strings.Repeat("---|", len(loadgen.Bounds())+2) + "\n")
	for _, sort := range loadgen.Sorts() {
		b.WriteString(latencies(told, sort, "calm", func(node live.NodeLoad) loadgen.Phase { return node.Calm }))
		b.WriteString(latencies(told, sort, "change", func(node live.NodeLoad) loadgen.Phase { return node.During }))
	}
	return b.String()
}

// latencies is the row of one sort of requests in one sort of phase.
func latencies(told []live.Upgraded, sort loadgen.Sort, name string, phase func(live.NodeLoad) loadgen.Phase) string {
	bars := make([]int64, len(loadgen.Bounds())+1)
	sent, failed, longest := 0, 0, 0.0
	for _, one := range told {
		for _, node := range one.Loads {
			count := phase(node).Sorts[sort]
			sent, failed, longest = sent+count.Sent, failed+count.Failed, max(longest, count.Latency.Max)
			for i, n := range count.Latency.Histogram {
				bars[i] += n
			}
		}
	}
	if sent == 0 {
		return ""
	}
	row := fmt.Sprintf("| %s, %s | %d | %d |", sort, name, sent, failed)
	for _, n := range bars {
		row += fmt.Sprintf(" %d |", n)
	}
	return row + fmt.Sprintf(" %.0f |\n", longest)
}

func badTable(samples json.RawMessage) string {
	var told []live.TakenBack
	if err := json.Unmarshal(samples, &told); err != nil {
		return fmt.Sprintf("parse the samples: %v\n", err)
	}
	var b strings.Builder
	b.WriteString("| what is wrong with the version | told as | seconds after it could be seen | taken back after | requests | failed |\n|---|---|---|---|---|---|\n")
	for _, t := range told {
		fmt.Fprintf(&b, "| %s | `%s` | %.1f | %.1f | %d | %d |\n", t.Cause, t.Reason, t.Told, t.Seconds, t.Sent, t.Failed)
	}
	return b.String()
}
