package access_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/heliostat-dev/heliostat/portal/access"
	"github.com/heliostat-dev/heliostat/portal/access/accesstest"
)

func containsAny(text string, parts ...string) bool {
	for _, part := range parts {
		if strings.Contains(text, part) {
			return true
		}
	}
	return false
}

var watching = authorizationv1.ResourceAttributes{Verb: "watch", Resource: "computeclusters", Namespace: "n"}

func callerOf(t *testing.T, kubernetes *access.Kubernetes, text string) *access.Caller {
	t.Helper()
	caller, err := kubernetes.CallerOf(t.Context(), from(text))
	if err != nil {
		t.Fatal(err)
	}
	return caller
}

func TestConfirm_IsTheAnswerOfTheAPIServer(t *testing.T) {
	server := accesstest.Start(t, "a", "alice", nil)
	kubernetes := server.Kubernetes(t, clocktesting.NewFakePassiveClock(time.Now()))
	server.Know("b", "bob")
	callers := map[string]*access.Caller{"a": callerOf(t, kubernetes, "a"), "b": callerOf(t, kubernetes, "b")}
	confirm := func(text string) error { return kubernetes.Confirm(t.Context(), callers[text], watching) }
	if err := confirm("a"); err != nil {
		t.Error(err)
	}
	server.Withdraw("b")
	if err := confirm("b"); !errors.Is(err, access.ErrUnauthorized) {
		t.Errorf("an unknown token: %v", err)
	}
	server.Deny("a")
	if err := confirm("a"); !errors.Is(err, access.ErrForbidden) {
		t.Errorf("no right: %v", err)
	}
	server.Break(true)
	if err := confirm("a"); err == nil || errors.Is(err, access.ErrForbidden) || errors.Is(err, access.ErrUnauthorized) {
		t.Errorf("a server that fails: %v", err)
	}
}

// TestMay_RemembersDecisionsAndNoErrors: 10 s where it is yes, and 2 s where it is no.
func TestMay_RemembersDecisionsAndNoErrors(t *testing.T) {
	server := accesstest.Start(t, "a", "alice", nil)
	now := clocktesting.NewFakePassiveClock(time.Now())
	kubernetes := server.Kubernetes(t, now)
	pass := func(d time.Duration) { now.SetTime(now.Now().Add(d)) }
	alice, other := callerOf(t, kubernetes, "a"), watching
	other.Namespace = "other"
	before := server.Reviews()
	may := func(what authorizationv1.ResourceAttributes, want error, reviews int) {
		t.Helper()
		if err := kubernetes.May(t.Context(), alice, what); !errors.Is(err, want) || (err == nil) != (want == nil) || server.Reviews()-before != reviews {
			t.Errorf("%v after %d reviews, want %v after %d", err, server.Reviews()-before, want, reviews)
		}
	}
	may(watching, nil, 1)
	server.Deny("a")
	pass(10*time.Second - 1)
	may(watching, nil, 1)
	may(other, access.ErrForbidden, 2)
	pass(1)
	may(watching, access.ErrForbidden, 3)
	pass(2*time.Second - 1)
	may(watching, access.ErrForbidden, 3)
	pass(1)
	server.Break(true)
	for reviews := 4; reviews < 6; reviews++ {
		if err := kubernetes.May(t.Context(), alice, watching); err == nil || errors.Is(err, access.ErrForbidden) || server.Reviews()-before != reviews {
			t.Errorf("a server that fails: %v after %d reviews, want %d", err, server.Reviews()-before, reviews)
		}
	}
}

// TestMay_KeepsCallersApart: what one may is not what another may, were they the same user with another token.
func TestMay_KeepsCallersApart(t *testing.T) {
	server := accesstest.Start(t, "a", "alice", nil)
	kubernetes := server.Kubernetes(t, clocktesting.NewFakePassiveClock(time.Now()))
	if err := kubernetes.May(t.Context(), callerOf(t, kubernetes, "a"), watching); err != nil {
		t.Error(err)
	}
	server.Know("b", "alice")
	another := callerOf(t, kubernetes, "b")
	server.Withdraw("b")
	if err := kubernetes.May(t.Context(), another, watching); !errors.Is(err, access.ErrUnauthorized) {
		t.Errorf("another token: %v", err)
	}
}
