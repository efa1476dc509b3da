// Package passthrough hands requests for the kinds of heliostat.dev on to the API server, as their caller.
//
// In: a request, and its caller. Out: the API server's answer as it comes, or a refusal in the form
// of Kubernetes, which its clients understand. What may pass is one table; whether the caller may do it, the API server
// says.
//
// It must never send a request twice that may have been carried out, hand on a header that is not in its list, keep an
// answer back, or look into a body. A watch ends when its caller's right does.
package passthrough

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"slices"
	"time"

	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/portal/access"
	"github.com/heliostat-dev/heliostat/portal/limits"
)

const (
	// MaxBody is how many bytes the body of a request may have.
	MaxBody = 4 << 20
	// maxKept is up to which size a body is kept until there is an answer. An API server that ends a connection says which
	// requests it has not looked at, and those are sent again; one whose body is gone cannot be.
	maxKept = 64 << 10
)

// answerWithin is how long one request may take that is no watch. The API server itself takes at most a minute.
const answerWithin = 75 * time.Second

// passed are the headers of requests that get through. Any other could be one by which an API server learns who a user is;
// access says that of each request.
var passed = []string{
	"Accept", "Accept-Encoding", "Cache-Control", "Content-Encoding", "Content-Type", "If-Match", "If-None-Match",
	"Kubectl-Command", "Kubectl-Session", "Traceparent", "Tracestate", "User-Agent", "X-Request-Id",
}

// Proxy hands requests on. It may be used by many goroutines.
type Proxy struct {
	// ending is over when watches must end.
	ending     context.Context
	kubernetes *access.Kubernetes
	// streams are places of watches, requests those of all else.
	streams, requests *limits.Limiter
	clock             clock.WithTicker
	reverse           *httputil.ReverseProxy
}

// Needs is what a proxy is made of.
type Needs struct {
	Kubernetes *access.Kubernetes
	// Streams are places of watches, and Requests those of all else. Others may use them too.
	Streams, Requests *limits.Limiter
	Clock             clock.WithTicker
	Log               *slog.Logger
}

// New returns a proxy to an API server. Watches end with the context, as those do that the API server ends.
func New(ctx context.Context, needs Needs) *Proxy {
	p := &Proxy{ending: ctx, kubernetes: needs.Kubernetes, streams: needs.Streams, requests: needs.Requests, clock: needs.Clock}
	p.reverse = &httputil.ReverseProxy{
		Rewrite:        p.rewrite,
		Transport:      callersOwn{needs.Kubernetes},
		FlushInterval:  -1, // at once
		ModifyResponse: guardAnswer,
		ErrorHandler:   refuseFailed,
		ErrorLog:       slog.NewLogLogger(needs.Log.Handler(), slog.LevelDebug),
	}
	return p
}

// passing is one request on its way.
type passing struct {
	request Request
	caller  *access.Caller
	control *http.ResponseController
}

type passingKey struct{}

func passingOf(ctx context.Context) *passing {
	one, _ := ctx.Value(passingKey{}).(*passing)
	return one
}

// callersOwn sends each request as its caller.
type callersOwn struct{ kubernetes *access.Kubernetes }

// RoundTrip implements http.RoundTripper.
func (c callersOwn) RoundTrip(request *http.Request) (*http.Response, error) {
	return c.kubernetes.Transport(passingOf(request.Context()).caller).RoundTrip(request)
}

// Serve hands a request on that was read by Read, for its caller.
func (p *Proxy) Serve(w http.ResponseWriter, r *http.Request, request Request, caller *access.Caller) {
	if r.ContentLength > MaxBody {
		tooLarge().Write(w)
		return
	}
	kind, serve := p.requests, p.serve
	if request.IsStream {
		kind, serve = p.streams, p.serveStream
	}
	giveBack, err := kind.Take(caller.Holder())
	if err != nil {
		full(err, request.IsStream).Write(w)
		return
	}
	defer giveBack()
	one := &passing{request: request, caller: caller, control: http.NewResponseController(w)}
	// A connection that is kept would have the deadlines of the request before.
	defer func() { _ = one.control.SetWriteDeadline(time.Time{}) }()
	serve(w, r, one)
}

