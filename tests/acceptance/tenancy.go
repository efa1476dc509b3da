package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/heliostat-dev/heliostat/tests/internal/attackers"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// Full counts beside hostile tenants.
const (
	besideHonest  = 100
	besideObjects = 20
	besideSeconds = 600
	// Workers that neighbours of honest clusters ask for, and the seconds beside each.
	grownWorkers     = 1_000
	refusedWorkers   = 500
	neighbourSeconds = 60
	// Connections without a token to each listener of the server, accounts without rights, and seconds.
	callersAnonymous = 50
	callersAccounts  = 20
	callersSeconds   = 60
)

// hostileTenants shows that one operator serves honest tenants beside hostile ones.
var hostileTenants = scenario{
	name: "hostile-tenants",
	promise: fmt.Sprintf("beside %d objects each with a hostile Redis, a hostile Sentinel and a hostile head, all at once for %d s, the operator goes on with at most %.0f %% of the chart's memory, "+
		"and the p99 of %d honest clusters is at most %.1f × that of a calm time", besideObjects, besideSeconds, 100*live.PromisedMemory, besideHonest, live.PromisedBeside),
	play: func(ctx context.Context, state string) (Outcome, error) {
		text, failed, err := measured(ctx, state, "TestHostileTenants_StopNobody", fmt.Sprintf("HELIOSTAT_HONEST=%d", besideHonest),
			fmt.Sprintf("HELIOSTAT_HOSTILE=%d", besideObjects), fmt.Sprintf("HELIOSTAT_HOSTILE_SECONDS=%d", besideSeconds))
		if err != nil {
			return Outcome{}, err
		}
		return besideHostile(text, failed)
	},
}

// besideHostile judges what the test measured.
func besideHostile(figures json.RawMessage, failed error) (Outcome, error) {
	var tenants live.Tenants
	if err := json.Unmarshal(figures, &tenants); err != nil {
		return Outcome{}, errors.Join(failed, fmt.Errorf("parse the figures: %w", err))
	}
	broken := tenants.Broken()
	if tenants.Honest < besideHonest || tenants.Objects < besideObjects || tenants.Seconds < besideSeconds {
		broken = append(broken, "too few or too short")
	}
	return judged(tenants.String(), broken, failed, figures), nil
}

// hostileCallers shows that the server for portals serves honest callers beside hostile ones.
var hostileCallers = scenario{
	name: "hostile-callers",
	promise: fmt.Sprintf("beside %d connections without a token to each listener of the server and %d accounts without rights, which send all that takes memory or never ends for %d s, "+
		"the server goes on with at most %.0f %% of the chart's memory, and the p99 of honest callers is at most %.0f × that beside callers who are refused as often",
		callersAnonymous, callersAccounts, callersSeconds, 100*live.PromisedMemory, live.PromisedBesideCallers),
	play: func(ctx context.Context, state string) (Outcome, error) {
		text, failed, err := measured(ctx, state, "TestHostileCallers_StopNobody", fmt.Sprintf("HELIOSTAT_ANONYMOUS=%d", callersAnonymous),
			fmt.Sprintf("HELIOSTAT_ACCOUNTS=%d", callersAccounts), fmt.Sprintf("HELIOSTAT_HOSTILE_SECONDS=%d", callersSeconds))
		if err != nil {
			return Outcome{}, err
		}
		return besideCallers(text, failed)
	},
}

// besideCallers judges what the test measured.
func besideCallers(figures json.RawMessage, failed error) (Outcome, error) {
	var callers live.Callers
	if err := json.Unmarshal(figures, &callers); err != nil {
		return Outcome{}, errors.Join(failed, fmt.Errorf("parse the figures: %w", err))
	}
	broken := callers.Broken()
	if callers.Anonymous < callersAnonymous || callers.Accounts < callersAccounts || callers.Seconds < callersSeconds {
		broken = append(broken, "too few or too short")
	}
	return judged(callers.String(), broken, failed, figures), nil
}

// busyNeighbours shows that a neighbour's work slows no honest cluster.
var busyNeighbours = scenario{
	name: "busy-neighbours",
	promise: fmt.Sprintf("beside a cluster that grows by %d workers, a quota that refuses %d and a webhook that hangs for 10 s, "+
		"the p99 of %d honest clusters is at most %.1f × that of a calm time", grownWorkers, refusedWorkers, besideHonest, live.PromisedBesideNeighbours),
	play: func(ctx context.Context, state string) (Outcome, error) {
		text, failed, err := measured(ctx, state, "TestNeighbours_SlowNobodyElse", fmt.Sprintf("HELIOSTAT_HONEST=%d", besideHonest),
			fmt.Sprintf("HELIOSTAT_GROWN=%d", grownWorkers), fmt.Sprintf("HELIOSTAT_REFUSED=%d", refusedWorkers),
			fmt.Sprintf("HELIOSTAT_NEIGHBOUR_SECONDS=%d", neighbourSeconds))
		if err != nil {
			return Outcome{}, err
		}
		return besideBusy(text, failed)
	},
}

// besideBusy judges what the test measured.
func besideBusy(figures json.RawMessage, failed error) (Outcome, error) {
	var neighbours live.Neighbours
	if err := json.Unmarshal(figures, &neighbours); err != nil {
		return Outcome{}, errors.Join(failed, fmt.Errorf("parse the figures: %w", err))
	}
	broken := neighbours.Broken()
	if neighbours.Honest < besideHonest || neighbours.Grown < grownWorkers || neighbours.Refused < refusedWorkers {
		broken = append(broken, "too few")
	}
	return judged(neighbours.String(), broken, failed, figures), nil
}

// callersTable makes Markdown of how each sort of hostile requests was answered.
func callersTable(samples json.RawMessage) string {
	var callers live.Callers
	if err := json.Unmarshal(samples, &callers); err != nil {
		return fmt.Sprintf("parse the samples: %v\n", err)
	}
	var b strings.Builder
	b.WriteString("Answers to hostile callers: a code of HTTP or gRPC and how often it came. \"none\" is a connection that ended before, and \"held to the end\" a request that was never answered.\n\n" +
		"| requests | answers |\n|---|---|\n")
	for _, sort := range attackers.Sorts() {
		var answers []string
		for _, answer := range slices.Sorted(maps.Keys(callers.Beside.Answers[sort])) {
			answers = append(answers, fmt.Sprintf("%s: %d", answer, callers.Beside.Answers[sort][answer]))
		}
		fmt.Fprintf(&b, "| %s | %s |\n", sort, strings.Join(answers, ", "))
	}
	return b.String()
}
