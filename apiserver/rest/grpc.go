package rest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/heliostat-dev/heliostat/apiserver/connections"
	"github.com/heliostat-dev/heliostat/apiserver/view"
	"github.com/heliostat-dev/heliostat/portal/access"
	"github.com/heliostat-dev/heliostat/portal/problem"
	heliostatv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/v1"
)

// Around is what happens to every call of gRPC before and after it is answered. REST has it in package app.
type Around func(ctx context.Context, call *Call, answer func(ctx context.Context) error) error

// Call is a call of gRPC.
type Call struct {
	// Request is what it asks for, as REST has it. What it is about is known once it is answered, as its message is not read
	// before.
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
	// connectWithin is how long a connection may take until it speaks HTTP/2.
	connectWithin = 10 * time.Second
	// readBuffer is what each connection has, also one that is quiet.
	readBuffer = 8 << 10
)

// What one connection may send before anything of it is looked at, by gRPC and by HTTP/2: so many streams, with so many bytes
// each.
const (
	MaxConcurrentStreams = 32
	Window               = 64 << 10
)

// NewGRPC returns a server of the same calls by gRPC. Each call of the protocol is served as a stream: a plain call reads its
// message before interceptors are called, and a stream when it is asked for.
func (a *API) NewGRPC(settings credentials.TransportCredentials, around Around, more ...grpc.ServerOption) *grpc.Server {
	g := &calls{api: a, around: around}
	server := grpc.NewServer(append(more,
		grpc.Creds(settings),
		grpc.ForceServerCodecV2(newCodec()),
		grpc.MaxRecvMsgSize(MaxBody),
		grpc.MaxConcurrentStreams(MaxConcurrentStreams),
		grpc.StaticStreamWindowSize(Window),
		grpc.StaticConnWindowSize(Window),
		grpc.MaxHeaderListSize(32<<10),
		grpc.ConnectionTimeout(connectWithin),
		grpc.ReadBufferSize(readBuffer),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: quietFor, Timeout: answerFor}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: quietFor / 3, PermitWithoutStream: true}),
		grpc.UnknownServiceHandler(g.handler(refuseUnknown)),
	)...)
	service := asStreams(heliostatv1.Portal_ServiceDesc)
	for i := range service.Streams {
		service.Streams[i].Handler = g.handler(service.Streams[i].Handler)
	}
	server.RegisterService(service, a.portal)
	return server
}

// handler returns what gRPC calls for a call.
func (g *calls) handler(next grpc.StreamHandler) grpc.StreamHandler {
	return func(server any, stream grpc.ServerStream) error {
		method, _ := grpc.MethodFromServerStream(stream) // grpc puts it there
		return g.serve(method, stream, func(stream grpc.ServerStream) error { return next(server, stream) })
	}
}

