package live

import (
	"fmt"
	"slices"
)

// EncryptionCostLabel is of the spec that measures what encryption costs, and EncryptionCostEntry of what it tells.
const EncryptionCostLabel, EncryptionCostEntry = "encryption-cost", "cost of encryption"

// EncryptionRenewedLabel is of the specs of a certificate authority that goes or is renewed, EncryptionScalingLabel of the
// one whose autoscaler is told of demand by TLS.
const EncryptionRenewedLabel, EncryptionScalingLabel = "encryption-renewed", "encryption-scaling"

// Least shares of the speed without encryption that are promised.
const (
	PromisedTasks   = 0.5
	PromisedObjects = 0.25
)

// EncryptionCost is how fast one cluster with encryption and one without it were, in rounds that took turns.
type EncryptionCost struct {
	Plain     []Speed `json:"plain"`
	Encrypted []Speed `json:"encrypted"`
}

// Speed is of one round.
type Speed struct {
	// Tasks is how many empty tasks per second a worker ran for a driver on the head.
	Tasks float64 `json:"tasks"`
	// Objects is how many MiB per second came from the head to the worker, in objects of 16 MiB.
	Objects float64 `json:"objects"`
}

// Shares returns the speed with encryption as a share of that without, by the medians.
func (c EncryptionCost) Shares() (tasks, objects float64) {
	of := func(speeds []Speed, what func(Speed) float64) float64 {
		values := make([]float64, 0, len(speeds))
		for _, speed := range speeds {
			values = append(values, what(speed))
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	return of(c.Encrypted, ofTasks) / of(c.Plain, ofTasks), of(c.Encrypted, ofObjects) / of(c.Plain, ofObjects)
}

func ofTasks(s Speed) float64   { return s.Tasks }
func ofObjects(s Speed) float64 { return s.Objects }

func (c EncryptionCost) String() string {
	tasks, objects := c.Shares()
	return fmt.Sprintf("with encryption %.2f of the tasks per second and %.2f of the MiB per second, medians of %d rounds", tasks, objects, len(c.Encrypted))
}
