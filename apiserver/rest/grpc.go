package rest

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/apiserver/access"
	"github.com/heliostat-dev/heliostat/apiserver/problem"
	"github.com/heliostat-dev/heliostat/apiserver/view"
	heliostatv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/v1"
)

// Around is what happens to every call of gRPC before and after it is answered. REST has it in package app.
type Around func(ctx context.Context, call Call, answer func(ctx context.Context) error) error

// Call is a call of gRPC.
type Call struct {
	// Request is what it asks for, as REST has it. Of a stream, what it is about is not known before.
	Request Request
	// Header is the call's metadata as HTTP has it.
	Header http.Header
	// Caller is who the call is of, and Refused why there is none: then nothing else is known of the call.
	Caller  *access.Caller
	Refused error
}

// How long a connection of gRPC lasts: so clients spread over new replicas.
const (
	quietFor  = 15 * time.Second
	answerFor = 15 * time.Second
)

// NewGRPC returns a server of the same calls by gRPC.
func (a *API) NewGRPC(settings credentials.TransportCredentials, around Around) *grpc.Server {
	g := &calls{api: a, around: around}
	server := grpc.NewServer(
		grpc.Creds(settings),
		grpc.MaxRecvMsgSize(MaxBody),
		grpc.MaxConcurrentStreams(250),
		grpc.MaxHeaderListSize(32<<10),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: quietFor, Timeout: answerFor}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: quietFor / 3, PermitWithoutStream: true}),
		grpc.UnaryInterceptor(g.unary),
		grpc.StreamInterceptor(g.stream),
		grpc.UnknownServiceHandler(refuseUnknown),
	)
	heliostatv1.RegisterPortalServer(server, a.portal)
	return server
}

// refuseUnknown answers a call that the protocol does not have.
func refuseUnknown(any, grpc.ServerStream) error {
	return problem.New(http.StatusMethodNotAllowed, "MethodNotAllowed", "the call is not served",
		"see the calls in docs/reference/rest.md")
}

// calls answers calls of gRPC.
type calls struct {
	api    *API
	around Around
}

func (g *calls) unary(
	ctx context.Context, message any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler,
) (answer any, err error) {
	err = g.serve(ctx, info.FullMethod, message, func(ctx context.Context) error {
		err := checkDepthOf(message)
		if err == nil {
			answer, err = next(ctx, message)
		}
		return err
	})
	return answer, err
}

func (g *calls) stream(
	server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler,
) error {
	return g.serve(stream.Context(), info.FullMethod, nil, func(ctx context.Context) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		out := &callersStream{ServerStream: stream, ctx: ctx, clock: g.api.portal.Clock}
		ended := make(chan error, 1)
		go func() { ended <- guard(func() error { return next(server, out) })() }()
		ticker := out.clock.NewTicker(lookEach)
		defer ticker.Stop()
		for {
			select {
			case err := <-ended:
				if stream.Context().Err() != nil { // what could not be sent then is no failure of the server
					return stream.Context().Err()
				}
				return err
			case <-ticker.C():
			}
			if out.under.isStuck(out.clock.Now()) {
				return errStuck // grpc ends the write that is under way with its stream
			}
		}
	})
}

// underWay notes since when a write has been under way.
type underWay struct{ since atomic.Int64 }

func (u *underWay) begin(at time.Time) { u.since.Store(at.UnixNano()) }

func (u *underWay) end() { u.since.Store(0) }

// isStuck reports whether a write takes too long.
func (u *underWay) isStuck(now time.Time) bool {
	since := u.since.Load()
	return since != 0 && now.UnixNano()-since >= int64(stuckAfter)
}

// errStuck is that a caller does not read.
var errStuck = problem.New(http.StatusServiceUnavailable, "ServiceUnavailable",
	"nothing of the stream was read for 20 s", "go on from the last event")

