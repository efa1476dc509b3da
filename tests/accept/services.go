package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/onsi/ginkgo/v2/types"

	"github.com/heliostat-dev/heliostat/tests/live"
	"github.com/heliostat-dev/heliostat/tests/load"
)

// Full counts of services.
const (
	// serveRounds is how often a service goes through each sort of change.
	serveRounds = 20
	// worldRequests is how many requests are sent through upgrades in the World, and
	// worldUpgrades how many upgrades that takes there.
	worldRequests, worldUpgrades = 200_000, 4_000
)

// serviceScenarios are those of services.
func serviceScenarios() []scenario {
	return []scenario{storiesOf("service-world", "service", "./ray-operator/internal/service"), manyUpgrades, serveBad, serveSick, serveGateway, serveUpgrades}
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

// serveUpgrades shows that upgrades on real Ray lose no request.
var serveUpgrades = scenario{
	name: live.ServeUpgradesLabel,
	promise: fmt.Sprintf("through %d changes of each sort, under requests of all sorts and with the operator killed at random moments, no request fails; "+
		"the longest takes at most %d times as long as the longest of the calm minute before; two clusters live at most %.0f s longer than the switch takes",
		serveRounds, live.PromisedLatencyRatio, live.PromisedTwoClusters.Seconds()),
	play: func(ctx context.Context, state string) (Outcome, error) {
		return shown(ctx, state, live.ServeUpgradesLabel, serveRounds, func(ran []types.SpecReport) (Outcome, error) {
			told, err := entries[live.Upgraded](ran, live.ServeUpgradesEntry)
			if err != nil {
				return Outcome{}, err
			}
			return lossless(told)
		})
	},
}

// lossless judges what became of requests.
func lossless(told []live.Upgraded) (Outcome, error) {
	if len(told) == 0 {
		return Outcome{}, errors.New("no spec changed a service")
	}
	samples, err := json.Marshal(told)
	rounds, sent, failed := map[string]int{}, 0, 0
	var wrong []string
	for _, one := range told {
		rounds[one.Change]++
		s, f := one.Count()
		sent, failed = sent+s, failed+f
		for _, what := range append(one.Broken(), one.Late()...) {
			wrong = append(wrong, fmt.Sprintf("%s %d: %s", one.Change, one.Round, what))
		}
	}
	enough := true
	for _, n := range rounds {
		enough = enough && n >= serveRounds
	}
	measured := fmt.Sprintf("%d changes of %d sorts, %d of %d requests failed", len(told), len(rounds), failed, sent)
	if len(wrong) > 0 {
		measured += "; " + strings.Join(wrong, ", ")
	}
	return Outcome{Measured: measured, Kept: len(wrong) == 0 && enough, Samples: samples}, err
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
	broken := slices.DeleteFunc(slices.Clone(told), func(t live.TakenBack) bool { return !t.Broken() })
	measured := fmt.Sprintf("%d sorts of versions, %d of them not as promised", len(told), len(broken))
	for _, one := range broken {
		measured += "; " + one.String()
	}
	return Outcome{Measured: measured, Kept: len(broken) == 0, Samples: samples}, err
}

// serveSick shows how soon a version that sickens has no requests any more.
var serveSick = within(live.ServeSickLabel, live.ServeSickEntry, live.PromisedServeBack, 1,
	"a version that sickens when it has half of the requests has none after %.0f s, %d time")

// upgradesTable tells of each sort of change.
func upgradesTable(samples json.RawMessage) string {
	var told []live.Upgraded
	if err := json.Unmarshal(samples, &told); err != nil {
		return fmt.Sprintf("parse the samples: %v\n", err)
	}
	var b strings.Builder
	b.WriteString("Requests of all sorts from clients on each node. The longest are of the worst round, in milliseconds: in the calm minute before, and during the change.\n\n" +
		"| change | times | requests | failed | the operator killed | two clusters beyond the switch, at most | longest of fresh connections | of kept ones |\n|---|---|---|---|---|---|---|---|\n")
	of := map[string][]live.Upgraded{}
	for _, one := range told {
		of[one.Change] = append(of[one.Change], one)
	}
	for _, change := range slices.Sorted(maps.Keys(of)) {
		b.WriteString(upgradesRow(change, of[change]))
	}
	return b.String()
}

// upgradesRow tells of one sort of change.
func upgradesRow(change string, rounds []live.Upgraded) string {
	sent, failed, kills, beyond := 0, 0, 0, 0.0
	worst := map[load.Sort][2]float64{}
	for _, one := range rounds {
		s, f := one.Count()
		sent, failed, kills, beyond = sent+s, failed+f, kills+one.Kills, max(beyond, one.Both-one.Switch)
		for _, sort := range []load.Sort{load.Fresh, load.Kept} {
			if calm, during := one.Longest(sort); during > worst[sort][1] {
				worst[sort] = [2]float64{calm, during}
			}
		}
	}
	return fmt.Sprintf("| %s | %d | %d | %d | %d | %.1f s | %.0f, %.0f | %.0f, %.0f |\n", change, len(rounds), sent, failed, kills, beyond,
		worst[load.Fresh][0], worst[load.Fresh][1], worst[load.Kept][0], worst[load.Kept][1])
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
