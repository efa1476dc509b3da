package scale

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// at is a slot in a state.
func at(index int, state State) Slot { return Slot{Index: index, State: state} }

type row struct {
	wanted, hosts int
	taken         []Slot
	want          Change
}

func check(t *testing.T, rows map[string]row) {
	t.Helper()
	for name, test := range rows {
		t.Run(name, func(t *testing.T) {
			if have := Target(test.wanted, test.hosts, test.taken); !reflect.DeepEqual(have, test.want) {
				t.Errorf("%+v, want %+v", have, test.want)
			}
		})
	}
}

func TestTarget(t *testing.T) {
	idle, busy, retired := at(2, Ready), Slot{Index: 3, State: Ready, Busy: true}, Slot{Index: 0, State: Ready, Retire: true}
	check(t, map[string]row{
		"nothing wanted, nothing there": {},
		"from nothing":                  {wanted: 3, want: Change{Create: []int{0, 1, 2}}},
		"enough":                        {wanted: 2, taken: []Slot{at(0, Ready), at(1, Starting)}},
		"gaps are filled first":         {wanted: 4, taken: []Slot{at(1, Ready), at(3, Ready)}, want: Change{Create: []int{0, 2}}},
		"a leaving one keeps its slot": {
			wanted: 2, taken: []Slot{at(0, Leaving), at(1, Ready)}, want: Change{Create: []int{2}},
		},
		"so does a draining one, and it does not count": {
			wanted: 2, taken: []Slot{at(0, Draining), at(1, Ready)}, want: Change{Create: []int{2}},
		},
		"a finished one is replaced in another slot": {
			wanted: 2, taken: []Slot{at(0, Finished), at(1, Ready)}, want: Change{Create: []int{2}, Broken: []Slot{at(0, Finished)}},
		},
		"the highest slot goes": {
			wanted: 1, taken: []Slot{at(0, Ready), at(1, Ready), at(2, Ready)}, want: Change{Surplus: []Slot{at(2, Ready), at(1, Ready)}},
		},
		"one that has not joined goes before one that has": {
			wanted: 1, taken: []Slot{at(0, Starting), at(1, Ready)}, want: Change{Surplus: []Slot{at(0, Starting)}},
		},
		"one that has not joined goes before an idle one": {
			wanted: 1, taken: []Slot{at(0, Starting), busy}, want: Change{Surplus: []Slot{at(0, Starting)}},
		},
		"an idle one goes before one at work": {
			wanted: 1, taken: []Slot{idle, busy}, want: Change{Surplus: []Slot{idle}},
		},
		"one that shall retire goes though all are wanted": {
			wanted: 2, taken: []Slot{retired, at(1, Ready)}, want: Change{Create: []int{2}, Retire: []Slot{retired}},
		},
		"one that shall retire is enough to remove": {
			wanted: 1, taken: []Slot{retired, at(1, Ready)}, want: Change{Retire: []Slot{retired}},
		},
		"finished ones do not count as surplus": {
			wanted: 1, taken: []Slot{at(0, Ready), at(1, Ready), at(4, Finished), at(3, Finished)},
			want: Change{Broken: []Slot{at(3, Finished), at(4, Finished)}, Surplus: []Slot{at(1, Ready)}},
		},
		"leaving ones are not removed again": {wanted: 0, taken: []Slot{at(0, Leaving), at(1, Draining)}},
		"below zero is zero":                 {wanted: -3, taken: []Slot{at(0, Ready)}, want: Change{Surplus: []Slot{at(0, Ready)}}},
	})
}