// callersStream is a stream whose context has its caller.
type callersStream struct {
	grpc.ServerStream
	ctx   context.Context //nolint:containedctx // grpc's interface returns one
	clock clock.WithTicker
	under underWay
}

// SendMsg implements grpc.ServerStream. It waits for a caller who does not read.
func (s *callersStream) SendMsg(message any) error {
	s.under.begin(s.clock.Now())
	defer s.under.end()
	return s.ServerStream.SendMsg(message)
}

// Context implements grpc.ServerStream.
func (s *callersStream) Context() context.Context { return s.ctx }

// serve identifies the caller of a call and has it answered. A call that panics fails alone.
func (g *calls) serve(ctx context.Context, method string, message any, answer func(context.Context) error) (err error) {
	defer func() {
		if err != nil {
			err = g.api.statusOf(method, err)
		}
	}()
	call := Call{Request: g.api.requestOf(method, message), Header: headerOf(ctx)}
	call.Caller, call.Refused = g.identify(ctx, requestOf(ctx, call.Header))
	return guard(func() error {
		return g.around(withCaller(ctx, call.Caller), call, func(ctx context.Context) error {
			if call.Refused != nil {
				return call.Refused
			}
			return guard(func() error { return answer(ctx) })() // so that one that panics is counted and noted too
		})
	})()
}

// identifyWithin is how long a call waits for who it is of, as a request of REST does.
const identifyWithin = 4 * time.Second

// identify returns whose a call is. What the API server says of the server's own question is not the caller's to read.
func (g *calls) identify(ctx context.Context, r *http.Request) (*access.Caller, error) {
	within, cancel := context.WithTimeout(ctx, identifyWithin)
	defer cancel()
	caller, err := g.api.portal.Access.Identify(within, r)
	if err == nil || errors.Is(err, access.ErrUnauthorized) || ctx.Err() != nil {
		return caller, err
	}
	g.api.log.Error("Cannot learn who a caller is", "error", err)
	return nil, problem.New(http.StatusServiceUnavailable, "ServiceUnavailable",
		"nobody could be asked who the caller is, and nothing was done",
		"try again").Later(time.Second)
}

// requestOf returns what a call asks for.
func (a *API) requestOf(method string, message any) Request {
	request := Request{route: &Route{Method: http.MethodGet}} // which changes nothing, and has no name
	for i := range a.routes {
		if strings.HasSuffix(method, "/"+a.routes[i].Call) {
			request.route = &a.routes[i]
		}
	}
	if one, is := message.(interface{ GetNamespace() string }); is {
		request.Namespace = one.GetNamespace()
	}
	if one, is := message.(interface{ GetKind() string }); is {
		request.Kind = one.GetKind()
	}
	if strings.Contains(request.route.Call, "Submission") {
		request.Kind = view.Clusters
	}
	if one, is := message.(interface{ GetName() string }); is {
		request.Name = one.GetName()
	}
	return request
}

// statusOf returns an error as the status of a call.
func (a *API) statusOf(method string, err error) error {
	p := problem.Of(err)
	if p.Code >= http.StatusInternalServerError {
		a.log.Error("A call of gRPC failed", "call", method, "error", err)
	}
	return p.GRPCStatus().Err()
}

// headerOf returns the metadata of a call as HTTP has it.
func headerOf(ctx context.Context) http.Header {
	header := http.Header{}
	sent, _ := metadata.FromIncomingContext(ctx)
	for name, values := range sent {
		for _, value := range values {
			header.Add(name, value)
		}
	}
	return header
}

// requestOf returns a call as a request of HTTP: with its header, and the certificate that its connection showed.
func requestOf(ctx context.Context, header http.Header) *http.Request {
	r := &http.Request{Method: http.MethodPost, URL: &url.URL{Path: "/"}, Header: header}
	if from, is := peer.FromContext(ctx); is {
		if shown, is := from.AuthInfo.(credentials.TLSInfo); is {
			r.TLS = &shown.State
		}
	}
	return r
}
