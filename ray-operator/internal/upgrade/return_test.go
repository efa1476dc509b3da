package upgrade

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestGoesBack(t *testing.T) {
	check(t, map[string]look{
		"from a healthy candidate by steps": {full, at(60, 100, 100, proven, moved(10), back), 100, 100, false, Move{
			Shift: at(40, 100, 100, proven, moved(0), back), Wake: 10 * time.Second,
		}},
		"not before the interval": {full, at(60, 100, 100, proven, moved(9), back), 100, 100, false, Move{
			Shift: at(60, 100, 100, proven, moved(9), back), Wake: time.Second,
		}},
		"somebody turned it by hand": {full, at(60, 100, 100, proven, moved(9), func(s *Shift) { s.Back = true }), 100, 100, false, Move{
			Shift: at(60, 100, 100, proven, moved(9), back), Wake: time.Second,
		}},
		"the last step": {full, at(10, 100, 100, proven, moved(10), back), 100, 100, false, Move{Shift: at(0, 100, 100, proven, moved(0), back), Wake: soon}},
		"no faster than the active side can": {full, at(60, 100, 100, proven, moved(10), back), 50, 100, false, Move{
			Shift: at(50, 100, 100, proven, moved(0), back),
		}},
		"at once from one that lacks some":     {full, at(60, 100, 100, proven, moved(1), back), 100, 99, false, Move{Shift: at(0, 100, 100, proven, moved(0), back), Wake: soon}},
		"as far as the active side can":        {full, at(60, 100, 100, proven, moved(1), back), 70, 99, false, Move{Shift: at(30, 100, 100, proven, moved(0), back)}},
		"at once from one that failed":         {full, at(60, 100, 100, proven, moved(1), back), 100, 100, true, Move{Shift: at(0, 100, 100, proven, moved(0), back), Wake: soon}},
		"at once from one that was not proven": {full, at(60, 100, 100, moved(1), back), 100, 100, false, Move{Shift: at(0, 100, 100, moved(0), back), Wake: soon}},
		"not to a side that cannot":            {full, at(60, 100, 100, proven, moved(11), back), 40, 100, false, Move{Shift: at(60, 100, 100, proven, moved(11), back)}},
		"no deadline counts":                   {full, at(60, 100, 100, proven, moved(11), back), 40, 60, true, Move{Shift: at(60, 100, 100, proven, moved(11), back)}},
	})
}

func TestCapacityComesBack(t *testing.T) {
	check(t, map[string]look{
		"the candidate shrinks by what has left it": {quarter, at(75, 25, 100, proven, moved(1), back), 25, 100, false, Move{
			Shift: at(75, 25, 75, proven, moved(1), back),
		}},
		"then the active side grows": {quarter, at(75, 25, 75, proven, moved(1), back), 25, 75, false, Move{
			Shift: at(75, 50, 75, proven, moved(1), back),
		}},
		"not before": {quarter, at(75, 25, 75, proven, moved(1), back), 25, 76, false, Move{Shift: at(75, 25, 75, proven, moved(1), back)}},
		"nor does it shrink while it has requests": {quarter, at(80, 25, 100, proven, moved(1), back), 25, 100, false, Move{
			Shift: at(80, 25, 100, proven, moved(1), back), Wake: 9 * time.Second,
		}},
		"not of one percent": {quarter, at(76, 25, 100, proven, moved(1), back), 25, 100, false, Move{
			Shift: at(76, 25, 100, proven, moved(1), back), Wake: 9 * time.Second,
		}},
		"nor where the active side has all that it shall have": {quarter, at(20, 100, 50, proven, moved(1), back), 80, 50, false, Move{
			Shift: at(20, 100, 50, proven, moved(1), back),
		}},
		"what it has ready stays while the active side has less than all": {quarter, at(0, 50, 75, moved(1), back), 40, 65, false, Move{
			Shift: at(0, 50, 60, moved(1), back),
		}},
		"it shrinks no more than it must": {quarter, at(0, 50, 75, proven, moved(1), back), 50, 0, false, Move{
			Shift: at(0, 50, 25, proven, moved(1), back), Wake: soon,
		}},
		"what is left of it has the requests that the other cannot take": {quarter, at(60, 50, 75, proven, moved(1), back), 40, 65, false, Move{
			Shift: at(60, 50, 60, proven, moved(1), back),
		}},
		"it grows to the whole": {quarter, at(0, 50, 20, proven, moved(1), back), 50, 0, false, Move{Shift: at(0, 100, 20, proven, moved(1), back), Wake: soon}},
		"beside a whole candidate it has room at once": {full, at(100, 0, 100, proven, moved(1), back), 0, 100, false, Move{
			Shift: at(100, 100, 100, proven, moved(1), back),
		}},
	})
}

