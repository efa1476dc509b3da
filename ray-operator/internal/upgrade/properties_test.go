package upgrade

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestBoundsHold while both sides do what they are told, whatever the user does: capacity is
// never below what was promised, the surge never above, no side gets more requests than it has
// capacity for, and requests only move to where they are to go.
func TestBoundsHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		terms, script := wildTerms(t), wildScript(t)
		script.Fails, script.Dies, script.SickAt = 0, 0, 0
		rows := Simulate(terms, script)
		for i, row := range rows {
			if row.Verdict != Done { // with that the active side's capacity may go
				bounds(t, terms, row)
			}
			if i > 0 && backward(rows[i-1].Shift, row.Shift) {
				t.Fatalf("from %+v to %+v", rows[i-1], row)
			}
		}
		want := Done
		last := rows[len(rows)-1]
		if last.Shift.Back {
			want = Returned
		}
		if last.Verdict != want {
			t.Fatalf("it ends with %+v", last)
		}
	})
}

func bounds(t *rapid.T, terms Terms, row Row) {
	active, candidate, shift := row.Active.Ready, row.Candidate.Ready, row.Shift
	switch {
	case active+candidate < 100:
		t.Fatalf("less than the whole capacity: %+v", row)
	case max(active, shift.Active)+max(candidate, shift.Candidate) > 100+terms.bounded().Surge:
		t.Fatalf("more than may be there: %+v", row)
	case shift.Traffic > candidate || 100-shift.Traffic > active:
		t.Fatalf("more requests than capacity: %+v", row)
	}
}

// backward reports whether requests moved against the way the upgrade goes.
func backward(from, to Shift) bool {
	if to.Back {
		return to.Traffic > from.Traffic
	}
	return to.Traffic < from.Traffic
}

// wildShift is any state, and often one that there can be.
func wildShift(t *rapid.T) Shift {
	some := func(name string) int {
		return rapid.OneOf(rapid.IntRange(0, 100), rapid.SampledFrom([]int{0, 25, 50, 75, 100}), rapid.Int()).Draw(t, name)
	}
	shift := Shift{
		Traffic: some("traffic"), Active: some("told active"), Candidate: some("told candidate"),
		Proven: rapid.Bool().Draw(t, "proven"), Back: rapid.Bool().Draw(t, "back"),
	}
	if rapid.Bool().Draw(t, "moved") {
		shift.At = now.Add(-times(t, "at"))
	}
	if rapid.Bool().Draw(t, "began") {
		shift.Began = now.Add(-times(t, "began"))
	}
	return shift
}

func wildSide(t *rapid.T, name string) Version {
	return Version{
		Ready:  rapid.OneOf(rapid.IntRange(0, 100), rapid.SampledFrom([]int{0, 100}), rapid.Int()).Draw(t, name),
		Failed: rapid.IntRange(0, 4).Draw(t, name+" failed") == 0,
	}
}

// TestEachMoveIsSafe from any state, with any health: it asks for no more than may be there,
// makes no capacity smaller that is needed, sends requests to health, and decides one thing.
func TestEachMoveIsSafe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		terms, given, active, candidate := wildTerms(t), wildShift(t), wildSide(t, "active"), wildSide(t, "candidate")
		move := Advance(terms, given, active, candidate, now)
		from, to := given.bounded(), move.Shift
		a, c := min(percent(active.Ready), from.Active), min(percent(candidate.Ready), from.Candidate)
		resized := to.Active != from.Active || to.Candidate != from.Candidate
		for what, wrong := range map[string]bool{
			"out of range":           to != to.bounded() || move.Wake < 0,
			"more than may be there": to.Active+to.Candidate > max(from.Active+from.Candidate, 100+terms.bounded().Surge),
			"two things at a time":   to.Traffic != from.Traffic && resized,
			"capacity that is needed goes": move.Verdict != Done &&
				min(a, to.Active)+min(c, to.Candidate) < min(100, a+c),
			"requests go ahead of the candidate's health":   a+c >= 100 && to.Traffic > max(from.Traffic, c),
			"requests go ahead of the active side's health": a+c >= 100 && to.Traffic < min(from.Traffic, 100-a),
			"nothing is known, and it changes":              a+c == 0 && (to.Traffic != from.Traffic || to.Active < from.Active),
		} {
			if wrong {
				t.Fatalf("%s: from %+v with %+v and %+v to %+v", what, from, active, candidate, move)
			}
		}
	})
}

// TestWakesWhenSomethingChanges: not later, and not without need.
func TestWakesWhenSomethingChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		terms, active, candidate := wildTerms(t), wildSide(t, "active"), wildSide(t, "candidate")
		first := Advance(terms, wildShift(t), active, candidate, now)
		changes := func(after time.Duration) bool {
			next := Advance(terms, first.Shift, active, candidate, now.Add(after))
			return next.Shift != first.Shift || next.Verdict != first.Verdict
		}
		switch {
		case first.Verdict != Going:
			if first.Wake != 0 || changes(time.Hour) {
				t.Fatalf("it has ended and goes on: %+v", first)
			}
		case first.Wake == 0:
			if changes(0) || changes(1000*time.Hour) {
				t.Fatalf("it never wakes: %+v", first)
			}
		case !changes(first.Wake) || first.Wake != soon && changes(first.Wake-1):
			t.Fatalf("it does not wake in time: %+v", first)
		}
	})
}

// TestBothEndsAreReached from any state once both sides have what they are told to have: the
// way back has no end but Returned, and the way forward none but Done.
func TestBothEndsAreReached(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		terms, shift := wildTerms(t), wildShift(t).bounded()
		terms.Deadline = 0
		p := begin(terms, Script{Grow: times(t, "grow"), Shrink: times(t, "shrink")})
		p.shift, p.start, p.last, p.now = shift, now, now, now
		p.active, p.candidate = part{told: shift.Active, ready: shift.Active}, part{told: shift.Candidate, ready: shift.Candidate}
		looks := p.run(mostLooks)
		want := Done
		if shift.Back {
			want = Returned
		}
		if last := p.rows[len(p.rows)-1]; last.Verdict != want || looks > 2000 {
			t.Fatalf("%d looks end with %+v", looks, last)
		}
	})
}

// TestBackIsReached from wherever an upgrade that goes wrong in any way gets to, once both
// sides are well again.
func TestBackIsReached(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := begin(wildTerms(t), wildScript(t))
		p.run(rapid.IntRange(1, 40).Draw(t, "looks"))
		p.script = Script{Grow: p.script.Grow, Shrink: p.script.Shrink}
		p.sick, p.shift.Back = time.Time{}, true
		p.run(mostLooks)
		if last := p.rows[len(p.rows)-1]; last.Verdict != Returned {
			t.Fatalf("it ends with %+v", last)
		}
	})
}
