package signin

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/heliostat-dev/heliostat/dashboard-proxy/session"
	"github.com/heliostat-dev/heliostat/portal/access"
)

// Paths on the page's origin.
const (
	sessionPath    = "/session"
	beginPath      = "/session/oidc"
	finishPath     = "/session/oidc/callback"
	dashboardsPath = "/session/dashboards"
	pageScript     = "/session/step.js"
	signInPath     = "/ui/signin"
)

// Page signs users in on the page's origin.
type Page struct {
	*core
	jar session.Jar
}

// Owns reports whether a path is about sessions.
func Owns(path string) bool { return path == sessionPath || strings.HasPrefix(path, sessionPath+"/") }

// Size returns how many bytes of a request's headers are those of the session's cookies.
func (p *Page) Size(r *http.Request) int { return p.jar.Size(r) }

// Open returns a request that came with a session's cookie as one with the session's token. Others it returns as they
// are, also where the session has ended. An error is a *Refusal.
func (p *Page) Open(w http.ResponseWriter, r *http.Request) (*http.Request, error) {
	if p.isSigned(r) || !p.jar.Has(r) {
		return r, nil
	}
	if err := judge(r, p.own(r), false); err != nil {
		return nil, err
	}
	one, err := p.open(w, r, p.jar, p.Origins.Page)
	var refused *Refusal
	switch {
	case errors.As(err, &refused):
		return nil, err
	case err != nil:
		return r, nil //nolint:nilerr // nobody is signed in, which is no error: who answers the request says so
	}
	return p.authorize(r, one), nil
}

// own returns the page's origin where a request is to it.
func (p *Page) own(r *http.Request) string {
	if p.Origins.isPage(r.Host) {
		return p.Origins.Page
	}
	return ""
}

// Serve answers a request about sessions, or returns a *Refusal.
func (p *Page) Serve(w http.ResponseWriter, r *http.Request) error {
	served := map[string]map[string]func(http.ResponseWriter, *http.Request) error{
		sessionPath:    {http.MethodGet: p.show, http.MethodPost: p.signIn, http.MethodDelete: p.signOut},
		beginPath:      {http.MethodGet: p.begin},
		finishPath:     {http.MethodGet: p.finish},
		dashboardsPath: {http.MethodGet: p.handOver},
		pageScript:     {http.MethodGet: func(w http.ResponseWriter, _ *http.Request) error { writeScript(w); return nil }},
	}
	methods, is := served[r.URL.Path]
	if !is || strings.HasPrefix(r.URL.Path, beginPath) && p.provider == nil ||
		r.URL.Path == dashboardsPath && p.Origins.Dashboards == "" {
		return &Refusal{Code: http.StatusNotFound, Reason: "NotFound", Detail: "nothing has this address",
			Remedy: "read GET /session for the ways to sign in"}
	}
	serve, is := methods[r.Method]
	if !is {
		return &Refusal{Code: http.StatusMethodNotAllowed, Reason: "MethodNotAllowed",
			Detail: "the path does not have this method", Remedy: "use another one"}
	}
	return serve(w, r)
}

// state is what GET /session says.
type state struct {
	SignedIn bool   `json:"signedIn"`
	User     string `json:"user,omitempty"`
	// Method is how the user signed in.
	Method string `json:"method,omitempty"`
	// Expires is when the user has to sign in again.
	Expires string `json:"expires,omitempty"`
	// Why says why a session that there was does not count.
	Why   string `json:"why,omitempty"`
	Ways  []way  `json:"ways"`
	Links []Link `json:"links"`
	// To is where to go after signing in: what the query asks for, where it is ours.
	To string `json:"to"`
}

// way is one to sign in.
type way struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// show answers who is signed in, and how users can.
func (p *Page) show(w http.ResponseWriter, r *http.Request) error {
	answer := state{Ways: p.ways(), Links: append([]Link{}, p.Links...), To: p.Origins.readGoal(r.URL.Query().Get("to"))}
	if err := p.describe(w, r, &answer); err != nil {
		return err
	}
	return writeJSON(w, answer)
}

