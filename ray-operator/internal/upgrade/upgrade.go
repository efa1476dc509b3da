// Package upgrade plans how requests and capacity move from one version of a service to the next.
//
// In: the strategy's bounds, what stands decided, and how much of each version is ready. Out: the next step: shares of
// requests and capacity in percent, when to look again, and why it goes back. Endpoints turns a share into numbers of pods.
//
// It is pure and level-triggered: it keeps nothing, so it may be asked again at any time. It must never leave less ready
// than the whole, or ask for more than the surge allows.
package upgrade

import (
	"cmp"
	"time"
)

// whole is all of the capacity or of the requests, in percent.
const whole = 100

// soon is how long to wait where the next decision stands already. It is not made at once
// so that what was decided before takes effect first.
const soon = 100 * time.Millisecond

// Terms bound an upgrade, which has two versions of a service side by side: the active one,
// which had the requests when it began, and the candidate, which is to have them.
type Terms struct {
	// Surge is how much capacity may be there beyond the whole one, Step how much of all
	// requests goes over at a time: 1 to 100, in percent. What is less counts as 100.
	Surge, Step int
	// Interval is the time between two steps. Deadline is how long the candidate may take to
	// get ready; 0 is for ever.
	Interval, Deadline time.Duration
	// AutoRollback: a candidate that is late, fails or sickens is taken back.
	AutoRollback bool
}

// Version is one version as it is seen now.
type Version struct {
	// Ready is how much of the whole capacity it has up and proven healthy, in percent: 0
	// where it is sick or nothing is known of it.
	Ready int
	// Failed: it will not get healthy by itself.
	Failed bool
	// Lost: pods of it went through no fault of its own, and others come in their place.
	Lost bool
}

// Shift is what stands decided. It is kept between two looks, as JSON.
type Shift struct {
	// Traffic is how much of the requests goes to the candidate, in percent.
	Traffic int `json:"traffic,omitzero"`
	// Active and Candidate are how much of the whole capacity each side is told to have, in
	// percent.
	Active    int `json:"active,omitzero"`
	Candidate int `json:"candidate,omitzero"`
	// Proven: the candidate had all that it was told to have once. From then on less than
	// what its requests need is sickness.
	Proven bool `json:"proven,omitzero"`
	// Back: it is on its way back to the active version. It may change at any
	// time, as when a user changes their mind.
	Back bool `json:"back,omitzero"`
	// At is when Traffic changed last, zero if never.
	At time.Time `json:"at,omitzero"`
	// Began is when the candidate was last given more to get ready; the deadline counts from
	// here. It is zero on the way back, so that one who turns forward again has all the time.
	Began time.Time `json:"began,omitzero"`
}

// Verdict is how far an upgrade is.
type Verdict int

// Verdicts.
const (
	// Going: it has not ended.
	Going Verdict = iota
	// Done: the candidate has all requests, and the active version's capacity may go.
	Done
	// Returned: the active version has all requests and the whole capacity, and the candidate
	// may go.
	Returned
)

// String is the verdict's name.
func (v Verdict) String() string {
	switch v {
	case Done:
		return "Done"
	case Returned:
		return "Returned"
	}
	return "Going"
}

// Cause is why an upgrade goes back, empty where nothing is wrong or somebody asked for it.
type Cause string

// Causes.
const (
	// Late: the candidate was not ready in time.
	Late Cause = "Late"
	// Failed: the candidate will not get ready.
	Failed Cause = "Failed"
	// Sick: the candidate was healthy, and is not any more.
	Sick Cause = "Sick"
)

// Move is what was decided.
type Move struct {
	Shift   Shift
	Verdict Verdict
	// Cause is given with the one move that turns back.
	Cause Cause
	// Wake is after how long to look again though nothing happened, 0 for never.
	Wake time.Duration
}

// Begin is the first shift of an upgrade: the candidate gets what may be there beyond the
// active version, and no request.
func Begin(terms Terms, now time.Time) Shift {
	return Shift{Active: whole, Candidate: terms.bounded().Surge, Began: now}
}

// Advance decides what is next, at most one thing at a time: to turn back, to move requests,
// or to change what capacity one side has. It takes any numbers, those below 0 as 0 and
// those above 100 as 100.
//
// Requests go first of all to where the health is, whichever way the upgrade goes. Where both
// sides can take theirs, they move to the candidate, or back, by steps; back from a candidate
// that is not healthy they go at once. A side's capacity shrinks once the other one was seen
// to have what its requests need, and the other one grows once the first was seen to have
// shrunk. Where nothing is ready on either side nothing moves: what is not known is not zero.
func Advance(terms Terms, shift Shift, active, candidate Version, now time.Time) Move {
	u := upgrade{terms: terms.bounded(), active: percent(active.Ready), candidate: percent(candidate.Ready), failed: candidate.Failed, lost: candidate.Lost, now: now}
	move := u.decide(shift.bounded())
	if move.Verdict == Going && move.Shift != shift {
		after := u.decide(move.Shift)
		move.Wake = after.Wake
		if after.Shift != move.Shift || after.Verdict != Going {
			move.Wake = soon
		}
	}
	return move
}

