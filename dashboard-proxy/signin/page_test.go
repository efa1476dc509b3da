package signin

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heliostat-dev/heliostat/dashboard-proxy/session"
	"github.com/heliostat-dev/heliostat/portal/access"
	"github.com/heliostat-dev/heliostat/portal/access/accesstest"
)

// show returns what GET /session says to a browser.
func (w *browser) show(t testing.TB, query string) state {
	t.Helper()
	answer := w.send(t, fetch("GET", onPage+"/session"+query, ""))
	var said state
	if err := json.Unmarshal([]byte(answer.text), &said); err != nil || answer.code != http.StatusOK {
		t.Fatalf("GET /session is answered %d, %v", answer.code, err)
	}
	return said
}

func TestPage_SaysWhoIsSignedIn(t *testing.T) {
	b := newBed(t)
	b.needs.Links = []Link{{Name: "Logs", URLTemplate: "https://logs/${name}"}}
	b.start(t)
	w := b.browser()
	want := state{
		Ways: []way{{"OIDC", "Sunrise"}, {"Token", "Kubernetes token"}}, Links: b.needs.Links, To: "/ui/jobs/a/b",
	}
	if diff := cmp.Diff(want, w.show(t, "?to=/ui/jobs/a/b")); diff != "" {
		t.Errorf("nobody: %s", diff)
	}
	token := w.signInByToken(t)
	want.SignedIn, want.User, want.Method, want.Expires, want.To = true, account, "Token", "2026-11-01T13:00:00Z", home
	if diff := cmp.Diff(want, w.show(t, "?to=https://evil.com")); diff != "" {
		t.Errorf("signed in: %s", diff)
	}
	b.upstream.Withdraw(token)
	b.clock.SetTime(noon.Add(time.Minute))
	if said := w.show(t, ""); said.SignedIn || !strings.Contains(said.Why, "not one that is accepted") {
		t.Errorf("a token that is withdrawn: %+v", said)
	}
	if len(w.hosts["page.example.com"]) > 0 {
		t.Errorf("the browser still has %v", w.hosts)
	}
}

func TestPage_OffersWhatTheServerAccepts(t *testing.T) {
	b := newBed(t)
	b.needs.Config, b.needs.Identity = Config{}, access.Identity{Mode: access.Impersonate,
		FrontProxy: &access.FrontProxy{}}
	b.start(t)
	if diff := cmp.Diff([]way{{"FrontProxy", "Front proxy"}}, b.browser().show(t, "").Ways); diff != "" {
		t.Error(diff)
	}
	b.needs.Identity = access.Identity{Mode: access.PassThrough}
	b.start(t)
	if diff := cmp.Diff([]way{{"Token", "Kubernetes token"}}, b.browser().show(t, "").Ways); diff != "" {
		t.Error(diff)
	}
	if answer := b.browser().send(t, open(onPage+beginPath, "none")); answer.code != http.StatusNotFound {
		t.Errorf("an issuer that is none: %d", answer.code)
	}
}

func TestPage_ChecksAPastedTokenFirst(t *testing.T) {
	b := newBed(t)
	expired := accesstest.JWT(map[string]any{"aud": accesstest.Audience, "exp": noon.Add(-time.Hour).Unix()})
	long := accesstest.JWT(map[string]any{"aud": accesstest.Audience, "x": strings.Repeat("x", 14<<10)})
	b.upstream.Review(long, account)
	good := b.robot()
	body := func(token string) string { return `{"token":"` + token + `"}` }
	for name, row := range map[string]struct {
		ask  ask
		code int
		want string
	}{
		"nobody's": {fetch("POST", onPage+"/session", body(accesstest.JWT(map[string]any{"aud": "x"}))), 401,
			"another audience: get one"},
		"one that has expired":   {fetch("POST", onPage+"/session", body(expired)), 401, "has expired"},
		"no token":               {fetch("POST", onPage+"/session", body("Bearer x")), 401, "paste the token alone"},
		"nothing":                {fetch("POST", onPage+"/session", body("")), 401, "paste the token alone"},
		"one that is too long":   {fetch("POST", onPage+"/session", body(long)), 400, "fewer groups"},
		"no object":              {fetch("POST", onPage+"/session", "token=x"), 400, "no object"},
		"another object":         {fetch("POST", onPage+"/session", `{"password":"x"}`), 400, "no object"},
		"a body that has no end": {fetch("POST", onPage+"/session", body(strings.Repeat("x", maxBody))), 400, "no object"},
		"one of a sibling's page": {ask{"POST", onPage + "/session", body(good), "same-site", "cors", "empty", nil}, 403,
			"another site"},
		"one of another site": {ask{"POST", onPage + "/session", body(good), "cross-site", "no-cors", "empty", nil},
			403, "another site"},
		"one to another host": {fetch("POST", "https://other.example.com/session", body(good)), 421, "own address"},
	} {
		r := httptest.NewRequest(row.ask.method, row.ask.to, strings.NewReader(row.ask.body))
		r.Header.Set("Sec-Fetch-Site", row.ask.site)
		out := httptest.NewRecorder()
		err := b.page.Serve(out, r)
		refused, is := err.(*Refusal) //nolint:errorlint // it is returned as it is
		if !is || refused.Code != row.code || !strings.Contains(refused.Error(), row.want) || refused.Remedy == "" ||
			len(cookies(out.Header())) > 0 {
			t.Errorf("%s: %+v, with the cookies %v", name, err, cookies(out.Header()))
		}
	}
	if strings.Contains(b.log.String(), "Signed in") {
		t.Errorf("somebody is signed in: %s", b.log)
	}
}

