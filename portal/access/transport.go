package access

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/heliostat-dev/heliostat/portal/problem"
)

// ErrUnreached is that no connection to the API server could be made, so that nothing was sent.
var ErrUnreached = problem.ErrUnreached

// How long the API server may take to show that it is there. A connection takes dial and handshake; one that is open is
// probed when it is quiet. Both are over within 5 s.
const (
	dialWithin      = 2 * time.Second
	handshakeWithin = 2 * time.Second
	quietBeforePing = 2 * time.Second
	pingWithin      = 2 * time.Second
)

// newTransport returns a transport that proves nothing about who sends, and goes through no proxy of the environment. It
// leaves compression to the two ends.
func newTransport(caFile string) http.RoundTripper {
	dialer := &net.Dialer{Timeout: dialWithin}
	return &http.Transport{
		DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			connection, err := dial(ctx, dialer, network, address, caFile)
			if err != nil {
				return nil, fmt.Errorf("%w: %w", ErrUnreached, err)
			}
			return connection, nil
		},
		ForceAttemptHTTP2:   true,
		HTTP2:               &http.HTTP2Config{SendPingTimeout: quietBeforePing, PingTimeout: pingWithin},
		DisableCompression:  true,
		MaxIdleConnsPerHost: 100, // where only HTTP/1.1 is spoken
		IdleConnTimeout:     90 * time.Second,
	}
}

func dial(ctx context.Context, dialer *net.Dialer, network, address, caFile string) (net.Conn, error) {
	trusted, err := authorities(caFile)
	if err != nil {
		return nil, err
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("read the address %s: %w", address, err)
	}
	plain, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", address, err)
	}
	connection := tls.Client(plain, &tls.Config{
		RootCAs: trusted, ServerName: host, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
	})
	ctx, cancel := context.WithTimeout(ctx, handshakeWithin)
	defer cancel()
	if err := connection.HandshakeContext(ctx); err != nil {
		_ = plain.Close() // it was not used
		return nil, fmt.Errorf("speak TLS with %s: %w", address, err)
	}
	return connection, nil
}

// authorities reads those that the API server's certificate may be of.
func authorities(caFile string) (*x509.CertPool, error) {
	text, err := os.ReadFile(caFile) //nolint:gosec // G304: a flag of the server names it
	if err != nil {
		return nil, fmt.Errorf("read the API server's authority: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("read the API server's authority: %s holds no certificate", caFile)
	}
	return pool, nil
}
