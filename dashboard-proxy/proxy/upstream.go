package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"time"

	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/heliostat-dev/heliostat/portal/heads"
)

// Bounds of connections to upstreams.
const (
	answerWithin  = 5 * time.Minute
	connectWithin = 10 * time.Second
	// idleWithin is for how long a connection is kept that carries nothing. It is less than that of Ray's servers, so that
	// no request goes into one that its end is on the way of.
	idleWithin  = 4 * time.Second
	maxIdleEach = 64
	maxHeader   = 64 << 10
	buffer      = 4 << 10
	// maxTried is how many endpoints are tried where the first cannot be connected to.
	maxTried = 3
)

// endpoint is where a request can go. Connections are kept by key, which is of one pod: a pod that is gone takes its
// connections along, even if another pod has its address by then.
type endpoint struct {
	key, host string
	connect   func(ctx context.Context) (net.Conn, error)
}

type endpointKey struct{}

// upstream sends requests to endpoints, each once.
type upstream struct{ transport *http.Transport }

func newUpstream(within time.Duration) *upstream {
	if within == 0 {
		within = answerWithin
	}
	return &upstream{transport: &http.Transport{
		// Proxy stays nil: the environment has no say in where a token goes.
		DialContext: dial, DisableCompression: true, MaxResponseHeaderBytes: maxHeader, ResponseHeaderTimeout: within,
		IdleConnTimeout: idleWithin, MaxIdleConnsPerHost: maxIdleEach, ReadBufferSize: buffer, WriteBufferSize: buffer,
	}}
}

// unconnected is that an endpoint could not be connected to: it has got nothing of the request.
type unconnected struct{ cause error }

// Error implements error.
func (u *unconnected) Error() string { return "connect: " + u.cause.Error() }

// Unwrap returns the cause.
func (u *unconnected) Unwrap() error { return u.cause }

func dial(ctx context.Context, _, _ string) (net.Conn, error) {
	to, is := ctx.Value(endpointKey{}).(endpoint)
	if !is {
		return nil, errors.New("connect: the request has no endpoint")
	}
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	connection, err := to.connect(ctx)
	if err != nil {
		return nil, &unconnected{err}
	}
	return connection, nil
}

var (
	// errSwitched is that an upstream changed the protocol unasked.
	errSwitched = errors.New("the upstream changed the protocol of its own accord")
	errNowhere  = errors.New("the request has no endpoint")
)

// RoundTrip implements http.RoundTripper. An endpoint that cannot be connected to is followed by another one.
func (u *upstream) RoundTrip(request *http.Request) (*http.Response, error) {
	x := exchangeOf(request.Context())
	if x == nil || len(x.endpoints) == 0 {
		return nil, errNowhere
	}
	var err error
	first := rand.IntN(len(x.endpoints))
	for i := range min(len(x.endpoints), maxTried) {
		var answer *http.Response
		answer, err = u.try(request, x, x.endpoints[(first+i)%len(x.endpoints)])
		if err == nil {
			return answer, nil
		}
		var not *unconnected
		if !errors.As(err, &not) || request.Context().Err() != nil {
			break
		}
	}
	return nil, err
}

// try sends a request to one endpoint.
func (u *upstream) try(request *http.Request, x *exchange, to endpoint) (*http.Response, error) {
	// A context of its own has no trace, by which answers before the last one would be passed on, without end.
	ctx, cancel := context.WithCancelCause(context.WithValue(context.Background(), endpointKey{}, to))
	context.AfterFunc(request.Context(), func() { cancel(context.Cause(request.Context())) })
	out := request.WithContext(ctx)
	at := *request.URL
	at.Host = to.key
	out.URL = &at
	x.host, out.Host = to.host, to.host
	once(out)
	answer, err := u.transport.RoundTrip(out)
	if err == nil && answer.StatusCode == http.StatusSwitchingProtocols && !x.isSocket {
		_ = answer.Body.Close() // nothing of it is wanted
		err = errSwitched
	}
	if err != nil {
		cancel(errEnded)
		return nil, fmt.Errorf("ask the upstream: %w", err)
	}
	answer.Request = request
	return answer, nil
}

// repeatable are headers with which Go's transport sends a request again whose connection ends.
var repeatable = []string{"Idempotency-Key", "X-Idempotency-Key"}

// once has Go's transport send a request at most once. It repeats one without a body whose kept connection ends before the
// answer, which the upstream may have carried out; and it repeats no body that it cannot get again.
func once(request *http.Request) {
	request.GetBody = nil
	for _, name := range repeatable {
		if values := request.Header[name]; values != nil {
			delete(request.Header, name)
			request.Header[string(bytes.ToLower([]byte(name)))] = values // the same header, which the transport does not know
		}
	}
	if request.Body != nil && request.Body != http.NoBody {
		request.Body = io.NopCloser(request.Body) // another endpoint may get it yet
		return
	}
	switch request.Method {
	case http.MethodGet, http.MethodHead:
		request.Body, request.ContentLength = nothing{}, 0
	}
}

// nothing is a body that is empty, and that the transport does not know to be so before it has read it.
type nothing struct{}

// Read implements io.Reader.
func (nothing) Read([]byte) (int, error) { return 0, io.EOF }

// Close implements io.Closer.
func (nothing) Close() error { return nil }

// How long a way to a head counts: for the token of a request, and for a new connection.
const (
	wayKept  = 10 * time.Second
	wayFresh = time.Second
	maxWays  = 10_000
)

// ways remembers ways to heads for a short while.
type ways struct {
	// ending is over when no way is needed any more.
	ending context.Context
	heads  Heads
	clock  clock.PassiveClock
	kept   *lru.Cache
}

type keptWay struct {
	way *heads.Way
	at  time.Time
}

func newWays(ending context.Context, of Heads, now clock.PassiveClock) *ways {
	return &ways{ending: ending, heads: of, clock: now, kept: lru.New(maxWays)}
}

// find returns the way to a head, as it was at most so long ago.
func (w *ways) find(ctx context.Context, head heads.Head, within time.Duration) (*heads.Way, error) {
	if found, is := w.kept.Get(head.UID); is {
		if one, is := found.(keptWay); is && w.clock.Since(one.at) < within {
			return one.way, nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	at := w.clock.Now()
	way, err := w.heads.FindWay(ctx, head)
	if err != nil {
		w.kept.Remove(head.UID)
		return nil, err
	}
	w.kept.Add(head.UID, keptWay{way, at})
	return way, nil
}
