package live

import (
	"fmt"
	"slices"
)

// How soon the autoscaler acts: labels of specs, and the names under which they report a
// Demand, and seconds.
const (
	DemandLabel, DemandEntry       = "demand", "demand to pods"
	GivenBackLabel, GivenBackEntry = "given-back", "last result to workers told to go"
)

// Demand is after how many seconds each of some demands had its pod, as a watch told.
type Demand struct {
	Seconds []float64 `json:"seconds"`
}

// At is the seconds that a share of the demands had to wait at most, 0.5 for the half.
func (d Demand) At(share float64) float64 {
	if len(d.Seconds) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(d.Seconds))
	return sorted[min(len(sorted)-1, int(share*float64(len(sorted))))]
}

// String is the measure in one line.
func (d Demand) String() string {
	return fmt.Sprintf("%d demands, a pod after %.2f s (p50), %.2f s (p95)", len(d.Seconds), d.At(0.5), d.At(0.95))
}
