package permit_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/permit"
)

// lock is a Lease whose calls take a second, and fail as a test says.
type lock struct {
	resourcelock.Interface
	clock  *clocktesting.FakeClock
	holder string
	err    error
}

func (l *lock) Identity() string { return "me" }

func (l *lock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &resourcelock.LeaderElectionRecord{HolderIdentity: l.holder}, nil, l.err
}

func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, record)
}

func (l *lock) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	l.clock.Step(time.Second)
	if l.err == nil {
		l.holder = record.HolderIdentity
	}
	return l.err
}

// TestPermit_IsThatOfTheLease: it holds for ten seconds from the begin of the last renewal, and ends at once with a
// Lease that is given back or another's.
func TestPermit_IsThatOfTheLease(t *testing.T) {
	mine, nobodys := resourcelock.LeaderElectionRecord{HolderIdentity: "me"}, resourcelock.LeaderElectionRecord{}
	type steps = func(*lock, resourcelock.Interface) error
	for name, test := range map[string]struct {
		after steps
		wait  time.Duration
		want  bool
	}{
		"a standby":        {func(*lock, resourcelock.Interface) error { return nil }, 0, false},
		"it was taken":     {func(_ *lock, l resourcelock.Interface) error { return l.Create(t.Context(), mine) }, 0, true},
		"it was renewed":   {func(_ *lock, l resourcelock.Interface) error { return l.Update(t.Context(), mine) }, 8*time.Second + 999*time.Millisecond, true},
		"not for long":     {func(_ *lock, l resourcelock.Interface) error { return l.Update(t.Context(), mine) }, 9 * time.Second, false},
		"a renewal failed": {failing(func(l resourcelock.Interface) error { return l.Update(t.Context(), mine) }), 0, true},
		"it could not be had": {func(raw *lock, l resourcelock.Interface) error {
			raw.err = errors.New("conflict")
			_ = l.Update(t.Context(), mine)
			return nil
		}, 0, false},
		"it was given back": {func(_ *lock, l resourcelock.Interface) error {
			return errors.Join(l.Update(t.Context(), mine), l.Update(t.Context(), nobodys))
		}, 0, false},
		"another has it": {func(raw *lock, l resourcelock.Interface) error {
			err := l.Update(t.Context(), mine)
			raw.holder = "another"
			_, _, _ = l.Get(t.Context())
			return err
		}, 0, false},
		"it is looked at": {func(_ *lock, l resourcelock.Interface) error {
			err := l.Update(t.Context(), mine)
			_, _, _ = l.Get(t.Context())
			return err
		}, 0, true},
	} {
		clock := clocktesting.NewFakeClock(time.Unix(1e9, 0))
		term := permit.NewTerm(10*time.Second, clock)
		raw := &lock{clock: clock}
		if err := test.after(raw, term.Follow(raw)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		clock.Step(test.wait)
		if err := term.Permit(); (err == nil) != test.want {
			t.Errorf("%s: %v, want a permit: %t", name, err, test.want)
		}
	}
}

// failing renews once, and fails the second time.
func failing(renew func(resourcelock.Interface) error) func(*lock, resourcelock.Interface) error {
	return func(raw *lock, l resourcelock.Interface) error {
		err := renew(l)
		raw.err = errors.New("the API server is away")
		_ = renew(l)
		return err
	}
}