// asStreams returns a service whose plain calls are streams of one message and one answer. On the network these are the same.
func asStreams(service grpc.ServiceDesc) *grpc.ServiceDesc {
	service.Streams = slices.Clone(service.Streams)
	for _, plain := range service.Methods {
		service.Streams = append(service.Streams, grpc.StreamDesc{
			StreamName: plain.MethodName,
			Handler: func(server any, stream grpc.ServerStream) error {
				answer, err := plain.Handler(server, stream.Context(), stream.RecvMsg, nil)
				if err != nil {
					return err
				}
				return stream.SendMsg(answer)
			},
		})
	}
	service.Methods = nil
	return &service
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

// serve answers a call: it identifies the caller, receives the message, has the call counted and given a place, and then reads
// the message. A call that panics fails alone.
func (g *calls) serve(method string, stream grpc.ServerStream, next func(grpc.ServerStream) error) (err error) {
	defer func() {
		if err != nil {
			err = g.api.statusOf(method, err)
		}
	}()
	ctx := stream.Context()
	call := &Call{Request: g.api.requestOf(method, nil), Header: headerOf(ctx)}
	return guard(func() error {
		call.Caller, call.Refused = g.identify(ctx, requestOf(ctx, call.Header))
		out := &callersStream{ServerStream: stream, api: g.api, call: call}
		var late error
		if call.Refused == nil && call.Request.Label() != "" {
			late = out.receive(ctx)
		}
		return g.around(withCaller(ctx, call.Caller), call, func(ctx context.Context) error {
			switch {
			case call.Refused != nil:
				return call.Refused
			case late != nil:
				return late
			}
			// One that panics is counted and noted too.
			return guard(func() error { return g.answer(ctx, out, func() error { return next(out) }) })()
		})
	})()
}

// answer answers a call, unless its caller does not read.
func (g *calls) answer(ctx context.Context, out *callersStream, next func() error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out.ctx = ctx
	ended := make(chan error, 1)
	go func() {
		defer out.giveBack()
		ended <- guard(next)()
	}()
	ticker := g.api.portal.Clock.NewTicker(lookEach)
	defer ticker.Stop()
	for {
		select {
		case err := <-ended:
			if gone := out.ServerStream.Context().Err(); gone != nil { // what could not be sent then is no failure of the server
				return gone
			}
			return err
		case <-ticker.C():
		}
		if out.under.isStuck(g.api.portal.Clock.Now()) {
			return errStuck // grpc ends the write that is under way with its stream
		}
	}
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

// callersStream is a call whose caller is known. Its message is received before anything is answered, and read when the call
// asks for it.
type callersStream struct {
	grpc.ServerStream
	api     *API
	call    *Call
	ctx     context.Context //nolint:containedctx // grpc's interface returns one
	message *wireMessage
	taken   func()
	under   underWay
}

// receive receives the message.
func (s *callersStream) receive(ctx context.Context) error {
	_, err := s.api.receive(ctx, senderOf(s.call.Caller), func(ctx context.Context) ([]byte, error) {
		message, ended := &wireMessage{}, make(chan error, 1)
		go func() { ended <- guard(func() error { return s.ServerStream.RecvMsg(message) })() }() // ends with the call
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case err := <-ended:
			s.message = message
			return nil, err
		}
	})
	var known *problem.Problem
	switch {
	case err == nil, errors.As(err, &known), ctx.Err() != nil:
		return err
	case status.Code(err) == codes.ResourceExhausted: // grpc has answered so already
		return tooLong(MaxBody)
	}
	return unreadable()
}

// RecvMsg implements grpc.ServerStream. Each call has one message.
func (s *callersStream) RecvMsg(into any) error {
	message, is := into.(proto.Message)
	if !is || s.message == nil {
		return io.EOF
	}
	wire, of := s.message.wire, message.ProtoReflect().Descriptor()
	s.message = nil
	if most := maxBodyOf(s.call.Request.Label()); int64(len(wire)) > most {
		return tooLong(most)
	}
	if s.call.Request.Label() == callCreate {
		if err := s.api.portal.permitAnyKind(s.ctx, namespaceOf(wire, of)); err != nil {
			return err
		}
	}
	values, err := countMessage(wire, of)
	if err != nil {
		return err
	}
	if s.taken, err = s.api.takeMemory(s.ctx, senderOf(s.call.Caller), len(wire), values); err != nil {
		return err
	}
	if err := readMessage(wire, message); err != nil {
		return err
	}
	if s.call.Request.IsStream() { // it goes on for hours, and keeps little of its message
		s.taken()
	}
	s.call.Request = s.api.requestOf(s.call.Request.Label(), message)
	return nil
}

// giveBack gives back the memory of the message.
func (s *callersStream) giveBack() {
	if s.taken != nil {
		s.taken()
	}
}

// SendMsg implements grpc.ServerStream. It waits for a caller who does not read.
func (s *callersStream) SendMsg(message any) error {
	s.under.begin(s.api.portal.Clock.Now())
	defer s.under.end()
	return s.ServerStream.SendMsg(message)
}

// Context implements grpc.ServerStream.
func (s *callersStream) Context() context.Context { return s.ctx }

// identifyWithin is how long a call waits for who it is of, as a request of REST does.
const identifyWithin = 4 * time.Second

// identify returns whose a call is. What the API server says of the server's own question is not the caller's to read.
func (g *calls) identify(ctx context.Context, r *http.Request) (*access.Caller, error) {
	done, err := connections.Ask(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	within, cancel := context.WithTimeout(ctx, identifyWithin)
	defer cancel()
	caller, err := g.api.portal.Access.Identify(within, r)
	if err == nil || errors.Is(err, access.ErrUnauthorized) || ctx.Err() != nil {
		return caller, err
	}
	g.api.log.Error("Cannot authenticate a caller", "error", err)
	return nil, problem.New(http.StatusServiceUnavailable, "ServiceUnavailable",
		"the authentication backend is unavailable; the request was not executed",
		"try again").Later(time.Second)
}

// requestOf returns what a call asks for, by its name and its message; nil is that this is not read. Only names that can be
// ones are taken from a message: audit lines have them.
func (a *API) requestOf(method string, message any) Request {
	request := Request{route: &Route{Method: http.MethodGet}} // which changes nothing, and has no name
	call := method[strings.LastIndex(method, "/")+1:]
	for i := range a.routes {
		if a.routes[i].Call == call {
			request.route = &a.routes[i]
		}
	}
	take := func(name string, value string) string {
		if checkPath(map[string]string{name: value}) != nil {
			return ""
		}
		return value
	}
	if one, is := message.(interface{ GetNamespace() string }); is {
		request.Namespace = take("namespace", one.GetNamespace())
	}
	if one, is := message.(interface{ GetKind() string }); is {
		request.Kind = take("kind", one.GetKind())
	}
	if strings.Contains(request.route.Call, "Submission") {
		request.Kind = view.Clusters
	}
	if one, is := message.(interface{ GetName() string }); is {
		request.Name = take("name", one.GetName())
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
