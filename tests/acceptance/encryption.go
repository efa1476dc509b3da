package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/onsi/ginkgo/v2/types"

	"github.com/heliostat-dev/heliostat/tests/live"
)

// Full counts of clusters with encryption.
const (
	// costRounds is how often each cluster is measured.
	costRounds = 5
	// encryptedRounds is how often a service has another cluster with another certificate authority, and how often a head
	// ends with each store but the managed Redis, with which it ends storeRounds times.
	encryptedRounds = 5
)

// encryptionScenarios are those of clusters with encryption.
func encryptionScenarios() []scenario {
	return []scenario{
		storeKills("sealed", storeRounds),
		storeKills("sealed-embedded", encryptedRounds, "with encryption and the memory on a volume, "),
		storeKills("sealed-redis", encryptedRounds, "with encryption and the memory in a Redis of the user's that speaks TLS alone, "),
		serveUpgrades(live.ChangeEncrypted, "the pods of each cluster encrypt, with certificates of an authority that the one before did not have"),
		passing(live.EncryptionRenewedLabel, "with each store a cluster whose certificate authority is deleted says so once a pod is to be made, loses nothing and goes on once it is restored; "+
			"after a suspension without it there is another one, and the head has its memory"),
		passing(live.EncryptionScalingLabel, "tasks that wait have a worker each, by an autoscaler that hears the operator and asks the head by TLS alone"),
		encryptionCost,
	}
}

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
