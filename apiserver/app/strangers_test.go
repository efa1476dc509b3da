package app

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/apiserver/connections"
	"github.com/heliostat-dev/heliostat/apiserver/rest"
	"github.com/heliostat-dev/heliostat/portal/access"
	"github.com/heliostat-dev/heliostat/portal/access/accesstest"
	heliostatv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/v1"
)

// unread is a body that must not be read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body of somebody without a token is read")
	return 0, io.EOF
}

// TestStrangers_HaveNothingRead: each path that takes a body, on both listeners, from somebody without a token.
func TestStrangers_HaveNothingRead(t *testing.T) {
	page, clusters := newBed(t, fine).server.Config.Handler, newDashboardsBed(t).server.Config.Handler
	variables := strings.NewReplacer("{namespace}", "team", "{kind}", "clusters", "{name}", "demo", "{id}", "one")
	send := func(by http.Handler, method, host, path string) {
		t.Helper()
		r := httptest.NewRequest(method, path, unread{t})
		r.Host, r.ContentLength = host, 1000
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", "https://"+host)
		w := httptest.NewRecorder()
		if by.ServeHTTP(w, r); w.Code != http.StatusUnauthorized {
			t.Errorf("%s %s%s is answered with %d: %s", method, host, path, w.Code, w.Body)
		}
	}
	for _, route := range rest.Routes() {
		send(page, route.Method, "page.example.com", variables.Replace(route.Path))
	}
	for path := range routes {
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
			send(page, method, "page.example.com", path)
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		send(clusters, method, "dashboards.example.com", "/team/demo/api/jobs/")
		send(clusters, method, "demo--team.ray.example.com", "/api/jobs/")
	}
	send(clusters, http.MethodPost, "demo--team.ray.example.com", "/-/resume")
}

// newPortalBed is what is around calls and what answers them.
func newPortalBed(t *testing.T) (*front, *portal) {
	t.Helper()
	front, portal, err := newFront(t.Context(), Config{Log: slog.New(slog.DiscardHandler), Clock: clock.RealClock{}},
		accesstest.Start(t, "alice-token", "alice", fine).Kubernetes(t, clock.RealClock{}), newRegistry())
	if err != nil {
		t.Fatal(err)
	}
	return front, portal
}

// TestConnections_MaySendLittleUnseen: both protocols announce few streams and small windows.
func TestConnections_MaySendLittleUnseen(t *testing.T) {
	b := newBed(t, fine)
	dialer := &tls.Dialer{Config: &tls.Config{
		RootCAs: b.server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs, ServerName: "example.com", NextProtos: []string{"h2"}}}
	byHTTP, err := dialer.DialContext(t.Context(), "tcp", b.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	front, portal := newPortalBed(t)
	listener := bufconn.Listen(1 << 20)
	server := portal.api.NewGRPC(insecure.NewCredentials(), front.aroundCall())
	go func() { _ = server.Serve(listener) }() // ends with Stop
	t.Cleanup(server.Stop)
	byGRPC, err := listener.Dial()
	if err != nil {
		t.Fatal(err)
	}
	for name, connection := range map[string]net.Conn{"HTTP/2": byHTTP, "gRPC": byGRPC} {
		t.Run(name, func(t *testing.T) {
			defer func() { _ = connection.Close() }()
			streams, window, more := greeted(t, connection)
			if streams != rest.MaxConcurrentStreams || window > rest.Window || 65_535+more > rest.Window {
				t.Errorf("a connection may have %d streams of %d bytes, and %d together", streams, window, 65_535+more)
			}
		})
	}
}

// greeted returns what a server lets a connection do: streams, bytes of each, and more bytes of all than there are by default.
func greeted(t *testing.T, connection net.Conn) (streams, window, more uint32) {
	t.Helper()
	frames := http2.NewFramer(connection, connection)
	if _, err := io.WriteString(connection, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	if err := frames.WriteSettings(); err != nil {
		t.Fatal(err)
	}
	if err := frames.WritePing(false, [8]byte{}); err != nil { // its answer comes behind all of that
		t.Fatal(err)
	}
	window = 65_535
	for {
		frame, err := frames.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if value, is := frame.Value(http2.SettingMaxConcurrentStreams); is {
				streams = value
			}
			if value, is := frame.Value(http2.SettingInitialWindowSize); is {
				window = value
			}
		case *http2.WindowUpdateFrame:
			more += frame.Increment
		case *http2.PingFrame:
			if frame.IsAck() {
				return streams, window, more
			}
		}
	}
}

// TestUse_KeepsConnectionsOfCallers: a connection counts as one that serves where its caller is known, or was accepted.
func TestUse_KeepsConnectionsOfCallers(t *testing.T) {
	for code, want := range map[int]bool{http.StatusOK: true, http.StatusUnauthorized: false, http.StatusTooManyRequests: false} {
		out := &answer{ResponseWriter: httptest.NewRecorder()}
		var isUsed bool
		defer use(t.Context(), out, &access.Caller{})()
		inner := out.accepted
		out.accepted = func() {
			isUsed = true
			inner()
		}
		if out.WriteHeader(code); isUsed != want {
			t.Errorf("after %d it is kept: %v", code, isUsed)
		}
	}
}

// TestServe_CountsConnections: requests by HTTP and calls by gRPC find the connection that they came by.
func TestServe_CountsConnections(t *testing.T) {
	isCounted := func(ctx context.Context) bool {
		for range 10_000 { // more than may be
			if _, err := connections.Ask(ctx); err != nil {
				return true
			}
		}
		return false
	}
	found := make(chan bool, 1)
	ctx, end := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { found <- isCounted(r.Context()) })
	go func() {
		ended <- serve(ctx, listener, newServer(handler, nil, slog.New(slog.DiscardHandler), clock.RealClock{}))
	}()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+listener.Addr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil || !<-found {
		t.Fatalf("the connection of a request is not counted (%v)", err)
	}
	_ = answer.Body.Close()
	if end(); <-ended != nil {
		t.Error("it does not end well")
	}

	limits := connections.New()
	_, portal := newPortalBed(t)
	server := portal.api.NewGRPC(insecure.NewCredentials(), func(ctx context.Context, _ *rest.Call, _ func(context.Context) error) error {
		found <- isCounted(ctx)
		return nil
	}, grpc.StatsHandler(limits.ForGRPC()))
	calls, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(limits.Listen(calls)) }() // ends with Stop
	t.Cleanup(server.Stop)
	connection, err := grpc.NewClient(calls.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	_, _ = heliostatv1.NewPortalClient(connection).GetMe(t.Context(), &heliostatv1.GetMeRequest{}) // nobody answers it
	if !<-found {
		t.Error("the connection of a call is not counted")
	}
}
