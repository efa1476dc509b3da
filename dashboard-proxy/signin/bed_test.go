package signin

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"

	"github.com/heliostat-dev/heliostat/dashboard-proxy/session"
	"github.com/heliostat-dev/heliostat/portal/access"
	"github.com/heliostat-dev/heliostat/portal/access/accesstest"
)

// noon is when tests begin.
var noon = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

const (
	onPage   = "https://page.example.com"
	onRay    = "https://ray.example.com"
	onDemo   = "https://demo--a.ray.example.com:8444"
	onVictim = "https://victim--b.ray.example.com:8444"
	account  = "system:serviceaccount:team-a:robot"
)

// bed is the sign-in of a server that impersonates the users of an issuer, and service accounts.
type bed struct {
	issuer     *accesstest.Issuer
	upstream   *accesstest.Server
	clock      *testingclock.FakePassiveClock
	needs      Needs
	page       *Page
	dashboards *Dashboards
	log        *strings.Builder
	// claims are those of the issuer's tokens, and life is how long these live.
	claims map[string]any
	life   time.Duration
}

func newBed(t testing.TB) *bed {
	t.Helper()
	b := &bed{
		issuer: accesstest.StartIssuer(t), clock: testingclock.NewFakePassiveClock(noon), log: &strings.Builder{},
		claims: map[string]any{"sub": "ana"}, life: time.Hour,
	}
	b.upstream = accesstest.Start(t, "unused", "nobody", func(http.ResponseWriter, *http.Request) {})
	dir, prefix := t.TempDir(), "sso:"
	for name, text := range map[string]string{"keys": strings.Repeat("k", 32), "secret": "the-client-secret\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	log := slog.New(slog.NewTextHandler(b.log, nil))
	keys, err := session.ReadKeys(filepath.Join(dir, "keys"), b.clock, log)
	if err != nil {
		t.Fatal(err)
	}
	options := b.upstream.Options(b.clock)
	options.Identity = access.Identity{Mode: access.Impersonate, Audience: accesstest.Audience, Issuers: []access.Issuer{{
		URL: b.issuer.URL, Audience: "portal", UsernameClaim: "sub", Prefix: &prefix,
		CertificateAuthority: b.issuer.Authority()}}}
	kubernetes, err := access.New(options)
	if err != nil {
		t.Fatal(err)
	}
	b.needs = Needs{
		Origins: origins(t), Identity: options.Identity, Keys: keys, Access: kubernetes, Clock: b.clock, Log: log,
		Config: Config{OIDC: &OIDC{Name: "Sunrise", Issuer: b.issuer.URL, ClientID: "portal", Scopes: []string{"openid"},
			ClientSecretFile: filepath.Join(dir, "secret"), CertificateAuthority: b.issuer.Authority()}},
	}
	b.register(accesstest.Client{})
	b.start(t)
	return b
}

// start starts what a replica is.
func (b *bed) start(t testing.TB) {
	t.Helper()
	var err error
	if b.page, b.dashboards, err = New(b.needs); err != nil {
		t.Fatal(err)
	}
}

// register makes the server known to the issuer.
func (b *bed) register(c accesstest.Client) {
	c.ID, c.Secret, c.ReturnTo = "portal", "the-client-secret", onPage+finishPath
	c.Claims = func() map[string]any {
		claims := map[string]any{"exp": b.clock.Now().Add(b.life).Unix()}
		for name, value := range b.claims {
			claims[name] = value
		}
		return claims
	}
	b.issuer.Register(c)
}

// robot returns a token of a service account, for an hour.
func (b *bed) robot() string {
	token := accesstest.JWT(map[string]any{"aud": accesstest.Audience, "exp": b.clock.Now().Add(time.Hour).Unix()})
	b.upstream.Review(token, account)
	return token
}

// browser keeps cookies as one does: by host, whatever the port, and strict ones for its own sites' requests alone.
type browser struct {
	b     *bed
	hosts map[string]map[string]*http.Cookie
}

func (b *bed) browser() *browser { return &browser{b: b, hosts: map[string]map[string]*http.Cookie{}} }

// ask is a request of a browser.
type ask struct {
	method, to, body string
	// site is what the browser says of where the request comes from. Strict cookies are left out from another one.
	site, mode, dest string
	header           http.Header
}

// open is a navigation.
func open(to, site string) ask {
	return ask{method: "GET", to: to, site: site, mode: "navigate", dest: "document"}
}

// fetch is a request of a script on the same origin.
func fetch(method, to, body string) ask {
	return ask{method: method, to: to, body: body, site: "same-origin", mode: "cors", dest: "empty"}
}

// answer is what a browser gets.
type answer struct {
	code   int
	header http.Header
	text   string
}

// cookies are those that an answer sets.
func cookies(header http.Header) []*http.Cookie { return (&http.Response{Header: header}).Cookies() }

// send sends a request to its origin.
func (w *browser) send(t testing.TB, of ask) answer {
	t.Helper()
	r := httptest.NewRequest(of.method, of.to, strings.NewReader(of.body))
	for name, values := range of.header {
		r.Header[name] = values
	}
	for name, value := range map[string]string{"Sec-Fetch-Site": of.site, "Sec-Fetch-Mode": of.mode,
		"Sec-Fetch-Dest": of.dest} {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	host := r.URL.Hostname()
	for _, one := range w.hosts[host] {
		isSent := of.site != "cross-site" || one.SameSite == http.SameSiteNoneMode ||
			one.SameSite == http.SameSiteLaxMode && of.mode == "navigate" && of.method == "GET"
		if isSent {
			r.AddCookie(&http.Cookie{Name: one.Name, Value: one.Value})
		}
	}
	out := httptest.NewRecorder()
	w.b.serve(out, r)
	for _, one := range cookies(out.Header()) {
		if w.hosts[host] == nil {
			w.hosts[host] = map[string]*http.Cookie{}
		}
		w.hosts[host][one.Name] = one
		if one.MaxAge < 0 {
			delete(w.hosts[host], one.Name)
		}
	}
	return answer{out.Code, out.Header(), out.Body.String()}
}

// serve answers as the server does: with what it is asked for, the token of who asks in X-Token.
func (b *bed) serve(w http.ResponseWriter, r *http.Request) {
	isPage := b.needs.Origins.isPage(r.Host)
	switch {
	case isPage && Owns(r.URL.Path):
		if err := b.page.Serve(w, r); err != nil {
			refuseAsTest(w, err)
		}
	case !isPage && strings.HasPrefix(r.URL.Path, "/-/"):
		b.dashboards.ServeHTTP(w, r)
	case isPage:
		opened, err := b.page.Open(w, r)
		if err != nil {
			refuseAsTest(w, err)
			return
		}
		sayToken(w, opened)
	default:
		if opened, handled := b.dashboards.Open(w, r); !handled {
			sayToken(w, opened)
		}
	}
}

func refuseAsTest(w http.ResponseWriter, err error) {
	code := http.StatusInternalServerError
	if refused, is := err.(*Refusal); is { //nolint:errorlint // it is returned as it is
		code = refused.Code
	}
	http.Error(w, err.Error(), code)
}

func sayToken(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Token", strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	w.Header().Set("X-Cookie", r.Header.Get("Cookie"))
}

// follow goes on as a browser does, by redirects and our own pages, until something else comes. It returns that, and
// the addresses on the way.
func (w *browser) follow(t testing.TB, of ask) (answer, []string) {
	t.Helper()
	var way []string
	for range 20 {
		way = append(way, of.method+" "+of.to)
		got := w.send(t, of)
		next, is := next(t, of, got)
		if !is {
			return got, way
		}
		of = next
	}
	t.Fatalf("the browser goes round: %q", way)
	return answer{}, nil
}

var (
	nextLink = regexp.MustCompile(`<a href="([^"]*)" data-next>`)
	nextForm = regexp.MustCompile(`<form method="post" action="([^"]*)" data-next>`)
	field    = regexp.MustCompile(`name="(\w+)" value="([^"]*)"`)
)

// next returns what a browser asks for after an answer.
func next(t testing.TB, of ask, got answer) (ask, bool) {
	t.Helper()
	from, err := url.Parse(of.to)
	if err != nil {
		t.Fatal(err)
	}
	if to := got.header.Get("Location"); to != "" {
		there := resolve(t, from, to)
		of.method, of.to, of.body = "GET", there.String(), ""
		if of.site != "cross-site" { // once a way has left its site it stays so
			of.site = siteOf(from, there)
		}
		return of, true
	}
	if found := nextLink.FindStringSubmatch(got.text); found != nil {
		there := resolve(t, from, found[1])
		return open(there.String(), siteOf(from, there)), true
	}
	if found := nextForm.FindStringSubmatch(got.text); found != nil {
		there, form := resolve(t, from, found[1]), url.Values{}
		for _, one := range field.FindAllStringSubmatch(got.text, -1) {
			form.Set(one[1], unescape(one[2]))
		}
		sent := open(there.String(), siteOf(from, there))
		sent.method, sent.body, sent.header = "POST", form.Encode(),
			http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
		return sent, true
	}
	return ask{}, false
}

func resolve(t testing.TB, from *url.URL, to string) *url.URL {
	t.Helper()
	there, err := from.Parse(unescape(to))
	if err != nil {
		t.Fatal(err)
	}
	return there
}

func unescape(text string) string {
	return strings.NewReplacer("&amp;", "&", "&#43;", "+").Replace(text)
}

// siteOf takes each host for a site of its own, which is the harder case.
func siteOf(from, to *url.URL) string {
	if from.Hostname() == to.Hostname() {
		return "same-origin"
	}
	return "cross-site"
}

// signInByToken has a browser sign in with a token of a service account.
func (w *browser) signInByToken(t testing.TB) string {
	t.Helper()
	token := w.b.robot()
	if got := w.send(t, fetch("POST", onPage+"/session", `{"token":"`+token+`"}`)); got.code != http.StatusNoContent {
		t.Fatalf("a good token: %d", got.code)
	}
	return token
}

// signIn has a browser sign in at the issuer, and returns what it opens then.
func (w *browser) signIn(t testing.TB, to string) (answer, []string) {
	t.Helper()
	begun := w.send(t, open(onPage+beginPath+"?"+url.Values{"to": {to}}.Encode(), "same-origin"))
	if begun.code != http.StatusSeeOther {
		t.Fatalf("to begin is answered %d", begun.code)
	}
	return w.follow(t, open(w.b.issuer.Approve(t, begun.header.Get("Location")), "cross-site"))
}
