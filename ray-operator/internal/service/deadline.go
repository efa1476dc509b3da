package service

import (
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// overdue says what to tell of a version that has not become healthy for a while, and waits for something: what it
// waits for, where that asks for a person, or else that its time is over. It is false before the deadline, with what
// is left of it; no deadline is 0.
func overdue(waited, deadline time.Duration, waits reason.Finding) (told reason.Finding, left time.Duration, over bool) {
	switch {
	case deadline <= 0:
		return waits, 0, false
	case waited < deadline:
		return waits, deadline - waited, false
	case warns(waits):
		return waits, 0, true
	default:
		return reason.ServeNotHealthyInTime.Of(deadline, waits.Text), 0, true
	}
}

// hurry has a first version be stalled once its time is over. There is nothing to go back to, so it is not taken back,
// and serves as soon as it is healthy.
func (p *planner) hurry() {
	told, left, over := overdue(since(p.record.Active.At, p.now), p.terms().Deadline, p.Finding)
	p.wakeIn(left)
	p.Finding, p.Stalled = told, p.Stalled || over
}
