package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"

	"github.com/onsi/ginkgo/v2/types"

	"github.com/heliostat-dev/heliostat/tests/bench/portals"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// Full counts of the server for portals.
const (
	portalDecisions   = 3000
	portalHistories   = 2000
	portalStreamsOpen = 1000
	portalFleet       = 500
	portalRounds      = 3
)

// portalRights compares the server's answers with those of the API server.
var portalRights = scenario{
	name: "portal-decisions",
	promise: fmt.Sprintf("of %d random requests of callers by token, and of as many by impersonation, the server answers each as "+
		"the API server answers the same identity", portalDecisions),
	play: func(ctx context.Context, _ string) (Outcome, error) {
		output, failed := integration(ctx, "TestServer_(DecidesAsTheAPIServer|ImpersonatesItsCallers)",
			fmt.Sprintf("HELIOSTAT_DECISIONS=%d", portalDecisions))
		return saidBy(output, answersByCode, 2, failed)
	},
}

// portalStreams plays histories of changes, cuts and resumes.
var portalStreams = scenario{
	name: "portal-histories",
	promise: fmt.Sprintf("through %d histories of changes, cuts and resumes on two replicas, each watcher's state equals the store's, "+
		"and nothing comes twice", portalHistories),
	play: func(ctx context.Context, _ string) (Outcome, error) {
		return saidByTest(ctx, "TestWatch_EveryHistoryEndsRight", "./apiserver/feed", fmt.Sprintf("HELIOSTAT_HISTORIES=%d", portalHistories), streamsResumed)
	},
}

// saidByTest runs a test that needs no Kubernetes and says once what it did.
func saidByTest(ctx context.Context, test, directory, setting string, what *regexp.Regexp) (Outcome, error) {
	c := exec.CommandContext(ctx, "go", "test", "-v", "-count=1", "-timeout", "60m", "-run", "^"+test+"$", directory)
	c.Env, c.Stderr = append(os.Environ(), setting), os.Stderr
	output, failed := c.Output()
	return saidBy(string(output), what, 1, failed)
}

// Full counts on real Ray.
const (
	portalLines    = 100_000
	portalKills    = 2
	portalPrograms = 3
	portalWatch    = 600
	outputRounds   = 5
)

// portalClients runs the programs of examples/portal.
var portalClients = scenario{
	name: live.PortalExamplesLabel,
	promise: fmt.Sprintf("each program of examples/portal does its work on a server in a pod; the Python client, generated from the OpenAPI document, "+
		"makes a cluster from a preset of the release and a job on it, and follows %d lines with the server killed %d times in between: byte for byte the file", portalLines, portalKills),
	play: func(ctx context.Context, state string) (Outcome, error) {
		return shown(ctx, state, live.PortalExamplesLabel, 1, func(ran []types.SpecReport) (Outcome, error) {
			told, err := entries[live.Followed](ran, live.FollowedEntry)
			if err != nil {
				return Outcome{}, err
			}
			return followed(told, len(ran))
		})
	},
}

// followed judges what the Python client copied, and whether all programs were run.
func followed(told []live.Followed, specs int) (Outcome, error) {
	if len(told) != 1 {
		return Outcome{}, fmt.Errorf("one spec should have followed an output, %d did", len(told))
	}
	one := told[0]
	kept := specs == portalPrograms && one.Lines >= portalLines && one.Kills >= portalKills && one.IsSame
	return Outcome{Measured: fmt.Sprintf("%d specs played; %s", specs, one), Kept: kept}, nil
}

// portalWatches has Kubernetes' own clients watch through the server.
var portalWatches = scenario{
	name: live.PortalWatchesLabel,
	promise: fmt.Sprintf("Python's Kubernetes client and kubectl list, apply and watch through the server for %d s with a change each second, and neither misses one",
		portalWatch),
	play: func(ctx context.Context, state string) (Outcome, error) {
		return shown(ctx, state, live.PortalWatchesLabel, 1, func(ran []types.SpecReport) (Outcome, error) {
			told, err := entries[live.Watched](ran, live.WatchedEntry)
			if err != nil {
				return Outcome{}, err
			}
			return watched(told)
		})
	},
}

// watched judges what clients saw.
func watched(told []live.Watched) (Outcome, error) {
	if len(told) != 1 {
		return Outcome{}, fmt.Errorf("one spec should have watched, %d did", len(told))
	}
	one := told[0]
	kept := one.Seconds >= portalWatch && len(one.Seen) == 2
	for _, count := range one.Seen {
		kept = kept && count == one.Made
	}
	return Outcome{Measured: one.String(), Kept: kept}, nil
}

