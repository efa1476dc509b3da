package archiver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/heliostat-dev/heliostat/history/identity"
	"github.com/heliostat-dev/heliostat/history/reader"
	"github.com/heliostat-dev/heliostat/history/wire"
	pb "github.com/heliostat-dev/heliostat/proto/gen/heliostat/history/v1"
)

// role is what a certificate makes of a caller.
type role string

// The roles. A caller without one is a collector, or nobody.
const (
	roleServer   role = "server"
	roleOperator role = "operator"
)

// roleOf returns the role that a verified certificate gives by its common name, of which it has one.
func roleOf(state tls.ConnectionState) role {
	if len(state.VerifiedChains) == 0 {
		return ""
	}
	switch state.PeerCertificates[0].Subject.CommonName {
	case wire.NameOfServer:
		return roleServer
	case wire.NameOfOperator:
		return roleOperator
	default:
		return ""
	}
}

// may reports whether a role has a call: the operator gets states and nothing else, and the server all else.
func (r role) may(method string) bool {
	switch method {
	case pb.Read_WatchStates_FullMethodName:
		return r == roleOperator
	case pb.Read_ListRecords_FullMethodName, pb.Read_GetRecord_FullMethodName, pb.Read_ListFiles_FullMethodName,
		pb.Read_ReadFile_FullMethodName, pb.Read_DeleteHistory_FullMethodName:
		return r == roleServer
	default:
		return false
	}
}

// stateOf returns what the TLS of a call is.
func stateOf(ctx context.Context) (state tls.ConnectionState, host string) {
	from, is := peer.FromContext(ctx)
	if !is {
		return state, ""
	}
	if secured, is := from.AuthInfo.(credentials.TLSInfo); is {
		state = secured.State
	}
	if host, _, err := net.SplitHostPort(from.Addr.String()); err == nil {
		return state, host
	}
	return state, from.Addr.String()
}

// judge returns why a call of Read is refused. gRPC calls it before it reads a message of the call.
func (a *archiver) judge(ctx context.Context, call *tap.Info) (context.Context, error) {
	state, _ := stateOf(ctx)
	is := roleOf(state)
	switch {
	case is == "" || a.isOver(state.PeerCertificates[0]):
		return ctx, status.Error(codes.Unauthenticated, "the certificate is over: connect again")
	case !is.may(call.FullMethodName):
		return ctx, status.Errorf(codes.PermissionDenied, "the certificate of the %s does not give this call", is)
	default:
		return ctx, nil
	}
}

// isOver reports whether a certificate is not valid any more, of a connection that began while it was.
func (a *archiver) isOver(certificate *x509.Certificate) bool {
	return a.Now().After(certificate.NotAfter)
}

// refuse answers a call for which a collector's connection has no service.
func refuse(_ any, stream grpc.ServerStream) error {
	if state, _ := stateOf(stream.Context()); len(state.VerifiedChains) > 0 {
		return status.Error(codes.PermissionDenied, "the certificate is neither the server's nor the operator's")
	}
	return status.Error(codes.Unauthenticated, "the call needs the certificate of the server or of the operator")
}

// callerOf names a caller: a role at an address.
func callerOf(ctx context.Context) string {
	state, host := stateOf(ctx)
	return string(roleOf(state)) + "@" + host
}

// secured is the TLS that the door has made.
type secured struct{}

// ServerHandshake returns the connection with who called.
func (secured) ServerHandshake(connection net.Conn) (net.Conn, credentials.AuthInfo, error) {
	of, is := connection.(*tls.Conn)
	if !is {
		return nil, nil, errors.New("take a connection: it has no TLS")
	}
	return connection, credentials.TLSInfo{
		State: of.ConnectionState(), CommonAuthInfo: credentials.CommonAuthInfo{SecurityLevel: credentials.PrivacyAndIntegrity},
	}, nil
}

// ClientHandshake is for clients, and this is none.
func (secured) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("make a connection: these credentials are a server's")
}

