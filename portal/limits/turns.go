package limits

import (
	"context"
	"slices"
	"sync"
)

// maxWaiting is how many turns a user, or the service accounts of a namespace, may wait for.
const maxWaiting = 4

// Turns lets callers do something one at a time. Those who wait take turns: somebody who comes waits for one turn of each
// other one at most, however many those wait for. It may be used by many goroutines.
type Turns struct {
	mutex   sync.Mutex
	isTaken bool
	// order are those who wait, who is next first, and waiting are the turns that each waits for.
	order   []string
	waiting map[string][]chan struct{}
}

// NewTurns returns turns of which none is taken.
func NewTurns() *Turns { return &Turns{waiting: map[string][]chan struct{}{}} }

// Take waits for a turn, which lasts until it is over.
func (t *Turns) Take(ctx context.Context, holder Holder) (over func(), err error) {
	who := "user " + holder.User
	if holder.Namespace != "" {
		who = "namespace " + holder.Namespace
	}
	turn, err := t.line(who)
	if err != nil {
		return nil, err
	}
	select {
	case <-turn:
		return t.next, nil
	case <-ctx.Done():
		if !t.leave(who, turn) {
			t.next() // it came at the same moment
		}
		return nil, context.Cause(ctx)
	}
}

// line returns a turn, which has come where nobody has one.
func (t *Turns) line(who string) (chan struct{}, error) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	turn := make(chan struct{})
	if !t.isTaken {
		t.isTaken = true
		close(turn)
		return turn, nil
	}
	mine := t.waiting[who]
	if len(mine) >= maxWaiting {
		return nil, ErrCallerFull
	}
	if len(mine) == 0 {
		t.order = append(t.order, who)
	}
	t.waiting[who] = append(mine, turn)
	return turn, nil
}

// leave takes a turn out of those that are waited for. It reports whether it was there.
func (t *Turns) leave(who string, turn chan struct{}) bool {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	at := slices.Index(t.waiting[who], turn)
	if at < 0 {
		return false
	}
	if t.waiting[who] = slices.Delete(t.waiting[who], at, at+1); len(t.waiting[who]) == 0 {
		delete(t.waiting, who)
		at = slices.Index(t.order, who)
		t.order = slices.Delete(t.order, at, at+1)
	}
	return true
}

// next gives the turn to who is next.
func (t *Turns) next() {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if len(t.order) == 0 {
		t.isTaken = false
		return
	}
	who := t.order[0]
	t.order = t.order[1:]
	close(t.waiting[who][0])
	if t.waiting[who] = t.waiting[who][1:]; len(t.waiting[who]) > 0 {
		t.order = append(t.order, who)
		return
	}
	delete(t.waiting, who)
}
