package signin

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/heliostat-dev/heliostat/dashboard-proxy/session"
	"github.com/heliostat-dev/heliostat/portal/access/accesstest"
)

// TestDashboards_GetASessionOfTheirOwn: a link in a mail opens, by way of the page's origin.
func TestDashboards_GetASessionOfTheirOwn(t *testing.T) {
	b := newBed(t)
	w := b.browser()
	token := w.signInByToken(t)
	answer, way := w.follow(t, open(onRay+"/a/b/?c=d%20e&f=g", "cross-site"))
	if last := way[len(way)-1]; last != "GET "+onRay+"/a/b/?c=d%20e&f=g" || answer.header.Get("X-Token") != token {
		t.Errorf("the way is %q, and its end has the token %q", way, answer.header.Get("X-Token"))
	}
	if way := strings.Join(way, " "); strings.Contains(way, token) || strings.Contains(way, "code=") {
		t.Errorf("an address holds the code: %s", way)
	}
	kept := w.hosts["ray.example.com"]
	if one := kept[dashboardsCookie]; len(kept) != 1 || one.SameSite != http.SameSiteStrictMode || one.MaxAge != 3600 {
		t.Errorf("the browser keeps %v", kept)
	}
	if _, way := w.follow(t, open(onRay+"/a/b/", "none")); len(way) != 1 {
		t.Errorf("with a session the way is %q", way)
	}
	// From a mail again: the strict cookie is there, and is not sent.
	if answer, way := w.follow(t, open(onRay+"/a/b/", "cross-site")); answer.header.Get("X-Token") != token ||
		len(way) != 3 {
		t.Errorf("a second link from a mail leads %q", way)
	}
}

// TestDashboards_AskToSignIn where the page has no session, and lead back afterwards.
func TestDashboards_AskToSignIn(t *testing.T) {
	b := newBed(t)
	w := b.browser()
	_, way := w.follow(t, open(onRay+"/a/b/", "cross-site"))
	last := strings.TrimPrefix(way[len(way)-1], "GET ")
	if last != onPage+signInPath+"?to="+url.QueryEscape(onRay+"/a/b/") {
		t.Fatalf("the way is %q", way)
	}
	b.clock.SetTime(noon.Add(5 * time.Minute)) // as users do at their issuer
	answer, way := w.signIn(t, onRay+"/a/b/")
	if last := way[len(way)-1]; last != "GET "+onRay+"/a/b/" || answer.header.Get("X-Token") == "" {
		t.Errorf("after signing in the way is %q", way)
	}
}

// TestDashboards_AskNoProgramToSignIn: a program gets its answer from who answers requests.
func TestDashboards_AskNoProgramToSignIn(t *testing.T) {
	b := newBed(t)
	socket := ask{"GET", onRay + "/a/b/", "", "same-origin", "websocket", "empty", http.Header{"Upgrade": {"websocket"}}}
	for name, row := range map[string]struct {
		ask   ask
		token string
		is    bool
	}{
		"a navigation": {open(onRay+"/a/b/", "none"), "", true},
		"an old browser's navigation": {ask{"GET", onRay + "/", "", "", "", "", http.Header{"Accept": {"text/html,*/*"}}},
			"", true},
		"a script": {fetch("GET", onRay+"/a/b/api", ""), "", false},
		"a form": {ask{"POST", onRay + "/a/b/", "", "same-origin", "navigate", "document", nil}, "",
			false},
		"a WebSocket": {socket, "", false},
		"a program": {ask{"GET", onRay + "/a/b/api", "", "", "", "", http.Header{"Accept": {"*/*"}}}, "",
			false},
		"a program with a token": {
			ask{"GET", onRay + "/a/b/", "", "", "navigate", "", http.Header{"Authorization": {"Bearer x"}}}, "x", false},
		"another host": {open("https://other.example.com/", "none"), "", false},
	} {
		answer := b.browser().send(t, row.ask)
		_, isThrough := answer.header["X-Token"]
		if isThrough == row.is || answer.header.Get("X-Token") != row.token {
			t.Errorf("%s is asked to sign in: %v, and has the token %q", name, !isThrough, answer.header.Get("X-Token"))
		}
	}
}

// handedOver returns a browser with a verifier, and the code that its page's origin would have it post.
func (w *browser) handedOver(t testing.TB, to string) (code ask) {
	t.Helper()
	led := w.send(t, open(goOf(to), "same-origin"))
	if !strings.HasPrefix(led.header.Get("Location"), onPage) {
		t.Fatalf("the browser is led to %q", led.header.Get("Location"))
	}
	got := w.send(t, open(led.header.Get("Location"), "same-site"))
	code, is := next(t, open(led.header.Get("Location"), ""), got)
	if !is || code.method != "POST" {
		t.Fatalf("there is no code in %s", got.text)
	}
	return code
}

func goOf(to string) string {
	at, err := url.Parse(to)
	if err != nil {
		return ""
	}
	return "https://" + at.Host + goTo(at.RequestURI())
}

