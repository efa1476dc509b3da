// Package turns limits how many talk to servers of tenants at once, and divides the places fairly among namespaces.
//
// In: a namespace and the server that it wants to talk to. Out: a place, or the error of a context that ended before. A
// namespace never holds more than its share, with one server half of it. Who waits longest goes first among those whose
// namespace holds least.
package turns

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// Turns are places for which namespaces take turns.
type Turns struct {
	share int

	mu      sync.Mutex
	free    int
	held    map[holder]int
	waiting []*waiter
}

// holder is a namespace, or what it holds with one server.
type holder struct{ namespace, server string }

// waiter is somebody who waits for a place; given is closed when there is one.
type waiter struct {
	holder
	given chan struct{}
}

// New makes a number of places, of which a namespace holds at most a share, two or more.
func New(places, share int) *Turns {
	return &Turns{free: places, share: share, held: map[holder]int{}}
}

// Take waits for a place, which the caller gives back by calling what it returns once. It fails when the context ends.
func (t *Turns) Take(ctx context.Context, namespace, server string) (giveBack func(), err error) {
	one := &waiter{holder{namespace, server}, make(chan struct{})}
	t.mu.Lock()
	t.waiting = append(t.waiting, one)
	t.givePlaces()
	t.mu.Unlock()
	select {
	case <-one.given:
		return func() { t.giveBack(one) }, nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	at := slices.Index(t.waiting, one)
	if at >= 0 {
		t.waiting = slices.Delete(t.waiting, at, at+1)
	}
	t.mu.Unlock()
	if at < 0 { // it was given meanwhile
		t.giveBack(one)
	}
	return nil, fmt.Errorf("wait for a turn of namespace %s: %w", namespace, context.Cause(ctx))
}

func (t *Turns) giveBack(one *waiter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.free++
	for _, of := range []holder{one.holder, {namespace: one.namespace}} {
		if t.held[of]--; t.held[of] == 0 {
			delete(t.held, of)
		}
	}
	t.givePlaces()
}

// givePlaces gives free places to those that wait. The caller holds the lock.
func (t *Turns) givePlaces() {
	for t.free > 0 {
		next, least := -1, t.share
		for i, one := range t.waiting {
			if held := t.held[holder{namespace: one.namespace}]; held < least && t.held[one.holder] < t.share/2 {
				next, least = i, held
			}
		}
		if next < 0 {
			return
		}
		one := t.waiting[next]
		t.waiting = slices.Delete(t.waiting, next, next+1)
		t.free--
		t.held[one.holder]++
		t.held[holder{namespace: one.namespace}]++
		close(one.given)
	}
}
