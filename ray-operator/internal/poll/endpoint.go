package poll

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// Endpoint is what is polled, as its loops see it.
type Endpoint[K, E comparable, W, A any] struct {
	// Key tells it from others.
	Key E
	// Token is read when it is needed first, and again once it was refused. It is nil where there is none.
	Token *headclient.Remembered
	// OnNews is called each time that something new was said, if Rules.Loops sets it: for a loop that cannot wait for its
	// channel. A lock is held, so it must neither wait nor ask the Set.
	OnNews func()

	set *Set[K, E, W, A]
	// parts is what each key wants of it, latest what was said last. The Set's lock guards both.
	parts  map[K]*Part[K, E, W, A]
	latest W
	end    context.CancelFunc
	news   []chan struct{}
}

// Latest returns what was said last by any key: how the endpoint is reached, and all there is where it has one key.
func (e *Endpoint[K, E, W, A]) Latest() W {
	e.set.mu.Lock()
	defer e.set.mu.Unlock()
	return e.latest
}

// Wants returns what each key wants.
func (e *Endpoint[K, E, W, A]) Wants() map[K]W {
	e.set.mu.Lock()
	defer e.set.mu.Unlock()
	all := make(map[K]W, len(e.parts))
	for key, p := range e.parts {
		all[key] = p.want
	}
	return all
}

// Parts returns the questions to the endpoint, in no order.
func (e *Endpoint[K, E, W, A]) Parts() []*Part[K, E, W, A] {
	e.set.mu.Lock()
	defer e.set.mu.Unlock()
	all := make([]*Part[K, E, W, A], 0, len(e.parts))
	for _, p := range e.parts {
		all = append(all, p)
	}
	return all
}

// Publish gives every key its answer, made from the one before, and wakes the owners to whom it is the first one or
// means something new.
func (e *Endpoint[K, E, W, A]) Publish(answer func(key K, want W, before A) A) {
	e.set.mu.Lock()
	defer e.set.mu.Unlock()
	for key, p := range e.parts {
		p.keep(answer(key, p.want, p.answer), true, false)
	}
}

// Amend changes answers. One that was not published yet stays so, and wakes nobody.
func (e *Endpoint[K, E, W, A]) Amend(answer func(key K, want W, before A) A) {
	e.set.mu.Lock()
	defer e.set.mu.Unlock()
	for key, p := range e.parts {
		p.keep(answer(key, p.want, p.answer), p.answered, false)
	}
}

// Wake wakes the owners that have an answer.
func (e *Endpoint[K, E, W, A]) Wake() {
	e.set.mu.Lock()
	defer e.set.mu.Unlock()
	for key, p := range e.parts {
		if p.answered {
			e.set.wake(key)
		}
	}
}

// Rouse has the loops look again.
func (e *Endpoint[K, E, W, A]) Rouse() {
	for _, news := range e.news {
		select {
		case news <- struct{}{}:
		default: // it knows already that there is something new
		}
	}
}

// perEndpoint is what each endpoint adds to the time over which first questions are spread: with each goes a read of a
// Secret.
const perEndpoint = 5 * time.Millisecond

// Spread returns how long to wait before the first question, so that an operator that starts does not ask all endpoints
// at once.
func (e *Endpoint[K, E, W, A]) Spread(least time.Duration) time.Duration {
	e.set.mu.Lock()
	defer e.set.mu.Unlock()
	return rand.N(max(least, time.Duration(len(e.set.endpoints))*perEndpoint))
}

// Pause waits for a time, without end where that is negative, or until something new was said, which it reports. It
// fails once the context has ended.
func (e *Endpoint[K, E, W, A]) Pause(ctx context.Context, pause time.Duration, news <-chan struct{}) (said bool, err error) {
	var over <-chan time.Time
	if pause >= 0 {
		timer := e.set.clock.NewTimer(pause)
		defer timer.Stop()
		over = timer.C()
	}
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case <-news:
		return true, ctx.Err()
	case <-over:
		return false, ctx.Err()
	}
}

// Part is one question to an endpoint, with its answer.
type Part[K, E comparable, W, A any] struct {
	Key K

	set      *Set[K, E, W, A]
	at       *Endpoint[K, E, W, A]
	want     W
	answer   A
	answered bool
	// since is when something was said first that the loops did not see yet, zero if nothing was.
	since time.Time
}

// Said returns when something was said first that was not seen yet, zero if nothing was.
func (p *Part[K, E, W, A]) Said() time.Time {
	p.set.mu.Lock()
	defer p.set.mu.Unlock()
	return p.since
}

// See returns what is wanted now and the last answer. owed reports whether something was said that was not seen before,
// which from now on it was; wanted, whether the question still is asked.
func (p *Part[K, E, W, A]) See() (want W, answer A, owed, wanted bool) {
	p.set.mu.Lock()
	defer p.set.mu.Unlock()
	owed = !p.since.IsZero()
	p.since = time.Time{}
	return p.want, p.answer, owed, p.isWanted()
}

// Want returns what is wanted now, and whether the question still is asked.
func (p *Part[K, E, W, A]) Want() (W, bool) {
	p.set.mu.Lock()
	defer p.set.mu.Unlock()
	return p.want, p.isWanted()
}

// Publish gives an answer, unless the question was replaced, and wakes the owner where it is owed or has news.
func (p *Part[K, E, W, A]) Publish(answer A, owed bool) {
	p.set.mu.Lock()
	defer p.set.mu.Unlock()
	if p.isWanted() {
		p.keep(answer, true, owed)
	}
}

func (p *Part[K, E, W, A]) isWanted() bool { return p.set.parts[p.Key] == p }

// keep keeps an answer, and wakes the owner of one that is given out if it is the first, or owed, or has news. The
// caller holds the lock.
func (p *Part[K, E, W, A]) keep(answer A, given, owed bool) {
	news := given && (owed || !p.answered || p.set.rules.HasNews(p.answer, answer))
	p.answer, p.answered = answer, given
	if news {
		p.set.wake(p.Key)
	}
}

// announce tells the loops that something was said. The caller holds the lock.
func (p *Part[K, E, W, A]) announce() {
	if p.since.IsZero() {
		p.since = p.set.clock.Now()
	}
	p.at.Rouse()
	if p.at.OnNews != nil {
		p.at.OnNews()
	}
}

// Jitter returns a pause a tenth shorter or longer, so that what was asked together is not for ever.
func Jitter(pause time.Duration) time.Duration { return pause - pause/10 + rand.N(pause/5) }

// Double returns a pause that doubles with each failure in a row, up to a longest one.
func Double(first time.Duration, times int, most time.Duration) time.Duration {
	return min(first<<min(times-1, 10), most)
}
