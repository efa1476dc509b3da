// Package proxy hands requests for dashboards and services on to heads and pods, as their callers may.
//
// In: a request to the dashboards' origin; who its caller is and what Kubernetes lets them do; where heads and pods are.
// Out: the upstream's answer without what could harm the origin, or an answer in our own words where there is none.
//
// It must never send a request twice, send a caller's credential to an upstream, show a head's token, follow an upstream
// elsewhere, or keep a body. It asks again and again whether a caller still has the right to what is open, and ends it
// otherwise.
package proxy

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/dashboard-proxy/gate"
	"github.com/heliostat-dev/heliostat/dashboard-proxy/route"
	"github.com/heliostat-dev/heliostat/dashboard-proxy/serve"
	"github.com/heliostat-dev/heliostat/portal/access"
	"github.com/heliostat-dev/heliostat/portal/heads"
)

// Access says who callers are and what they may do. *access.Kubernetes is one.
type Access interface {
	IdentifyLately(ctx context.Context, r *http.Request) (*access.Caller, error)
	IsProxied(r *http.Request) bool
	IsFromProxy(r *http.Request) bool
	MayLately(ctx context.Context, c *access.Caller, what authorizationv1.ResourceAttributes) error
	Confirm(ctx context.Context, c *access.Caller, what authorizationv1.ResourceAttributes) error
}

// Heads finds heads of clusters. *heads.Heads is one.
type Heads interface {
	FindHead(of heads.Reference) (heads.Head, error)
	FindWay(ctx context.Context, head heads.Head) (*heads.Way, error)
}

// Sessions opens what signs a browser in.
type Sessions interface {
	// Open returns the request with the token of its session as Authorization, or as it is where it has none. Where it has
	// answered the request by itself, such as by the way to sign in, handled is true. The request's context ends with the
	// session.
	Open(w http.ResponseWriter, r *http.Request) (authorized *http.Request, handled bool)
}

// Phase is a step of a cluster or service on its way.
type Phase struct {
	Name, State string
	// WaitsFor is what it waits for now; empty of others.
	WaitsFor string
}

// Objects says how objects are, and changes them for callers.
type Objects interface {
	// Phases returns the steps of an object, in order.
	Phases(of route.Kind, namespace, name string) []Phase
	// Resume wakes an object as its caller. Why it is not resumed is a *Refusal.
	Resume(ctx context.Context, caller *access.Caller, of route.Kind, namespace, name string) error
}

// Needs is what a proxy is made of.
type Needs struct {
	Access   Access
	Heads    Heads
	Services *serve.Services
	Objects  Objects
	Sessions Sessions
	// SignIn answers what is below /-/ and not the proxy's own; nil is that nothing is there. It judges by itself where a
	// request comes from: a browser comes there from the page's origin.
	SignIn http.Handler
	// Origin is the one that clusters are served on, such as https://dashboards.example.com:8444.
	Origin *url.URL
	// Site is how paths and hosts name clusters.
	Site route.Site
	// PageURL is the address of the page that links here.
	PageURL string
	// IdentityHeaders are those by which a front proxy says who the user is. No upstream gets them.
	IdentityHeaders []string
	// MaxUpload is how many bytes the body of a request may have.
	MaxUpload int64
	// MaxSockets is how many WebSockets there may be at once.
	MaxSockets int
	// AnswerWithin is how long an upstream may take to begin its answer; 5 min where it is 0.
	AnswerWithin time.Duration
	Clock        clock.WithTickerAndDelayedExecution
	Log          *slog.Logger
}

// Proxy hands requests on. It may be used by many goroutines.
type Proxy struct {
	refuser
	// ending is over when what is open must end.
	ending   context.Context
	upstream *upstream
	rights   *rights
	places   *room
	reverse  *httputil.ReverseProxy
	// sockets are those under way.
	sockets sync.WaitGroup
}

// flushWithin is how long a part of an answer may wait for the next, where the length of the whole is known: most are whole at
// once, and go out in one record. Streams are flushed at once.
const flushWithin = 100 * time.Millisecond

// New returns a proxy. What is open ends with the context.
func New(ctx context.Context, needs Needs) *Proxy {
	p := &Proxy{refuser: refuser{Needs: needs, ways: newWays(ctx, needs.Heads, needs.Clock)}, ending: ctx,
		rights: newRights(needs.Access, needs.Clock), places: newRoom(needs.MaxSockets)}
	p.upstream = newUpstream(needs.AnswerWithin)
	p.reverse = &httputil.ReverseProxy{
		Rewrite:        p.rewrite,
		Transport:      p.upstream,
		FlushInterval:  flushWithin,
		BufferPool:     newBuffers(),
		ModifyResponse: p.clean,
		ErrorHandler:   p.refuseFailed,
		ErrorLog:       slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug), // it would say what upstreams say
	}
	return p
}

// Wait waits until the sockets have ended, which they do soon after the context.
func (p *Proxy) Wait() { p.sockets.Wait() }

// Sockets returns how many WebSockets are open.
func (p *Proxy) Sockets() int { return p.places.sockets.Count() }

