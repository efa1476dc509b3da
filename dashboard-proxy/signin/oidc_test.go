package signin

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/heliostat-dev/heliostat/portal/access/accesstest"
)

func TestOIDC_SignsAUserIn(t *testing.T) {
	b := newBed(t)
	w := b.browser()
	answer, way := w.signIn(t, "/ui/clusters/a/b")
	if last := way[len(way)-1]; last != "GET "+onPage+"/ui/clusters/a/b" || answer.header.Get("X-Token") == "" {
		t.Errorf("the way is %q, and its end has the token %q", way, answer.header.Get("X-Token"))
	}
	said := w.show(t, "")
	if !said.SignedIn || said.User != "sso:ana" || said.Method != "OIDC" || said.Expires != "2026-11-01T20:00:00Z" {
		t.Errorf("the session is %+v", said)
	}
	if log := b.log.String(); !strings.Contains(log, `msg="Signed in" user=sso:ana`) || strings.Contains(log,
		answer.header.Get("X-Token")) {
		t.Errorf("the log is %s", log)
	}
	for _, one := range w.hosts["page.example.com"] {
		if one.SameSite != http.SameSiteStrictMode || !strings.HasPrefix(one.Name, pageCookie) {
			t.Errorf("the browser keeps %v", one)
		}
	}
}

// TestOIDC_RefusesAnotherBrowsersWay, one that is taken twice, and one that took too long.
func TestOIDC_RefusesAnotherBrowsersWay(t *testing.T) {
	b := newBed(t)
	begin := func(w *browser) string {
		return b.issuer.Approve(t, w.send(t, open(onPage+beginPath, "none")).header.Get("Location"))
	}
	for name, way := range map[string]func() (*browser, string){
		"another browser": func() (*browser, string) { return b.browser(), begin(b.browser()) },
		"another state": func() (*browser, string) {
			w := b.browser()
			return w, strings.Replace(begin(w), "state=", "state=x", 1)
		},
		"the way of another tab": func() (*browser, string) {
			w := b.browser()
			first := begin(w)
			begin(w)
			return w, first
		},
		"a second time": func() (*browser, string) {
			w := b.browser()
			to := begin(w)
			w.send(t, open(to, "cross-site"))
			delete(w.hosts, "page.example.com")
			return w, to
		},
		"too late": func() (*browser, string) {
			w := b.browser()
			to := begin(w)
			b.clock.SetTime(b.clock.Now().Add(flowLife))
			return w, to
		},
	} {
		w, to := way()
		answer, _ := w.follow(t, open(to, "cross-site"))
		if answer.code != http.StatusBadRequest || !strings.Contains(answer.text, "Sign in again") ||
			len(w.hosts["page.example.com"]) > 0 {
			t.Errorf("%s: %d with %v, %s", name, answer.code, w.hosts, answer.text)
		}
	}
}

func TestOIDC_SaysWhyNobodyIsSignedIn(t *testing.T) {
	for name, row := range map[string]struct {
		claims map[string]any
		change func(b *bed, address string) string
		code   int
		want   string
	}{
		"refused by the issuer": {nil, func(_ *bed, address string) string {
			return onPage + finishPath + "?error=access_denied&state=" + stateOf(address)
		}, 403, "did not sign you in"},
		"a code of nobody": {nil, func(_ *bed, address string) string {
			return onPage + finishPath + "?code=x&state=" + stateOf(address)
		}, 403, "did not confirm"},
		"a token of another sign-in": {map[string]any{"nonce": "other"}, nil, 403, "did not confirm"},
		"a token for another client": {map[string]any{"aud": "other"}, nil, 403, "did not confirm"},
		"a token that has expired":   {map[string]any{"exp": noon.Add(-time.Minute).Unix()}, nil, 403, "did not confirm"},
		"a name of Kubernetes": {map[string]any{"sub": ""}, nil, 403,
			"its token is not accepted here. The name of the user"},
		"a token that is too long": {map[string]any{"x": strings.Repeat("x", 14<<10)}, nil, 403, "fewer groups"},
		"an issuer that goes away": {nil, func(b *bed, address string) string {
			to := address
			b.issuer.Break(true)
			return to
		}, 503, "cannot be asked"},
	} {
		b := newBed(t)
		for claim, value := range row.claims {
			b.claims[claim] = value
		}
		w := b.browser()
		to := b.issuer.Approve(t, w.send(t, open(onPage+beginPath, "none")).header.Get("Location"))
		if row.change != nil {
			to = row.change(b, to)
		}
		answer, _ := w.follow(t, open(to, "cross-site"))
		if answer.code != row.code || !strings.Contains(answer.text, row.want) || !strings.Contains(answer.text,
			"/ui/signin?to=") || len(w.hosts["page.example.com"]) > 0 {
			t.Errorf("%s: %d, %v, %s", name, answer.code, w.hosts, answer.text)
		}
	}
	b := newBed(t)
	b.issuer.Break(true)
	answer := b.browser().send(t, open(onPage+beginPath, "none"))
	if answer.code != http.StatusServiceUnavailable || !strings.Contains(answer.text, "Sunrise cannot be asked") {
		t.Errorf("an issuer that is away: %+v", answer)
	}
}

func stateOf(address string) string {
	at, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return at.Query().Get("state")
}