func TestPage_SaysWhereNobodyCanBeAsked(t *testing.T) {
	b := newBed(t)
	b.upstream.Break(true)
	answer := b.browser().send(t, fetch("POST", onPage+"/session", `{"token":"`+b.robot()+`"}`))
	if answer.code != http.StatusServiceUnavailable || len(cookies(answer.header)) > 0 {
		t.Errorf("the API server is away: %d, %v", answer.code, cookies(answer.header))
	}
}

// TestPage_TurnsACookieIntoAToken where the browser says that the request comes from the page.
func TestPage_TurnsACookieIntoAToken(t *testing.T) {
	b := newBed(t)
	w := b.browser()
	token := w.signInByToken(t)
	api := onPage + "/v1/objects"
	for name, row := range map[string]struct {
		ask   ask
		code  int
		token string
	}{
		"a script of the page reads":       {fetch("GET", api, ""), 200, token},
		"a script of the page writes":      {fetch("POST", api, "{}"), 200, token},
		"a typed address":                  {open(api, "none"), 200, token},
		"an old browser's write":           {ask{"POST", api, "", "", "", "", http.Header{"Origin": {onPage}}}, 200, token},
		"an old browser's write elsewhere": {ask{"POST", api, "", "", "", "", http.Header{"Origin": {onRay}}}, 403, ""},
		"an old browser that says nothing": {ask{"GET", api, "", "", "", "", nil}, 403, ""},
		"a script of a dashboard reads":    {ask{"GET", api, "", "same-site", "no-cors", "empty", nil}, 403, ""},
		"a script of a dashboard writes":   {ask{"POST", api, "", "same-site", "cors", "empty", nil}, 403, ""},
		"an image of a dashboard":          {ask{"GET", api, "", "same-site", "no-cors", "image", nil}, 403, ""},
		"a frame of a dashboard":           {ask{"GET", api, "", "same-site", "navigate", "iframe", nil}, 403, ""},
		"a form of a dashboard":            {ask{"POST", api, "", "same-site", "navigate", "document", nil}, 403, ""},
		"another site, without the cookie": {ask{"POST", api, "", "cross-site", "cors", "empty", nil}, 200, ""},
		"a program with a token of its own": {
			ask{"POST", api, "", "", "", "", http.Header{"Authorization": {"Bearer other"}}}, 200, "other"},
	} {
		answer := w.send(t, row.ask)
		if got := answer.header.Get("X-Token"); answer.code != row.code || got != row.token {
			t.Errorf("%s: %d, with the token %q", name, answer.code, got)
		}
		if cookie := answer.header.Get("X-Cookie"); row.token == token && cookie != "" {
			t.Errorf("%s: the cookie goes on: %q", name, cookie)
		}
	}
	w.hosts["other.example.com"] = w.hosts["page.example.com"]
	r := httptest.NewRequest(http.MethodGet, "https://rebound.example.com/v1/objects", nil)
	for _, one := range w.hosts["page.example.com"] {
		r.AddCookie(one)
	}
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if _, err := b.page.Open(httptest.NewRecorder(), r); err == nil {
		t.Error("another Host has the session")
	}
	w.hosts["page.example.com"][pageCookie].Value += "x"
	if answer := w.send(t, fetch("GET", api, "")); answer.code != 200 || answer.header.Get("X-Token") != "" {
		t.Errorf("a broken cookie: %d", answer.code)
	}
}

// TestPage_EndsARequestWithItsSession: a stream must not outlive what it was opened with.
func TestPage_EndsARequestWithItsSession(t *testing.T) {
	b := newBed(t)
	r := httptest.NewRequest(http.MethodGet, onPage+"/v1/objects", nil)
	one := session.Session{Token: "t", End: noon.Add(30 * time.Millisecond)}
	ctx := b.page.authorize(r, one).Context()
	<-ctx.Done()
	if r.Context().Err() != nil {
		t.Error("the request itself ends")
	}
}