// Info names the protocol.
func (secured) Info() credentials.ProtocolInfo {
	return credentials.ProtocolInfo{SecurityProtocol: "tls"}
}

// Clone returns the same.
func (s secured) Clone() credentials.TransportCredentials { return s }

// OverrideServerName is for clients.
func (secured) OverrideServerName(string) error { return nil }

// servers are all that listen.
type servers struct {
	door          *door
	collects      *room
	reads         *room
	collect, read *grpc.Server
	streams       *wire.Server
	states        *reader.States
	metrics       *http.Server
	metricsOn     net.Listener
}

// The bounds of calls of Read.
const (
	maxRequest  = 512 << 10 // bytes: 10,000 UIDs of namespaces
	maxCalls    = 128       // of one connection
	readWindow  = 1 << 20   // bytes that a caller may send before they are read
	prefaceTime = 20 * time.Second
)

// newServers puts together what listens.
func newServers(a *archiver) (*servers, error) {
	own, err := newCertificates(a.Config)
	if err != nil {
		return nil, err
	}
	s := &servers{
		collects: newRoom(a.listener.Addr()), reads: newRoom(a.listener.Addr()), states: a.states,
		metrics: newMetricsServer(a.handler(), a.Log), metricsOn: a.outside.metrics,
	}
	s.door = &door{
		listener: a.listener, limits: a.limits, log: a.Log, hosts: map[string]int{},
		settings: &tls.Config{MinVersion: tls.VersionTLS13, GetConfigForClient: own.settings},
		room: func(state tls.ConnectionState) *room {
			if roleOf(state) != "" {
				return s.reads
			}
			return s.collects
		},
	}
	finder := identity.New(a.review, a.records)
	s.streams = wire.NewServer(finder.Find, a.states, a.limits.wire)
	s.collect = grpc.NewServer(append(wire.ServerOptions(),
		grpc.Creds(secured{}), grpc.ConnectionTimeout(prefaceTime), grpc.UnknownServiceHandler(refuse))...)
	pb.RegisterCollectServer(s.collect, s.streams)
	s.read = grpc.NewServer(
		grpc.Creds(secured{}), grpc.ConnectionTimeout(prefaceTime), grpc.InTapHandle(a.judge),
		grpc.MaxRecvMsgSize(maxRequest), grpc.MaxConcurrentStreams(maxCalls),
		grpc.InitialConnWindowSize(readWindow),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: 30 * time.Second, Timeout: 20 * time.Second}),
	)
	pb.RegisterReadServer(s.read, reader.New(reader.Config{
		Archive: a.archive, Records: a.records, Keeper: a.keeping, States: a.states, Caller: callerOf,
		Reads: a.limits.reads, Now: a.now, Log: a.Log,
	}))
	return s, nil
}

// all are what listens. Each serves until end is called, or it fails.
func (s *servers) all() []func() error {
	until := func(what string, serve func() error) func() error {
		return func() error {
			if err := serve(); err != nil && !errors.Is(err, net.ErrClosed) && !errors.Is(err, grpc.ErrServerStopped) {
				return fmt.Errorf("serve %s: %w", what, err)
			}
			return nil
		}
	}
	return []func() error{
		s.door.serve,
		until("collectors", func() error { return s.collect.Serve(s.collects) }),
		until("reads", func() error { return s.read.Serve(s.reads) }),
		until("metrics", func() error { return serveMetrics(s.metricsOn, s.metrics) }),
	}
}

// end takes no more calls, lets those that keep records or read end, and ends all at the latest with the context.
func (s *servers) end(ctx context.Context) {
	_ = s.door.listener.Close() // nothing is lost by it
	s.states.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		var all errgroup.Group
		all.Go(func() error { s.collect.GracefulStop(); return nil })
		all.Go(func() error { s.read.GracefulStop(); return nil })
		s.streams.Close()
		_ = all.Wait() // they return no error
	}()
	select {
	case <-done:
	case <-ctx.Done():
		s.collect.Stop()
		s.read.Stop()
		<-done
	}
	_ = s.metrics.Close() // scrapes that run are cut off
}
