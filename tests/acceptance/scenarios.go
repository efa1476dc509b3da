package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/heliostat-dev/heliostat/tests/bench/byhand"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// scenario shows one promise. play runs it; it gives an error only where nothing could
// be shown at all.
type scenario struct {
	name, promise string
	play          func(ctx context.Context, state string) (Outcome, error)
}

// Full counts.
const (
	upDownRounds = 20
	startRounds  = 5
)

var areas = map[string][]scenario{
	"first-light": {
		{
			name:    "up-down",
			promise: fmt.Sprintf("the local Kubernetes up and down %d times, killed at random moments: nothing left behind", upDownRounds),
			play:    upDown,
		},
		{
			name: "start",
			promise: fmt.Sprintf("Ray lists head and two workers at most %.1f s later than by hand, Ready at most %.1f s after that and never before",
				byhand.PromisedListed, byhand.PromisedReady),
			play: start,
		},
	},
	"control-store": storeScenarios(),
	"encryption":    encryptionScenarios(),
	"tenancy":       {hostileTenants, hostileCallers, busyNeighbours},
	"portals": {
		portalRights, portalStreams, portalClients, portalWatches, portalSignIn, portalReach, portalVerbs, portalOutputs,
		portalLatency, portalWatching, portalWatchingHTTP1, portalMemory, portalMemoryHTTP1, portalRolling, portalCanaries, portalLabels,
	},
	"commands":   {pagesRun, rayAddress, kuberayManifests, kubeflowManifests, queuedUpload, generatedConversions, fuzzedConversions, commandCosts, followCosts},
	"page":       {pageLoad},
	"dashboards": {rayClient, rayPages, proxiedService, proxiedPeer, fuzzedRequests, fronts},
	// Beside nginx.
	"dashboards-cost": {dashboardRates, dashboardSockets, dashboardBusy},
	"services":        serviceScenarios(),
	"clusters":        append(append([]scenario{reasons, firstMistakes, rolling, succession}, timed...), token, strategies, leftBehind, admission, world, queueing),
	"autoscaling": {
		decisions, elasticRolls, decisionTime, demand, givenBack, churn, autoscalerTrouble, apiAway, anew, quiet, selected, slice, elasticRolling, neverStart,
	},
	"families": {ipv6Alone},
	"gangs": {
		gangFrameworks, gangsOfIPv6, mpiOfIPv6, gangsOfDebian12, gangsOfTensorFlow, gangOfSpark, gangTuning, gangFaults, gangEnds, gangPlaces, gangClusters, gangTimes, gangCost, gangPods, sparkTimes,
		gangZombies, fuzzedReports, gangHistories, tuningStudies,
	},
	"jobs": {jobTime, jobCost, headLost, freed, jobStop, jobExamples, submissions, manySubmissions},
}

// tables make Markdown of a scenario's samples.
var tables = map[string]func(json.RawMessage) string{
	"start": startTable, reasons.name: reasonsTable, firstMistakes.name: mistakesTable, jobTime.name: jobTable, storeFaults.name: faultsTable,
	live.ServeBadLabel: badTable, crashedUpgrades.name: crashedTable, serveLatency.name: latencyTable,
	live.ServeUpgradesLabel(live.ChangeConfig): upgradesTable, live.ServeUpgradesLabel(live.ChangeCode): upgradesTable,
	live.ServeUpgradesLabel(live.ChangeImage): upgradesTable, live.ServeUpgradesLabel(live.ChangeShape): upgradesTable,
	live.ServeUpgradesLabel(live.ChangeRollback): upgradesTable, live.ServeUpgradesLabel(live.ChangeReturn): upgradesTable,
	live.ServeUpgradesLabel(live.ChangeThree): upgradesTable, live.ServeUpgradesLabel(live.ChangeLimited): upgradesTable,
	live.ServeUpgradesLabel(live.ChangeNothing): upgradesTable, live.ServeUpgradesLabel(live.ChangeGRPC): upgradesTable, live.ServeUpgradesLabel(live.ChangeHAProxy): upgradesTable,
	live.ServeAutoscaledLabel:       upgradesTable,
	live.StoreKillsLabel + "-redis": memoryTable, live.StoreKillsLabel + "-managed": memoryTable, live.StoreKillsLabel + "-embedded": memoryTable,
	live.StoreKillsLabel + "-sealed": memoryTable, live.StoreKillsLabel + "-sealed-embedded": memoryTable, live.StoreKillsLabel + "-sealed-redis": memoryTable,
	live.ServeUpgradesLabel(live.ChangeEncrypted): upgradesTable,
	portalLatency.name:                            portalLatencyTable, portalWatching.name: portalWatchTable, portalMemory.name: portalMemoryTable,
	portalWatchingHTTP1.name: portalWatchTable, portalMemoryHTTP1.name: portalMemoryTable,
	kuberayManifests.name: manifestTable, kubeflowManifests.name: manifestTable, rayClient.name: refusalTable, dashboardRates.name: dashboardRatesTable, dashboardSockets.name: dashboardSocketsTable, dashboardBusy.name: dashboardBusyTable,
	hostileCallers.name: callersTable, gangFaults.name: gangFaultsTable, gangEnds.name: gangEndsTable,
}

