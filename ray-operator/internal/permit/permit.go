// Package permit says whether this process may act now on what has no preconditions: a head, or a Redis.
//
// In: what came of each renewal of the Lease by which one operator leads. Out: an error for an act that could reach its
// target after another operator has taken over.
//
// It must never permit anything for as long as another may lead, and it asks nobody: it is called right before each act.
package permit

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
)

// ErrOver tells that the Lease was not renewed for so long that another operator may lead.
var ErrOver = errors.New("this operator's Lease was not renewed in time: another one may lead")

// Term is the time for which this process leads, as far as it knows.
type Term struct {
	clock clock.PassiveClock
	lasts time.Duration

	mu    sync.Mutex
	since time.Time // zero while it does not lead
}

// NewTerm returns a Term that is over when the Lease was not renewed for so long.
func NewTerm(lasts time.Duration, clock clock.PassiveClock) *Term {
	return &Term{clock: clock, lasts: lasts}
}

// Permit fails while this process may not act. It asks both clocks: a machine that was paused may have stopped one.
func (t *Term) Permit() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock.Now()
	if t.since.IsZero() || now.Sub(t.since) >= t.lasts || now.Round(0).Sub(t.since.Round(0)) >= t.lasts {
		return ErrOver
	}
	return nil
}

// Follow returns a lock that is the same and tells the Term of each renewal.
func (t *Term) Follow(lock resourcelock.Interface) resourcelock.Interface {
	return followed{Interface: lock, term: t}
}

type followed struct {
	resourcelock.Interface
	term *Term
}

// Create takes a Lease that was not there.
func (f followed) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	began := f.term.clock.Now()
	err := f.Interface.Create(ctx, record)
	f.renewed(err, record, began)
	return err
}

// Update takes, renews or gives back the Lease.
func (f followed) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	began := f.term.clock.Now()
	err := f.Interface.Update(ctx, record)
	f.renewed(err, record, began)
	return err
}

// Get reads the Lease, and ends the term where it is another's.
func (f followed) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := f.Interface.Get(ctx)
	if err == nil && record.HolderIdentity != f.Identity() {
		f.term.end()
	}
	return record, raw, err
}

// renewed counts from when the call began: the Lease's time may be that old.
func (f followed) renewed(err error, record resourcelock.LeaderElectionRecord, began time.Time) {
	switch {
	case err != nil: // what it had before still counts
	case record.HolderIdentity != f.Identity():
		f.term.end()
	default:
		f.term.mu.Lock()
		defer f.term.mu.Unlock()
		f.term.since = began
	}
}

func (t *Term) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.since = time.Time{}
}
