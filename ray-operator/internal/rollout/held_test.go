package rollout_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/rollout"
)

// TestHeld: whatever would be decided, nothing goes on but what goes back, what the active side
// cannot take, and what a look alone tells; and no upgrade ends forward.
func TestHeld(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		percent := rapid.IntRange(0, 100)
		now := time.Unix(10_000, 0)
		terms := rollout.Terms{
			Surge: percent.Draw(t, "surge"), Step: percent.Draw(t, "step"), Interval: 10 * time.Second, Deadline: time.Minute, AutoRollback: rapid.Bool().Draw(t, "auto"),
		}
		from := rollout.Shift{
			Traffic: percent.Draw(t, "traffic"), Active: percent.Draw(t, "told"), Candidate: percent.Draw(t, "candidate"), Proven: rapid.Bool().Draw(t, "proven"),
			Back: rapid.Bool().Draw(t, "back"), At: now.Add(-time.Duration(percent.Draw(t, "at")) * time.Second), Began: now.Add(-time.Duration(percent.Draw(t, "began")) * time.Second),
		}
		active, candidate := rollout.Side{Ready: percent.Draw(t, "active")}, rollout.Side{Ready: percent.Draw(t, "ready"), Failed: rapid.Bool().Draw(t, "failed")}
		move := rollout.Advance(terms, from, active, candidate, now)
		held := move.Held(from, active)
		back, rescue := move.Shift.Back || move.Shift.Traffic < from.Traffic, active.Ready < from.Active
		still := held.Shift.Active == from.Active && held.Shift.Candidate == from.Candidate && held.Verdict == rollout.Going
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
