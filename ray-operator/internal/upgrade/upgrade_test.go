package upgrade

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// now is when all tests look; a step is 20 % each 10 s, and the deadline a minute.
var (
	now     = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	full    = Terms{Surge: 100, Step: 20, Interval: 10 * time.Second, Deadline: time.Minute, AutoRollback: true}
	quarter = with(full, func(t *Terms) { t.Surge = 25 })
	patient = with(full, func(t *Terms) { t.AutoRollback = false })
)

func with[T any](value T, changes ...func(*T)) T {
	for _, change := range changes {
		change(&value)
	}
	return value
}

func ago(seconds int) time.Time { return now.Add(-time.Duration(seconds) * time.Second) }

// at is an upgrade that began 5 s ago and has moved no request yet.
func at(traffic, active, candidate int, changes ...func(*Shift)) Shift {
	return with(Shift{Traffic: traffic, Active: active, Candidate: candidate, Began: ago(5)}, changes...)
}

func proven(s *Shift) { s.Proven = true }

// back is on its way back.
func back(s *Shift) { s.Back, s.Began = true, time.Time{} }

// moved moved requests so many seconds ago.
func moved(seconds int) func(*Shift) { return func(s *Shift) { s.At = ago(seconds) } }

// began got more so many seconds ago.
func began(seconds int) func(*Shift) { return func(s *Shift) { s.Began = ago(seconds) } }

// look is one case of Advance.
type look struct {
	terms             Terms
	shift             Shift
	active, candidate int
	failed            bool
	want              Move
}

func check(t *testing.T, looks map[string]look) {
	t.Helper()
	for name, l := range looks {
		t.Run(name, func(t *testing.T) {
			have := Advance(l.terms, l.shift, Version{Ready: l.active}, Version{Ready: l.candidate, Failed: l.failed}, now)
			if diff := cmp.Diff(l.want, have); diff != "" {
				t.Errorf("want -, have +\n%s", diff)
			}
		})
	}
}

func TestBegin(t *testing.T) {
	for surge, candidate := range map[int]int{-3: 100, 0: 100, 1: 1, 25: 25, 100: 100, 400: 100} {
		want := Shift{Active: 100, Candidate: candidate, Began: now}
		if diff := cmp.Diff(want, Begin(Terms{Surge: surge}, now)); diff != "" {
			t.Errorf("surge %d: %s", surge, diff)
		}
	}
}

