package away_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	gorilla "github.com/gorilla/websocket"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	constants "k8s.io/apimachinery/pkg/util/portforward"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"github.com/heliostat-dev/heliostat/cli/away"
	"github.com/heliostat-dev/heliostat/cli/outcome"
)

// apiServer forwards ports of pod head to an address, as an API server and a kubelet do.
type apiServer struct {
	to string
	// speaksWebSocket is false of an API server that knows SPDY alone; isForbidden refuses all.
	speaksWebSocket, isForbidden bool
	// spoken has how a port was forwarded.
	spoken string
}

// ServeHTTP implements http.Handler.
func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	isWebSocket := gorilla.IsWebSocketUpgrade(r)
	switch {
	case r.URL.Path != "/api/v1/namespaces/team/pods/head/portforward":
		http.NotFound(w, r)
	case s.isForbidden:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"pods \"head\" is `+
			`forbidden: User \"bob\" cannot create resource \"pods/portforward\" in API group \"\" in the namespace \"team\""}`)
	case isWebSocket && s.speaksWebSocket:
		s.spoken = "WebSocket"
		upgrader := gorilla.Upgrader{Subprotocols: []string{constants.WebsocketsSPDYTunnelingPortForwardV1}}
		conn, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		s.serve(func(streams func(httpstream.Stream, <-chan struct{}) error) (httpstream.Connection, error) {
			return spdy.NewServerConnection(portforward.NewTunnelingConnection("server", conn), streams)
		})
	case isWebSocket:
		http.Error(w, "no WebSocket here", http.StatusBadRequest)
	default:
		s.spoken = "SPDY"
		w.Header().Set(httpstream.HeaderProtocolVersion, portforward.PortForwardProtocolV1Name)
		s.serve(func(streams func(httpstream.Stream, <-chan struct{}) error) (httpstream.Connection, error) {
			return spdy.NewResponseUpgrader().UpgradeResponse(w, r, streams), nil
		})
	}
}

// serve joins the streams of a connection with the address, until it is closed.
func (s *apiServer) serve(open func(func(httpstream.Stream, <-chan struct{}) error) (httpstream.Connection, error)) {
	streams := make(chan httpstream.Stream, 2)
	conn, err := open(func(stream httpstream.Stream, _ <-chan struct{}) error {
		streams <- stream
		return nil
	})
	if err != nil || conn == nil {
		return
	}
	defer conn.Close()
	failures, data := <-streams, <-streams
	if data.Headers().Get(corev1.StreamType) != corev1.StreamTypeData || data.Headers().Get(corev1.PortHeader) != "8265" {
		fmt.Fprint(failures, "wrong streams")
	}
	far, err := net.Dial("tcp", s.to)
	if err != nil {
		fmt.Fprintf(failures, "nobody listens at port 8265")
		_ = failures.Close()
		<-conn.CloseChan()
		return
	}
	go func() {
		_, _ = io.Copy(far, data)
		_ = far.Close()
	}()
	_, _ = io.Copy(data, far)
	_ = data.Close()
	_ = failures.Close()
	<-conn.CloseChan()
}

// echo listens where every connection gets back what it sends.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(conn, conn)
				_ = conn.Close()
			}()
		}
	}()
	return listener.Addr().String()
}

// forward makes a connection by way of an API server.
func forward(t *testing.T, s *apiServer) (net.Conn, error) {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return away.Forward(&rest.Config{Host: server.URL})(ctx, types.NamespacedName{Namespace: "team", Name: "head"}, 8265)
}

func TestForward_CarriesBytesBothWays(t *testing.T) {
	for name, want := range map[string]bool{"WebSocket": true, "SPDY": false} {
		t.Run(name, func(t *testing.T) {
			s := &apiServer{to: echo(t), speaksWebSocket: want}
			conn, err := forward(t, s)
			if err != nil {
				t.Fatal(err)
			}
			sent := strings.Repeat("0123456789abcdef", 1<<16) // 1 MiB
			go func() { _, _ = io.WriteString(conn, sent) }()
			got := make([]byte, len(sent))
			if _, err := io.ReadFull(conn, got); err != nil || string(got) != sent {
				t.Errorf("something else comes back: %v", err)
			}
			if err := conn.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Read(got); err == nil {
				t.Error("a deadline is not kept")
			}
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
			if s.spoken != name {
				t.Errorf("it went over %s", s.spoken)
			}
		})
	}
}

func TestForward_SaysWhyNot(t *testing.T) {
	conn, err := forward(t, &apiServer{to: "127.0.0.1:1", speaksWebSocket: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(conn); err == nil || !strings.Contains(err.Error(), "nobody listens") {
		t.Errorf("a port where nobody listens: %v", err)
	}
	_, err = forward(t, &apiServer{isForbidden: true})
	if outcome.Code(err) != outcome.Refused || !strings.Contains(err.Error(), `role "edit" in namespace "team"`) {
		t.Errorf("without the right: %v", err)
	}
}
