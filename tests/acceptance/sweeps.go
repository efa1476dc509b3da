package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

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
		text, failed, err := measured(ctx, state, "TestStoresGo", fmt.Sprintf("HELIOSTAT_STORES=%d", sweptClusters))
		if err != nil {
			return Outcome{}, err
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
	return judged(sweeps.String(), broken, failed, figures), nil
}

// judged is the outcome of figures of which a list says what is broken, and of a test that failed or did not.
func judged(figures string, broken []string, failed error, samples json.RawMessage) Outcome {
	if failed != nil {
		broken = append(broken, failed.Error())
	}
	if len(broken) > 0 {
		figures += "; " + strings.Join(broken, ", ")
	}
	return Outcome{Measured: figures, Kept: len(broken) == 0, Samples: samples}
}
