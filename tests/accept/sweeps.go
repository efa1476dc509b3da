package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/heliostat-dev/heliostat/tests/bench/jobs"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// sweptClusters is how many clusters are deleted at once while their Redis is away.
const sweptClusters = 100

// storeSweeps shows on a real API server and with a real Redis that many clusters go, and
// what becomes of their keys.
var storeSweeps = scenario{
	name: "store-sweeps",
	promise: fmt.Sprintf("of %d clusters in one Redis each gets another head after %.0f s; one that is deleted is gone with its keys after %.0f s; all of them while the Redis is away "+
		"after %.0f s, and their keys %.0f s after it is back; as many without their Secret or with their namespace are not held up, and each is recorded; no key of others goes",
		sweptClusters, live.PromisedCreated.Seconds(), live.PromisedStoreGone.Seconds(), live.PromisedAwayGone.Seconds(), live.PromisedKeysGone.Seconds()),
	play: func(ctx context.Context, state string) (Outcome, error) {
		file, err := filepath.Abs(filepath.Join(state, "store-sweeps-figures.json"))
		if err != nil {
			return Outcome{}, fmt.Errorf("name the file of figures: %w", err)
		}
		if err := os.RemoveAll(file); err != nil {
			return Outcome{}, fmt.Errorf("remove former figures: %w", err)
		}
		_, failed := integration(ctx, "TestStoresGo", fmt.Sprintf("HELIOSTAT_STORES=%d", sweptClusters), jobs.ResultsVariable+"="+file)
		text, err := os.ReadFile(file)
		if err != nil {
			return Outcome{}, errors.Join(failed, fmt.Errorf("read the figures: %w", err))
		}
		return sweptAway(text, failed)
	},
}

// sweptAway judges what the test measured.
func sweptAway(figures json.RawMessage, failed error) (Outcome, error) {
	var sweeps live.Sweeps
	if err := json.Unmarshal(figures, &sweeps); err != nil {
		return Outcome{}, errors.Join(failed, fmt.Errorf("parse the figures: %w", err))
	}
	broken := sweeps.Broken()
	if sweeps.Clusters < sweptClusters {
		broken = append(broken, "too few clusters")
	}
	if failed != nil {
		broken = append(broken, failed.Error())
	}
	measured := sweeps.String()
	if len(broken) > 0 {
		measured += "; " + strings.Join(broken, ", ")
	}
	return Outcome{Measured: measured, Kept: len(broken) == 0, Samples: figures}, nil
}