var (
	portalSignIn = passing(live.PortalSignInLabel, "a token of an issuer that the API server does not know signs in on a server in a pod that impersonates, with the rights of the name that it gives, and with no others")
	portalReach  = passing(live.PortalNetworkLabel, "where policies are enforced, the server reaches the dashboards of heads in two namespaces and no other port of theirs, and a pod beside it reaches none")
	portalVerbs  = passing(live.PortalVerbsLabel, "through the server a job that failed is retried, and a service whose change is undone answers as before")
)

// portalOutputs measures large outputs.
var portalOutputs = scenario{
	name: live.PortalOutputsLabel,
	promise: fmt.Sprintf("an output of 100 MB comes through the server at %.1f times the head's own rate or more; 100 readers of it are one request to the head, "+
		"whose CPU is %.1f times that for one reader or less; medians of %d", live.PromisedRate, live.PromisedCPU, outputRounds),
	play: func(ctx context.Context, state string) (Outcome, error) {
		return shown(ctx, state, live.PortalOutputsLabel, outputRounds, func(ran []types.SpecReport) (Outcome, error) {
			told, err := entries[live.Outputs](ran, live.OutputsEntry)
			if err != nil {
				return Outcome{}, err
			}
			return readers(told)
		})
	},
}

// readers judges how large outputs came.
func readers(told []live.Outputs) (Outcome, error) {
	if len(told) != 1 || len(told[0].Head) == 0 || len(told[0].One) == 0 {
		return Outcome{}, fmt.Errorf("one spec should have measured outputs, there is %+v", told)
	}
	one := told[0]
	samples, err := json.Marshal(one)
	kept := one.Bytes >= 100e6 && one.Readers >= 100 && one.Rate() >= live.PromisedRate && one.Load() <= live.PromisedCPU
	for _, count := range one.Requests {
		kept = kept && count == 1
	}
	return Outcome{Measured: one.String(), Kept: kept, Samples: samples}, err
}

// portalRolling replaces both servers under streams and writes.
var portalRolling = scenario{
	name: "portal-rolling",
	promise: fmt.Sprintf("two servers are replaced, one after the other, under %d streams: each stream of one that ends says bye and goes on at the "+
		"other without loss, without anything twice and without a full state, and no write happens twice", portalStreamsOpen),
	play: func(ctx context.Context, _ string) (Outcome, error) {
		output, failed := integration(ctx, "TestServer_IsReplacedUnderStreams", fmt.Sprintf("%s=%d", portals.StreamsVariable, portalStreamsOpen))
		return saidBy(output, serversReplaced, 1, failed)
	},
}

// portalCanaries looks for secrets where they do not belong.
var portalCanaries = scenario{
	name: "portal-canaries",
	promise: "of at least 20 canaries (tokens, values of Secrets, headers, variables, queries, bodies) that go through every route of REST, gRPC and " +
		"Kubernetes' own paths with good and bad credentials, none is in a log, a metric or an error, in any form",
	play: func(ctx context.Context, _ string) (Outcome, error) {
		output, failed := integration(ctx, "TestServer_GivesNoSecretAway")
		return saidBy(output, canariesFound, 1, failed)
	},
}

// portalLabels has an operator that runs over a fleet told of a server.
var portalLabels = scenario{
	name:    "portal-labels",
	promise: fmt.Sprintf("an operator that is told of a server by --server-labels makes one write for each of %d clusters, and changes no pod", portalFleet),
	play: func(ctx context.Context, _ string) (Outcome, error) {
		output, failed := integration(ctx, "TestServerLabels_CostOneWritePerPolicy", fmt.Sprintf("%s=%d", portals.FleetVariable, portalFleet))
		return saidBy(output, writesOfFleet, 1, failed)
	},
}

// What the tests say when they are over.
var (
	answersByCode   = regexp.MustCompile(`\d+ decisions, answers by code: map\[.*\]`)
	streamsResumed  = regexp.MustCompile(`\d+ histories, .*`)
	serversReplaced = regexp.MustCompile(`\d+ streams said bye .*`)
	canariesFound   = regexp.MustCompile(`\d+ canaries, .*`)
	writesOfFleet   = regexp.MustCompile(`\d+ clusters cost \d+ writes: .*`)
)

// saidBy returns what tests said of themselves, so many times, and whether they passed.
func saidBy(output string, what *regexp.Regexp, times int, failed error) (Outcome, error) {
	found := what.FindAllString(output, -1)
	if len(found) != times {
		return Outcome{}, errors.Join(fmt.Errorf("the tests said %d times what they did, want %d", len(found), times), failed)
	}
	return Outcome{Measured: strings.Join(found, "; "), Kept: failed == nil}, nil
}