func TestWaitsForTheCandidate(t *testing.T) {
	waits := at(0, 100, 100)
	check(t, map[string]look{
		"until the deadline":                  {full, waits, 100, 99, false, Move{Shift: waits, Wake: 55 * time.Second}},
		"for ever without a deadline":         {with(full, func(t *Terms) { t.Deadline = 0 }), waits, 100, 99, false, Move{Shift: waits}},
		"a negative deadline is none":         {with(full, func(t *Terms) { t.Deadline = -1 }), waits, 100, 99, false, Move{Shift: waits}},
		"for ever where nothing is automatic": {patient, at(0, 100, 100, began(600)), 100, 99, false, Move{Shift: at(0, 100, 100, began(600))}},
		"nor is a failure taken back there":   {patient, waits, 100, 0, true, Move{Shift: waits}},
		"a second before the deadline":        {full, at(0, 100, 100, began(59)), 100, 0, false, Move{Shift: at(0, 100, 100, began(59)), Wake: time.Second}},
		"a clock that was set back lets it have all the time": {full, at(0, 100, 100, began(-60)), 100, 0, false, Move{
			Shift: at(0, 100, 100, began(0)), Wake: time.Minute,
		}},
		"at the deadline": {full, at(0, 100, 100, began(60)), 100, 0, false, Move{
			Shift: at(0, 100, 100, back), Cause: Late, Wake: soon,
		}},
		"after the deadline": {full, at(0, 100, 100, began(61)), 100, 0, false, Move{
			Shift: at(0, 100, 100, back), Cause: Late, Wake: soon,
		}},
		"the shortest deadline": {with(full, func(t *Terms) { t.Deadline = 1 }), waits, 100, 0, false, Move{
			Shift: at(0, 100, 100, back), Cause: Late, Wake: soon,
		}},
		"a negative interval counts as none": {
			with(full, func(t *Terms) { t.Interval = -5 }), at(60, 100, 100, proven, moved(12), began(600)), 100, 80, false,
			Move{Shift: at(60, 100, 100, proven, moved(12), began(600)), Wake: 48 * time.Second},
		},
		"a candidate that failed": {full, waits, 100, 0, true, Move{Shift: at(0, 100, 100, back), Cause: Failed, Wake: soon}},
		"failed while it grew": {quarter, at(25, 75, 50, proven, moved(8)), 75, 25, true, Move{
			Shift: at(25, 75, 50, proven, moved(8), back), Cause: Failed, Wake: soon,
		}},
		"late while it grew": {quarter, at(25, 75, 50, proven, moved(70), began(60)), 75, 49, false, Move{
			Shift: at(25, 75, 50, proven, moved(70), back), Cause: Late, Wake: soon,
		}},
		"less than it had, but enough, has time from when it was to get more": {
			full, at(60, 100, 100, proven, moved(12), began(600)), 100, 80, false,
			Move{Shift: at(60, 100, 100, proven, moved(12), began(600)), Wake: 58 * time.Second},
		},
		"and no more than that": {full, at(60, 100, 100, proven, moved(70), began(600)), 100, 80, false, Move{
			Shift: at(60, 100, 100, proven, moved(70), back), Cause: Late, Wake: soon,
		}},
		"one that is all there has not failed": {full, waits, 100, 100, true, Move{
			Shift: at(20, 100, 100, proven, moved(0)), Wake: 10 * time.Second,
		}},
	})
}

func TestTrafficRisesBySteps(t *testing.T) {
	check(t, map[string]look{
		"the first at once":       {full, at(0, 100, 100), 100, 100, false, Move{Shift: at(20, 100, 100, proven, moved(0)), Wake: 10 * time.Second}},
		"not before the interval": {full, at(20, 100, 100, proven, moved(9)), 100, 100, false, Move{Shift: at(20, 100, 100, proven, moved(9)), Wake: time.Second}},
		"after it":                {full, at(20, 100, 100, proven, moved(10)), 100, 100, false, Move{Shift: at(40, 100, 100, proven, moved(0)), Wake: 10 * time.Second}},
		"a clock that was set back holds it up for one interval": {
			full, at(20, 100, 100, proven, moved(-3600)), 100, 100, false, Move{Shift: at(20, 100, 100, proven, moved(0)), Wake: 10 * time.Second},
		},
		"no further than all":         {full, at(90, 100, 100, proven, moved(10)), 100, 100, false, Move{Shift: at(100, 100, 100, proven, moved(0)), Wake: soon}},
		"no further than it was told": {quarter, at(20, 100, 25, proven, moved(10)), 100, 25, false, Move{Shift: at(25, 100, 25, proven, moved(0)), Wake: soon}},
		"nor where it has more":       {quarter, at(20, 100, 25, proven, moved(10)), 100, 90, false, Move{Shift: at(25, 100, 25, proven, moved(0)), Wake: soon}},
		"without an interval the next is soon": {
			with(full, func(t *Terms) { t.Interval = 0 }), at(0, 100, 100), 100, 100, false, Move{Shift: at(20, 100, 100, proven, moved(0)), Wake: soon},
		},
		"a negative interval is none": {
			with(full, func(t *Terms) { t.Interval = -time.Hour }), at(20, 100, 100, proven, moved(0)), 100, 100, false,
			Move{Shift: at(40, 100, 100, proven, moved(0)), Wake: soon},
		},
		"no step is all at once": {with(full, func(t *Terms) { t.Step = 0 }), at(0, 100, 100), 100, 100, false, Move{Shift: at(100, 100, 100, proven, moved(0)), Wake: soon}},
		"more than all is all": {
			with(full, func(t *Terms) { t.Step = 900 }), at(-7, 300, 300), 300, 300, false, Move{Shift: at(100, 100, 100, proven, moved(0)), Wake: soon},
		},
		"one percent":                    {with(full, func(t *Terms) { t.Step = 1 }), at(0, 100, 100), 100, 100, false, Move{Shift: at(1, 100, 100, proven, moved(0)), Wake: 10 * time.Second}},
		"of one percent of the capacity": {with(quarter, func(t *Terms) { t.Surge = 1 }), at(0, 100, 1), 100, 1, false, Move{Shift: at(1, 100, 1, proven, moved(0)), Wake: soon}},
		"done":                           {full, at(100, 100, 100, proven, moved(0)), 100, 100, false, Move{Shift: at(100, 0, 100, proven, moved(0)), Verdict: Done}},
		"done stays":                     {full, at(100, 0, 100, proven, moved(0)), 0, 100, false, Move{Shift: at(100, 0, 100, proven, moved(0)), Verdict: Done}},
		"not done while it lacks some, whoever is patient": {
			patient, at(100, 100, 100, proven, moved(0)), 0, 99, false, Move{Shift: at(100, 100, 100, proven, moved(0))},
		},
	})
}