// describe fills in who a request is of.
func (p *Page) describe(w http.ResponseWriter, r *http.Request, into *state) error {
	had, asking := session.Session{}, r
	if !p.isSigned(r) {
		if err := judge(r, p.own(r), false); err != nil {
			return err
		}
		one, err := p.open(w, r, p.jar, p.Origins.Page)
		var refused *Refusal
		switch {
		case errors.As(err, &refused):
			return err
		case errors.Is(err, session.ErrNone):
			return nil
		case err != nil:
			into.Why = err.Error()
			p.jar.Clear(w, r)
			return nil
		}
		had, asking = one, p.authorize(r, one)
	}
	caller, err := p.callerOf(asking)
	switch {
	case errors.Is(err, access.ErrUnauthorized):
		into.Why = err.Error()
		p.jar.Clear(w, r)
		return nil
	case err != nil:
		return err
	}
	into.SignedIn, into.User, into.Method = true, caller.User().Username, caller.Method()
	if had.Kind != "" {
		into.Method, into.Expires = had.Kind, had.Expires().UTC().Format(time.RFC3339)
	}
	return nil
}

// ways returns how users can sign in.
func (p *Page) ways() []way {
	all := []way{}
	if p.provider != nil {
		all = append(all, way{session.KindOIDC, p.provider.Name})
	}
	if p.Identity.Mode != access.Impersonate || len(p.Identity.Issuers) > 0 || p.Identity.Audience != "" {
		all = append(all, way{session.KindToken, "Kubernetes token"})
	}
	if p.Identity.FrontProxy != nil {
		all = append(all, way{access.MethodFrontProxy, "Front proxy"})
	}
	return all
}

// signIn sets a session of a token that a user pasted.
func (p *Page) signIn(w http.ResponseWriter, r *http.Request) error {
	if err := judge(r, p.own(r), false); err != nil {
		return err
	}
	var sent struct {
		Token string `json:"token"`
	}
	reading := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	reading.DisallowUnknownFields()
	if reading.Decode(&sent) != nil {
		return &Refusal{Code: http.StatusBadRequest, Reason: "BadRequest", Detail: "the body is no object with a token",
			Remedy: `send {"token": "…"}`}
	}
	text := strings.TrimSpace(sent.Token)
	caller, token, err := p.identify(r.Context(), text)
	switch {
	case errors.Is(err, access.ErrBadToken):
		return unauthorized("what was pasted is no token: paste the token alone, without a header or quotes")
	case errors.Is(err, access.ErrUnauthorized):
		return unauthorized(err.Error())
	case err != nil:
		return err
	}
	now := p.Clock.Now()
	one := session.Session{
		Kind: session.KindToken, Token: text, Since: now, TokenEnd: token.End(), End: now.Add(session.MaxLife),
	}
	if err := p.keep(w, r, one, caller); err != nil {
		detail, remedy, _ := strings.Cut(err.Error(), ": ")
		return &Refusal{Code: http.StatusBadRequest, Reason: "BadRequest", Detail: detail, Remedy: remedy}
	}
	secure(w.Header())
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// keep sets a session of the page.
func (p *Page) keep(w http.ResponseWriter, r *http.Request, one session.Session, of *access.Caller) error {
	if err := p.jar.Put(w, r, p.Origins.Page, one); err != nil {
		return err
	}
	p.Log.Info("Signed in", "user", of.User().Username, "method", one.Kind)
	return nil
}

// unauthorized returns a refusal whose text has a remedy behind a colon.
func unauthorized(text string) *Refusal {
	detail, remedy, _ := strings.Cut(text, ": ")
	return &Refusal{Code: http.StatusUnauthorized, Reason: "Unauthorized", Detail: detail, Remedy: remedy}
}

// signOut removes the session of the page.
func (p *Page) signOut(w http.ResponseWriter, r *http.Request) error {
	if err := judge(r, p.own(r), false); err != nil {
		return err
	}
	p.jar.Clear(w, r)
	secure(w.Header())
	w.WriteHeader(http.StatusNoContent)
	return nil
}
