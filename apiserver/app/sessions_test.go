package app

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/portal/access"
	"github.com/heliostat-dev/heliostat/portal/access/accesstest"
)

// signInOf returns how users sign in at some origins, by tokens alone.
func signInOf(t *testing.T, page, dashboards, wildcard string) *SignIn {
	t.Helper()
	keys := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(keys, []byte(strings.Repeat("k", 32)), 0o600); err != nil {
		t.Fatal(err)
	}
	made, err := ReadSignIn(SignInFiles{Page: page, Dashboards: dashboards, Wildcard: wildcard, Keys: keys}, passThrough)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// newPageBed is a server at which users sign in, with a token that it accepts.
func newPageBed(t *testing.T, identity access.Identity, token string, rest http.HandlerFunc) *bed {
	t.Helper()
	b := &bed{upstream: accesstest.Start(t, token, "alice", rest), registry: newRegistry(), log: &lines{}}
	log := slog.New(slog.NewJSONHandler(b.log, nil))
	options := b.upstream.Options(clock.RealClock{})
	options.Identity = identity
	var err error
	if options.Scheme, err = newScheme(); err != nil {
		t.Fatal(err)
	}
	kubernetes, err := access.New(options)
	if err != nil {
		t.Fatal(err)
	}
	b.server = httptest.NewUnstartedServer(nil)
	ctx, end := context.WithCancel(t.Context())
	cfg := Config{Log: log, Clock: clock.RealClock{}, Identity: identity, SignIn: signInOf(t,
		"https://"+b.server.Listener.Addr().String(), "", "")}
	front, portal, err := newFront(ctx, cfg, kubernetes, b.registry)
	if err != nil {
		t.Fatal(err)
	}
	ran := make(chan error, 1)
	go func() { ran <- portal.run(ctx) }()
	for end := time.Now().Add(30 * time.Second); !portal.view.IsSynced(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("no objects")
		}
	}
	settings := &tls.Config{}
	kubernetes.ConfigureTLS(settings)
	b.server.TLS, b.server.Config, b.server.EnableHTTP2 = settings, newServer(front, nil, log, cfg.Clock), true
	b.server.StartTLS()
	t.Cleanup(func() {
		end()
		b.server.Close()
		if err := <-ran; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	return b
}

// said is an answer.
type said struct {
	code   int
	header http.Header
	text   string
}

// fetch sends a request as a script of the page does.
func (b *bed) fetch(t *testing.T, method, path, body string, headers ...string) said {
	t.Helper()
	got, err := b.try(t.Context(), method+" "+path, body, headers...)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// try does as fetch, and returns how much of an answer came before it was broken off.
func (b *bed) try(ctx context.Context, what, body string, headers ...string) (said, error) {
	method, path, _ := strings.Cut(what, " ")
	request, err := http.NewRequestWithContext(ctx, method, b.server.URL+path, strings.NewReader(body))
	if err != nil {
		return said{}, err
	}
	request.Header.Set("Sec-Fetch-Site", "same-origin")
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	answer, err := b.client(2).Do(request)
	if err != nil {
		return said{}, err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	return said{answer.StatusCode, answer.Header, string(text)}, err
}

// passed are the requests of callers that the API server got.
func (b *bed) passed() []accesstest.Seen {
	return slices.DeleteFunc(b.upstream.Seen(), func(one accesstest.Seen) bool {
		return one.Header.Get("Authorization") == "Bearer "+accesstest.Account()
	})
}

// signIn returns the cookies of a user who pastes a token.
func (b *bed) signIn(t *testing.T, token string) string {
	t.Helper()
	answer := b.fetch(t, "POST", "/session", `{"token":"`+token+`"}`)
	if answer.code != http.StatusNoContent {
		t.Fatalf("signing in is answered %d, %s", answer.code, answer.text)
	}
	var all []string
	for _, one := range (&http.Response{Header: answer.header}).Cookies() {
		all = append(all, one.Name+"="+one.Value)
	}
	return strings.Join(all, "; ")
}

var passThrough = access.Identity{Mode: access.PassThrough}

// TestFront_TakesASessionForAToken on Kubernetes' own paths and below /v1, and the API server gets no cookie.
func TestFront_TakesASessionForAToken(t *testing.T) {
	b := newPageBed(t, passThrough, "alice-token", fine)
	cookie := b.signIn(t, "alice-token")
	for path, want := range map[string]string{at: "{}", "/v1/me": `"name":"alice"`, "/session": `"user":"alice"`} {
		if answer := b.fetch(t, "GET", path, "", "Cookie", cookie); answer.code != 200 || !strings.Contains(answer.text,
			want) {
			t.Errorf("%s is answered %d, %s", path, answer.code, answer.text)
		}
	}
	if answer := b.fetch(t, "DELETE", at+"/c", "", "Cookie", cookie); answer.code != 200 ||
		!strings.Contains(b.log.String(), `"user":"alice"`) {
		t.Errorf("a write is answered %d, with the log %s", answer.code, b.log)
	}
	passed := b.passed()
	for _, one := range passed {
		if one.Header.Get("Authorization") != "Bearer alice-token" || one.Header["Cookie"] != nil {
			t.Errorf("the API server gets %v", one.Header)
		}
	}
	if len(passed) != 2 {
		t.Errorf("the API server gets %d requests", len(passed))
	}
	if strings.Contains(b.log.String(), "alice-token") || strings.Contains(b.log.String(), "heliostat-page") {
		t.Errorf("the log has a credential: %s", b.log)
	}
}

// TestFront_RefusesASessionOfAnotherSite in the form of the half that is asked.
func TestFront_RefusesASessionOfAnotherSite(t *testing.T) {
	b := newPageBed(t, passThrough, "alice-token", fine)
	cookie := b.signIn(t, "alice-token")
	for path, want := range map[string]string{at: `"kind":"Status"`, "/v1/me": `"title":"Forbidden"`,
		"/session": `"title":"Forbidden"`} {
		answer := b.fetch(t, "GET", path, "", "Cookie", cookie, "Sec-Fetch-Site", "same-site")
		if answer.code != http.StatusForbidden || !strings.Contains(answer.text, want) || !strings.Contains(answer.text,
			"another site") {
			t.Errorf("%s is answered %d, %s", path, answer.code, answer.text)
		}
	}
	if answer := b.fetch(t, "GET", "/ui/", "", "Cookie", cookie, "Sec-Fetch-Site", "same-site"); answer.code == http.StatusForbidden {
		t.Errorf("a file of the page, which needs no session: %s", answer.text)
	}
	if answer := b.fetch(t, "GET", at, "", "Cookie", "__Host-heliostat-page=1.x"); answer.code != http.StatusUnauthorized {
		t.Errorf("a cookie that is none of ours: %d", answer.code)
	}
	if passed := b.passed(); len(passed) > 0 {
		t.Errorf("the API server got %v", passed)
	}
	answer := b.fetch(t, "PUT", "/session", "")
	var problem struct{ RequestID string }
	if err := json.Unmarshal([]byte(answer.text), &problem); err != nil || answer.code != http.StatusMethodNotAllowed ||
		problem.RequestID != answer.header.Get("X-Request-Id") {
		t.Errorf("a method that is none: %d, %s", answer.code, answer.text)
	}
}

// TestFront_EndsStreamsWithTheirSession: when the session is over, so is what it opened.
func TestFront_EndsStreamsWithTheirSession(t *testing.T) {
	token := accesstest.JWT(map[string]any{"exp": time.Now().Add(5 * time.Second).Unix()})
	b := newPageBed(t, passThrough, token, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	cookie := b.signIn(t, token)
	ended := make(chan said)
	paths := []string{at + "?watch=true", "/v1/objects/watch"}
	for _, path := range paths {
		go func() {
			got, _ := b.try(t.Context(), "GET "+path, "", "Cookie", cookie) // it may be broken off
			ended <- got
		}()
	}
	for range paths {
		if answer := <-ended; answer.code != http.StatusOK {
			t.Errorf("a stream is answered %d, %s", answer.code, answer.text)
		}
	}
	if answer := b.fetch(t, "GET", at, "", "Cookie", cookie); answer.code != http.StatusUnauthorized {
		t.Errorf("then the session is answered %d", answer.code)
	}
}

// TestFront_BoundsHeadersBesideTheSession, whose cookies may be long.
func TestFront_BoundsHeadersBesideTheSession(t *testing.T) {
	token := accesstest.JWT(map[string]any{"x": strings.Repeat("x", 11<<10)})
	b := newPageBed(t, passThrough, token, fine)
	cookie := b.signIn(t, token)
	for path, more := range map[string]int{"/session": 20 << 10, at: 12 << 10} {
		if answer := b.fetch(t, "GET", path, "", "Cookie", cookie, "X", strings.Repeat("x", more)); answer.code != 200 {
			t.Errorf("%s is answered %d, %s", path, answer.code, answer.text)
		}
	}
	if answer := b.fetch(t, "GET", "/session", "", "Cookie", cookie, "X", strings.Repeat("x",
		MaxHeader)); answer.code != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("headers beside the session are answered %d", answer.code)
	}
}

// TestFront_RefusesWritesThatAnotherSiteMade a front proxy's user send: the proxy's own cookie signs them in.
func TestFront_RefusesWritesThatAnotherSiteMade(t *testing.T) {
	proxy, certificate := accesstest.NewFrontProxy(t)
	b := newPageBed(t, access.Identity{Mode: access.Impersonate, FrontProxy: proxy}, "unused", fine)
	b.server.Client().Transport.(*http.Transport).TLSClientConfig.Certificates = []tls.Certificate{certificate}
	for site, want := range map[string]int{"same-origin": 200, "": 200, "cross-site": 403, "same-site": 403} {
		answer := b.fetch(t, "POST", at, "{}", "X-Remote-User", "ana", "Sec-Fetch-Site", site)
		if answer.code != want {
			t.Errorf("a write of %q is answered %d, %s", site, answer.code, answer.text)
		}
	}
	if answer := b.fetch(t, "GET", at, "", "X-Remote-User", "ana", "Sec-Fetch-Site", "cross-site"); answer.code != 200 {
		t.Errorf("a link to what can only be read: %d", answer.code)
	}
}
