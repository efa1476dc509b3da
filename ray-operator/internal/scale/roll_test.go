package scale

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

var (
	oldReady = func(i int) RollReplica { return RollReplica{Index: i, Old: true, Ready: true} }
	oldStuck = func(i int) RollReplica { return RollReplica{Index: i, Old: true} }
	newReady = func(i int) RollReplica { return RollReplica{Index: i, Ready: true} }
	newStart = func(i int) RollReplica { return RollReplica{Index: i} }
)

func TestNext(t *testing.T) {
	for name, test := range map[string]struct {
		pace    RollPace
		exiting int
		there   []RollReplica
		want    RollStep
	}{
		"nothing old": {pace: RollPace{Wanted: 2, Unavailable: 1}, there: []RollReplica{newReady(0), newReady(1)}, want: RollStep{Size: 2}},
		"one may be missing: the highest goes, and no successor beside it": {
			pace: RollPace{Wanted: 3, Unavailable: 1}, there: []RollReplica{oldReady(0), oldReady(1), oldReady(2)},
			want: RollStep{Retire: []int{2}, Size: 2},
		},
		"while it exits nothing else happens": {
			pace: RollPace{Wanted: 3, Unavailable: 1}, exiting: 1, there: []RollReplica{oldReady(0), oldReady(1)}, want: RollStep{Size: 2},
		},
		"once it is gone its successor comes": {
			pace: RollPace{Wanted: 3, Unavailable: 1}, there: []RollReplica{oldReady(0), oldReady(1)}, want: RollStep{Size: 3},
		},
		"a successor that does not join stops the rollout": {
			pace: RollPace{Wanted: 3, Unavailable: 1}, there: []RollReplica{oldReady(0), oldReady(1), newStart(2)}, want: RollStep{Size: 3},
		},
		"one that has joined lets the next go": {
			pace: RollPace{Wanted: 3, Unavailable: 1}, there: []RollReplica{oldReady(0), oldReady(1), newReady(2)},
			want: RollStep{Retire: []int{1}, Size: 2},
		},
		"a surge comes first": {
			pace: RollPace{Wanted: 2, Surge: 1}, there: []RollReplica{oldReady(0), oldReady(1)}, want: RollStep{Size: 3},
		},
		"and lets one go when it has joined": {
			pace: RollPace{Wanted: 2, Surge: 1}, there: []RollReplica{oldReady(0), oldReady(1), newReady(2)}, want: RollStep{Retire: []int{1}, Size: 2},
		},
		"which counts against it until it is gone": {
			pace: RollPace{Wanted: 2, Surge: 1}, exiting: 1, there: []RollReplica{oldReady(0), newReady(2)}, want: RollStep{Size: 2},
		},
		"the last surge is not refilled": {
			pace: RollPace{Wanted: 2, Surge: 2}, there: []RollReplica{newReady(3), newReady(2), oldReady(0)}, want: RollStep{Retire: []int{0}, Size: 2},
		},
		"a group that shrinks meanwhile": {
			pace: RollPace{Wanted: 1, Unavailable: 1}, there: []RollReplica{oldReady(0), oldReady(1)}, want: RollStep{Retire: []int{1, 0}, Size: 0},
		},
		"old ones that never joined go at once": {
			pace: RollPace{Wanted: 3, Unavailable: 1}, there: []RollReplica{oldStuck(0), oldStuck(1), oldReady(2)}, want: RollStep{Retire: []int{1, 0}, Size: 3},
		},
		"more may be missing than are wanted": {
			pace: RollPace{Wanted: 1, Unavailable: 5}, there: []RollReplica{oldReady(0)}, want: RollStep{Retire: []int{0}, Size: 0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if have := PlanRoll(test.pace, test.exiting, test.there); !reflect.DeepEqual(have, test.want) {
				t.Errorf("%+v, want %+v", have, test.want)
			}
		})
	}
}

// TestRollsToTheEnd plays whole rollouts: the bounds hold at each step, and it ends.
func TestRollsToTheEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := game{pace: RollPace{Wanted: rapid.IntRange(0, 6).Draw(t, "wanted"), Unavailable: rapid.IntRange(0, 3).Draw(t, "unavailable")}}
		g.pace.Surge = rapid.IntRange(1-min(1, g.pace.Unavailable), 3).Draw(t, "surge")
		for i := range g.pace.Wanted {
			g.there = append(g.there, RollReplica{Index: i, Old: true, Ready: rapid.Bool().Draw(t, "joined")})
		}
		for range 100 {
			step := PlanRoll(g.pace, g.exiting, g.there)
			g.carryOut(t, step)
			if done(g.there, g.exiting) && len(g.there) == g.pace.Wanted {
				return
			}
			if g.exiting > 0 && (rapid.Bool().Draw(t, "gone") || len(g.there) == step.Size) {
				g.exiting--
			} else {
				g.join()
			}
		}
		t.Fatalf("the rollout does not end: %+v, %d exit", g.there, g.exiting)
	})
}

// game is a group while it is rolled.
type game struct {
	pace    RollPace
	there   []RollReplica
	exiting int
	made    int
}

// carryOut does a step, and fails where a bound is broken.
func (g *game) carryOut(t *rapid.T, step RollStep) {
	before := ready(g.there)
	g.there = without(g.there, step.Retire, &g.exiting)
	if now := ready(g.there); now < before && now < g.pace.Wanted-g.pace.Unavailable {
		t.Fatalf("%d ready after a step, at least %d must stay", now, g.pace.Wanted-g.pace.Unavailable)
	}
	for len(g.there) < step.Size {
		g.there = append(g.there, RollReplica{Index: g.pace.Wanted + g.made})
		g.made++
	}
	if len(g.there)+g.exiting > g.pace.Wanted+g.pace.Surge {
		t.Fatalf("%d are there and %d exit, at most %d may", len(g.there), g.exiting, g.pace.Wanted+g.pace.Surge)
	}
}

// join lets new replicas become ready.
func (g *game) join() {
	for i := range g.there {
		g.there[i].Ready = g.there[i].Ready || !g.there[i].Old
	}
}

func ready(replicas []RollReplica) int {
	count := 0
	for _, r := range replicas {
		if r.Ready {
			count++
		}
	}
	return count
}

func done(replicas []RollReplica, exiting int) bool {
	for _, r := range replicas {
		if r.Old || !r.Ready {
			return false
		}
	}
	return exiting == 0
}

// without takes the retired away; those that were at work exit for a while.
func without(replicas []RollReplica, retired []int, exiting *int) []RollReplica {
	var rest []RollReplica
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