func TestCapacityIsPassedOn(t *testing.T) {
	check(t, map[string]look{
		"the active side shrinks by what the candidate serves": {
			quarter, at(25, 100, 25, proven, moved(0)), 100, 25, false, Move{Shift: at(25, 75, 25, proven, moved(0))},
		},
		"not before": {
			quarter, at(24, 100, 25, proven, moved(9)), 100, 25, false, Move{Shift: at(24, 100, 25, proven, moved(9)), Wake: time.Second},
		},
		"the candidate grows when it has": {
			quarter, at(25, 75, 25, proven, moved(3)), 75, 25, false, Move{Shift: at(25, 75, 50, proven, moved(3), began(0)), Wake: time.Minute},
		},
		"not before that": {quarter, at(25, 75, 25, proven, moved(3)), 76, 25, false, Move{Shift: at(25, 75, 25, proven, moved(3))}},
		"nor while it lacks some": {
			quarter, at(20, 80, 25, proven, moved(3)), 80, 24, false, Move{Shift: at(20, 80, 25, proven, moved(3)), Wake: 67 * time.Second},
		},
		"soon, where there is less of the active side already": {
			quarter, at(25, 100, 25, proven, moved(0)), 75, 25, false, Move{Shift: at(25, 75, 25, proven, moved(0)), Wake: soon},
		},
		"no further than the whole": {
			quarter, at(90, 10, 90, proven, moved(0)), 10, 90, false, Move{Shift: at(90, 10, 100, proven, moved(0), began(0)), Wake: time.Minute},
		},
		"what has all it may have waits for its requests": {
			quarter, at(80, 25, 100, proven, moved(4)), 25, 100, false, Move{Shift: at(80, 25, 100, proven, moved(4)), Wake: 6 * time.Second},
		},
		"an active side that lacks some of what it is to keep does not shrink": {
			quarter, at(25, 100, 25, proven, moved(4)), 74, 25, false, Move{Shift: at(25, 100, 25, proven, moved(4))},
		},
		"one that has it does": {
			quarter, at(25, 100, 25, proven, moved(4)), 75, 25, false, Move{Shift: at(25, 75, 25, proven, moved(4)), Wake: soon},
		},
		"where both together have too little the active side grows first": {
			quarter, at(30, 69, 30, proven, moved(4)), 69, 30, false, Move{Shift: at(30, 70, 30, proven, moved(4)), Wake: soon},
		},
		"a candidate with more requests than it has capacity gets more, to prove itself with": {
			quarter, at(100, 50, 50, proven, moved(4)), 0, 50, false, Move{Shift: at(100, 50, 75, moved(4), began(0)), Wake: time.Minute},
		},
	})
}