// once plays the scenario, and says when, on what and with which code.
func (s scenario) once(ctx context.Context, state string) (Outcome, error) {
	commit, code, err := head(ctx)
	if err != nil {
		return Outcome{}, err
	}
	fmt.Printf("%s: %s\n", s.name, s.promise)
	begin := time.Now()
	outcome, err := s.play(ctx, state)
	if err != nil {
		return Outcome{}, err
	}
	if table := tables[s.name]; table != nil && len(outcome.Samples) > 0 {
		outcome.Table = strings.Split(strings.TrimSuffix(table(outcome.Samples), "\n"), "\n")
	}
	outcome.Scenario, outcome.Promise, outcome.Seconds = s.name, s.promise, time.Since(begin).Round(time.Second).Seconds()
	outcome.Commit, outcome.Code, outcome.Date, outcome.Machine = commit, code, begin.UTC().Format(time.DateOnly), live.DescribeMachine()
	return outcome, nil
}

func upDown(ctx context.Context, _ string) (Outcome, error) {
	begin := time.Now()
	err := command(ctx, []string{fmt.Sprintf("LOCALKUBE_ROUNDS=%d", upDownRounds)},
		"go", "test", "-C", "tests/localkube", "-v", "-count=1", "-timeout", "60m", "-run", "^TestUpDown$", ".")
	measured := fmt.Sprintf("%d rounds in %.0f s, nothing left", upDownRounds, time.Since(begin).Seconds())
	if err != nil {
		measured = err.Error()
	}
	return Outcome{Measured: measured, Kept: err == nil}, ctx.Err()
}

func start(ctx context.Context, state string) (Outcome, error) {
	return onNodes(ctx, nil, func(kubeconfig string) (Outcome, error) { return measureStart(ctx, kubeconfig, state) })
}

func measureStart(ctx context.Context, kubeconfig, state string) (Outcome, error) {
	root, err := os.Getwd()
	if err != nil {
		return Outcome{}, fmt.Errorf("find the repository: %w", err)
	}
	samples := filepath.Join(root, state, "start-samples.json")
	if err := os.Remove(samples); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Outcome{}, fmt.Errorf("remove former samples: %w", err)
	}
	failed := command(ctx, []string{"KUBECONFIG=" + kubeconfig},
		"go", "test", "-v", "-count=1", "-timeout", "60m", "./tests/bench/byhand", "-rounds", fmt.Sprint(startRounds), "-out", samples)
	text, err := os.ReadFile(samples)
	if err != nil {
		return Outcome{}, errors.Join(failed, fmt.Errorf("read the samples: %w", err))
	}
	rounds, err := parse[byhand.Round](text)
	if err != nil {
		return Outcome{}, errors.Join(failed, err)
	}
	m := byhand.Summarise(rounds)
	return Outcome{
		Measured: fmt.Sprintf("listed after %.2f s, by hand after %.2f s: %+.2f s; Ready %.2f s after that; medians of %d",
			m.Operator, m.ByHand, m.Later(), m.Ready, len(rounds)),
		Kept: failed == nil && m.Kept(), Samples: text,
	}, nil
}

// parse reads the rounds of a measurement, of which there is at least one.
func parse[Round any](samples json.RawMessage) ([]Round, error) {
	var rounds []Round
	if err := json.Unmarshal(samples, &rounds); err != nil {
		return nil, fmt.Errorf("parse the samples: %w", err)
	}
	if len(rounds) == 0 {
		return nil, errors.New("parse the samples: there is no round")
	}
	return rounds, nil
}

func startTable(samples json.RawMessage) string {
	rounds, err := parse[byhand.Round](samples)
	if err != nil {
		return err.Error() + "\n"
	}
	var b strings.Builder
	b.WriteString("Seconds from apply, the two sides in turn on the same two nodes.\n\n" +
		"| round | by hand: listed by Ray | by hand: pods Ready | operator: listed by Ray | operator: status Ready | Ready after listed |\n" +
		"|---|---|---|---|---|---|\n")
	for i, r := range rounds {
		fmt.Fprintf(&b, "| %d | %.2f | %.2f | %.2f | %.2f | %.2f |\n",
			i+1, r.ByHand.Listed, r.ByHand.Ready, r.Operator.Listed, r.Operator.Ready, r.Operator.Ready-r.Operator.Listed)
	}
	return b.String()
}

// command runs a program with its output on ours.
func command(ctx context.Context, environment []string, program string, args ...string) error {
	c := exec.CommandContext(ctx, program, args...)
	c.Env = append(os.Environ(), environment...)
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	// Interrupted, not killed, so that it can take down what it brought up.
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = time.Minute
	if err := c.Run(); err != nil {
		return fmt.Errorf("run %s: %w", strings.Join(append([]string{filepath.Base(program)}, args...), " "), err)
	}
	return nil
}
