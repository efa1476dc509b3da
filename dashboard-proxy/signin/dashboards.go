package signin

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/heliostat-dev/heliostat/dashboard-proxy/session"
)

// Paths on the dashboards' origin.
const (
	goPath           = "/-/go"
	callbackPath     = "/-/callback"
	signOutPath      = "/-/sign-out"
	dashboardsScript = "/-/step.js"
)

// verifierLife is how long the way over the page's origin may take.
const verifierLife = time.Minute

// Dashboards signs users in on the origins of clusters. Its cookie is of one of them alone.
type Dashboards struct {
	*core
	jar session.Jar
}

// Open returns a request that came with a session's cookie as one with the session's token. A navigation without a
// session it answers itself, by the way to one. Others it returns as they are, for a 401. The gate must have judged the
// request.
func (d *Dashboards) Open(w http.ResponseWriter, r *http.Request) (authorized *http.Request, handled bool) {
	origin, is := d.Origins.Of(r.Host)
	if d.isSigned(r) || !is {
		return r, false
	}
	one, err := d.open(w, r, d.jar, origin)
	var refused *Refusal
	switch {
	case err == nil:
		return d.authorize(r, one), false
	case errors.As(err, &refused):
		refused.writePlain(w)
		return nil, true
	case isNavigation(r):
		// A link on another site brings no strict cookie, and what our own page asks for does.
		page{Script: dashboardsScript, Title: "Opening", Next: goTo(r.URL.RequestURI()), Label: "Continue"}.
			write(w, http.StatusOK, noForm)
		return nil, true
	}
	return r, false
}

// isNavigation reports whether a browser opens an address, to show what is there.
func isNavigation(r *http.Request) bool {
	if r.Method != http.MethodGet || r.Header["Upgrade"] != nil {
		return false
	}
	if mode := r.Header.Get("Sec-Fetch-Mode"); mode != "" {
		return mode == "navigate"
	}
	return strings.Contains(r.Header.Get("Accept"), "text/html")
}

// goTo returns the address that leads to a path, by way of a session.
func goTo(path string) string { return goPath + "?" + url.Values{"to": {path}}.Encode() }

// ServeHTTP implements http.Handler, for what is below /-/ and nobody else's. No gate must have judged the request: the
// browser comes from the page's origin, and its verifier decides.
func (d *Dashboards) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	origin, is := d.Origins.Of(r.Host)
	if !is {
		(&Refusal{Code: http.StatusMisdirectedRequest, Detail: "the Host of the request is not one of the dashboards",
			Remedy: "use the address that the page shows"}).writePlain(w)
		return
	}
	switch r.Method + " " + r.URL.Path {
	case "GET " + goPath:
		d.lead(w, r, origin)
	case "POST " + callbackPath:
		d.takeOver(w, r, origin)
	case "GET " + signOutPath:
		page{Title: "Sign out of the dashboards", Text: "The session of the page is another one.", Next: signOutPath,
			Label: "Sign out", Post: map[string]string{"sure": "yes"}}.write(w, http.StatusOK, "'self' "+d.Origins.Page)
	case "POST " + signOutPath:
		d.signOut(w, r, origin)
	case "GET " + dashboardsScript:
		writeScript(w)
	default:
		(&Refusal{Code: http.StatusNotFound, Detail: "nothing has this address, or not by this method",
			Remedy: "open the dashboard from the page"}).writePlain(w)
	}
}

// notSigned says why a browser has no session that comes back from the page's origin.
var notSigned = map[string]string{
	"yes": "The browser did not keep the cookie of the session. Allow cookies of this address, and open it again.",
	"no":  "The sign-in was begun in another browser, or took longer than a minute. Open the address again.",
}

// lead leads a browser to a path where it has a session, and else to the page's origin, where it gets one.
func (d *Dashboards) lead(w http.ResponseWriter, r *http.Request, origin string) {
	to, signed := pathOr(r.URL.Query().Get("to")), r.URL.Query().Get("signed")
	_, err := d.open(w, r, d.jar, origin)
	var refused *Refusal
	switch {
	case (err == nil || d.isSigned(r)) && d.Origins.isLinkable(origin, to):
		redirect(w, to)
	case err == nil || d.isSigned(r):
		// Another site may have sent the browser here, and what our own page asks for passes the gate.
		page{Title: "Open this address?", Text: origin + to, Next: to, Label: "Open"}.write(w, http.StatusOK, noForm)
	case errors.As(err, &refused):
		refused.writePlain(w)
	case notSigned[signed] != "": // the way would only begin again
		page{Title: "Not signed in", Text: notSigned[signed], Next: goTo(to), Label: "Open again"}.
			write(w, http.StatusForbidden, noForm)
	default:
		verifier := session.NewVerifier()
		if kept, err := r.Cookie(verifierCookie); err == nil && kept.Value != "" {
			verifier = kept.Value // another tab is on the same way
		}
		http.SetCookie(w, brief(verifierCookie, verifier, verifierLife, http.SameSiteNoneMode))
		redirect(w, d.Origins.Page+dashboardsPath+"?"+
			url.Values{"challenge": {session.Challenge(verifier)}, "to": {origin + to}}.Encode())
	}
}

// takeOver sets the session that a code of the page's origin holds.
func (d *Dashboards) takeOver(w http.ResponseWriter, r *http.Request, origin string) {
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	verifier := ""
	if kept, err := r.Cookie(verifierCookie); err == nil {
		verifier = kept.Value
	}
	http.SetCookie(w, brief(verifierCookie, "", 0, http.SameSiteNoneMode))
	code, err := d.Keys.OpenCode(r.PostFormValue("code"), verifier, origin)
	if err == nil {
		err = d.jar.Put(w, r, origin, code.Session)
	}
	to, signed := code.Path, "yes"
	switch {
	case errors.Is(err, session.ErrCode): // perhaps another tab was faster, whose cookie a post from another site lacks
		to, signed = pathOr(r.PostFormValue("to")), "no"
	case err != nil:
		page{Title: "Not signed in", Text: sentences(err.Error()), Next: "/", Label: "To the start"}.
			write(w, http.StatusForbidden, noForm)
		return
	}
	// A redirect would come from the page's site, perhaps without the cookie that was just set.
	page{Script: dashboardsScript, Title: "Opening", Next: goTo(to) + "&signed=" + signed, Label: "Continue"}.
		write(w, http.StatusOK, noForm)
}

// pathOr returns a path of the same origin, or its start where a text is none.
func pathOr(to string) string {
	if path, is := readPath(to); is {
		return path
	}
	return "/"
}

// signOut removes the session of an origin, where that origin asks.
func (d *Dashboards) signOut(w http.ResponseWriter, r *http.Request, origin string) {
	if err := judge(r, origin, false); err != nil {
		page{Title: "Still signed in", Text: "The request comes from another site.", Next: signOutPath, Label: "Sign out"}.
			write(w, http.StatusForbidden, noForm)
		return
	}
	d.jar.Clear(w, r)
	redirect(w, d.Origins.Page+signInPath)
}
