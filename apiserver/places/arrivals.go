package places

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
	mutex sync.Mutex
	by    map[string]*queue
	// oldest has the messages on their way, the oldest first.
	oldest list.List
}

// queue is what one caller sends at once.
type queue struct {
	places chan struct{}
	count  int
}

// NewArrivals returns the places of messages that arrive.
func NewArrivals() *Arrivals { return &Arrivals{by: map[string]*queue{}} }

// Begin takes a place for a message of a caller until it is whole. The context that it returns ends, by ErrTooSlow, where
// others need the place.
func (a *Arrivals) Begin(ctx context.Context, key string) (context.Context, func(), error) {
	of, err := a.join(key)
	if err != nil {
		return nil, nil, err
	}
	select {
	case of.places <- struct{}{}:
	case <-ctx.Done():
		a.quit(key)
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
		<-of.places
		a.mutex.Lock()
		a.oldest.Remove(place) // does nothing where it was taken out
		a.mutex.Unlock()
		a.quit(key)
	}), nil
}

// join counts a message of a caller.
func (a *Arrivals) join(key string) (*queue, error) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	of := a.by[key]
	if of == nil {
		of = &queue{places: make(chan struct{}, maxArrivalsEach)}
		a.by[key] = of
	}
	if of.count == maxWaitingEach {
		return nil, ErrCallerFull
	}
	of.count++
	return of, nil
}

// quit counts a message of a caller no more.
func (a *Arrivals) quit(key string) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	of := a.by[key]
	if of.count--; of.count == 0 {
		delete(a.by, key)
	}
}
