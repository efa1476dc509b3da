package jobs

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// asker holds the conversation with one head.
type asker struct {
	*endpoint
	watch *Watch
	began time.Time

	mu sync.Mutex
	// heard is what is known of the head: the fields of Answer that are not of a run. The lock guards it.
	heard Answer

	// All else is the own of the goroutine that works.
	runs     map[*part]*run
	head     Head // nil while there is no conversation
	session  string
	failures int
	// retry is before when a head that failed is asked only for news.
	retry time.Time
	// reportRetry is before when no report is read of a run that is not over, because
	// reportFailures in a row could not be.
	reportRetry    time.Time
	reportFailures int
	// hung are the acts that ended without success and took their time when they were
	// tried last.
	hung [acts]bool
}

// run is one run of a job, and how far its asker has come with it.
type run struct {
	*part
	progress
}

// act is a sort of call.
type act int

const (
	toMeet act = iota
	toDeliver
	toSubmit
	toLook
	toStop
	toRead
	toReport
	acts
)

// work gives each run its turns until the context ends.
func (a *asker) work(ctx context.Context, news <-chan struct{}) {
	defer a.hangUp(ctx)
	for ctx.Err() == nil {
		r, at := a.next()
		if r == nil {
			a.hangUp(ctx)
			_, _ = a.Pause(ctx, -1, news)
			continue
		}
		if pause := at.Sub(a.watch.clock.Now()); pause > 0 {
			_, _ = a.Pause(ctx, pause, news)
			continue
		}
		a.turn(ctx, r)
	}
}

// next is the run whose turn is first, and when; nil if nothing must be asked.
func (a *asker) next() (*run, time.Time) {
	now := a.watch.clock.Now()
	var first *run
	var soonest due
	for _, r := range a.wanted() {
		at, stops := r.Said(), r.isToStop()
		if at.IsZero() {
			if at = r.due; at.IsZero() {
				continue
			}
			at = later(at, a.retry)
		}
		if next := (due{at, stops}); first == nil || next.isBefore(soonest, now) {
			first, soonest = r, next
		}
	}
	return first, soonest.at
}

// wanted returns the runs that are wanted, in no order.
func (a *asker) wanted() []*run {
	parts := a.Parts()
	all := make([]*run, 0, len(parts))
	for _, p := range parts {
		if a.runs[p] == nil {
			a.runs[p] = &run{part: p}
		}
		all = append(all, a.runs[p])
	}
	if len(a.runs) > len(all) {
		maps.DeleteFunc(a.runs, func(p *part, _ *run) bool {
			_, wanted := p.Want()
			return !wanted
		})
	}
	return all
}

// isToStop reports whether a run must be stopped and was not told to yet.
func (r *run) isToStop() bool {
	want, _ := r.Want()
	return want.Stop && r.stops == 0
}

// due is when a run has its turn, and whether that stops it.
type due struct {
	at    time.Time
	stops bool
}

// isBefore reports whether a turn comes before another. Of those that are due, what stops a run goes first: a submission
// takes as long as the head hangs.
func (d due) isBefore(other due, now time.Time) bool {
	if d.stops != other.stops && !d.at.After(now) && !other.at.After(now) {
		return d.stops
	}
	return d.at.Before(other.at)
}

// converse ensures that there is a conversation, and that its session is known. With renew it asks
// for the session again.
func (a *asker) converse(ctx context.Context, renew bool) error {
	if a.head == nil {
		head, err := a.watch.dial(a.Key.place(a.Token.Token()))
		if err != nil {
			return err
		}
		a.head, renew = head, true
	}
	if !renew {
		return nil
	}
	var session headclient.Session
	err := a.call(ctx, toMeet, func(ctx context.Context) (err error) {
		session, err = a.head.Session(ctx)
		return err
	})
	if err != nil {
		a.hangUp(ctx)
		return err
	}
	a.session, a.failures, a.retry = session.Name, 0, time.Time{}
	a.met(session)
	return nil
}

// call makes one call when a slot is free for it. A conversation in which anything but a
// plain answer was heard is over: the next one begins with the session.
func (a *asker) call(ctx context.Context, what act, do func(context.Context) error) error {
	slots := a.watch.quick
	if a.hung[what] {
		slots = a.watch.slow[what]
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case slots <- struct{}{}:
	}
	defer func() { <-slots }()
	began := a.watch.clock.Now()
	err := do(ctx)
	now := a.watch.clock.Now()
	a.Token.Heard(err)
	a.hung[what] = err != nil && now.Sub(began) >= hangs
	switch {
	case answers(err):
		a.mu.Lock()
		a.heard.At = now
		a.mu.Unlock()
	case !errors.Is(err, errWithdrawn):
		a.hangUp(ctx)
	}
	return err
}

// answers reports whether a call has brought an answer, be it a no.
func answers(err error) bool {
	switch headclient.KindOf(err) {
	case "", headclient.NotFound, headclient.Exists, headclient.Refused, headclient.Unsupported:
		return true
	default:
		return false
	}
}

// whole is an answer about a run with what is known of its head.
func (a *asker) whole(answer Answer) Answer {
	a.mu.Lock()
	defer a.mu.Unlock()
	answer.At, answer.Session = a.heard.At, a.heard.Session
	if a.heard.Failure == "" {
		return answer
	}
	if answer.Failure == "" { // else it began with the run's, when the head still said who it is
		answer.FailingSince = a.heard.FailingSince
	}
	answer.Failure, answer.Err = a.heard.Failure, a.heard.Err
	return answer
}

// met keeps which session answers, and tells those that asked before if that is new.
func (a *asker) met(session headclient.Session) {
	a.mu.Lock()
	news := a.heard.Failure != "" || a.heard.Session != session
	a.heard = Answer{At: a.heard.At, Session: session}
	a.mu.Unlock()
	if news {
		a.Wake()
	}
}

// failed keeps that the head could not be asked in a turn, which answers all that was wanted
// of it.
func (a *asker) failed(t *turn, err error) {
	now, kind := a.watch.clock.Now(), headclient.KindOf(err)
	a.failures++
	a.mu.Lock()
	news := a.heard.Failure != kind
	if a.heard.Failure == "" {
		a.heard.FailingSince = now
	}
	a.heard.Failure, a.heard.Err = kind, err
	a.retry = now.Add(a.backOff(now))
	a.mu.Unlock()
	for _, r := range a.wanted() {
		_, answer, owed, _ := r.See()
		lost := r.missed(&answer.Answer)
		if owed {
			r.begin(now)
		}
		r.Publish(known{answer.Answer, a}, news || lost || owed || r == t.run && t.owed)
	}
}

func (a *asker) hangUp(ctx context.Context) {
	if a.head == nil {
		return
	}
	if err := a.head.Close(); err != nil {
		log.FromContext(ctx).Error(err, "Closing the connection to a head failed", "cluster", a.Key.cluster)
	}
	a.head, a.session = nil, ""
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
