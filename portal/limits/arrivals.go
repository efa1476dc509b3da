package limits

import (
	"container/list"
	"context"
	"errors"
	"sync"
)

// Bounds of messages that arrive at once. One takes up to 1 MiB until it is whole, and most are whole at once.
const (
	maxArrivals     = 96
	maxArrivalsEach = 16
	maxWaitingEach  = 100
)

// ErrTooSlow is that a message took its time while others arrived.
var ErrTooSlow = errors.New("the message stood still while others arrived")

// Arrivals counts messages on their way, by whose they are. A caller has few at once, and further ones wait. Where all callers
// have too many, the oldest ends: an honest one is there within milliseconds. It may be used by many goroutines.
type Arrivals struct {
	callers callers[chan struct{}]

	mutex sync.Mutex
	// oldest has the messages on their way, the oldest first.
	oldest list.List
}

// NewArrivals returns the places of messages that arrive.
func NewArrivals() *Arrivals { return &Arrivals{} }

// Begin takes a place for a message of a caller until it is whole. The context that it returns ends, by ErrTooSlow, where
// others need the place.
func (a *Arrivals) Begin(ctx context.Context, key string) (context.Context, func(), error) {
	places, is := a.callers.join(key, maxWaitingEach, func() chan struct{} { return make(chan struct{}, maxArrivalsEach) })
	if !is {
		return nil, nil, ErrCallerFull
	}
	select {
	case places <- struct{}{}:
	case <-ctx.Done():
		a.callers.quit(key)
		return nil, nil, context.Cause(ctx)
	}
	arriving, end := context.WithCancelCause(ctx)
	a.mutex.Lock()
	defer a.mutex.Unlock()
	place := a.oldest.PushBack(end)
	if a.oldest.Len() > maxArrivals {
		stop, _ := a.oldest.Remove(a.oldest.Front()).(context.CancelCauseFunc) // the list holds nothing else
		stop(ErrTooSlow)
	}
	return arriving, sync.OnceFunc(func() {
		end(nil)
		<-places
		a.mutex.Lock()
		a.oldest.Remove(place) // does nothing where it was taken out
		a.mutex.Unlock()
		a.callers.quit(key)
	}), nil
}
