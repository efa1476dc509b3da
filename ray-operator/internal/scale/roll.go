package scale

import (
	"cmp"
	"slices"
)

// RollReplica is a replica that is there and not terminating.
type RollReplica struct {
	Index int
	// Old was built from an earlier spec.
	Old bool
	// Ready has joined.
	Ready bool
}

// RollPace bounds a roll, in replicas.
type RollPace struct {
	// Wanted is how many the group must have.
	Wanted int
	// Unavailable is how many of them may be missing, Surge how many may be there beyond.
	Unavailable, Surge int
}

// RollStep is the next step of a roll.
type RollStep struct {
	// Retire holds the indices of old replicas to retire, first to go first.
	Retire []int
	// Size is how many replicas the group is to have after that, with those that are
	// created for it and without those that retire.
	Size int
}

// PlanRoll plans the next step. exiting counts old replicas that were retired and are still
// at work: they count against the surge. Where nothing is old and nothing exits, Size is
// what is wanted. Old ones that have not joined go at once: they serve nobody.
func PlanRoll(pace RollPace, exiting int, replicas []RollReplica) RollStep {
	var old, stuck []RollReplica
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
	var step RollStep
	for _, r := range append(stuck, old[:spare]...) {
		step.Retire = append(step.Retire, r.Index)
	}
	surge := min(pace.Surge, len(old)+exiting) // no more than there is left to replace
	step.Size = max(0, pace.Wanted+surge-exiting-spare)
	return step
}

func highestFirst(a, b RollReplica) int { return cmp.Compare(b.Index, a.Index) }