// Request is what is known of a request, for metrics and audit lines.
type Request struct {
	// Route is cluster, service, own, root or none.
	Route string
	// Verb, Resource, Namespace and Name are Kubernetes' words.
	Verb, Resource, Namespace, Name string
	// IsChange is that it changes something, or tries to. What a caller may send to a service is work of its application.
	IsChange, IsStream bool
	// Code is that of an answer that was written to the connection itself, such as 101 of a WebSocket that goes on.
	Code int
	// Caller is nil where nobody knows.
	Caller *access.Caller
}

// Serve answers a request, and fills in what is known of it.
func (p *Proxy) Serve(w http.ResponseWriter, r *http.Request, known *Request) {
	known.Route = "none"
	x := &exchange{known: known}
	r = r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x))
	if err := p.serve(w, r, x); err != nil {
		p.refuseWhole(w, r, x, err)
	}
}

// serve answers a request, or returns why it is refused.
func (p *Proxy) serve(w http.ResponseWriter, r *http.Request, x *exchange) (err error) {
	facts, err := gate.Read(r)
	if err != nil {
		return err
	}
	x.isSocket = facts.IsWebSocket
	target, err := p.Site.Read(route.Request{Method: r.Method, Host: r.Host, Target: r.RequestURI})
	if err != nil {
		return err
	}
	x.target = target
	x.known.note(target, x.isSocket)
	if target.Kind == route.Own && target.Path != resumePath {
		return p.serveSignIn(w, r, x)
	}
	if err := p.judge(r, target, facts); err != nil {
		return err
	}
	switch target.Kind {
	case route.Root:
		return p.serveRoot(w)
	case route.Own:
		return p.serveResume(w, r, x)
	case route.Cluster, route.Service:
	}
	if isElsewhere, err := p.redirect(w, r, target); isElsewhere || err != nil {
		return err
	}
	return p.serveTarget(w, r, x)
}

// note fills in what a target says.
func (k *Request) note(target route.Target, isSocket bool) {
	k.Verb, k.Namespace, k.Name, k.IsStream = target.Verb, target.Namespace, target.Name, isSocket
	switch target.Kind {
	case route.Cluster:
		k.Route, k.Resource = "cluster", string(target.Kind)+"/proxy"
	case route.Service:
		k.Route, k.Resource = "service", string(target.Kind)+"/proxy"
	case route.Own, route.Root:
		k.Route = string(target.Kind)
	}
	k.IsChange = k.Verb != "" && k.Verb != "get"
}

// redirect sends a browser to where it must be for a target, and reports whether it did so. Below a wildcard, each object
// has an origin of its own: what signs a browser in must not count at the one that all share.
func (p *Proxy) redirect(w http.ResponseWriter, r *http.Request, target route.Target) (bool, error) {
	isFromProxy := p.Access.IsFromProxy(r)
	isShared := p.Site.Wildcard != "" && !target.IsBelowWildcard && (!hasAuthorization(r) || isFromProxy)
	if isShared && !isNavigation(r) && (len(r.Header["Cookie"]) > 0 || isFromProxy) {
		return false, &Refusal{Code: http.StatusForbidden,
			Text: "the object has an address of its own: open it from the page"}
	}
	if !isNavigation(r) || !isShared && !target.HasNoSlash {
		return false, nil
	}
	at := target.Prefix + "/"
	if isShared {
		at = "https://" + p.Site.HostOf(target.Kind, target.Namespace, target.Name) + target.Path
	}
	if target.Query != "" {
		at += "?" + target.Query
	}
	w.Header().Set("Location", at)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusPermanentRedirect)
	return true, nil
}

// identify returns whose a request is. Where it is handled, it was answered.
func (p *Proxy) identify(ctx context.Context, w http.ResponseWriter, r *http.Request, x *exchange) (isHandled bool, err error) {
	if !hasAuthorization(r) && !p.Access.IsProxied(r) && p.Sessions != nil {
		authorized, handled := p.Sessions.Open(w, r)
		if handled {
			return true, nil
		}
		r = authorized
		x.until, _ = r.Context().Deadline()
	}
	_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	x.token = strings.TrimSpace(token)
	caller, err := p.Access.IdentifyLately(ctx, r)
	if err != nil {
		return false, fmt.Errorf("identify the caller: %w", err)
	}
	x.caller, x.known.Caller = caller, caller
	return false, nil
}

// attributes are what a caller needs for a target.
func attributes(target route.Target) authorizationv1.ResourceAttributes {
	return authorizationv1.ResourceAttributes{
		Verb: target.Verb, Group: "heliostat.dev", Version: "v1beta1", Resource: string(target.Kind), Subresource: "proxy",
		Namespace: target.Namespace, Name: target.Name,
	}
}

func hasAuthorization(r *http.Request) bool { return len(r.Header["Authorization"]) > 0 }

// isNavigation reports whether a request opens a page.
func isNavigation(r *http.Request) bool {
	if r.Method != http.MethodGet {
		return false
	}
	if mode := r.Header.Get("Sec-Fetch-Mode"); mode != "" {
		return mode == "navigate"
	}
	return strings.Contains(r.Header.Get("Accept"), "text/html")
}
