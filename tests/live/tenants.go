package live

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

const (
	// PromisedBeside is how much longer honest clusters wait beside hostile tenants, at the 99th percentile.
	PromisedBeside = 1.5
	// PromisedMemory is the part of its memory's limit that the operator takes at most.
	PromisedMemory = 0.8
)

// Sorts of hostile servers.
const (
	HostileRedis      = "Redis"
	HostileSentinel   = "Sentinel"
	HostileGCS        = "GCS"
	HostileAutoscaler = "autoscaler"
	HostileAPI        = "job and Serve API"
)

// HostileSorts returns all of them.
func HostileSorts() []string {
	return []string{HostileRedis, HostileSentinel, HostileGCS, HostileAutoscaler, HostileAPI}
}

// Tenants is what honest clusters and their operator went through beside hostile servers.
type Tenants struct {
	// Honest is how many honest clusters there were, Objects how many objects beside each sort of hostile servers.
	Honest  int `json:"honest"`
	Objects int `json:"objects"`
	// Seconds is how long the servers were hostile.
	Seconds int `json:"seconds"`
	// Calm is how soon honest clusters were reconciled before, Beside while others were hostile.
	Calm   Reactions `json:"calm"`
	Beside Reactions `json:"beside"`
	// Memory is the most that the operator had resident, MemoryLimit the chart's limit: MiB.
	Memory      float64 `json:"memory"`
	MemoryLimit float64 `json:"memoryLimit"`
	// Asked counts the connections to each sort of hostile servers.
	Asked map[string]int64 `json:"asked"`
}

// Reactions are times from an edit of a cluster that asks for one more worker until the operator made its pod: milliseconds.
type Reactions struct {
	Edits int     `json:"edits"`
	P50   float64 `json:"p50"`
	P99   float64 `json:"p99"`
}

// ReactionsOf sums times up.
func ReactionsOf(milliseconds []float64) Reactions {
	if len(milliseconds) == 0 {
		return Reactions{}
	}
	sorted := slices.Sorted(slices.Values(milliseconds))
	at := func(share float64) float64 { return sorted[min(int(share*float64(len(sorted))), len(sorted)-1)] }
	return Reactions{Edits: len(sorted), P50: at(0.5), P99: at(0.99)}
}

// String is all of it in one line.
func (t Tenants) String() string {
	var asked []string
	for _, sort := range slices.Sorted(maps.Keys(t.Asked)) {
		asked = append(asked, fmt.Sprintf("%s %d", sort, t.Asked[sort]))
	}
	return fmt.Sprintf("%d honest clusters beside %d objects of each sort for %d s: p50 %.0f ms and p99 %.0f ms, calm %.0f and %.0f ms, %d and %d edits; memory %.0f MiB of %.0f; connections: %s",
		t.Honest, t.Objects, t.Seconds, t.Beside.P50, t.Beside.P99, t.Calm.P50, t.Calm.P99, t.Beside.Edits, t.Calm.Edits, t.Memory, t.MemoryLimit, strings.Join(asked, ", "))
}

// Broken says what of the promises was not kept.
func (t Tenants) Broken() []string {
	var broken []string
	if t.Calm.Edits == 0 || t.Beside.Edits == 0 || t.Memory == 0 {
		broken = append(broken, "something was not tried at all")
	}
	for _, sort := range HostileSorts() {
		if t.Asked[sort] == 0 {
			broken = append(broken, "no "+sort+" was asked")
		}
	}
	if t.Beside.P99 > PromisedBeside*t.Calm.P99 {
		broken = append(broken, "honest clusters waited")
	}
	if t.Memory > PromisedMemory*t.MemoryLimit {
		broken = append(broken, "the operator took much memory")
	}
	return broken
}
