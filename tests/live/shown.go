package live

import (
	"fmt"
	"time"
)

// What specs on real Ray report, and make accept reads: entries with a number of seconds,
// what is promised of them, and the labels of the specs.
const (
	BusyLabel, BusyEntry     = "busy-end", "busy cluster deleted to nothing left"
	CutOffLabel, CutOffEntry = "cut-off", "node cut off to successor Ready"
	CordonLabel, CordonEntry = "cordon", "head's node cordoned to its budget lifted"

	// PromisedBusy is for a cluster that goes as a whole. PromisedCutOff is 50 s until
	// Kubernetes calls a silent node unreachable, 60 s that its pods put up with that, and
	// a start. PromisedCordon is when a head may be evicted from a cordoned node.
	PromisedBusy   = 10 * time.Second
	PromisedCutOff = 150 * time.Second
	PromisedCordon = 300 * time.Second
)

// RollLabel is the label of the specs that replace workers under a stream of tasks, and
// RollEntry the name under which they report a Roll.
const RollLabel, RollEntry = "roll", "tasks while all workers were replaced"

// Roll is what became of tasks that nothing may run twice while workers were replaced.
type Roll struct {
	Done    int      `json:"done"`
	Lost    int      `json:"lost"`
	Pods    []string `json:"pods"`
	Seconds float64  `json:"seconds"`
}

// String is the count in one line.
func (r Roll) String() string {
	return fmt.Sprintf("%d done, %d lost, on %d workers in %.1f s", r.Done, r.Lost, len(r.Pods), r.Seconds)
}
