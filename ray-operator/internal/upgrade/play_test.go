package upgrade

import (
	"slices"
	"time"
)

// mostLooks bounds a simulation. The longest upgrade there can be, by steps of one percent
// and back again, needs less than a tenth of it.
const mostLooks = 20_000

// notice is how long it takes until a sickness is seen.
const notice = time.Second

// Script says how the two sides behave in a simulation. A time is counted from the start, and
// 0 is never; what is negative counts as 0.
type Script struct {
	// Pods is how many pods a version has with the whole capacity.
	Pods int
	// Grow and Shrink are how long it takes until a side has what it is told to have.
	Grow, Shrink time.Duration
	// Fails is when it shows that the candidate will never be healthy, Dies when the active
	// side is gone for good.
	Fails, Dies time.Duration
	// SickAt is the traffic, in percent, that makes the candidate sick, once; 0 is none.
	// SickFor is how long it stays so; 0 is for ever.
	SickAt  int
	SickFor time.Duration
	// Returns is when the user goes back, Again when they go forward again.
	Returns, Again time.Duration
}

// Row is one look of a simulation, at which something was new.
type Row struct {
	// After is the time since the start.
	After time.Duration
	// Active and Candidate are what was seen, Shift is what was decided then.
	Active, Candidate Version
	Shift             Shift
	// ActivePods and CandidatePods are how many pods take requests from then on.
	ActivePods, CandidatePods int
	Verdict                   Verdict
	Cause                     Cause
}

// Simulate plays an upgrade to its end: until it is done or has returned, until nothing will
// ever happen any more, or until there were too many looks.
func Simulate(terms Terms, script Script) []Row {
	p := begin(terms, script)
	p.run(mostLooks)
	return p.rows
}

// play is an upgrade that is simulated.
type play struct {
	terms             Terms
	script            Script
	start, last, now  time.Time
	shift             Shift
	active, candidate part
	// sick is when the candidate becomes sick, zero where it does not.
	sick time.Time
	rows []Row
}

func begin(terms Terms, script Script) *play {
	start := time.UnixMilli(0).UTC()
	return &play{terms: terms, script: script, start: start, now: start, shift: Begin(terms, start), active: part{told: whole}}
}

// run looks until there is nothing more to see, or so often. It tells how often it looked.
func (p *play) run(most int) int {
	looks := 1
	for p.look() && looks < most {
		looks++
	}
	return looks
}

// look is one look at the upgrade. It then goes on to when the next one is worth it, and is
// false when there is none.
func (p *play) look() bool {
	p.turn()
	active, candidate := p.seen()
	move := Advance(p.terms, p.shift, active, candidate, p.now)
	p.shift = move.Shift
	p.note(Row{Active: active, Candidate: candidate, Shift: move.Shift, Verdict: move.Verdict, Cause: move.Cause})
	p.tell()
	if limit := p.script.SickAt; p.sick.IsZero() && limit > 0 && p.shift.Traffic >= limit {
		p.sick = p.now.Add(notice)
	}
	next, ok := p.next(move.Wake)
	if move.Verdict != Going || !ok {
		return false
	}
	p.last, p.now = p.now, next
	return true
}

// turn does what the user did since the last look.
func (p *play) turn() {
	if p.past(p.script.Returns) && !p.before(p.script.Returns) {
		p.shift.Back = true
	}
	if p.past(p.script.Again) && !p.before(p.script.Again) {
		p.shift.Back = false
	}
}

// past reports whether something has happened by now, before whether it had at the last look.
func (p *play) past(event time.Duration) bool {
	return event > 0 && !p.now.Before(p.start.Add(event))
}

func (p *play) before(event time.Duration) bool {
	return !p.last.Before(p.start.Add(event))
}

// seen is what there is to see of both sides.
func (p *play) seen() (active, candidate Version) {
	p.active.pass(p.now)
	p.candidate.pass(p.now)
	active, candidate = Version{Ready: p.active.ready}, Version{Ready: p.candidate.ready}
	if p.past(p.script.Dies) {
		active.Ready = 0
	}
	if p.past(p.script.Fails) {
		candidate = Version{Failed: true}
	}
	if !p.sick.IsZero() && !p.now.Before(p.sick) && (p.script.SickFor <= 0 || p.now.Before(p.sick.Add(p.script.SickFor))) {
		candidate.Ready = 0
	}
	return active, candidate
}

// note keeps a row with something new.
func (p *play) note(row Row) {
	row.ActivePods, row.CandidatePods = Endpoints(row.Shift.Traffic, p.pods(row.Active), p.pods(row.Candidate))
	if last := len(p.rows) - 1; last >= 0 {
		row.After = p.rows[last].After
		if row == p.rows[last] {
			return
		}
	}
	row.After = p.now.Sub(p.start)
	p.rows = append(p.rows, row)
}

// pods is how many pods a side has ready, rounded up.
func (p *play) pods(side Version) int { return (side.Ready*pods(p.script.Pods) + whole - 1) / whole }

// next is when there is something to see again, if ever.
func (p *play) next(wake time.Duration) (time.Time, bool) {
	times := []time.Time{p.now.Add(wake), p.active.due, p.candidate.due, p.sick}
	if !p.sick.IsZero() {
		times = append(times, p.sick.Add(p.script.SickFor))
	}
	for _, event := range []time.Duration{p.script.Fails, p.script.Dies, p.script.Returns, p.script.Again} {
		times = append(times, p.start.Add(event))
	}
	times = slices.DeleteFunc(times, func(at time.Time) bool { return !at.After(p.now) })
	if len(times) == 0 {
		return time.Time{}, false
	}
	return slices.MinFunc(times, time.Time.Compare), true
}

// tell tells both sides what they must have from now on.
func (p *play) tell() {
	p.active.tell(p.shift.Active, p.now, p.script)
	p.candidate.tell(p.shift.Candidate, p.now, p.script)
}

// part is the capacity of one side, in percent.
type part struct {
	told, ready int
	// due is when ready becomes what was told.
	due time.Time
}

func (p *part) tell(told int, now time.Time, script Script) {
	if told == p.told {
		return
	}
	took := script.Grow
	if told < p.ready {
		took = script.Shrink
	}
	p.told, p.due = told, now.Add(max(took, soon))
}

func (p *part) pass(now time.Time) {
	if !now.Before(p.due) {
		p.ready = p.told
	}
}

// shareOf is the candidate's share of the endpoints, rounded to whole percent: the share of the
// requests that it really gets. Without endpoints it is 0.
func shareOf(a, c int) int {
	a, c = pods(a), pods(c)
	if c == 0 {
		return 0
	}
	return rounded(c, a+c)
}
