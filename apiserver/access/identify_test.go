package access_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/heliostat-dev/heliostat/apiserver/access"
	"github.com/heliostat-dev/heliostat/apiserver/access/accesstest"
)

func TestIdentify_IsRememberedForAShortWhile(t *testing.T) {
	server := accesstest.Start(t, "a", "alice", nil)
	now := clocktesting.NewFakePassiveClock(time.Now())
	kubernetes := server.Kubernetes(t, now)
	ask := func(text, want string, reviews int) {
		t.Helper()
		caller, err := kubernetes.Identify(t.Context(), from(text))
		name := ""
		if err == nil {
			name = caller.User().Username
		}
		if name != want || (want == "") != errors.Is(err, access.ErrUnauthorized) || server.Reviews() != reviews {
			t.Errorf("%s is %q, %v after %d reviews, want %q after %d", text, name, err, server.Reviews(), want, reviews)
		}
	}
	pass := func(d time.Duration) { now.SetTime(now.Now().Add(d)) }
	ask("a", "alice", 1)
	pass(9 * time.Second)
	ask("a", "alice", 1)
	ask("b", "", 2)
	pass(999 * time.Millisecond)
	ask("a", "alice", 2)
	ask("b", "", 2)
	server.Withdraw("a")
	pass(time.Millisecond)
	ask("a", "", 3)
	pass(time.Second)
	ask("b", "", 4)
	for _, one := range server.All() {
		if one.Header.Get("User-Agent") != "heliostat-server" {
			t.Errorf("the API server was asked by %v", one.Header)
		}
	}
}

// TestIdentify_RemembersNoError: what nobody answered is asked about again.
func TestIdentify_RemembersNoError(t *testing.T) {
	server := accesstest.Start(t, "a", "alice", nil)
	kubernetes := server.Kubernetes(t, clocktesting.NewFakePassiveClock(time.Now()))
	healthy := server.Config.Handler
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })
	if _, err := kubernetes.Identify(t.Context(), from("a")); err == nil || errors.Is(err, access.ErrUnauthorized) {
		t.Errorf("a server that fails: %v", err)
	}
	server.Config.Handler = healthy
	if caller, err := kubernetes.Identify(t.Context(), from("a")); err != nil || caller.Method() != access.MethodToken {
		t.Errorf("one that is well: %v", err)
	}
}

// TestIdentify_SaysWhyATokenIsRefused, by a look at what it says of itself.
func TestIdentify_SaysWhyATokenIsRefused(t *testing.T) {
	server := accesstest.Start(t, "a", "alice", nil)
	now := time.Unix(1_800_000_000, 0)
	kubernetes := server.Kubernetes(t, clocktesting.NewFakePassiveClock(now))
	ours := []string{"https://kubernetes"}
	for name, c := range map[string]struct {
		request *http.Request
		want    error
	}{
		"no token":             {&http.Request{}, access.ErrNoToken},
		"no bearer":            {&http.Request{Header: http.Header{"Authorization": {"Basic a"}}}, access.ErrBadToken},
		"garbage":              {from("garbage"), access.ErrUnknownToken},
		"garbage in parts":     {from("a.b.c"), access.ErrUnknownToken},
		"expired":              {from(accesstest.JWT(map[string]any{"iss": "https://kubernetes", "aud": ours, "exp": now.Unix()})), access.ErrExpired},
		"expired, by another":  {from(accesstest.JWT(map[string]any{"iss": "https://other", "exp": now.Unix() - 1})), access.ErrExpired},
		"in time":              {from(accesstest.JWT(map[string]any{"iss": "https://kubernetes", "aud": ours, "exp": now.Unix() + 1})), access.ErrUnknownToken},
		"for another audience": {from(accesstest.JWT(map[string]any{"iss": "https://kubernetes", "aud": "vault", "exp": now.Unix() + 1})), access.ErrAudience},
		"for none":             {from(accesstest.JWT(map[string]any{"iss": "https://kubernetes"})), access.ErrAudience},
		"for several":          {from(accesstest.JWT(map[string]any{"iss": "https://kubernetes", "aud": []string{"vault", "https://kubernetes"}})), access.ErrUnknownToken},
		"of another issuer":    {from(accesstest.JWT(map[string]any{"iss": "https://other", "aud": "vault"})), access.ErrUnknownToken},
		"of odd claims":        {from(accesstest.JWT(map[string]any{"iss": 1, "aud": map[string]int{}, "exp": "x"})), access.ErrUnknownToken},
	} {
		if _, err := kubernetes.Identify(t.Context(), c.request); err != c.want || !errors.Is(err, access.ErrUnauthorized) { //nolint:errorlint // it is one of them
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestCallerOf_AsksNobodyWhereTheTokenGoesAlong(t *testing.T) {
	server := accesstest.Start(t, "a", "alice", nil)
	kubernetes := server.Kubernetes(t, clocktesting.NewFakePassiveClock(time.Now()))
	one, err := kubernetes.CallerOf(t.Context(), from("a"))
	if err != nil || server.Reviews() > 0 || one.User().Username != "" {
		t.Fatalf("%v after %d reviews, %v", one.User(), server.Reviews(), err)
	}
	if other, err := kubernetes.CallerOf(t.Context(), from("b")); err != nil || other.Key() == one.Key() {
		t.Errorf("another token: %v, or the same key", err)
	}
	known, err := kubernetes.Identify(t.Context(), from("a"))
	if err != nil || known.Key() != one.Key() {
		t.Errorf("the same caller, identified: %v, or another key", err)
	}
	if _, err := kubernetes.CallerOf(t.Context(), &http.Request{}); !errors.Is(err, access.ErrNoToken) {
		t.Errorf("without a token: %v", err)
	}
}

func TestCaller_IsInNoText(t *testing.T) {
	server := accesstest.Start(t, secret, "alice-canary", nil)
	caller, err := server.Kubernetes(t, clocktesting.NewFakePassiveClock(time.Now())).Identify(t.Context(), from(secret))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{fmt.Sprintf("%v %+v %#v %s", caller, caller, caller, caller), fmt.Sprintf("%v %+v", *caller, *caller), caller.Key(), caller.LogValue().String()} {
		if text == "" || containsAny(text, "canary", secret) {
			t.Errorf("a caller is in %s", text)
		}
	}
}
