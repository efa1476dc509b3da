package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/onsi/ginkgo/v2/types"

	"github.com/heliostat-dev/heliostat/tests/live"
)

// costRounds is how often each cluster is measured.
const costRounds = 5

// encryptionCost compares a cluster with encryption with one without it.
var encryptionCost = scenario{
	name: live.EncryptionCostLabel,
	promise: fmt.Sprintf("with network.encryption a cluster runs at least %g of the empty tasks per second that one without it does, and moves at least %g of the bytes",
		live.PromisedTasks, live.PromisedObjects),
	play: func(ctx context.Context, state string) (Outcome, error) {
		return shown(ctx, state, live.EncryptionCostLabel, costRounds, func(ran []types.SpecReport) (Outcome, error) {
			told, err := entries[live.EncryptionCost](ran, live.EncryptionCostEntry)
			if err != nil {
				return Outcome{}, err
			}
			return compared(told)
		})
	},
}

// compared judges what encryption cost.
func compared(told []live.EncryptionCost) (Outcome, error) {
	if len(told) != 1 || len(told[0].Plain) == 0 || len(told[0].Plain) != len(told[0].Encrypted) {
		return Outcome{}, fmt.Errorf("one spec should have measured both clusters as often, there is %+v", told)
	}
	samples, err := json.Marshal(told[0])
	tasks, objects := told[0].Shares()
	return Outcome{Measured: told[0].String(), Kept: tasks >= live.PromisedTasks && objects >= live.PromisedObjects, Samples: samples}, err
}