// TestDashboards_TakeACodeOnce, and of the browser and for the origin that it was made for.
func TestDashboards_TakeACodeOnce(t *testing.T) {
	b := newBed(t)
	owner := b.browser()
	token := owner.signInByToken(t)
	redeem := func(w *browser, code ask) (string, string) {
		answer, _ := w.follow(t, code)
		return answer.header.Get("X-Token"), answer.text
	}
	if got, _ := redeem(owner, owner.handedOver(t, onRay+"/a/b/")); got != token {
		t.Errorf("its own browser has the token %q", got)
	}
	for name, way := range map[string]func() (*browser, ask){
		"a browser without a verifier": func() (*browser, ask) {
			return b.browser(), owner.handedOver(t, onRay+"/")
		},
		"a browser with a verifier of its own": func() (*browser, ask) {
			other := b.browser()
			other.send(t, open(goOf(onRay+"/"), "same-origin"))
			return other, owner.handedOver(t, onRay+"/")
		},
		"the same browser, when it was used and the session is gone": func() (*browser, ask) {
			code := owner.handedOver(t, onRay+"/")
			owner.send(t, code)
			delete(owner.hosts["ray.example.com"], dashboardsCookie)
			return owner, code
		},
		"too late": func() (*browser, ask) {
			code := owner.handedOver(t, onRay+"/")
			b.clock.SetTime(b.clock.Now().Add(session.CodeLife))
			return owner, code
		},
		"another cluster's origin": func() (*browser, ask) {
			code := owner.handedOver(t, onDemo+"/")
			owner.hosts["victim--b.ray.example.com"] = owner.hosts["demo--a.ray.example.com"]
			code.to = onVictim + callbackPath
			return owner, code
		},
	} {
		delete(owner.hosts, "ray.example.com")
		w, code := way()
		got, text := redeem(w, code)
		isExplained := strings.Contains(text, "Open the address again.") && strings.Contains(text, goPath+"?to=%2F")
		if got != "" || !isExplained {
			t.Errorf("%s: the token %q, %s", name, got, text)
		}
	}
}

// TestDashboards_OpenManyTabsAtOnce: the way of one tab must not break that of another.
func TestDashboards_OpenManyTabsAtOnce(t *testing.T) {
	b := newBed(t)
	w := b.browser()
	token := w.signInByToken(t)
	first, second := w.handedOver(t, onRay+"/a/b/"), w.handedOver(t, onRay+"/a/c/")
	for _, code := range []ask{first, second} {
		if answer, way := w.follow(t, code); answer.header.Get("X-Token") != token {
			t.Errorf("a tab ends at %q", way)
		}
	}
}

// TestDashboards_OpenNoEffectForAnotherSite: what our own page asks for passes the gate, so only a user's click leads
// to what the gate would refuse as a link.
func TestDashboards_OpenNoEffectForAnotherSite(t *testing.T) {
	b := newBed(t)
	w := b.browser()
	w.signInByToken(t)
	const effect = "/a/b/worker/traceback?pid=1"
	challenge := session.Challenge("of an attacker")
	post := open(onRay+callbackPath, "cross-site")
	post.method, post.body = "POST", url.Values{"code": {"x"}, "to": {effect}}.Encode()
	post.header = http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	below := open(onDemo+goTo("/worker/traceback"), "cross-site")
	for name, one := range map[string]ask{
		"without a session": open(onRay+goTo(effect), "cross-site"), "with one": open(onRay+goTo(effect), "cross-site"),
		"by the page": open(onPage+dashboardsPath+"?"+url.Values{"challenge": {challenge},
			"to": {onRay + effect}}.Encode(), "cross-site"),
		"by a code":             post,
		"below the wildcard":    below,
		"by another way to go":  open(onRay+goTo(goTo(effect)), "cross-site"),
		"as one that came back": open(onRay+goTo(effect)+"&signed=yes", "same-origin"),
		"as one that came late": open(onRay+goTo(effect)+"&signed=no", "same-origin"),
		"after signing in again": open(onPage+dashboardsPath+"?again=yes&challenge="+challenge+"&to="+
			url.QueryEscape(onRay+effect), "cross-site"),
	} {
		if name != "without a session" {
			w.follow(t, open(onRay+"/", "none"))
		}
		answer, way := w.follow(t, one)
		isAsked := strings.Contains(answer.text, "Open this address?") || strings.HasPrefix(way[len(way)-1],
			"GET "+onPage+signInPath)
		if strings.Contains(strings.Join(way, " "), "GET "+onRay+effect) || !isAsked {
			t.Errorf("%s: %q, %s", name, way, answer.text)
		}
		delete(w.hosts, "ray.example.com")
	}
}

// TestDashboards_DoNotGoRound where a browser keeps no session.
func TestDashboards_DoNotGoRound(t *testing.T) {
	b := newBed(t)
	w := b.browser()
	w.signInByToken(t)
	answer, _ := w.follow(t, open(onRay+goPath+"?to=%2Fa%2Fb%2F&signed=yes", "same-origin"))
	if answer.code != http.StatusForbidden {
		t.Errorf("without the cookie: %d", answer.code)
	}
}

