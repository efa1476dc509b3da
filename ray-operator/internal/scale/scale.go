// Package scale is the arithmetic of replicas: which slots of a group to fill and
// which to empty.
//
// In: how many workers a group shall have, and the slots that are taken. Out: the
// slots to create and the workers to remove, in the order in which to do it.
//
// It is pure, and it never counts a leaving worker as present: that only keeps its
// slot busy, so a worker that hangs while terminating never blocks scaling.
package scale

import (
	"cmp"
	"slices"
)

// State is how far a worker has come.
type State int

// The order is the order of removal: what has done least goes first.
const (
	// Finished has ended as a whole (failed or succeeded) and must be replaced.
	Finished State = iota
	// Starting is there and has not joined.
	Starting
	// Ready has joined.
	Ready
	// Leaving is on its way out.
	Leaving
)

// Slot is a taken slot of a group.
type Slot struct {
	// Index counts from 0.
	Index int
	State State
}

// Change is what brings a group to its size.
type Change struct {
	// Create holds the indices to fill, lowest first.
	Create []int
	// Remove holds the slots to empty, first to go first.
	Remove []Slot
}

// Target works out the change that leaves wanted workers alive. Finished ones are
// always removed; a negative wanted counts as 0. The same input gives the same
// change, whatever the order of taken.
func Target(wanted int, taken []Slot) Change {
	var change Change
	busy := make(map[int]bool, len(taken))
	alive := make([]Slot, 0, len(taken))
	for _, slot := range taken {
		busy[slot.Index] = true
		switch slot.State {
		case Finished:
			change.Remove = append(change.Remove, slot)
		case Starting, Ready:
			alive = append(alive, slot)
		case Leaving:
		}
	}
	slices.SortFunc(alive, func(a, b Slot) int {
		return cmp.Or(cmp.Compare(a.State, b.State), cmp.Compare(b.Index, a.Index))
	})
	slices.SortFunc(change.Remove, func(a, b Slot) int { return cmp.Compare(a.Index, b.Index) })
	surplus := max(0, len(alive)-max(0, wanted))
	change.Remove = append(change.Remove, alive[:surplus]...)
	for index := 0; len(change.Create) < wanted-len(alive); index++ {
		if !busy[index] {
			change.Create = append(change.Create, index)
		}
	}
	return change
}
