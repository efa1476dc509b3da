package upgrade

import (
	"testing"
	"time"
)

func TestCandidateSickens(t *testing.T) {
	check(t, map[string]look{
		"what it has left it keeps for now": {full, at(50, 100, 100, proven, moved(3)), 100, 30, false, Move{
			Shift: at(30, 100, 100, proven, moved(0), back), Cause: Sick, Wake: soon,
		}},
		"it has nothing left": {full, at(50, 100, 100, proven, moved(3)), 100, 0, false, Move{
			Shift: at(0, 100, 100, proven, moved(0), back), Cause: Sick, Wake: soon,
		}},
		"enough for its requests is no sickness": {full, at(50, 100, 100, proven, moved(3), began(9)), 100, 50, false, Move{
			Shift: at(50, 100, 100, proven, moved(3), began(9)), Wake: 67 * time.Second,
		}},
		"it keeps almost all": {full, at(90, 100, 100, proven, moved(3)), 100, 80, false, Move{
			Shift: at(80, 100, 100, proven, moved(0), back), Cause: Sick, Wake: soon,
		}},
		"before it had any requests": {full, at(0, 100, 100, proven), 100, 0, false, Move{Shift: at(0, 100, 100, proven, back), Cause: Sick, Wake: soon}},
		"some is no sickness then":   {full, at(0, 100, 100, proven), 100, 1, false, Move{Shift: at(0, 100, 100, proven), Wake: 55 * time.Second}},
		"nor is nothing of nothing": {quarter, at(0, 100, 0, proven), 100, 0, false, Move{
			Shift: at(0, 100, 25, began(0)), Wake: time.Minute,
		}},
		"sick before failed": {full, at(50, 100, 100, proven, moved(3)), 100, 0, true, Move{
			Shift: at(0, 100, 100, proven, moved(0), back), Cause: Sick, Wake: soon,
		}},
		"not proven: its requests go back, and it has its time": {full, at(50, 100, 100, moved(3)), 100, 30, false, Move{
			Shift: at(30, 100, 100, moved(0)), Wake: 70 * time.Second,
		}},
		"nobody goes back by themselves": {patient, at(50, 100, 100, proven, moved(3)), 100, 30, false, Move{
			Shift: at(30, 100, 100, proven, moved(0)),
		}},
		"and when it is well again its requests rise by steps": {patient, at(30, 100, 100, proven, moved(10)), 100, 100, false, Move{
			Shift: at(50, 100, 100, proven, moved(0)), Wake: 10 * time.Second,
		}},
		"after the interval": {patient, at(0, 100, 100, proven, moved(4)), 100, 100, false, Move{
			Shift: at(0, 100, 100, proven, moved(4)), Wake: 6 * time.Second,
		}},
	})
}

// TestCandidateLosesPods: requests go to where the health is, and nothing turns back before the deadline is over.
func TestCandidateLosesPods(t *testing.T) {
	terms := Terms{Surge: 100, Step: 50, Interval: 10 * time.Second, Deadline: time.Minute, AutoRollback: true}
	begun := time.Unix(1000, 0)
	shift := Shift{Traffic: 100, Active: 100, Candidate: 100, Proven: true, At: begun, Began: begun}
	for name, c := range map[string]struct {
		ready int
		want  int
	}{"half of them": {50, 50}, "all of them": {0, 0}} {
		lost := Advance(terms, shift, Version{Ready: 100}, Version{Ready: c.ready, Lost: true}, begun.Add(20*time.Second))
		if lost.Cause != "" || lost.Shift.Back || lost.Shift.Traffic != c.want || lost.Shift.Proven {
			t.Errorf("%s: %+v", name, lost)
		}
		for after, want := range map[time.Duration]Cause{time.Second: "", 59 * time.Second: "", 60 * time.Second: Late} {
			later := Advance(terms, lost.Shift, Version{Ready: 100}, Version{Ready: c.ready}, begun.Add(20*time.Second+after))
			if later.Cause != want {
				t.Errorf("%s: %s later: %+v", name, after, later)
			}
		}
		if came := Advance(terms, lost.Shift, Version{Ready: 100}, Version{Ready: 100}, begun.Add(40*time.Second)); came.Shift.Traffic <= c.want || came.Shift.Back {
			t.Errorf("%s: others came: %+v", name, came)
		}
	}
	if sick := Advance(terms, shift, Version{Ready: 100}, Version{Ready: 50}, begun.Add(20*time.Second)); sick.Cause != Sick {
		t.Errorf("with all its pods: %+v", sick)
	}
}

