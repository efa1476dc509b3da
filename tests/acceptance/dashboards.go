package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2/types"

	"github.com/heliostat-dev/heliostat/tests/live"
)

// Full counts of the dashboard proxy on real Ray.
const (
	rayUploads       = 3
	rayUploadMB      = 100
	rayRefusals      = 5
	rayLines         = 1000
	leastPages       = 20
	proxiedRequests  = 20_000
	proxiedUpgrades  = 3
	proxiedSortCount = 5
	madeRequests     = 1_000_000
)

// Releases of Ray's client, and ways to separate origins.
func rayReleases() []string { return []string{"2.60.0", "2.52.0"} }
func originWays() []string  { return []string{"host", "port", "wildcard"} }

// rayClient has Ray's own client work through the proxy.
var rayClient = scenario{
	name: live.RayClientLabel,
	promise: fmt.Sprintf("Ray's own client of the releases %s uploads a working directory of %d MB through the proxy, whose memory grows by less than %d MiB, "+
		"follows a job while both servers are replaced without losing a line, stops and lists jobs, and prints the text of each of %d refusals",
		strings.Join(rayReleases(), " and "), rayUploadMB, live.PromisedUploadMemory, rayRefusals),
	play: func(ctx context.Context, state string) (Outcome, error) {
		return shown(ctx, state, live.RayClientLabel, rayUploads, func(ran []types.SpecReport) (Outcome, error) {
			told, err := entries[live.RayClient](ran, live.RayClientEntry)
			if err != nil {
				return Outcome{}, err
			}
			return worked(told)
		})
	},
}

// worked judges what releases of Ray's client did.
func worked(told []live.RayClient) (Outcome, error) {
	var releases, lines []string
	kept := true
	for _, one := range told {
		releases, lines = append(releases, one.Release), append(lines, one.String())
		kept = kept && one.UploadMB >= rayUploadMB && len(one.GrewMiB) >= rayUploads && one.Grew() < live.PromisedUploadMemory &&
			one.Lines >= rayLines && one.IsWhole && len(one.Refusals) >= rayRefusals
	}
	samples, err := json.Marshal(told)
	kept = kept && slices.Equal(releases, rayReleases())
	return Outcome{Measured: strings.Join(lines, ". "), Kept: kept, Samples: samples}, err
}

// refusalTable shows what Ray's client prints.
func refusalTable(samples json.RawMessage) string {
	told, err := parse[live.RayClient](samples)
	if err != nil {
		return err.Error() + "\n"
	}
	var b strings.Builder
	b.WriteString("What Ray's client prints of each refusal, behind what Ray itself says.\n\n| Ray | refused for | text |\n|---|---|---|\n")
	for _, one := range told {
		for _, why := range slices.Sorted(maps.Keys(one.Refusals)) {
			fmt.Fprintf(&b, "| %s | %s | `%s` |\n", one.Release, why, strings.ReplaceAll(one.Refusals[why], "|", `\|`))
		}
	}
	return b.String()
}

// rayPages opens Ray's dashboard in a browser.
var rayPages = scenario{
	name: live.RayPagesLabel,
	promise: fmt.Sprintf("each page of the dashboard of Ray 2.60, at least %d, opens in Chromium through the proxy, by %s: no request fails and no error is on the console, "+
		"but where the head gives the same answer without the proxy", leastPages, strings.Join(originWays(), ", ")),
	play: func(ctx context.Context, state string) (Outcome, error) {
		return shown(ctx, state, live.RayPagesLabel, 1, func(ran []types.SpecReport) (Outcome, error) {
			told, err := entries[live.RayPages](ran, live.RayPagesEntry)
			if err != nil {
				return Outcome{}, err
			}
			return opened(told)
		})
	},
}

// opened judges what pages did.
func opened(told []live.RayPages) (Outcome, error) {
	var ways, lines []string
	kept := true
	for _, one := range told {
		ways, lines = append(ways, one.Way), append(lines, one.String())
		kept = kept && len(one.Pages) >= leastPages && len(one.Wrong()) == 0
	}
	slices.Sort(ways)
	samples, err := json.Marshal(told)
	return Outcome{Measured: strings.Join(lines, ". "), Kept: kept && slices.Equal(ways, originWays()), Samples: samples}, err
}

// proxiedService upgrades a service that is asked through the proxy.
var proxiedService = scenario{
	name: live.ProxiedServiceLabel,
	promise: fmt.Sprintf("of at least %d requests to a service through the proxy, streams and WebSockets among them, none fails through %d upgrades of its image",
		proxiedRequests, proxiedUpgrades),
	play: func(ctx context.Context, state string) (Outcome, error) {
		return shown(ctx, state, live.ProxiedServiceLabel, 1, func(ran []types.SpecReport) (Outcome, error) {
			told, err := entries[live.ProxiedService](ran, live.ProxiedServiceEntry)
			if err != nil {
				return Outcome{}, err
			}
			return upgradedThrough(told)
		})
	},
}

// upgradedThrough judges what became of requests.
func upgradedThrough(told []live.ProxiedService) (Outcome, error) {
	if len(told) != 1 {
		return Outcome{}, fmt.Errorf("one spec should have upgraded a service, %d did", len(told))
	}
	one := told[0]
	kept := one.Failed == 0 && one.Sent >= proxiedRequests && len(one.Sorts) == proxiedSortCount && one.Upgrades >= proxiedUpgrades &&
		one.Versions > one.Upgrades
	return Outcome{Measured: one.String(), Kept: kept}, nil
}

// proxiedPeer lets the server alone in.
var proxiedPeer = passing(live.ProxiedPeerLabel, "where policies are enforced and the server is the only peer of a service's allowFrom, the service answers through the proxy, "+
	"and the network refuses a pod of its namespace and a pod beside the server; where the server is no peer, the network refuses the server")

// fuzzedRequests makes up requests, many of which servers could read in several ways.
var fuzzedRequests = scenario{
	name: "fuzzed-requests",
	promise: fmt.Sprintf("of %d made-up requests, half of them with pieces that servers read in several ways, each is read upstream as it was authorised, "+
		"or refused before anything is looked up", madeRequests),
	play: func(ctx context.Context, _ string) (Outcome, error) {
		return saidByTest(ctx, "TestRead_LeadsWhereItAuthorised", "./dashboard-proxy/route", fmt.Sprintf("HELIOSTAT_REQUESTS=%d", madeRequests), requestsRead)
	},
}

// requestsRead is what the test says of its requests.
var requestsRead = regexp.MustCompile(`[0-9]+ requests: [^\n]*`)

// fronts opens the page and a dashboard behind Traefik.
var fronts = scenario{
	name: "fronts",
	promise: "by the Ingresses of the chart and by its HTTPRoutes, Traefik leads Chromium to both host names: to the page and " +
		"its stream, and, signed in by the page, to a dashboard and its WebSocket",
	play: func(ctx context.Context, _ string) (Outcome, error) {
		output, failed := onAPIServer(ctx, []string{"-v", "-count=1", "-timeout", "30m", "-run", "^TestFronts$", "./tests/web"})
		return saidBy(output, openedBy, 2, failed)
	},
}

// openedBy is what the test says of each way.
var openedBy = regexp.MustCompile(`by (Ingress|HTTPRoute): the page[^\n]*`)
