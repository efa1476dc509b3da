package access_test

import (
	"errors"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/heliostat-dev/heliostat/portal/access"
	"github.com/heliostat-dev/heliostat/portal/access/accesstest"
)

// TestLately_GoesOnWhereNobodyAnswers: for 25 s after an answer, and never against one.
func TestLately_GoesOnWhereNobodyAnswers(t *testing.T) {
	server := accesstest.Start(t, "a", "alice", nil)
	now := clocktesting.NewFakePassiveClock(time.Now())
	kubernetes := server.Kubernetes(t, now)
	pass := func(d time.Duration) { now.SetTime(now.Now().Add(d)) }
	ask := func(want error) {
		t.Helper()
		caller, err := kubernetes.IdentifyLately(t.Context(), from("a"))
		if err != nil {
			t.Fatal(err)
		}
		if err := kubernetes.MayLately(t.Context(), caller, watching); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	if server.Break(true); !isAway(kubernetes.MayLately(t.Context(), callerOf(t, kubernetes, "a"), watching)) {
		t.Error("a right that nobody has said counts")
	}
	server.Break(false)
	ask(nil)
	server.Break(true)
	pass(25*time.Second - 1)
	ask(nil)
	alice := callerOf(t, kubernetes, "a")
	pass(1)
	if _, err := kubernetes.IdentifyLately(t.Context(), from("a")); !isAway(err) {
		t.Errorf("a caller of 25 s ago: %v", err)
	}
	if err := kubernetes.MayLately(t.Context(), alice, watching); !isAway(err) {
		t.Errorf("a right of 25 s ago: %v", err)
	}
	server.Break(false)
	ask(nil)
	server.Deny("a")
	pass(10 * time.Second)
	ask(access.ErrForbidden)
	server.Break(true)
	pass(2 * time.Second)
	if err := kubernetes.MayLately(t.Context(), alice, watching); !isAway(err) {
		t.Errorf("a right that was taken away counts again: %v", err)
	}
}

func isAway(err error) bool {
	return err != nil && !errors.Is(err, access.ErrForbidden) && !errors.Is(err, access.ErrUnauthorized)
}
