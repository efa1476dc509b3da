// Package signin signs users in on the page, and gives the dashboards' origin a session of its own.
//
// In: a token that a user pastes, an issuer of OpenID Connect, or requests of a front proxy that has signed the user
// in. Out: sessions in cookies; requests that had such a cookie, with the session's token in the header Authorization;
// the few pages and redirects in between.
//
// It must never lead a user to an address that is not ours, set a session whose token nobody has accepted, let another
// origin act by a session, or put a token into an address, a page that a script can read, or a log.
package signin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/dashboard-proxy/gate"
	"github.com/heliostat-dev/heliostat/dashboard-proxy/session"
	"github.com/heliostat-dev/heliostat/portal/access"
)

// Cookies. Ports of one host share them, so each has a name of its own.
const (
	pageCookie       = "__Host-heliostat-page"
	dashboardsCookie = "__Host-heliostat-dashboards"
	flowCookie       = "__Host-heliostat-oidc"
	verifierCookie   = "__Host-heliostat-verifier"
)

const (
	// identifyWithin is how long may be asked whose a token is.
	identifyWithin = 4 * time.Second
	// maxBody is how many bytes a token, or a code with a session, may have.
	maxBody = 64 << 10
)

const authorization = "Authorization"

// Needs are what New is made of.
type Needs struct {
	Origins Origins
	Config  Config
	// Identity says which tokens are accepted.
	Identity access.Identity
	Links    []Link
	Keys     *session.Keys
	Access   *access.Kubernetes
	Clock    clock.PassiveClock
	Log      *slog.Logger
}

// core is what the page's origin and the dashboards' have in common.
type core struct {
	Needs
	provider *provider
}

// New returns what serves sign-in on the page's origin, and on the dashboards'.
func New(n Needs) (*Page, *Dashboards, error) {
	c := &core{Needs: n}
	if n.Config.OIDC != nil {
		made, err := newProvider(*n.Config.OIDC, n.Origins.Page+finishPath, n.Clock, n.Log)
		if err != nil {
			return nil, nil, fmt.Errorf("read the issuer %s: %w", n.Config.OIDC.Issuer, err)
		}
		c.provider = made
	}
	return &Page{c, session.Jar{Keys: n.Keys, Name: pageCookie}},
		&Dashboards{c, session.Jar{Keys: n.Keys, Name: dashboardsCookie}}, nil
}

// open returns the session of a request to an origin, renewed where its token ends soon. Any error but a *Refusal is
// that there is none.
func (c *core) open(w http.ResponseWriter, r *http.Request, jar session.Jar, origin string) (session.Session, error) {
	one, err := jar.Open(r, origin, c.Clock.Now())
	switch {
	case err != nil:
		return session.Session{}, err
	case c.provider == nil && !one.HasToken(c.Clock.Now()):
		return session.Session{}, session.ErrOver
	case c.provider == nil || !one.NeedsRenewal(c.Clock.Now()):
		return one, nil
	}
	renewed, err := c.provider.renew(r.Context(), one)
	if err == nil {
		if err = jar.Put(w, r, origin, renewed); err != nil {
			c.Log.Error("Cannot store a renewed session", "error", err)
		}
		return renewed, nil
	}
	switch {
	case one.HasToken(c.Clock.Now()):
		return one, nil
	case errors.Is(err, errRefused):
		return session.Session{}, session.ErrOver
	}
	return session.Session{}, away("the issuer that renews the session")
}

// authorize returns a request as if it had come with the session's token. It ends with that.
func (c *core) authorize(r *http.Request, one session.Session) *http.Request {
	ctx, cancel := context.WithTimeout(r.Context(), one.Until().Sub(c.Clock.Now()))
	context.AfterFunc(r.Context(), cancel)
	r = r.WithContext(ctx)
	r.Header = r.Header.Clone()
	r.Header.Del("Cookie")
	r.Header.Set(authorization, "Bearer "+one.Token)
	return r
}

// isSigned reports whether a request says by itself whose it is, so that no session counts.
func (c *core) isSigned(r *http.Request) bool {
	return r.Header[authorization] != nil || c.Access.IsProxied(r)
}

// identify returns whose a token is, with the token.
func (c *core) identify(ctx context.Context, text string) (*access.Caller, access.Token, error) {
	asking := &http.Request{Header: http.Header{authorization: {"Bearer " + text}}}
	token, err := access.ParseToken(asking.Header)
	if err != nil {
		return nil, access.Token{}, err
	}
	caller, err := c.callerOf(asking.WithContext(ctx))
	return caller, token, err
}

// callerOf returns whose a request is.
func (c *core) callerOf(r *http.Request) (*access.Caller, error) {
	ctx, cancel := context.WithTimeout(r.Context(), identifyWithin)
	defer cancel()
	caller, err := c.Access.Identify(ctx, r)
	if err != nil && !errors.Is(err, access.ErrUnauthorized) {
		c.Log.Error("Cannot authenticate a user", "error", err)
		return nil, away("the API server, or the issuer of the token,")
	}
	return caller, err
}

// judge refuses a request that would count by its cookie and comes from another origin than its own.
func judge(r *http.Request, own string, isLinkable bool) error {
	err := gate.Judge(gate.Facts{
		Method: r.Method, Origin: r.Header.Get("Origin"), Site: r.Header.Get("Sec-Fetch-Site"),
		Mode: r.Header.Get("Sec-Fetch-Mode"), Dest: r.Header.Get("Sec-Fetch-Dest"), Own: own, IsLinkable: isLinkable,
	})
	var refused *gate.Refusal
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused) && refused.Code == http.StatusMisdirectedRequest:
		return &Refusal{Code: refused.Code, Reason: "MisdirectedRequest", Detail: "the session is of another host",
			Remedy: "use the page's own address, or send a token in the header Authorization"}
	}
	return &Refusal{Code: http.StatusForbidden, Reason: "Forbidden", Detail: "the request comes from another site",
		Remedy: "send it from the page itself, or with a token in the header Authorization"}
}