// TestDashboards_OfAClusterOpenNoOther: below the wildcard a session is of one origin.
func TestDashboards_OfAClusterOpenNoOther(t *testing.T) {
	b := newBed(t)
	w := b.browser()
	token := w.signInByToken(t)
	if answer, _ := w.follow(t, open(onDemo+"/", "cross-site")); answer.header.Get("X-Token") != token {
		t.Fatal("the cluster's origin has no session")
	}
	w.hosts["victim--b.ray.example.com"] = w.hosts["demo--a.ray.example.com"]
	w.hosts["ray.example.com"] = w.hosts["demo--a.ray.example.com"]
	for _, to := range []string{onVictim, onRay} {
		if answer := w.send(t, fetch("GET", to+"/x", "")); answer.header.Get("X-Token") != "" {
			t.Errorf("%s takes the session of another origin", to)
		}
	}
}

func TestHandOver_LeadsToTheDashboardsAlone(t *testing.T) {
	b := newBed(t)
	w := b.browser()
	w.signInByToken(t)
	challenge := session.Challenge("v")
	frame := open(onPage+dashboardsPath+"?challenge="+challenge+"&to="+onRay+"/", "same-site")
	frame.dest = "iframe"
	asks := map[string]ask{"in a frame": frame}
	for name, query := range map[string]url.Values{
		"another site": {"challenge": {challenge}, "to": {"https://evil.com/"}}, "the page": {"challenge": {challenge},
			"to": {onPage + "/"}},
		"a path": {"challenge": {challenge}, "to": {"/ui/"}}, "nowhere": {"challenge": {challenge}},
		"no challenge": {"to": {onRay + "/"}},
		"a script":     {"challenge": {challenge}, "to": {"javascript:alert(1)"}}, "what is no challenge": {"challenge": {"x"},
			"to": {onRay + "/"}},
	} {
		asks[name] = open(onPage+dashboardsPath+"?"+query.Encode(), "same-site")
	}
	for name, one := range asks {
		answer, _ := w.follow(t, one)
		if answer.code != http.StatusBadRequest || strings.Contains(answer.text, "code") {
			t.Errorf("%s: %d, %s", name, answer.code, answer.text)
		}
	}
	script := open(onPage+dashboardsPath+"?challenge="+challenge+"&to="+onRay+"/", "same-site")
	script.mode, script.dest = "no-cors", "empty"
	if text := w.send(t, script).text; strings.Contains(text, "code") {
		t.Errorf("a script of a dashboard gets %s", text)
	}
}

// TestHandOver_KeepsARefreshTokenThatRotates: two sessions would take it from each other.
func TestHandOver_KeepsARefreshTokenThatRotates(t *testing.T) {
	for _, rotates := range []bool{false, true} {
		b := newBed(t)
		b.register(accesstest.Client{Rotates: rotates})
		w := b.browser()
		w.signIn(t, home)
		b.clock.SetTime(noon.Add(56 * time.Minute))
		w.show(t, "") // is renewed
		w.follow(t, open(onRay+"/", "none"))
		b.clock.SetTime(noon.Add(56*time.Minute + 56*time.Minute))
		answer := w.send(t, fetch("GET", onRay+"/a/b/api", ""))
		if want := map[bool]int{false: 2, true: 1}[rotates]; b.issuer.Renewals() != want ||
			answer.header.Get("X-Token") == "" {
			t.Errorf("an issuer that rotates (%v) renews %d times", rotates, b.issuer.Renewals())
		}
	}
}

func TestDashboards_SignOut(t *testing.T) {
	b := newBed(t)
	w := b.browser()
	w.signInByToken(t)
	for name, row := range map[string]struct {
		ask ask
		is  bool
	}{
		"its own page": {fetch("POST", onRay+signOutPath, ""), true},
		"its own page, in an old browser": {ask{"POST", onRay + signOutPath, "", "", "", "",
			http.Header{"Origin": {onRay}}}, true},
		"the page": {ask{"POST", onRay + signOutPath, "", "same-site", "navigate", "document",
			http.Header{"Origin": {onPage}}}, false},
		"another site": {ask{"POST", onRay + signOutPath, "", "same-site", "navigate", "document",
			http.Header{"Origin": {onDemo}}}, false},
		"a link elsewhere": {open(onRay+signOutPath, "cross-site"), false},
	} {
		w.follow(t, open(onRay+"/", "none"))
		answer := w.send(t, row.ask)
		if _, has := w.hosts["ray.example.com"][dashboardsCookie]; has == row.is {
			t.Errorf("%s signs out: %v, %d", name, !has, answer.code)
		}
	}
	for _, one := range []ask{fetch("PUT", onRay+callbackPath, ""), fetch("GET", onRay+"/-/nothing", "")} {
		if answer := w.send(t, one); answer.code != http.StatusNotFound {
			t.Errorf("%s %s: %d", one.method, one.to, answer.code)
		}
	}
	if answer := w.send(t, open("https://other.example.com"+goPath,
		"none")); answer.code != http.StatusMisdirectedRequest {
		t.Errorf("another host: %d", answer.code)
	}
}