// Held is the move from a shift as far as it may be made while the last step has yet to show,
// because those who send the requests are told of it and have not followed yet: nothing that
// leans on it. What goes back to the active side goes at once, and so does what that
// side cannot take any more. Who asks looks again when there is something to see.
func (m Move) Held(from Shift, active Version) Move {
	rescues := m.Shift.Traffic > from.Traffic && percent(active.Ready) < from.Active
	if m.Shift.Back || rescues || m.Shift.Traffic < from.Traffic {
		return m
	}
	kept := from
	kept.Proven = from.Proven || m.Shift.Proven
	if kept.Began.IsZero() {
		kept.Began = m.Shift.Began
	}
	return Move{Shift: kept}
}

func percent(n int) int { return min(max(n, 0), whole) }

// portion is a part of the whole that is not nothing, in percent.
func portion(n int) int { return cmp.Or(percent(n), whole) }

func (t Terms) bounded() Terms {
	t.Surge, t.Step, t.Interval = portion(t.Surge), portion(t.Step), max(t.Interval, 0)
	return t
}

func (s Shift) bounded() Shift {
	s.Traffic, s.Active, s.Candidate = percent(s.Traffic), percent(s.Active), percent(s.Candidate)
	return s
}

// upgrade is one look at an upgrade.
type upgrade struct {
	terms Terms
	// active and candidate are ready; failed and lost are of the candidate.
	active, candidate int
	failed, lost      bool
	now               time.Time
}

func (u upgrade) decide(shift Shift) Move {
	shift = u.noted(shift)
	if u.returned(shift) {
		return Move{Shift: shift, Verdict: Returned}
	}
	if !shift.Back && shift.Traffic == whole && u.has(shift) == whole {
		shift.Active = 0
		return Move{Shift: shift, Verdict: Done}
	}
	relieved := u.sent(shift, u.relieved(shift))
	if cause := u.cause(shift); cause != "" {
		relieved.Back, relieved.Began = true, time.Time{}
		return Move{Shift: relieved, Cause: cause}
	}
	if relieved != shift {
		return Move{Shift: relieved}
	}
	next, wait := u.next(shift)
	if next != shift.Traffic && wait == 0 {
		return Move{Shift: u.sent(shift, next)}
	}
	if next == shift.Traffic {
		wait, _ = u.left(shift)
	}
	return Move{Shift: u.resized(shift), Wake: wait}
}

// noted is the shift with what this look alone tells. A clock that was set back holds nothing
// up for longer than it takes anyway.
func (u upgrade) noted(shift Shift) Shift {
	shift.At, shift.Began = u.past(shift.At), u.past(shift.Began)
	if shift.Back {
		shift.Began = time.Time{}
		return shift
	}
	if shift.Began.IsZero() { // it has turned forward again: the candidate has another chance
		shift.Began, shift.Proven = u.now, false
	}
	shift.Proven = shift.Candidate > 0 && (shift.Proven || u.complete(shift))
	if shift.Proven && u.lost && u.lacks(shift) { // it proves itself again with what comes in place of what it lost
		shift.Proven, shift.Began = false, u.now
	}
	return shift
}

// past is a time that is not to come.
func (u upgrade) past(at time.Time) time.Time {
	if at.After(u.now) {
		return u.now
	}
	return at
}

// sent is the shift with so much of the requests sent to the candidate.
func (u upgrade) sent(shift Shift, traffic int) Shift {
	if traffic != shift.Traffic {
		shift.Traffic, shift.At = traffic, u.now
	}
	return shift
}

// has and keeps are what the candidate and the active side have ready of what they are told
// to have. What they have beyond it is on its way out.
func (u upgrade) has(shift Shift) int   { return min(u.candidate, shift.Candidate) }
func (u upgrade) keeps(shift Shift) int { return min(u.active, shift.Active) }

// complete reports whether the candidate has all that it is told to have.
func (u upgrade) complete(shift Shift) bool { return u.candidate >= shift.Candidate }

// trusted reports whether the candidate may get more requests than it has.
func (u upgrade) trusted(shift Shift) bool { return shift.Proven && !u.failed }

// returned reports whether the way back has ended: the active side has all that it had, or
// lacks what the candidate cannot help it out with.
func (u upgrade) returned(shift Shift) bool {
	home := shift.Back && shift.Traffic == 0 && shift.Active == whole
	return home && (u.active == whole || u.candidate == 0 || !u.trusted(shift))
}

