package access_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/heliostat-dev/heliostat/portal/access"
	"github.com/heliostat-dev/heliostat/portal/access/accesstest"
	"github.com/heliostat-dev/heliostat/portal/limits"
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

// TestHolder_IsOfTheUser: anybody has as many tokens as they like, and who may create service accounts as many of those.
func TestHolder_IsOfTheUser(t *testing.T) {
	server := accesstest.Start(t, "a", "alice", nil)
	server.Know("b", "alice")
	server.Know("c", "system:serviceaccount:team-a:one")
	server.Know("d", "system:serviceaccount:team-a:two")
	kubernetes := server.Kubernetes(t, clocktesting.NewFakePassiveClock(time.Now()))
	holders, keys := map[string]limits.Holder{}, map[string]bool{}
	for _, token := range []string{"a", "b", "c", "d"} {
		_, err := kubernetes.Identify(t.Context(), from(token)) // which waits longer
		caller, also := kubernetes.CallerOf(t.Context(), from(token))
		if err = errors.Join(err, also); err != nil {
			t.Fatal(err)
		}
		holders[token], keys[caller.Key()] = caller.Holder(), true
	}
	if holders["a"] != holders["b"] || holders["a"].User == "" || holders["a"].Namespace != "" || len(keys) != 4 {
		t.Errorf("two tokens of alice are %+v, with %d keys", holders, len(keys))
	}
	if one, two := holders["c"], holders["d"]; one.User == two.User || one.Namespace != "team-a" || two.Namespace != "team-a" {
		t.Errorf("two service accounts are %+v and %+v", one, two)
	}
	if _, err := kubernetes.CallerOf(t.Context(), &http.Request{}); !errors.Is(err, access.ErrNoToken) {
		t.Errorf("without a token: %v", err)
	}
	for _, token := range []string{"a token of nobody", "a token while nobody answers"} {
		caller, err := kubernetes.CallerOf(t.Context(), from(strings.ReplaceAll(token, " ", "-")))
		if err != nil || caller.Holder() != (limits.Holder{}) {
			t.Errorf("%s: %v, %+v", token, err, caller)
		}
		server.Break(true)
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