func TestOIDC_LeadsBackToOurAddressesAlone(t *testing.T) {
	b := newBed(t)
	for to, want := range map[string]string{
		"https://evil.com/": onPage + home, "//evil.com": onPage + home, "/ui/me": onPage + "/ui/me",
		"/ui/" + strings.Repeat("&", 1500): onPage + home, // too long for its cookie
	} {
		_, way := b.browser().signIn(t, to)
		if last := way[len(way)-1]; last != "GET "+want {
			t.Errorf("%.50q leads to %q", to, last)
		}
	}
}

// TestOIDC_RenewsASession shortly before its token ends, once for requests that come together.
func TestOIDC_RenewsASession(t *testing.T) {
	b := newBed(t)
	w := b.browser()
	first, _ := w.signIn(t, home)
	token := first.header.Get("X-Token")
	b.clock.SetTime(noon.Add(54 * time.Minute))
	if got := w.send(t, fetch("GET", onPage+"/v1/me", "")).header.Get("X-Token"); got != token || b.issuer.Renewals() > 0 {
		t.Errorf("it is renewed before its last five minutes: %d times", b.issuer.Renewals())
	}
	b.clock.SetTime(noon.Add(56 * time.Minute))
	former := w.hosts["page.example.com"][pageCookie]
	renewed := w.send(t, fetch("GET", onPage+"/v1/me", "")).header.Get("X-Token")
	w.hosts["page.example.com"][pageCookie] = former // as a request that came at the same time
	again := w.send(t, fetch("GET", onPage+"/v1/me", "")).header.Get("X-Token")
	if renewed == token || renewed != again || b.issuer.Renewals() != 1 {
		t.Errorf("it is renewed %d times, and another request has the same token: %v", b.issuer.Renewals(), renewed == again)
	}
	if said := w.show(t, ""); !said.SignedIn || said.Expires != "2026-11-01T20:00:00Z" {
		t.Errorf("then the session is %+v", said)
	}
	b.clock.SetTime(noon.Add(5 * time.Hour)) // after a night, the token is over and the session is not
	if got := w.send(t, fetch("GET", onPage+"/v1/me", "")).header.Get("X-Token"); got == "" || got == renewed {
		t.Errorf("a session whose token is over has the token %q", got)
	}
	b.clock.SetTime(noon.Add(8 * time.Hour))
	if said := w.show(t, ""); said.SignedIn || !strings.Contains(said.Why, "has ended") {
		t.Errorf("after eight hours the session is %+v", said)
	}
}

func TestOIDC_KeepsASessionWhileTheIssuerIsAway(t *testing.T) {
	b := newBed(t)
	w := b.browser()
	first, _ := w.signIn(t, home)
	token := first.header.Get("X-Token")
	b.issuer.Break(true)
	for after, want := range map[time.Duration]int{56 * time.Minute: 200, 61 * time.Minute: 503} {
		b.clock.SetTime(noon.Add(after))
		answer := w.send(t, fetch("GET", onPage+"/v1/me", ""))
		if answer.code != want || want == 200 && answer.header.Get("X-Token") != token {
			t.Errorf("after %v: %d", after, answer.code)
		}
	}
	b.issuer.Break(false)
	b.clock.SetTime(noon.Add(62 * time.Minute))
	if answer := w.send(t, fetch("GET", onPage+"/v1/me", "")); answer.header.Get("X-Token") == "" {
		t.Error("when the issuer is back, the session is over")
	}
}

func TestOIDC_EndsASessionThatIsNotRenewed(t *testing.T) {
	for name, row := range map[string]struct {
		client accesstest.Client
		change func(b *bed)
	}{
		"one that the issuer ended":           {change: func(b *bed) { b.issuer.Revoke() }},
		"one that is of another user":         {change: func(b *bed) { b.claims["sub"] = "bob" }},
		"one of an issuer that renews none":   {client: accesstest.Client{HasNoRefresh: true}},
		"one whose issuer is not used here":   {change: func(b *bed) { b.needs.Config.OIDC = nil }},
		"one whose token would be of another": {change: func(b *bed) { b.claims["aud"] = "other" }},
	} {
		b := newBed(t)
		b.register(row.client)
		w := b.browser()
		first, _ := w.signIn(t, home)
		if row.change != nil {
			row.change(b)
			b.start(t)
		}
		b.clock.SetTime(noon.Add(59 * time.Minute))
		if got := w.send(t, fetch("GET", onPage+"/v1/me", "")).header.Get("X-Token"); got != first.header.Get("X-Token") {
			t.Errorf("%s: before the end the token is %q", name, got)
		}
		b.clock.SetTime(noon.Add(61 * time.Minute))
		if answer := w.send(t, fetch("GET", onPage+"/v1/me", "")); answer.code != 200 || answer.header.Get("X-Token") != "" {
			t.Errorf("%s: after the end %d, with the token %q", name, answer.code, answer.header.Get("X-Token"))
		}
	}
}

func TestSentences_TakeAnyText(t *testing.T) {
	for text, want := range map[string]string{
		"the code is old: sign in again": "The code is old. Sign in again.",
		"":                               "",
		": ":                             "",
		"a: : b":                         "A. B.",
		"a: ":                            "A.",
		"écrit: \xff":                    "Écrit. \uFFFD.",
	} {
		if have := sentences(text); have != want {
			t.Errorf("%q becomes %q, want %q", text, have, want)
		}
	}
}