func TestReturned(t *testing.T) {
	home := at(0, 100, 100, proven, moved(1), back)
	returned := Move{Shift: home, Verdict: Returned}
	check(t, map[string]look{
		"with all that it had":          {full, home, 100, 100, false, returned},
		"the candidate cannot help out": {full, home, 99, 0, false, returned},
		"it has failed":                 {full, home, 99, 50, true, returned},
		"it was never proven": {full, at(0, 100, 100, back), 99, 50, false, Move{
			Shift: at(0, 100, 100, back), Verdict: Returned,
		}},
		"it can help out":          {full, home, 99, 50, false, Move{Shift: at(1, 100, 100, proven, moved(0), back)}},
		"not with half a capacity": {quarter, at(0, 75, 25, proven, moved(1), back), 75, 0, false, Move{Shift: at(0, 100, 25, proven, moved(1), back), Wake: soon}},
		"not before it is asked": {full, at(0, 100, 100), 100, 0, false, Move{
			Shift: at(0, 100, 100), Wake: 55 * time.Second,
		}},
		"nor is one on its way back done": {full, at(100, 100, 100, proven, moved(1), back), 100, 100, false, Move{
			Shift: at(100, 100, 100, proven, moved(1), back), Wake: 9 * time.Second,
		}},
	})
}

// TestForwardAgain: the candidate has all the time again, whatever it was before.
func TestForwardAgain(t *testing.T) {
	forth := func(s *Shift) { s.Back = false }
	check(t, map[string]look{
		"a late one": {full, at(0, 100, 100, back, forth), 100, 50, false, Move{Shift: at(0, 100, 100, began(0)), Wake: time.Minute}},
		"one that was sick": {full, at(0, 100, 100, proven, moved(1), back, forth), 100, 0, false, Move{
			Shift: at(0, 100, 100, moved(1), began(0)), Wake: time.Minute,
		}},
		"a healthy one goes on": {full, at(40, 100, 100, proven, moved(10), back, forth), 100, 100, false, Move{
			Shift: at(60, 100, 100, proven, moved(0), began(0)), Wake: 10 * time.Second,
		}},
		"one that has nothing left grows": {quarter, at(0, 100, 0, proven, moved(1), back, forth), 100, 0, false, Move{
			Shift: at(0, 100, 25, moved(1), began(0)), Wake: time.Minute,
		}},
	})
}

// TestShiftIsKept: what is read again is what was written, and short.
func TestShiftIsKept(t *testing.T) {
	for _, want := range []Shift{{}, Begin(full, now), at(50, 100, 100, proven, moved(1), func(s *Shift) { s.Back = true })} {
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var have Shift
		if err := json.Unmarshal(text, &have); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, have); diff != "" || len(text) > 160 {
			t.Errorf("%d bytes: %s %s", len(text), text, diff)
		}
	}
}

func TestVerdictsHaveNames(t *testing.T) {
	for verdict, want := range map[Verdict]string{Going: "Going", Done: "Done", Returned: "Returned"} {
		if have := verdict.String(); have != want {
			t.Errorf("%d is %q, want %q", verdict, have, want)
		}
	}
}
