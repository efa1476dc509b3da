// Package scale is the arithmetic of replicas: which slots of a group to fill and which to empty, and how a group rolls
// from old replicas to new ones.
//
// In: how many replicas a group must have, of how many hosts each, and the slots that are taken. Out: the slots to create
// and the workers to remove, in the order in which to do it; of a roll, which replicas to retire now, and the size meanwhile.
//
// It is pure, and it never counts a worker that leaves or drains as present: that only
// keeps its slot busy, so a worker that hangs while terminating never blocks scaling.
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
	// Draining is on its planned exit and still at work; Leaving is on its way out.
	Draining
	Leaving
)

// Slot is a taken slot of a group.
type Slot struct {
	// Index counts from 0; with h hosts per replica, replica r has the slots from r·h.
	Index int
	State State
	// Retire asks for a planned exit, whether there are too many or not.
	Retire bool
	// Busy tells that Ray has work on it: idle ones go first.
	Busy bool
	// Abandoned tells, of a replica with several hosts, that it has waited too long for
	// those that are missing.
	Abandoned bool
	// Given tells that the autoscaler gives it back: nothing runs there and nothing will, so
	// it does not count, and goes when all that is there of its replica is given back.
	Given bool
}

// Change is what brings a group to its size.
type Change struct {
	// Create holds the indices to fill, lowest first.
	Create []int
	// Broken holds workers that ended, and those whose replica can never be whole again:
	// nothing useful runs there. Given holds those that are given back, Retire those that
	// were asked to go, Surplus those that are too many, first to go first.
	Broken, Given, Retire, Surplus []Slot
}

// replica is the slots of one replica.
type replica struct {
	index int
	slots []Slot
}

// Target works out the change that leaves wanted replicas of hosts workers each alive.
// Finished workers are always removed, and with one all the others of its replica;
// those asked to retire as well. A negative wanted counts as 0, fewer than one host as
// one. The same input gives the same change, whatever the order of taken.
func Target(wanted, hosts int, taken []Slot) Change {
	wanted, hosts = max(0, wanted), max(1, hosts)
	var change Change
	var alive []replica
	busy := map[int]bool{}
	for _, r := range replicas(hosts, taken) {
		busy[r.index] = true
		switch {
		case r.broken(hosts):
			change.Broken = append(change.Broken, r.there()...)
		case r.given():
			change.Given = append(change.Given, r.there()...)
		case r.retires():
			change.Retire = append(change.Retire, r.there()...)
		default:
			alive = append(alive, r)
		}
	}
	slices.SortFunc(alive, firstToGo)
	surplus := max(0, len(alive)-wanted)
	for _, r := range alive[:surplus] {
		change.Surplus = append(change.Surplus, r.slots...)
	}
	for _, r := range alive[surplus:] {
		change.Create = append(change.Create, r.missing(hosts)...)
	}
	for index, count := 0, len(alive); count < wanted; index++ {
		if !busy[index] {
			change.Create = append(change.Create, replica{index: index}.missing(hosts)...)
			count++
		}
	}
	slices.Sort(change.Create)
	return change
}

// replicas sorts slots into their replicas, both by index.
func replicas(hosts int, taken []Slot) []replica {
	sorted := slices.SortedFunc(slices.Values(taken), func(a, b Slot) int { return cmp.Compare(a.Index, b.Index) })
	var all []replica
	for _, slot := range sorted {
		if index := slot.Index / hosts; len(all) == 0 || all[len(all)-1].index != index {
			all = append(all, replica{index: index})
		}
		last := &all[len(all)-1]
		last.slots = append(last.slots, slot)
	}
	return all
}

// broken reports whether the replica can never be whole again: one of its workers ended, or
// leaves without having been asked to, or is missing beside others that had joined, or
// that have waited for it too long.
func (r replica) broken(hosts int) bool {
	lost, joined, abandoned, planned := false, false, false, false
	for _, slot := range r.slots {
		lost = lost || slot.State == Finished || slot.State == Leaving
		joined = joined || slot.State == Ready
		abandoned = abandoned || slot.Abandoned
		planned = planned || slot.State == Draining
	}
	incomplete := len(r.slots) < hosts
	return lost || incomplete && (joined || abandoned || planned)
}

// retires reports whether the replica goes as planned: asked to, or already at it.
func (r replica) retires() bool {
	return slices.ContainsFunc(r.slots, func(s Slot) bool { return s.Retire || s.State == Draining })
}

// there are the replica's workers that still have to be told to go.
func (r replica) there() []Slot {
	var there []Slot
	for _, slot := range r.slots {
		if slot.State < Draining {
			there = append(there, slot)
		}
	}
	return there
}

func (r replica) missing(hosts int) []int {
	var indices []int
	for index := r.index * hosts; index < (r.index+1)*hosts; index++ {
		if !slices.ContainsFunc(r.slots, func(s Slot) bool { return s.Index == index }) {
			indices = append(indices, index)
		}
	}
	return indices
}

// firstToGo orders replicas by what is lost with them: one that has not joined before one
// that has, an idle one before one at work, then the highest.
func firstToGo(a, b replica) int {
	return cmp.Or(cmp.Compare(a.state(), b.state()), cmp.Compare(a.work(), b.work()), cmp.Compare(b.index, a.index))
}

// given reports whether all that is there of the replica is given back.
func (r replica) given() bool {
	return !slices.ContainsFunc(r.slots, func(s Slot) bool { return !s.Given })
}

// state is that of the replica's slowest worker.
func (r replica) state() State {
	state := Ready
	for _, slot := range r.slots {
		state = min(state, slot.State)
	}
	return state
}

func (r replica) work() int {
	count := 0
	for _, slot := range r.slots {
		if slot.Busy {
			count++
		}
	}
	return count
}

// Bounds are what a group's size must lie within, in replicas.
type Bounds struct{ Min, Max int }

// Alive counts the replicas of hosts workers each, from 1, that are there and stay.
func Alive(hosts int, taken []Slot) int {
	alive := 0
	for _, r := range replicas(hosts, taken) {
		if !r.broken(hosts) && !r.retires() && !r.given() {
			alive++
		}
	}
	return alive
}

// Follow is the size of a group whose autoscaler wants target replicas, within bounds: more
// than are alive if it wants more, and never fewer, since it gives back what it does not
// need. Where it has not said anything, which is a target below zero, the group stays as it is.
func Follow(target, alive int, within Bounds) int {
	return min(max(target, alive, within.Min), within.Max)
}