// serve hands on what has an end of its own.
func (p *Proxy) serve(w http.ResponseWriter, r *http.Request, one *passing) {
	ctx, cancel := context.WithTimeout(context.WithValue(r.Context(), passingKey{}, one), answerWithin)
	defer cancel()
	until := p.clock.Now().Add(answerWithin + leaveWithin)
	_, _ = one.control.SetReadDeadline(until), one.control.SetWriteDeadline(until) // every server's connections have them
	r = r.WithContext(ctx)
	r.Body = http.MaxBytesReader(w, r.Body, MaxBody)
	if err := keepBody(r); err != nil {
		refuse(http.StatusBadRequest, "the body of the request ends before its length: send all of it").Write(w)
		return
	}
	p.reverse.ServeHTTP(w, r)
}

// keepBody reads a body that is small and of known length, so that it can be sent again.
func keepBody(r *http.Request) error {
	if r.ContentLength <= 0 || r.ContentLength > maxKept {
		return nil
	}
	text := make([]byte, r.ContentLength)
	if _, err := io.ReadFull(r.Body, text); err != nil {
		return fmt.Errorf("read a body: %w", err)
	}
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
	r.Body = io.NopCloser(bytes.NewReader(text))
	return nil
}

// serveStream hands on a watch.
func (p *Proxy) serveStream(w http.ResponseWriter, r *http.Request, one *passing) {
	ctx, end := context.WithCancelCause(context.WithValue(r.Context(), passingKey{}, one))
	defer context.AfterFunc(p.ending, func() { end(errServerEnds) })()
	confirmed := make(chan struct{})
	go func() {
		defer close(confirmed)
		p.confirm(ctx, one, end)
	}()
	defer func() {
		end(errAnswered)
		<-confirmed // what it does with the connection is for this answer alone
	}()
	p.reverse.ServeHTTP(w, r.WithContext(ctx))
}

// rewrite makes the request that the API server gets.
func (p *Proxy) rewrite(r *httputil.ProxyRequest) {
	one := passingOf(r.In.Context())
	r.SetURL(p.kubernetes.Address())
	r.Out.URL.RawQuery = one.request.query
	header := http.Header{}
	for _, name := range passed {
		if values := r.Out.Header.Values(name); len(values) > 0 {
			header[name] = slices.Clone(values)
		}
	}
	r.Out.Header, r.Out.Trailer = header, nil
	if r.In.Method == http.MethodGet || one.request.IsStream {
		r.Out.Body, r.Out.ContentLength, r.Out.TransferEncoding = nil, 0, nil
	}
}

// refuseFailed answers a request that got no answer.
func refuseFailed(w http.ResponseWriter, r *http.Request, err error) {
	refusalOf(r.Context(), err).Write(w)
}

func refusalOf(ctx context.Context, err error) *Refusal {
	var large *http.MaxBytesError
	var ended *Refusal
	switch {
	case errors.As(context.Cause(ctx), &ended):
		return ended
	case errors.As(err, &large):
		return tooLarge()
	case errors.Is(err, access.ErrUnreached):
		return refuse(http.StatusServiceUnavailable, "the API server cannot be reached, and nothing was done: try again")
	case errors.Is(err, access.ErrUnauthorized):
		return refuse(http.StatusUnauthorized, err.Error())
	case errors.Is(err, access.ErrAccount):
		return refuse(http.StatusServiceUnavailable, "the API server does not accept the server's own account, and nothing was done: tell who runs the server")
	case errors.Is(err, context.DeadlineExceeded):
		return refuse(http.StatusGatewayTimeout, "the API server gave no answer in time, and a change may have been made: look before you try again")
	}
	return refuse(http.StatusServiceUnavailable, "the API server's answer was lost, and a change may have been made: look before you try again")
}

func tooLarge() *Refusal {
	return refuse(http.StatusRequestEntityTooLarge, "the body of the request has more than 4 MiB: send less")
}
