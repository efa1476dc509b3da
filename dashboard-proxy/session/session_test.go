package session

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// noon is when tests begin.
var noon = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

// signedIn is a session that can be renewed, with an hour's token.
func signedIn() Session {
	return Session{
		Kind: KindOIDC, Token: "the-token", Since: noon, TokenEnd: noon.Add(time.Hour), End: noon.Add(MaxLife),
		Refresh: "the-refresh-token", Subject: "ana",
	}
}

// with returns a session of signedIn with something else.
func with(change func(*Session)) Session {
	s := signedIn()
	change(&s)
	return s
}

func TestSession_EndsWithItsTokenOrItsBound(t *testing.T) {
	for name, row := range map[string]struct {
		of             Session
		until, expires time.Duration
	}{
		"a token that is renewed ends, and the session goes on": {signedIn(), time.Hour, MaxLife},
		"a token that is not renewed ends both": {
			with(func(s *Session) { s.Refresh = "" }), time.Hour, time.Hour},
		"a token without an end ends with the session": {
			with(func(s *Session) { s.Refresh, s.TokenEnd = "", time.Time{} }), MaxLife, MaxLife},
		"a token for longer ends with the session": {
			with(func(s *Session) { s.Refresh, s.TokenEnd = "", noon.Add(9*time.Hour) }), MaxLife, MaxLife},
	} {
		if got := row.of.Until().Sub(noon); got != row.until {
			t.Errorf("%s: requests end after %v, want %v", name, got, row.until)
		}
		if got := row.of.Expires().Sub(noon); got != row.expires {
			t.Errorf("%s: the user signs in after %v, want %v", name, got, row.expires)
		}
	}
}

func TestSession_IsRenewedShortlyBeforeItsEnd(t *testing.T) {
	short := with(func(s *Session) { s.TokenEnd = noon.Add(3 * time.Minute) })
	for name, row := range map[string]struct {
		of     Session
		before time.Duration // the end of the token
		want   bool
	}{
		"an hour's, before the last five minutes":     {signedIn(), 5*time.Minute + time.Second, false},
		"an hour's, in the last five minutes":         {signedIn(), 5 * time.Minute, true},
		"an hour's, after its end":                    {signedIn(), -time.Minute, true},
		"three minutes', before the last one":         {short, time.Minute + time.Second, false},
		"three minutes', in the last one":             {short, time.Minute, true},
		"one that the issuer does not renew":          {with(func(s *Session) { s.Refresh = "" }), 0, false},
		"one of which nobody says when it ends, ever": {with(func(s *Session) { s.TokenEnd = time.Time{} }), 0, false},
	} {
		end := row.of.TokenEnd
		if end.IsZero() {
			end = noon.Add(time.Hour)
		}
		if got := row.of.NeedsRenewal(end.Add(-row.before)); got != row.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestSession_IsReadAsItWasWritten(t *testing.T) {
	for _, one := range []Session{signedIn(), {Kind: KindToken, Token: "t", Since: noon, End: noon.Add(time.Hour)}} {
		text, err := one.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		var read Session
		if err := read.UnmarshalJSON(text); err != nil {
			t.Fatal(err)
		}
		same := cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })
		if diff := cmp.Diff(one, read, same); diff != "" {
			t.Errorf("%s is read with the difference %s", text, diff)
		}
	}
}

func TestSession_ShowsNoToken(t *testing.T) {
	one, log := signedIn(), &strings.Builder{}
	slog.New(slog.NewTextHandler(log, nil)).Info("Signed in", "session", one)
	printed := fmt.Sprintf("%+v %#v %s %q %x", one, one, one, one, one)
	for _, text := range []string{fmt.Sprint(one), printed, log.String()} {
		if strings.Contains(text, "the-") || !strings.Contains(text, "[a session]") {
			t.Errorf("it is printed as %s", text)
		}
	}
}
