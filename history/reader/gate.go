package reader

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// gate lets so many calls through at once, and of one caller at most half of them.
type gate struct {
	all  chan struct{}
	each int

	mutex   sync.Mutex
	callers map[string]*turns
}

// turns are those of one caller.
type turns struct {
	taken chan struct{}
	calls int // that wait or are through
}

func newGate(most int) *gate {
	most = max(most, 2)
	return &gate{all: make(chan struct{}, most), each: most / 2, callers: map[string]*turns{}}
}

// maxWait is how long a call waits for its turn, and maxWaiting how many calls of one caller do.
const (
	maxWait    = 5 * time.Second
	maxWaiting = 100
)

// errBusy is about a call whose turn did not come.
var errBusy = status.Error(codes.ResourceExhausted, "too many calls at once: try again")

// enter waits for a turn of a caller. The caller gives it back by leave.
func (g *gate) enter(ctx context.Context, caller string) (leave func(), err error) {
	own, is := g.join(caller)
	if !is {
		return nil, errBusy
	}
	timer := time.NewTimer(maxWait)
	defer timer.Stop()
	for i, turn := range []chan struct{}{own.taken, g.all} {
		select {
		case turn <- struct{}{}:
			continue
		case <-ctx.Done():
			err = status.FromContextError(ctx.Err()).Err()
		case <-timer.C:
			err = errBusy
		}
		if i > 0 {
			<-own.taken
		}
		g.part(caller, own)
		return nil, err
	}
	return func() {
		<-g.all
		<-own.taken
		g.part(caller, own)
	}, nil
}

// join counts a call of a caller.
func (g *gate) join(caller string) (*turns, bool) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	own := g.callers[caller]
	if own == nil {
		own = &turns{taken: make(chan struct{}, g.each)}
		g.callers[caller] = own
	}
	if own.calls >= g.each+maxWaiting {
		return nil, false
	}
	own.calls++
	return own, true
}

func (g *gate) part(caller string, own *turns) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if own.calls--; own.calls == 0 {
		delete(g.callers, caller)
	}
}
