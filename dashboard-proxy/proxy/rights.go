package proxy

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/heliostat-dev/heliostat/portal/access"
)

// How the right to what is open is confirmed. What cannot be confirmed twice is over: with what is remembered, that is at
// most 29 s after the right was taken away.
const (
	confirmEach   = 10 * time.Second
	confirmWithin = 4 * time.Second
	confirmKept   = 5 * time.Second
	maxUnanswered = 2
	maxKept       = 10_000
	// askWithin is how long a request waits for who its caller is, and for what they may do.
	askWithin = 4 * time.Second
	// leaveWithin is how long a caller may take to read the end.
	leaveWithin = 5 * time.Second
)

// rights confirms rights. Many streams of one caller ask once for all of them.
type rights struct {
	access Access
	clock  clock.PassiveClock
	asked  singleflight.Group
	// kept are times until which a right is known, by caller and right.
	kept *lru.Cache
}

func newRights(of Access, now clock.PassiveClock) *rights {
	return &rights{access: of, clock: now, kept: lru.New(maxKept)}
}

// confirm asks whether a caller still has a right.
func (r *rights) confirm(caller *access.Caller, what authorizationv1.ResourceAttributes) error {
	key := caller.Key() + "\n" + what.Verb + " " + what.Resource + " " + what.Namespace + "/" + what.Name
	if until, is := r.kept.Get(key); is {
		if until, is := until.(time.Time); is && r.clock.Now().Before(until) {
			return nil
		}
	}
	_, err, _ := r.asked.Do(key, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.Background(), confirmWithin) // it is for all that wait
		defer cancel()
		err := r.access.Confirm(ctx, caller, what)
		if err == nil {
			r.kept.Add(key, r.clock.Now().Add(confirmKept))
		}
		return nil, err
	})
	return err
}

// guard watches over what is open until it is stopped.
type guard struct {
	clock   clock.WithTickerAndDelayedExecution
	confirm func() error
	// end is called at most once, and tick after each round that found the right.
	end  func(*Refusal)
	tick func()

	mutex      sync.Mutex
	timer      clock.Timer
	unanswered int
	isOver     bool
}

func (g *guard) start() {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.plan()
}

// plan has the next round come. A clock of tests calls while it holds itself, so the round gets a goroutine of its own.
func (g *guard) plan() {
	g.timer = g.clock.AfterFunc(confirmEach, func() { go g.round() })
}

func (g *guard) round() {
	err := g.confirm()
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.isOver {
		return
	}
	if g.unanswered++; err == nil {
		g.unanswered = 0
	}
	if refusal := ends(err, g.unanswered); refusal != nil {
		g.isOver = true
		g.end(refusal)
		return
	}
	if g.tick != nil {
		g.tick()
	}
	g.plan()
}

// stop ends the watch. Nothing is called after that.
func (g *guard) stop() {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if g.isOver = true; g.timer != nil {
		g.timer.Stop()
	}
}

// ends returns why what is open must end after an answer, and nil where it goes on.
func ends(err error, unanswered int) *Refusal {
	switch {
	case errors.Is(err, access.ErrUnauthorized):
		return &Refusal{Code: http.StatusUnauthorized, Text: "the token or the session has ended: sign in again"}
	case errors.Is(err, access.ErrForbidden):
		return &Refusal{Code: http.StatusForbidden, Text: "the right to it was taken away: ask for the right"}
	case unanswered >= maxUnanswered:
		return &Refusal{Code: http.StatusServiceUnavailable, Text: "the right to it could not be confirmed: connect again"}
	}
	return nil
}
