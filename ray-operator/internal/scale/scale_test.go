package scale

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

func TestTarget(t *testing.T) {
	for name, test := range map[string]struct {
		wanted int
		taken  []Slot
		want   Change
	}{
		"nothing wanted, nothing there": {},
		"from nothing":                  {wanted: 3, want: Change{Create: []int{0, 1, 2}}},
		"enough":                        {wanted: 2, taken: []Slot{{0, Ready}, {1, Starting}}},
		"gaps are filled first":         {wanted: 4, taken: []Slot{{1, Ready}, {3, Ready}}, want: Change{Create: []int{0, 2}}},
		"a leaving one keeps its slot": {
			wanted: 2, taken: []Slot{{0, Leaving}, {1, Ready}}, want: Change{Create: []int{2}},
		},
		"a finished one is replaced in another slot": {
			wanted: 2, taken: []Slot{{0, Finished}, {1, Ready}}, want: Change{Create: []int{2}, Remove: []Slot{{0, Finished}}},
		},
		"the highest slot goes": {
			wanted: 1, taken: []Slot{{0, Ready}, {1, Ready}, {2, Ready}}, want: Change{Remove: []Slot{{2, Ready}, {1, Ready}}},
		},
		"one that has not joined goes before one that has": {
			wanted: 1, taken: []Slot{{0, Starting}, {1, Ready}}, want: Change{Remove: []Slot{{0, Starting}}},
		},
		"finished ones go first and do not count as surplus": {
			wanted: 1, taken: []Slot{{0, Ready}, {1, Ready}, {4, Finished}, {3, Finished}},
			want: Change{Remove: []Slot{{3, Finished}, {4, Finished}, {1, Ready}}},
		},
		"leaving ones are not removed again": {wanted: 0, taken: []Slot{{0, Leaving}}},
		"below zero is zero":                 {wanted: -3, taken: []Slot{{0, Ready}}, want: Change{Remove: []Slot{{0, Ready}}}},
	} {
		t.Run(name, func(t *testing.T) {
			if have := Target(test.wanted, test.taken); !reflect.DeepEqual(have, test.want) {
				t.Errorf("%+v, want %+v", have, test.want)
			}
		})
	}
}

// group draws the slots of a group: indices differ, states are any.
func group(t *rapid.T) []Slot {
	indices := rapid.SliceOfNDistinct(rapid.IntRange(0, 40), 0, 20, rapid.ID).Draw(t, "indices")
	slots := make([]Slot, len(indices))
	for i, index := range indices {
		slots[i] = Slot{index, State(rapid.IntRange(int(Finished), int(Leaving)).Draw(t, "state"))}
	}
	return slots
}

func TestTargetProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		wanted, taken := rapid.IntRange(-2, 30).Draw(t, "wanted"), group(t)
		change := Target(wanted, taken)
		states := map[int]State{}
		for _, slot := range taken {
			states[slot.Index] = slot.State
		}
		apply(t, states, change)
		alive := 0
		for index, state := range states {
			switch state {
			case Starting, Ready:
				alive++
			case Finished:
				t.Fatalf("finished slot %d stays", index)
			case Leaving:
			}
		}
		if alive != max(0, wanted) {
			t.Fatalf("%d are alive after the change, want %d", alive, wanted)
		}
		shuffled := rapid.Permutation(taken).Draw(t, "shuffled")
		if again := Target(wanted, shuffled); !reflect.DeepEqual(change, again) {
			t.Fatalf("another order of the same slots gives %+v, not %+v", again, change)
		}
	})
}

// apply carries a change out on the states of slots; it fails where a slot is filled
// that is taken, or one emptied that is not there, or is leaving already.
func apply(t *rapid.T, states map[int]State, change Change) {
	for _, index := range change.Create {
		if _, busy := states[index]; busy || index < 0 {
			t.Fatalf("slot %d is created though it is taken", index)
		}
		states[index] = Starting
	}
	for _, slot := range change.Remove {
		if state, there := states[slot.Index]; !there || state != slot.State || state == Leaving {
			t.Fatalf("slot %+v cannot be removed", slot)
		}
		states[slot.Index] = Leaving
	}
}
