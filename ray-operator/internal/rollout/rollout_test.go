package rollout

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

var (
	oldReady = func(i int) Replica { return Replica{Index: i, Old: true, Ready: true} }
	oldStuck = func(i int) Replica { return Replica{Index: i, Old: true} }
	newReady = func(i int) Replica { return Replica{Index: i, Ready: true} }
	newStart = func(i int) Replica { return Replica{Index: i} }
)

func TestNext(t *testing.T) {
	for name, test := range map[string]struct {
		pace    Pace
		exiting int
		there   []Replica
		want    Step
	}{
		"nothing old": {pace: Pace{Wanted: 2, Unavailable: 1}, there: []Replica{newReady(0), newReady(1)}, want: Step{Size: 2}},
		"one may be missing: the highest goes, and no successor beside it": {
			pace: Pace{Wanted: 3, Unavailable: 1}, there: []Replica{oldReady(0), oldReady(1), oldReady(2)},
			want: Step{Retire: []int{2}, Size: 2},
		},
		"while it exits nothing else happens": {
			pace: Pace{Wanted: 3, Unavailable: 1}, exiting: 1, there: []Replica{oldReady(0), oldReady(1)}, want: Step{Size: 2},
		},
		"once it is gone its successor comes": {
			pace: Pace{Wanted: 3, Unavailable: 1}, there: []Replica{oldReady(0), oldReady(1)}, want: Step{Size: 3},
		},
		"a successor that does not join stops the rollout": {
			pace: Pace{Wanted: 3, Unavailable: 1}, there: []Replica{oldReady(0), oldReady(1), newStart(2)}, want: Step{Size: 3},
		},
		"one that has joined lets the next go": {
			pace: Pace{Wanted: 3, Unavailable: 1}, there: []Replica{oldReady(0), oldReady(1), newReady(2)},
			want: Step{Retire: []int{1}, Size: 2},
		},
		"a surge comes first": {
			pace: Pace{Wanted: 2, Surge: 1}, there: []Replica{oldReady(0), oldReady(1)}, want: Step{Size: 3},
		},
		"and lets one go when it has joined": {
			pace: Pace{Wanted: 2, Surge: 1}, there: []Replica{oldReady(0), oldReady(1), newReady(2)}, want: Step{Retire: []int{1}, Size: 2},
		},
		"which counts against it until it is gone": {
			pace: Pace{Wanted: 2, Surge: 1}, exiting: 1, there: []Replica{oldReady(0), newReady(2)}, want: Step{Size: 2},
		},
		"the last surge is not refilled": {
			pace: Pace{Wanted: 2, Surge: 2}, there: []Replica{newReady(3), newReady(2), oldReady(0)}, want: Step{Retire: []int{0}, Size: 2},
		},
		"a group that shrinks meanwhile": {
			pace: Pace{Wanted: 1, Unavailable: 1}, there: []Replica{oldReady(0), oldReady(1)}, want: Step{Retire: []int{1, 0}, Size: 0},
		},
		"old ones that never joined go at once": {
			pace: Pace{Wanted: 3, Unavailable: 1}, there: []Replica{oldStuck(0), oldStuck(1), oldReady(2)}, want: Step{Retire: []int{1, 0}, Size: 3},
		},
		"more may be missing than are wanted": {
			pace: Pace{Wanted: 1, Unavailable: 5}, there: []Replica{oldReady(0)}, want: Step{Retire: []int{0}, Size: 0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if have := Next(test.pace, test.exiting, test.there); !reflect.DeepEqual(have, test.want) {
				t.Errorf("%+v, want %+v", have, test.want)
			}
		})
	}
}

// TestRollsToTheEnd plays whole rollouts: the bounds hold at each step, and it ends.
func TestRollsToTheEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pace := Pace{Wanted: rapid.IntRange(0, 6).Draw(t, "wanted"), Unavailable: rapid.IntRange(0, 3).Draw(t, "unavailable")}
		pace.Surge = rapid.IntRange(1-min(1, pace.Unavailable), 3).Draw(t, "surge")
		var there []Replica
		for i := range pace.Wanted {
			there = append(there, Replica{Index: i, Old: true, Ready: rapid.Bool().Draw(t, "joined")})
		}
		exiting, next := 0, pace.Wanted
		for range 100 {
			step := Next(pace, exiting, there)
			before := ready(there)
			there = without(there, step.Retire, &exiting)
			if lost := before - ready(there); lost > 0 && ready(there) < pace.Wanted-pace.Unavailable {
				t.Fatalf("%d ready after a step, at least %d must stay", ready(there), pace.Wanted-pace.Unavailable)
			}
			for len(there) < step.Size {
				there = append(there, Replica{Index: next})
				next++
			}
			if len(there)+exiting > pace.Wanted+pace.Surge {
				t.Fatalf("%d are there and %d exit, at most %d may", len(there), exiting, pace.Wanted+pace.Surge)
			}
			if done(there, exiting) && len(there) == pace.Wanted {
				return
			}
			if exiting > 0 && rapid.Bool().Draw(t, "gone") {
				exiting--
				continue
			}
			for i := range there {
				there[i].Ready = there[i].Ready || !there[i].Old
			}
			if exiting > 0 && len(there) == step.Size {
				exiting--
			}
		}
		t.Fatalf("the rollout does not end: %+v, %d exit", there, exiting)
	})
}

func ready(replicas []Replica) int {
	count := 0
	for _, r := range replicas {
		if r.Ready {
			count++
		}
	}
	return count
}

func done(replicas []Replica, exiting int) bool {
	for _, r := range replicas {
		if r.Old || !r.Ready {
			return false
		}
	}
	return exiting == 0
}

// without takes the retired away; those that were at work exit for a while.
func without(replicas []Replica, retired []int, exiting *int) []Replica {
	var rest []Replica
	for _, r := range replicas {
		gone := false
		for _, index := range retired {
			gone = gone || index == r.Index
		}
		if gone && r.Ready {
			*exiting++
		}
		if !gone {
			rest = append(rest, r)
		}
	}
	return rest
}
