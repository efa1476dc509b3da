package live

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// PromisedBesideNeighbours is how much longer honest clusters wait beside busy neighbours, at the 99th percentile.
const PromisedBesideNeighbours = 1.2

// Neighbours that keep an operator busy.
const (
	NeighbourGrows   = "a cluster that grows"
	NeighbourRefused = "a quota that refuses"
	NeighbourHangs   = "a webhook that hangs"
)

// Neighbours is how soon honest clusters were reconciled beside busy ones.
type Neighbours struct {
	// Honest is how many honest clusters there were.
	Honest int `json:"honest"`
	// Grown workers were added to one cluster, Refused workers to another one in a namespace whose quota refuses them.
	Grown   int `json:"grown"`
	Refused int `json:"refused"`
	// Calm is how soon honest clusters were reconciled before, Beside while each neighbour was busy.
	Calm   Reactions            `json:"calm"`
	Beside map[string]Reactions `json:"beside"`
}

// String returns all of it in one line.
func (n Neighbours) String() string {
	beside := make([]string, 0, len(n.Beside))
	for _, name := range slices.Sorted(maps.Keys(n.Beside)) {
		one := n.Beside[name]
		beside = append(beside, fmt.Sprintf("%s: p50 %.0f ms and p99 %.0f ms, %d edits", name, one.P50, one.P99, one.Edits))
	}
	return fmt.Sprintf("%d honest clusters, calm: p50 %.0f ms and p99 %.0f ms, %d edits; beside %d more workers and %d refused ones: %s",
		n.Honest, n.Calm.P50, n.Calm.P99, n.Calm.Edits, n.Grown, n.Refused, strings.Join(beside, "; "))
}

// Broken returns which promises were not kept.
func (n Neighbours) Broken() []string {
	var broken []string
	for _, name := range []string{NeighbourGrows, NeighbourRefused, NeighbourHangs} {
		switch beside := n.Beside[name]; {
		case n.Calm.Edits == 0 || beside.Edits == 0:
			broken = append(broken, "nothing was edited beside "+name)
		case beside.P99 > PromisedBesideNeighbours*n.Calm.P99:
			broken = append(broken, "honest clusters waited beside "+name)
		}
	}
	return broken
}
