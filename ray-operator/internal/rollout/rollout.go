// Package rollout plans the replacement of old replicas by new ones, in plain numbers.
//
// In: how many replicas a group must have, the pace, and which replicas there are. Out:
// which of them to retire now, and how many the group is to have meanwhile.
//
// It is pure and level-triggered: it knows of no rollout that is under way but what the
// replicas show, so it may be asked again at any time.
package rollout

import (
	"cmp"
	"slices"
)

// Replica is one that is there and not on its way out.
type Replica struct {
	Index int
	// Old was built from an earlier spec.
	Old bool
	// Ready has joined.
	Ready bool
}

// Pace bounds a rollout, in replicas.
type Pace struct {
	// Wanted is how many the group must have.
	Wanted int
	// Unavailable is how many of them may be missing, Surge how many may be there beyond.
	Unavailable, Surge int
}

// Step is what to do now.
type Step struct {
	// Retire holds the indices of old replicas to retire, first to go first.
	Retire []int
	// Size is how many replicas the group is to have after that, with those that are
	// created for it and without those that retire.
	Size int
}

// Next plans the next step. exiting counts old replicas that were retired and are still
// at work: they count against the surge. Where nothing is old and nothing exits, Size is
// what is wanted. Old ones that have not joined go at once: they serve nobody.
func Next(pace Pace, exiting int, replicas []Replica) Step {
	var old, stuck []Replica
	ready := 0
	for _, r := range replicas {
		if r.Ready {
			ready++
		}
		switch {
		case r.Old && r.Ready:
			old = append(old, r)
		case r.Old:
			stuck = append(stuck, r)
		}
	}
	slices.SortFunc(old, highestFirst)
	slices.SortFunc(stuck, highestFirst)
	// An old one that is not to be missed may go once so many are ready that enough stay.
	spare := max(0, min(len(old), ready-(pace.Wanted-pace.Unavailable)))
	var step Step
	for _, r := range append(stuck, old[:spare]...) {
		step.Retire = append(step.Retire, r.Index)
	}
	surge := min(pace.Surge, len(old)+exiting) // no more than there is left to replace
	step.Size = max(0, pace.Wanted+surge-exiting-spare)
	return step
}

func highestFirst(a, b Replica) int { return cmp.Compare(b.Index, a.Index) }
