package upgrade_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/upgrade"
)

// TestHeld: whatever would be decided, nothing goes on but what goes back, what the active side
// cannot take, and what a look alone tells; and no upgrade ends forward.
func TestHeld(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		percent := rapid.IntRange(0, 100)
		now := time.Unix(10_000, 0)
		terms := upgrade.Terms{
			Surge: percent.Draw(t, "surge"), Step: percent.Draw(t, "step"), Interval: 10 * time.Second, Deadline: time.Minute, AutoRollback: rapid.Bool().Draw(t, "auto"),
		}
		from := upgrade.Shift{
			Traffic: percent.Draw(t, "traffic"), Active: percent.Draw(t, "told"), Candidate: percent.Draw(t, "candidate"), Proven: rapid.Bool().Draw(t, "proven"),
			Back: rapid.Bool().Draw(t, "back"), At: now.Add(-time.Duration(percent.Draw(t, "at")) * time.Second), Began: now.Add(-time.Duration(percent.Draw(t, "began")) * time.Second),
		}
		active, candidate := upgrade.Version{Ready: percent.Draw(t, "active")}, upgrade.Version{Ready: percent.Draw(t, "ready"), Failed: rapid.Bool().Draw(t, "failed")}
		move := upgrade.Advance(terms, from, active, candidate, now)
		held := move.Held(from, active)
		back, rescue := move.Shift.Back || move.Shift.Traffic < from.Traffic, active.Ready < from.Active
		still := held.Shift.Active == from.Active && held.Shift.Candidate == from.Candidate && held.Verdict == upgrade.Going
		switch goesOn := held.Shift.Traffic > from.Traffic; {
		case back:
			if held != move {
				t.Fatalf("back from %+v by %+v became %+v", from, move, held)
			}
		case goesOn != (rescue && move.Shift.Traffic > from.Traffic):
			t.Fatalf("from %+v by %+v it went on to %+v", from, move, held)
		case !goesOn && !still:
			t.Fatalf("from %+v capacity or verdict became %+v", from, held)
		case !goesOn && move.Held(held.Shift, active).Shift != held.Shift:
			t.Fatalf("%+v is not at rest", held.Shift)
		}
	})
}

// TestHeld_KeepsWhatALookTells looks at moves that are held back whole, the active side short of capacity or not.
func TestHeld_KeepsWhatALookTells(t *testing.T) {
	before, now := time.Unix(10_000, 0), time.Unix(10_010, 0)
	from := upgrade.Shift{Traffic: 10, Active: 90, Candidate: 20}
	cases := []struct {
		name       string
		from, move upgrade.Shift
		want       upgrade.Shift
	}{
		{
			name: "it is proven and has begun now",
			from: from, move: upgrade.Shift{Traffic: 10, Active: 90, Candidate: 40, Proven: true, Began: now},
			want: upgrade.Shift{Traffic: 10, Active: 90, Candidate: 20, Proven: true, Began: now},
		},
		{
			name: "it was proven and had begun before",
			from: upgrade.Shift{Traffic: 10, Active: 90, Candidate: 20, Proven: true, Began: before},
			move: upgrade.Shift{Traffic: 10, Active: 80, Candidate: 20, Began: now},
			want: upgrade.Shift{Traffic: 10, Active: 90, Candidate: 20, Proven: true, Began: before},
		},
		{name: "it is not proven", from: from, move: upgrade.Shift{Traffic: 10, Active: 80, Candidate: 40}, want: from},
	}
	for _, c := range cases {
		for _, ready := range []int{50, 90} {
			held := upgrade.Move{Shift: c.move, Verdict: upgrade.Done, Wake: time.Second}.Held(c.from, upgrade.Version{Ready: ready})
			if want := (upgrade.Move{Shift: c.want}); held != want {
				t.Errorf("%s, with %d ready: %+v, want %+v", c.name, ready, held, want)
			}
		}
	}
}