func TestPage_SignsOut(t *testing.T) {
	b := newBed(t)
	w := b.browser()
	w.signInByToken(t)
	if answer := w.send(t, ask{"DELETE", onPage + "/session", "", "same-site", "cors", "empty", nil}); answer.code != 403 {
		t.Errorf("a dashboard signs its visitor out: %d", answer.code)
	}
	if answer := w.send(t, fetch("DELETE", onPage+"/session", "")); answer.code != http.StatusNoContent || w.show(t,
		"").SignedIn {
		t.Errorf("signing out is answered %d", answer.code)
	}
	for _, one := range []ask{fetch("PUT", onPage+"/session", ""), fetch("GET", onPage+"/session/nothing", "")} {
		if answer := w.send(t, one); answer.code != 404 && answer.code != 405 {
			t.Errorf("%s %s: %d", one.method, one.to, answer.code)
		}
	}
}

// TestPage_KnowsUsersOfAFrontProxy, who need no session.
func TestPage_KnowsUsersOfAFrontProxy(t *testing.T) {
	b := newBed(t)
	proxy, certificate := accesstest.NewFrontProxy(t)
	proven := &tls.ConnectionState{PeerCertificates: []*x509.Certificate{certificate.Leaf}}
	options := b.upstream.Options(b.clock)
	options.Identity = access.Identity{Mode: access.Impersonate, FrontProxy: proxy}
	kubernetes, err := access.New(options)
	if err != nil {
		t.Fatal(err)
	}
	b.needs.Access, b.needs.Identity, b.needs.Config = kubernetes, options.Identity, Config{}
	b.start(t)
	asking := func(to string, state *tls.ConnectionState) *http.Request {
		r := httptest.NewRequest(http.MethodGet, to, nil)
		r.Header.Set("X-Remote-User", "ana")
		r.Header.Set("Sec-Fetch-Mode", "navigate")
		r.TLS = state
		return r
	}
	out := httptest.NewRecorder()
	if err := b.page.Serve(out, asking(onPage+"/session", proven)); err != nil || !strings.Contains(out.Body.String(),
		`"signedIn":true,"user":"ana","method":"FrontProxy"`) {
		t.Errorf("the proxy's user is %s, %v", out.Body, err)
	}
	if _, handled := b.dashboards.Open(httptest.NewRecorder(), asking(onRay+"/a/b/", proven)); handled {
		t.Error("the proxy's user is asked to sign in")
	}
	if _, handled := b.dashboards.Open(httptest.NewRecorder(), asking(onRay+"/a/b/", &tls.ConnectionState{})); !handled {
		t.Error("a header alone signs in")
	}
	out = httptest.NewRecorder()
	to := onPage + dashboardsPath + "?challenge=" + session.Challenge("v") + "&to=" + onRay + "/"
	if err := b.page.Serve(out, asking(to, proven)); err != nil || !strings.Contains(out.Body.String(),
		"behind the front proxy") {
		t.Errorf("dashboards beside the proxy: %s, %v", out.Body, err)
	}
}

// TestPages_AreOurs: each answer of ours is kept from caches, frames and scripts of others.
func TestPages_AreOurs(t *testing.T) {
	b := newBed(t)
	w := b.browser()
	w.signInByToken(t)
	for _, one := range []ask{
		fetch("GET", onPage+"/session", ""), fetch("GET", onPage+pageScript, ""), open(onPage+finishPath+"?state=x",
			"cross-site"),
		open(onPage+dashboardsPath, "none"), open(onRay+"/a/b/", "none"), open(onRay+goPath, "none"),
		open(onRay+signOutPath, "none"),
		open(onPage+beginPath, "none"), fetch("GET", onRay+dashboardsScript, ""), fetch("POST", onRay+callbackPath, "code=x"),
	} {
		answer := w.send(t, one)
		header, isPage := answer.header, strings.Contains(answer.text, "<html")
		referrer := "no-referrer"
		if strings.Contains(answer.text, "<form") { // else a browser would post it with the origin "null"
			referrer = "same-origin"
		}
		if header.Get("Cache-Control") != "no-store" || header.Get("X-Content-Type-Options") != "nosniff" ||
			header.Get("Referrer-Policy") != referrer {
			t.Errorf("%s %s has the headers %v", one.method, one.to, header)
		}
		policy := header.Get("Content-Security-Policy")
		if isPage && (!strings.HasPrefix(policy,
			"default-src 'none'; script-src 'self'; style-src 'sha256-"+hashOf(stepStyle)+"'; base-uri 'none'; frame-ancestors 'none'; form-action ") ||
			header.Get("Cross-Origin-Opener-Policy") != "same-origin" || strings.Contains(answer.text, "<script>")) {
			t.Errorf("%s %s is a page with %q: %s", one.method, one.to, policy, answer.text)
		}
	}
}
