package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/heliostat-dev/heliostat/tests/live"
)

// crashedUpgrades changes services on a real API server whose operators are killed after each
// write in turn.
var crashedUpgrades = scenario{
	name: "service-api",
	promise: fmt.Sprintf("%d requests through %d upgrades of all sorts on a real API server, with fake heads; the operator is killed after each of its writes in turn: none lost",
		apiRequests, apiUpgrades),
	play: func(ctx context.Context, state string) (Outcome, error) {
		samples, failed, err := measured(ctx, state, "TestUpgradesWhileTheOperatorIsKilled",
			fmt.Sprintf("HELIOSTAT_UPGRADES=%d", apiUpgrades), fmt.Sprintf("HELIOSTAT_REQUESTS=%d", apiRequests))
		if err != nil {
			return Outcome{}, err
		}
		return crashed(samples, failed)
	},
}

// crashed judges what the test of operators that are killed said.
func crashed(samples json.RawMessage, failed error) (Outcome, error) {
	var told live.Crashed
	if err := json.Unmarshal(samples, &told); err != nil {
		return Outcome{}, errors.Join(failed, fmt.Errorf("parse the samples: %w", err))
	}
	sent, lost := told.Count()
	kept := failed == nil && lost == 0 && sent >= apiRequests && told.Changes >= apiUpgrades
	for _, steps := range told.Steps {
		kept = kept && len(steps) > 0
	}
	return Outcome{Measured: told.String(), Kept: kept && len(told.Steps) > 0, Samples: samples}, nil
}

// crashedTable tells after which writes, and how long requests took.
func crashedTable(samples json.RawMessage) string {
	var told live.Crashed
	if err := json.Unmarshal(samples, &told); err != nil {
		return fmt.Sprintf("parse the samples: %v\n", err)
	}
	return "Writes are those to the API server and to heads, Leases and events apart. Latencies count from when a request was due.\n\n" + told.Table()
}
