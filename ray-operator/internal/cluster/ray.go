package cluster

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Ray is what the head said last of its nodes. Nothing of it is taken for true longer
// than freshFor.
type Ray struct {
	// At is when it said so, zero where it did not yet.
	At time.Time
	// Failed tells that the last question had no answer.
	Failed bool
	// Nodes are Ray's nodes by the UID of their pods.
	Nodes map[types.UID]RayNode
	// IdleSince is since when nobody has used the cluster, zero while someone does.
	IdleSince time.Time
}

// RayNode is one of Ray's nodes.
type RayNode struct {
	// Idle: nothing runs on it. Dead: it has left, or Ray gave it up.
	Idle, Dead bool
}

// freshFor is how old an answer may be to decide on it; askIdle how often to ask for
// the sake of an idle policy, askDrain of a drain.
const (
	freshFor = 10 * time.Second
	askIdle  = 5 * time.Second
	askDrain = time.Second
)

func (r Ray) fresh(now time.Time) bool {
	return !r.Failed && !r.At.IsZero() && now.Sub(r.At) <= freshFor
}

// Ask is what shall be asked of the head in the background. The zero value is nothing.
type Ask struct {
	// Every is how often, 0 is never.
	Every time.Duration
	// Drains are the pods whose nodes are to be drained, each until when.
	Drains map[types.UID]time.Time
}

func (a *Ask) often(every time.Duration) {
	if a.Every == 0 || every < a.Every {
		a.Every = every
	}
}

func (a *Ask) drain(pod types.UID, until time.Time) {
	if a.Drains == nil {
		a.Drains = map[types.UID]time.Time{}
	}
	a.Drains[pod] = until
	a.often(askDrain)
}
