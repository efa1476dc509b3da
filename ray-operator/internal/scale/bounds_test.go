package scale

import "testing"

// TestReplicasOnTheirWayOut: a replica that drains and is not whole is not one that
// retires: what is left of it runs nothing useful.
func TestReplicasOnTheirWayOut(t *testing.T) {
	drained := Slot{Index: 0, State: Draining}
	check(t, map[string]row{
		"one that drains beside one that never joined is broken": {
			hosts: 3, taken: []Slot{drained, at(1, Starting)}, want: Change{Broken: []Slot{at(1, Starting)}},
		},
		"one of which only work is left goes last": {
			wanted: 1, taken: []Slot{{Index: 0, State: Ready, Busy: true}, at(1, Ready)}, want: Change{Surplus: []Slot{at(1, Ready)}},
		},
		"what is created is sorted by its index, whatever the order of removal": {
			wanted: 3, hosts: 2, taken: []Slot{at(4, Starting), at(0, Starting)}, want: Change{Create: []int{1, 2, 3, 5}},
		},
	})
}
