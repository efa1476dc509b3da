package access_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/heliostat-dev/heliostat/portal/access"
	"github.com/heliostat-dev/heliostat/portal/access/accesstest"
)

const secret = "eyJhbGciOi.canary-token_1~2+3/4=="

func token(t *testing.T, text string) access.Token {
	t.Helper()
	parsed, err := access.ParseToken(http.Header{"Authorization": {"Bearer " + text}})
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

func newKubernetes(t *testing.T, options access.Options) *access.Kubernetes {
	t.Helper()
	kubernetes, err := access.New(options)
	if err != nil {
		t.Fatal(err)
	}
	return kubernetes
}

// from returns a request with a token.
func from(text string) *http.Request {
	return &http.Request{Header: http.Header{"Authorization": {"Bearer " + text}}}
}

// nameOf returns the name of a token's owner.
func nameOf(t *testing.T, kubernetes *access.Kubernetes, text string) (string, error) {
	t.Helper()
	caller, err := kubernetes.CallerOf(t.Context(), from(text))
	if err != nil {
		t.Fatal(err)
	}
	return kubernetes.Name(t.Context(), caller)
}

func TestParseToken_TakesOneBearerTokenAlone(t *testing.T) {
	most := strings.Repeat("a", 24<<10)
	for name, c := range map[string]struct {
		values []string
		want   error
	}{
		"a token":                {[]string{"Bearer " + secret}, nil},
		"another case":           {[]string{"bEARER   x "}, nil},
		"the longest":            {[]string{"Bearer " + most}, nil},
		"one byte more":          {[]string{"Bearer " + most + "a"}, access.ErrBadToken},
		"none":                   {nil, access.ErrNoToken},
		"an empty header":        {[]string{""}, access.ErrBadToken},
		"a scheme alone":         {[]string{"Bearer"}, access.ErrBadToken},
		"nothing after a scheme": {[]string{"Bearer  "}, access.ErrBadToken},
		"padding alone":          {[]string{"Bearer =="}, access.ErrBadToken},
		"a bare token":           {[]string{secret}, access.ErrBadToken},
		"a password":             {[]string{"Basic YTpi"}, access.ErrBadToken},
		"two headers":            {[]string{"Bearer a", "Bearer a"}, access.ErrBadToken},
		"two in one":             {[]string{"Bearer a, Bearer b"}, access.ErrBadToken},
		"a line break":           {[]string{"Bearer a\r\nImpersonate-User: b"}, access.ErrBadToken},
		"not ASCII":              {[]string{"Bearer ä"}, access.ErrBadToken},
	} {
		header := http.Header{"Authorization": c.values}
		if _, err := access.ParseToken(header); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestToken_IsInNoText(t *testing.T) {
	one := token(t, secret)
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "token", one, "in", struct{ Token access.Token }{one})
	marshalled, err := json.Marshal(struct{ Token access.Token }{one})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		fmt.Sprintf("%v %+v %#v %s %q %x %d", one, one, one, one, one, one, one), fmt.Sprint(&one), log.String(), string(marshalled),
	} {
		if strings.Contains(text, "canary") || strings.Contains(text, fmt.Sprintf("%x", "canary")) {
			t.Errorf("a token is in %s", text)
		}
	}
	header := http.Header{"Authorization": {"Bearer other", "Bearer third"}}
	if one.Authorize(header); len(header["Authorization"]) != 1 || header.Get("Authorization") != "Bearer "+secret {
		t.Errorf("the header is %v", header)
	}
	if one.Key() != token(t, secret).Key() || one.Key() == token(t, "other").Key() {
		t.Error("keys are not those of tokens")
	}
}

// TestClients_FollowNoRedirect: the server that it leads to would get the token.
func TestClients_FollowNoRedirect(t *testing.T) {
	thief := accesstest.Start(t, "a", "thief", nil)
	server := accesstest.Start(t, "none", "nobody", nil)
	server.Config.Handler = http.RedirectHandler(thief.URL+"/", http.StatusTemporaryRedirect)
	if name, err := nameOf(t, server.Kubernetes(t, clocktesting.NewFakePassiveClock(time.Now())), "a"); err == nil || thief.Reviews()+len(thief.Seen()) > 0 {
		t.Errorf("the name is %q, %v, and %d requests were led away", name, err, thief.Reviews()+len(thief.Seen()))
	}
}

func TestTransport_ReadsTheAuthorityForEachConnection(t *testing.T) {
	server, other := accesstest.Start(t, "a", "alice", nil), filepath.Join(t.TempDir(), "ca.crt")
	right, err := os.ReadFile(server.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	write := func(text []byte) {
		if err := os.WriteFile(other, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(right)
	options := server.Options(clocktesting.NewFakePassiveClock(time.Now()))
	options.CAFile = other
	kubernetes := newKubernetes(t, options)
	write([]byte("not yet"))
	if _, err := nameOf(t, kubernetes, "a"); !errors.Is(err, access.ErrUnreached) {
		t.Errorf("without an authority: %v", err)
	}
	write(right)
	if name, err := nameOf(t, kubernetes, "a"); name != "alice" {
		t.Errorf("with it: %q, %v", name, err)
	}
}

func TestTransport_SaysThatNothingWasSent(t *testing.T) {
	server := accesstest.Start(t, "a", "alice", nil)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	for name, at := range map[string]string{"silent": silent.Addr().String(), "closed": closed.Addr().String()} {
		options := server.Options(clocktesting.NewFakePassiveClock(time.Now()))
		options.Address = "https://" + at
		kubernetes := newKubernetes(t, options)
		if _, err := nameOf(t, kubernetes, "a"); !errors.Is(err, access.ErrUnreached) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNew_RefusesWhatCannotServe(t *testing.T) {
	server := accesstest.Start(t, "a", "alice", nil)
	now := clocktesting.NewFakePassiveClock(time.Now())
	for _, bad := range []string{"", "http://a", "a:443", "https://", "https://u:p@a", "https://a/path", "https://a?q", "://"} {
		options := server.Options(now)
		options.Address = bad
		if _, err := access.New(options); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	for name, change := range map[string]func(*access.Options){
		"no authority": func(o *access.Options) { o.CAFile += "x" },
		"no account":   func(o *access.Options) { o.TokenFile += "x" },
	} {
		options := server.Options(now)
		if change(&options); newFails(options) == nil {
			t.Errorf("%s is fine", name)
		}
	}
}

func newFails(options access.Options) error {
	_, err := access.New(options)
	return err
}
