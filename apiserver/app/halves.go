package app

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/apiserver/passthrough"
	"github.com/heliostat-dev/heliostat/apiserver/rest"
	"github.com/heliostat-dev/heliostat/portal/access"
	"github.com/heliostat-dev/heliostat/portal/limits"
	"github.com/heliostat-dev/heliostat/portal/problem"
)

// objects is the half that hands Kubernetes' own paths on.
type objects struct {
	kubernetes *access.Kubernetes
	proxy      *passthrough.Proxy
}

// identify implements half. Where the API server judges a token it does so again with the request itself.
func (o objects) identify(ctx context.Context, r *http.Request) (*access.Caller, error) {
	return o.kubernetes.CallerOf(ctx, r)
}

// read implements half.
func (o objects) read(r *http.Request) (request, error) {
	asked, refusal := passthrough.Read(r)
	if refusal != nil {
		return request{route: passthrough.RouteNone}, refusal
	}
	resource := asked.Resource
	if asked.Subresource != "" {
		resource += "/" + asked.Subresource
	}
	return request{
		route: asked.Route, verb: asked.Verb, resource: resource, namespace: asked.Namespace, name: asked.Name,
		isChange: asked.IsChange(), isStream: asked.IsStream,
		serve: func(w http.ResponseWriter, r *http.Request, caller *access.Caller) {
			o.proxy.Serve(w, r, asked, caller)
		},
	}, nil
}

// refuse implements half: as a Status, which clients of Kubernetes understand.
func (o objects) refuse(w http.ResponseWriter, err error) {
	var refusal *passthrough.Refusal
	if !errors.As(err, &refusal) {
		p := problem.Of(err)
		refusal = &passthrough.Refusal{Code: p.Code, Message: p.Error(), RetryAfter: int(p.RetryAfter / time.Second)}
	}
	refusal.Write(w)
}

// verbs is the half below /v1.
type verbs struct {
	kubernetes        *access.Kubernetes
	api               *rest.API
	streams, requests *limits.Limiter
	clock             clock.PassiveClock
}

// Bounds of a request below /v1 that is no stream.
const (
	answerWithin = 60 * time.Second
	leaveWithin  = 5 * time.Second
)

// identify implements half.
func (v verbs) identify(ctx context.Context, r *http.Request) (*access.Caller, error) {
	return v.kubernetes.Identify(ctx, r)
}

// read implements half.
func (v verbs) read(r *http.Request) (request, error) {
	asked, err := v.api.Read(r)
	if err != nil {
		return request{route: passthrough.RouteNone}, err
	}
	return v.requestOf(asked), nil
}

// requestOf returns a request of the API as all requests are.
func (v verbs) requestOf(asked rest.Request) request {
	resource := cmp.Or(asked.Kind, "objects")
	return request{
		route: cmp.Or(asked.Label(), passthrough.RouteNone), verb: verbOf(asked.Label()), resource: resource, namespace: asked.Namespace, name: asked.Name,
		isChange: asked.IsChange(), isStream: asked.IsStream(),
		serve: func(w http.ResponseWriter, r *http.Request, caller *access.Caller) { v.serve(w, r, asked, caller) },
	}
}

// verbOf returns the verb of a call, such as suspend of SuspendObject.
func verbOf(call string) string {
	for _, noun := range []string{"Object", "Submission"} {
		if verb, is := strings.CutSuffix(call, noun); is {
			return strings.ToLower(verb)
		}
	}
	return call
}

// serve answers a request in a place of its own, once its body is whole.
func (v verbs) serve(w http.ResponseWriter, r *http.Request, asked rest.Request, caller *access.Caller) {
	asked, err := v.api.Receive(w, r, asked, caller)
	if err != nil {
		v.api.Refuse(w, err)
		return
	}
	giveBack, err := v.take(asked.IsStream(), caller)
	if err != nil {
		v.api.Refuse(w, err)
		return
	}
	defer giveBack()
	control := http.NewResponseController(w)
	// A connection that is kept would have the deadlines of the request before.
	defer func() { _ = control.SetWriteDeadline(time.Time{}) }()
	if !asked.IsStream() {
		ctx, cancel := context.WithTimeout(r.Context(), answerWithin)
		defer cancel()
		until := v.clock.Now().Add(answerWithin + leaveWithin)
		_, _ = control.SetReadDeadline(until), control.SetWriteDeadline(until) // every server's connections have them
		r = r.WithContext(ctx)
	}
	v.api.Serve(w, r, asked, caller)
}

// take takes a place for a call.
func (v verbs) take(isStream bool, caller *access.Caller) (giveBack func(), err error) {
	from, after := v.requests, time.Second
	if isStream {
		from, after = v.streams, leaveWithin
	}
	if giveBack, err = from.Take(caller.Holder()); err != nil {
		return nil, problem.New(http.StatusTooManyRequests, "TooManyRequests", err.Error(),
			"end something, or try again").Later(after)
	}
	return giveBack, nil
}

// refuse implements half.
func (v verbs) refuse(w http.ResponseWriter, err error) { v.api.Refuse(w, err) }