// cause is why to turn back now, if there is a reason to.
func (u upgrade) cause(shift Shift) Cause {
	switch {
	case shift.Back || !u.terms.AutoRollback || u.complete(shift):
		return ""
	case shift.Proven && u.lacks(shift) && u.refuge(shift):
		return Sick
	case u.failed:
		return Failed
	}
	if left, counts := u.left(shift); counts && left == 0 {
		return Late
	}
	return ""
}

// lacks reports whether the candidate has less than its requests need, or nothing.
func (u upgrade) lacks(shift Shift) bool {
	return u.candidate < shift.Traffic || u.candidate == 0
}

// refuge reports whether a sick candidate's requests are better off with the active side: it
// can take them, or is the healthier one. It is not where nothing is known of either.
func (u upgrade) refuge(shift Shift) bool {
	active, candidate := u.keeps(shift), u.has(shift)
	return active >= whole-min(candidate, shift.Traffic) || active > candidate
}

// left is how much is left until the deadline of a candidate that is not ready, and whether
// that counts. Once the candidate has got requests with all that it was told to have, the
// time counts from when it was to get more.
func (u upgrade) left(shift Shift) (time.Duration, bool) {
	if shift.Back || !u.terms.AutoRollback || u.terms.Deadline <= 0 || u.complete(shift) {
		return 0, false
	}
	from := shift.Began
	if shift.At.After(from) {
		from = shift.At.Add(u.terms.Interval)
	}
	return max(from.Add(u.terms.Deadline).Sub(u.now), 0), true
}

// relieved is the traffic that overloads neither side, nearest to what it is now. Where both
// together have too little it is divided as the health is, once the candidate lacks some;
// where neither has any it stays.
func (u upgrade) relieved(shift Shift) int {
	active, candidate := u.keeps(shift), u.has(shift)
	sum := active + candidate
	switch overloaded := candidate < shift.Traffic; {
	case overloaded && sum > 0:
		return rounded(candidate, min(sum, whole))
	case !overloaded && u.trusted(shift):
		return max(shift.Traffic, min(candidate, whole-active))
	}
	return shift.Traffic
}

// rounded is how much the part is of all, in percent.
func rounded(part, all int) int { return (whole*part + all/2) / all }

// next is the traffic that is next, and how long it is until then.
func (u upgrade) next(shift Shift) (traffic int, wait time.Duration) {
	traffic, wait = shift.Traffic, max(shift.At.Add(u.terms.Interval).Sub(u.now), 0)
	switch least := whole - u.keeps(shift); {
	case !shift.Back && u.complete(shift):
		traffic = max(traffic, min(traffic+u.terms.Step, shift.Candidate))
	case shift.Back && u.trusted(shift) && u.complete(shift):
		traffic = min(traffic, max(traffic-u.terms.Step, least))
	case shift.Back:
		traffic, wait = min(traffic, least), 0
	}
	return traffic, wait
}

// resized is the shift with another capacity of one side, if it is time for that.
func (u upgrade) resized(shift Shift) Shift {
	switch short := shift.Active < whole-shift.Traffic; {
	case shift.Back:
		return u.restored(shift, whole)
	case short:
		return u.restored(shift, whole-shift.Traffic)
	case u.complete(shift):
		return u.handed(shift)
	}
	return shift
}

// handed passes capacity on from the active side to the candidate: first the one shrinks, as
// far as the candidate has the requests, then the other grows. An active side that does not
// have what it is to keep does not shrink: it may be that nothing is known of it.
func (u upgrade) handed(shift Shift) Shift {
	kept := whole - shift.Candidate
	if shift.Traffic >= shift.Candidate && shift.Active > kept && u.active >= kept {
		shift.Active = kept
		return shift
	}
	if room := u.room(shift.Active); u.active <= shift.Active && room > shift.Candidate {
		// One that got more requests than it was told to have is not sick for that.
		shift.Proven = shift.Proven && shift.Traffic <= shift.Candidate
		shift.Candidate, shift.Began = room, u.now
	}
	return shift
}

// restored gives the active side so much capacity again: first the candidate shrinks, as far
// as it must and has neither requests nor health that is needed, then the other grows.
func (u upgrade) restored(shift Shift, aim int) Shift {
	if shift.Active >= aim {
		return shift
	}
	active := u.keeps(shift)
	needed := max(shift.Traffic, min(u.has(shift), whole-active), whole+u.terms.Surge-aim)
	if shift.Traffic <= whole-active && shift.Candidate > needed {
		shift.Candidate = needed
		return shift
	}
	if u.candidate <= shift.Candidate {
		shift.Active = max(shift.Active, min(u.room(shift.Candidate), aim))
	}
	return shift
}

// room is how much capacity one side may have beside that of the other.
func (u upgrade) room(other int) int { return min(whole, whole+u.terms.Surge-other) }
