package live

import (
	"fmt"
	"time"
)

// AcceptLabel is of the specs that make accept alone plays: make test leaves them out by its filter
// of labels. Each has another label, by which a scenario plays it.
const AcceptLabel = "accept"

// What specs on real Ray report, and make accept reads: labels of specs, and names of entries with a
// number of seconds.
const (
	BusyLabel, BusyEntry     = "busy-end", "busy cluster deleted to nothing left"
	CutOffLabel, CutOffEntry = "cut-off", "node cut off to successor Ready"
	CordonLabel, CordonEntry = "cordon", "head's node cordoned to its budget lifted"
	// TokenLabel is of the specs of a cluster whose token changes.
	TokenLabel = "token"
	// StrategiesLabel is of the specs of a cluster whose pods are replaced by each strategy.
	StrategiesLabel = "strategies"
	// LeftBehindLabel is of the specs of objects and actors on a worker that leaves.
	LeftBehindLabel = "left-behind"

	// PromisedCordon is when a head may be evicted from a cordoned node.
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
