package runs

import (
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// asker holds the conversation with one head. Its first fields are guarded by the Watch's
// lock, the others are its goroutine's own.
type asker struct {
	watch *Watch
	key   key
	token headclient.Token
	runs  map[types.NamespacedName]*run
	end   context.CancelFunc
	// heard is what is known of the head: the fields of Answer that are not of a run.
	heard Answer
	// news holds something while a run has news that was not looked at.
	news chan struct{}

	began    time.Time
	head     Head // nil while there is no conversation
	secret   *headclient.Remembered
	session  string
	failures int
	// retry is before when a head that failed is asked only for news.
	retry time.Time
	// hung are the acts that ended without success and took their time when they were
	// tried last.
	hung [acts]bool
}

// act is a sort of call.
type act int

const (
	toMeet act = iota
	toSubmit
	toLook
	toStop
	toRead
	acts
)

// rouse tells the goroutine that there is something new.
func (a *asker) rouse() {
	select {
	case a.news <- struct{}{}:
	default: // it knows already
	}
}

// work gives each run its turns until the context ends.
func (a *asker) work(ctx context.Context) {
	defer a.hangUp(ctx)
	for ctx.Err() == nil {
		r, at := a.next()
		if r == nil {
			a.hangUp(ctx)
			select {
			case <-ctx.Done():
			case <-a.news:
			}
			continue
		}
		pause := at.Sub(a.watch.clock.Now())
		if pause <= 0 {
			a.turn(ctx, r)
			continue
		}
		timer := a.watch.clock.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-a.news:
		case <-timer.C():
		}
		timer.Stop()
	}
}

// next is the run whose turn is first, and when; nil if nothing must be asked.
func (a *asker) next() (*run, time.Time) {
	a.watch.mu.Lock()
	defer a.watch.mu.Unlock()
	var first *run
	var when time.Time
	for _, r := range a.runs {
		at := r.news
		if at.IsZero() {
			if at = r.due; at.IsZero() {
				continue
			}
			at = later(at, a.retry)
		}
		if first == nil || at.Before(when) {
			first, when = r, at
		}
	}
	return first, when
}

// converse ensures that there is a conversation, and that its session is known. With renew it asks
// for the session again.
func (a *asker) converse(ctx context.Context, renew bool) error {
	if a.head == nil {
		if a.secret == nil {
			a.secret = headclient.Remember(a.watch.tokenOf(a))
		}
		head, err := a.watch.dial(a.key.place(a.secret.Token()))
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
	a.watch.met(a, session)
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
	a.secret.Heard(err)
	a.hung[what] = err != nil && now.Sub(began) >= hangs
	switch {
	case answers(err):
		a.watch.mu.Lock()
		a.heard.At = now
		a.watch.mu.Unlock()
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

// whole is an answer about a run with what is known of its head. The caller holds the lock.
func (a *asker) whole(answer Answer) Answer {
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
func (w *Watch) met(a *asker, session headclient.Session) {
	w.mu.Lock()
	defer w.mu.Unlock()
	news := a.heard.Failure != "" || a.heard.Session != session
	a.heard = Answer{At: a.heard.At, Session: session}
	for job, r := range a.runs {
		if news && r.answered {
			w.wake(job)
		}
	}
}

// failed keeps that the head could not be asked in a turn, which answers all that was wanted
// of it.
func (w *Watch) failed(t *turn, err error) {
	a := t.asker
	now := w.clock.Now()
	a.failures++
	w.mu.Lock()
	defer w.mu.Unlock()
	a.retry = now.Add(a.backOff(now))
	kind := headclient.KindOf(err)
	news := a.heard.Failure != kind
	if a.heard.Failure == "" {
		a.heard.FailingSince = now
	}
	a.heard.Failure, a.heard.Err = kind, err
	for job, r := range a.runs {
		lost := r.missed()
		if news || lost || !r.news.IsZero() || r == t.run && t.owed {
			w.wake(job)
		}
		r.answered = true
		if !r.news.IsZero() {
			r.begin(now)
			r.news = time.Time{}
		}
	}
}

func (a *asker) hangUp(ctx context.Context) {
	if a.head == nil {
		return
	}
	if err := a.head.Close(); err != nil {
		log.FromContext(ctx).Error(err, "closing the connection to a head", "cluster", a.key.cluster)
	}
	a.head, a.session = nil, ""
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