// TestTargetOfReplicas has groups in which two hosts make a replica.
func TestTargetOfReplicas(t *testing.T) {
	alone, late := at(2, Starting), Slot{Index: 0, State: Starting, Abandoned: true}
	check(t, map[string]row{
		"from nothing": {wanted: 2, hosts: 2, want: Change{Create: []int{0, 1, 2, 3}}},
		"enough":       {wanted: 1, hosts: 2, taken: []Slot{at(0, Ready), at(1, Starting)}},
		"one that is being made is completed": {
			wanted: 2, hosts: 2, taken: []Slot{at(0, Ready), at(1, Ready), alone}, want: Change{Create: []int{3}},
		},
		"one that waited too long for the rest is given up": {
			wanted: 1, hosts: 2, taken: []Slot{late}, want: Change{Create: []int{2, 3}, Broken: []Slot{late}},
		},
		"one whose other host is gone goes as a whole": {
			wanted: 1, hosts: 2, taken: []Slot{at(1, Ready)}, want: Change{Create: []int{2, 3}, Broken: []Slot{at(1, Ready)}},
		},
		"one whose other host leaves goes as a whole": {
			wanted: 1, hosts: 2, taken: []Slot{at(0, Leaving), at(1, Ready)}, want: Change{Create: []int{2, 3}, Broken: []Slot{at(1, Ready)}},
		},
		"one whose other host failed goes as a whole": {
			wanted: 1, hosts: 2, taken: []Slot{at(0, Ready), at(1, Finished)},
			want: Change{Create: []int{2, 3}, Broken: []Slot{at(0, Ready), at(1, Finished)}},
		},
		"one of which a host shall retire goes as a whole": {
			wanted: 0, hosts: 2, taken: []Slot{{Index: 0, State: Ready, Retire: true}, at(1, Ready)},
			want: Change{Retire: []Slot{{Index: 0, State: Ready, Retire: true}, at(1, Ready)}},
		},
		"one of which a host drains goes on": {
			wanted: 1, hosts: 2, taken: []Slot{at(0, Draining), at(1, Ready)}, want: Change{Create: []int{2, 3}, Retire: []Slot{at(1, Ready)}},
		},
		"one of which a host has drained is over": {
			wanted: 0, hosts: 2, taken: []Slot{at(0, Draining)}, want: Change{},
		},
		"one of which a host failed is broken though it should retire": {
			wanted: 0, hosts: 2, taken: []Slot{{Index: 0, State: Ready, Retire: true}, at(1, Finished)},
			want: Change{Broken: []Slot{{Index: 0, State: Ready, Retire: true}, at(1, Finished)}},
		},
		"the one with fewer busy hosts goes": {
			wanted: 1, hosts: 2, taken: []Slot{
				{Index: 0, State: Ready, Busy: true}, at(1, Ready), {Index: 2, State: Ready, Busy: true}, {Index: 3, State: Ready, Busy: true},
			},
			want: Change{Surplus: []Slot{{Index: 0, State: Ready, Busy: true}, at(1, Ready)}},
		},
		"the one that has not joined goes": {
			wanted: 1, hosts: 2, taken: []Slot{at(0, Ready), at(1, Starting), at(2, Ready), at(3, Ready)},
			want: Change{Surplus: []Slot{at(0, Ready), at(1, Starting)}},
		},
	})
}

// group draws the slots of a group: indices differ, the rest is any.
func group(t *rapid.T) []Slot {
	indices := rapid.SliceOfNDistinct(rapid.IntRange(0, 40), 0, 20, rapid.ID).Draw(t, "indices")
	slots := make([]Slot, len(indices))
	for i, index := range indices {
		slots[i] = Slot{
			Index: index, State: State(rapid.IntRange(int(Finished), int(Leaving)).Draw(t, "state")),
			Retire: rapid.Bool().Draw(t, "retire"), Busy: rapid.Bool().Draw(t, "busy"), Abandoned: rapid.Bool().Draw(t, "abandoned"),
		}
	}
	return slots
}

func TestTargetProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		wanted, hosts, taken := rapid.IntRange(-2, 30).Draw(t, "wanted"), rapid.IntRange(1, 4).Draw(t, "hosts"), group(t)
		change := Target(wanted, hosts, taken)
		after := apply(t, taken, change)
		whole := map[int]int{}
		for _, slot := range after {
			if slot.State < Draining {
				whole[slot.Index/hosts]++
			}
			if slot.State == Finished || slot.Retire && slot.State < Draining {
				t.Fatalf("slot %+v stays", slot)
			}
		}
		for index, count := range whole {
			if count != hosts {
				t.Fatalf("replica %d is left with %d of %d hosts", index, count, hosts)
			}
		}
		if len(whole) != max(0, wanted) {
			t.Fatalf("%d replicas are alive after the change, want %d", len(whole), wanted)
		}
		shuffled := rapid.Permutation(taken).Draw(t, "shuffled")
		if again := Target(wanted, hosts, shuffled); !reflect.DeepEqual(change, again) {
			t.Fatalf("another order of the same slots gives %+v, not %+v", again, change)
		}
	})
}

// apply carries a change out; it fails where a slot is filled that is taken, or one
// emptied that is not there, or is leaving already.
func apply(t *rapid.T, taken []Slot, change Change) map[int]Slot {
	slots := map[int]Slot{}
	for _, slot := range taken {
		slots[slot.Index] = slot
	}
	for _, index := range change.Create {
		if _, busy := slots[index]; busy || index < 0 {
			t.Fatalf("slot %d is created though it is taken", index)
		}
		slots[index] = Slot{Index: index, State: Starting}
	}
	for _, slot := range slices.Concat(change.Broken, change.Retire, change.Surplus) {
		if there, ok := slots[slot.Index]; !ok || there != slot || slot.State >= Draining || !slices.Contains(taken, slot) {
			t.Fatalf("slot %+v cannot be removed", slot)
		}
		slots[slot.Index] = Slot{Index: slot.Index, State: Leaving}
	}
	return slots
}

// TestFollow: more is made at once, fewer never, and the bounds hold whatever is said.
func TestFollow(t *testing.T) {
	within := Bounds{Min: 1, Max: 8}
	for name, test := range map[string]struct{ target, alive, want int }{
		"grows":                    {5, 2, 5},
		"nothing said":             {-1, 3, 3},
		"nothing said, none there": {-1, 0, 1},
		"fewer":                    {1, 6, 6},
		"above the maximum":        {100, 2, 8},
		"too many there":           {2, 12, 8},
		"absurd":                   {1 << 40, 2, 8},
	} {
		if size := Follow(test.target, test.alive, within); size != test.want {
			t.Errorf("%s: %d, want %d", name, size, test.want)
		}
	}
}

// TestGivenDoNotCount: replicas that are given back as a whole go, and others are made in
// their place where they are wanted.
func TestGivenDoNotCount(t *testing.T) {
	ready := func(index int, given bool) Slot {
		return Slot{Index: index, State: Ready, Busy: !given, Given: given}
	}
	slots := []Slot{ready(0, true), ready(1, true), ready(2, false), {Index: 3, State: Starting}, ready(4, true), ready(5, false)}
	if alive := Alive(1, slots); alive != 3 {
		t.Errorf("%d alive", alive)
	}
	change := Target(4, 1, slots)
	if len(change.Given) != 3 || len(change.Surplus) != 0 || !slices.Equal(change.Create, []int{6}) {
		t.Errorf("of single hosts %+v", change)
	}
	if alive := Alive(2, slots); alive != 2 {
		t.Errorf("of pairs %d alive", alive)
	}
	change = Target(2, 2, slots)
	if len(change.Given) != 2 || change.Given[0].Index != 0 || change.Given[1].Index != 1 || len(change.Surplus)+len(change.Create) != 0 {
		t.Errorf("of pairs %+v", change)
	}
}

// TestAliveAreThoseThatStay: neither one that broke, nor one that is to leave.
func TestAliveAreThoseThatStay(t *testing.T) {
	for name, slot := range map[string]Slot{
		"finished": {State: Finished}, "leaving": {State: Leaving}, "to retire": {State: Ready, Retire: true},
		"draining": {State: Draining}, "given back": {State: Ready, Given: true},
	} {
		slot.Index = 1
		if alive := Alive(1, []Slot{{State: Ready}, slot}); alive != 1 {
			t.Errorf("%s: %d alive beside it", name, alive)
		}
	}
}
