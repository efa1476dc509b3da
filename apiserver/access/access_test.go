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

	authorizationv1 "k8s.io/api/authorization/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/heliostat-dev/heliostat/apiserver/access"
	"github.com/heliostat-dev/heliostat/apiserver/access/accesstest"
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

func TestName_IsRememberedForAShortWhile(t *testing.T) {
	server := accesstest.Start(t, "a", "alice", nil)
	now := clocktesting.NewFakePassiveClock(time.Now())
	kubernetes := server.Kubernetes(t, now)
	ask := func(text, want string, reviews int) {
		t.Helper()
		name, err := kubernetes.Name(t.Context(), token(t, text))
		if name != want || (want == "") != errors.Is(err, access.ErrUnauthorized) || server.Reviews() != reviews {
			t.Errorf("%s is %q, %v after %d reviews, want %q after %d", text, name, err, server.Reviews(), want, reviews)
		}
	}
	ask("a", "alice", 1)
	now.SetTime(now.Now().Add(9 * time.Second))
	ask("a", "alice", 1)
	ask("b", "", 2)
	ask("b", "", 3) // a refusal is not remembered
	for _, one := range server.All() {
		if one.Header.Get("User-Agent") != "heliostat-server" {
			t.Errorf("the API server was asked by %v", one.Header)
		}
	}
	server.Withdraw("a")
	now.SetTime(now.Now().Add(time.Second))
	ask("a", "", 4)
}

func TestMay_IsTheAnswerOfTheAPIServer(t *testing.T) {
	server := accesstest.Start(t, "a", "alice", nil)
	kubernetes := server.Kubernetes(t, clocktesting.NewFakePassiveClock(time.Now()))
	may := func(text string) error {
		return kubernetes.May(t.Context(), token(t, text), authorizationv1.ResourceAttributes{Verb: "watch", Resource: "computeclusters"})
	}
	if err := may("a"); err != nil {
		t.Error(err)
	}
	if err := may("b"); !errors.Is(err, access.ErrUnauthorized) {
		t.Errorf("an unknown token: %v", err)
	}
	server.Deny("a")
	if err := may("a"); !errors.Is(err, access.ErrForbidden) {
		t.Errorf("no right: %v", err)
	}
	server.Break(true)
	if err := may("a"); err == nil || errors.Is(err, access.ErrForbidden) || errors.Is(err, access.ErrUnauthorized) {
		t.Errorf("a server that fails: %v", err)
	}
}

// TestClients_FollowNoRedirect: the server that it leads to would get the token.
func TestClients_FollowNoRedirect(t *testing.T) {
	thief := accesstest.Start(t, "a", "thief", nil)
	server := accesstest.Start(t, "none", "nobody", nil)
	server.Config.Handler = http.RedirectHandler(thief.URL+"/", http.StatusTemporaryRedirect)
	if name, err := server.Kubernetes(t, clocktesting.NewFakePassiveClock(time.Now())).Name(t.Context(), token(t, "a")); err == nil || thief.Reviews()+len(thief.Seen()) > 0 {
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
	kubernetes, err := access.New(server.URL, other, clocktesting.NewFakePassiveClock(time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	write([]byte("not yet"))
	if _, err := kubernetes.Name(t.Context(), token(t, "a")); !errors.Is(err, access.ErrUnreached) {
		t.Errorf("without an authority: %v", err)
	}
	write(right)
	if name, err := kubernetes.Name(t.Context(), token(t, "a")); name != "alice" {
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
		kubernetes, err := access.New("https://"+at, server.CAFile, clocktesting.NewFakePassiveClock(time.Now()))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := kubernetes.Name(t.Context(), token(t, "a")); !errors.Is(err, access.ErrUnreached) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNew_RefusesBadAddresses(t *testing.T) {
	server := accesstest.Start(t, "a", "alice", nil)
	for _, bad := range []string{"", "http://a", "a:443", "https://", "https://u:p@a", "https://a/path", "https://a?q", "://"} {
		if _, err := access.New(bad, server.CAFile, clocktesting.NewFakePassiveClock(time.Now())); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	if _, err := access.New(server.URL, server.CAFile+"x", nil); err == nil {
		t.Error("a file that is not there is taken")
	}
}
