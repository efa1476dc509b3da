// Package away reaches heads of clusters from outside of Kubernetes.
//
// In: the name of a cluster, and a way to ports of pods: a port-forward by the API server, as the user. Out: a conversation
// with the head that the cluster owns, with the cluster's token and encryption, as package heads has it for the server.
// Where the user names Heliostat's server, that is asked instead, with the user's own token.
//
// It must never listen on a port of this machine, send a token anywhere but to that pod or that server, or put it into a text.
package away

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/kube"
)

// longestReason bounds what a kubelet says of a port that it cannot reach.
const longestReason = 4 << 10

// Forward returns a way to ports of pods by the API server: over a WebSocket, or SPDY where that is not spoken.
func Forward(config *rest.Config) console.Forward {
	return func(ctx context.Context, pod types.NamespacedName, port int) (net.Conn, error) {
		dialer, err := newDialer(config, pod)
		if err != nil {
			return nil, err
		}
		carrier, err := dial(ctx, dialer)
		if err != nil {
			return nil, kube.Because(fmt.Errorf("forward port %d of pod %s: %w", port, pod.Name, err))
		}
		conn, err := open(carrier, port)
		if err != nil {
			_ = carrier.Close() // the failure is another
			return nil, fmt.Errorf("forward port %d of pod %s: %w", port, pod.Name, err)
		}
		return conn, nil
	}
}

func newDialer(config *rest.Config, pod types.NamespacedName) (httpstream.Dialer, error) {
	at, err := address(config, pod)
	if err != nil {
		return nil, err
	}
	overWebSocket, err := portforward.NewSPDYOverWebsocketDialerForStreaming(at, config)
	if err != nil {
		return nil, fmt.Errorf("prepare to forward a port: %w", err)
	}
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, fmt.Errorf("prepare to forward a port: %w", err)
	}
	overSPDY := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, at)
	return portforward.NewFallbackDialerForStreaming(overWebSocket, overSPDY, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	}), nil
}

// address returns where the API server forwards ports of a pod.
func address(config *rest.Config, pod types.NamespacedName) (*url.URL, error) {
	client, err := newClient(config)
	if err != nil {
		return nil, err
	}
	return client.Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("portforward").URL(), nil
}

// dial dials until the context ends; the dialer knows none.
func dial(ctx context.Context, dialer httpstream.Dialer) (httpstream.Connection, error) {
	type result struct {
		carrier httpstream.Connection
		err     error
	}
	dialed := make(chan result, 1)
	go func() {
		carrier, _, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
		dialed <- result{carrier, err}
	}()
	select {
	case r := <-dialed:
		return r.carrier, r.err
	case <-ctx.Done():
		go func() {
			if r := <-dialed; r.err == nil {
				_ = r.carrier.Close() // nobody waits for it
			}
		}()
		return nil, ctx.Err()
	}
}

// open opens the two streams of one connection to a port.
func open(carrier httpstream.Connection, port int) (net.Conn, error) {
	headers := http.Header{}
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	headers.Set(corev1.PortHeader, strconv.Itoa(port))
	headers.Set(corev1.PortForwardRequestIDHeader, "0")
	failures, err := carrier.CreateStream(headers)
	if err != nil {
		return nil, fmt.Errorf("open a stream for failures: %w", err)
	}
	_ = failures.Close() // nothing is sent there
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := carrier.CreateStream(headers)
	if err != nil {
		return nil, fmt.Errorf("open a stream for data: %w", err)
	}
	near, far := net.Pipe()
	t := &tunnel{Conn: near, carrier: carrier}
	go func() {
		said, err := io.ReadAll(io.LimitReader(failures, longestReason))
		if err == nil && len(said) > 0 {
			failure := errors.New(string(said))
			t.failure.Store(&failure)
			_ = carrier.Close()
		}
	}()
	go pipe(data, far, func() { _ = data.Close() })
	go pipe(far, data, func() { _ = far.Close() })
	return t, nil
}

// pipe copies until either end is closed.
func pipe(to io.Writer, from io.Reader, end func()) {
	_, _ = io.Copy(to, from) // who reads or writes next learns that it ended
	end()
}

// tunnel is a connection by way of the API server.
type tunnel struct {
	net.Conn
	carrier httpstream.Connection
	failure atomic.Pointer[error]
}

// Read implements net.Conn. The end of a connection that the kubelet could not make says why.
func (t *tunnel) Read(part []byte) (int, error) {
	count, err := t.Conn.Read(part)
	if failure := t.failure.Load(); err != nil && failure != nil {
		return count, *failure
	}
	return count, err
}

// Close implements net.Conn.
func (t *tunnel) Close() error {
	return errors.Join(t.Conn.Close(), t.carrier.Close())
}