func TestBothAreSick(t *testing.T) {
	check(t, map[string]look{
		"just enough on the active side": {patient, at(50, 100, 100, proven, moved(3)), 70, 30, false, Move{Shift: at(30, 100, 100, proven, moved(0))}},
		"divided by health":              {patient, at(50, 100, 100, proven, moved(3)), 60, 30, false, Move{Shift: at(33, 100, 100, proven, moved(0))}},
		"and rounded":                    {patient, at(50, 100, 100, proven, moved(3)), 10, 20, false, Move{Shift: at(67, 100, 100, proven, moved(0))}},
		"the active one is the healthier": {full, at(50, 100, 100, proven, moved(3)), 31, 30, false, Move{
			Shift: at(49, 100, 100, proven, moved(0), back), Cause: Sick,
		}},
		"as healthy as the other, it is no refuge": {full, at(60, 100, 100, proven, moved(3), began(9)), 30, 30, false, Move{
			Shift: at(50, 100, 100, proven, moved(0), began(9)), Wake: 70 * time.Second,
		}},
		"as healthy as the other, it can take what that cannot": {full, at(60, 100, 100, proven, moved(3)), 50, 50, false, Move{
			Shift: at(50, 100, 100, proven, moved(0), back), Cause: Sick,
		}},
		"one percent less is too little": {full, at(60, 100, 100, proven, moved(3), began(9)), 49, 50, false, Move{
			Shift: at(51, 100, 100, proven, moved(0), began(9)), Wake: 70 * time.Second,
		}},
		"almost nothing is left of both": {patient, at(50, 100, 100, proven, moved(3)), 1, 0, false, Move{Shift: at(0, 100, 100, proven, moved(0))}},
		"the active side is gone": {full, at(50, 100, 100, proven, moved(3), began(9)), 0, 30, false, Move{
			Shift: at(100, 100, 100, proven, moved(0), began(9)), Wake: 70 * time.Second,
		}},
		"nothing is known of either": {full, at(50, 100, 100, proven, moved(3), began(9)), 0, 0, false, Move{
			Shift: at(50, 100, 100, proven, moved(3), began(9)), Wake: 67 * time.Second,
		}},
		"what is on its way out does not count": {quarter, at(50, 50, 75, proven, moved(3)), 80, 30, false, Move{
			Shift: at(38, 50, 75, proven, moved(0), back), Cause: Sick, Wake: soon,
		}},
		"nor does that of the candidate": {patient, at(50, 100, 30, proven, moved(3)), 60, 90, false, Move{
			Shift: at(33, 100, 30, proven, moved(0)), Wake: soon,
		}},
		"the active side gets back what its requests need": {with(quarter, func(t *Terms) { t.AutoRollback = false }), at(0, 50, 75, proven, moved(3)), 50, 0, false, Move{
			Shift: at(0, 50, 25, proven, moved(3)), Wake: soon,
		}},
		"and no more than that": {with(quarter, func(t *Terms) { t.AutoRollback = false }), at(30, 50, 50, proven, moved(3)), 50, 30, false, Move{
			Shift: at(30, 70, 50, proven, moved(3)),
		}},
		"nor beside more than may be there": {with(quarter, func(t *Terms) { t.AutoRollback = false }), at(10, 50, 50, proven, moved(3)), 50, 10, false, Move{
			Shift: at(10, 50, 35, proven, moved(3)), Wake: soon,
		}},
	})
}

func TestActiveSideSickens(t *testing.T) {
	check(t, map[string]look{
		"it keeps what it can take":      {full, at(20, 100, 100, proven, moved(3)), 50, 100, false, Move{Shift: at(50, 100, 100, proven, moved(0)), Wake: 10 * time.Second}},
		"enough is no sickness":          {full, at(20, 100, 100, proven, moved(3)), 80, 100, false, Move{Shift: at(20, 100, 100, proven, moved(3)), Wake: 7 * time.Second}},
		"no further than the other can":  {full, at(20, 100, 100, proven, moved(3)), 0, 40, false, Move{Shift: at(40, 100, 100, proven, moved(0)), Wake: 70 * time.Second}},
		"the candidate is as sick":       {full, at(20, 100, 100, proven, moved(3)), 0, 20, false, Move{Shift: at(20, 100, 100, proven, moved(3)), Wake: 67 * time.Second}},
		"all of it goes to the other":    {full, at(20, 100, 100, proven, moved(3)), 0, 100, false, Move{Shift: at(100, 100, 100, proven, moved(0)), Wake: soon}},
		"the candidate was never proven": {full, at(0, 100, 100), 0, 40, false, Move{Shift: at(0, 100, 100), Wake: 55 * time.Second}},
		"it is proven just now":          {full, at(0, 100, 100), 0, 100, false, Move{Shift: at(100, 100, 100, proven, moved(0)), Wake: soon}},
		"the candidate has failed":       {patient, at(0, 100, 100, proven), 0, 40, true, Move{Shift: at(0, 100, 100, proven)}},
		"on the way back too": {full, at(20, 100, 100, proven, moved(3), back), 50, 100, false, Move{
			Shift: at(50, 100, 100, proven, moved(0), back),
		}},
	})
}
