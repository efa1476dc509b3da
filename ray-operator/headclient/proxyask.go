package headclient

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"time"
)

const (
	// proxyTimeout is how long a proxy may take to answer.
	proxyTimeout = 5 * time.Second
	// maxProxied is how much of an answer is read, in bytes.
	maxProxied = 64 << 10
	// maxPath is of what is asked for, in bytes.
	maxPath = 1 << 10
)

// proxyPath is what may be asked for: a path, maybe with a query, of visible ASCII.
var proxyPath = regexp.MustCompile(`^/[!-~]*$`)

// AskProxy asks the proxy of Serve at host:port for a path, once and on a connection of its
// own, and follows nobody elsewhere. Nil is an answer with a status below 500 that came
// whole, or with its first 64 KiB, within 5 s. A status of 500 and more is Refused, with
// what was said. Where connect is nil, it is ConnectAnywhere. It never sends a token: applications are not Ray's.
// A secure proxy speaks TLS; its certificate is not checked, as a kubelet's probe checks none.
func AskProxy(ctx context.Context, connect Connect, address, path string, secure bool) error {
	act := "ask the proxy at " + text([]byte(address)) + " for " + text([]byte(path))
	if err := checkAddress(address); err != nil {
		return fail(Invalid, act, err)
	}
	target, err := url.ParseRequestURI(path)
	if err != nil || len(path) > maxPath || !proxyPath.MatchString(path) {
		return fail(Invalid, act, errors.New("that is not a path of visible ASCII characters"))
	}
	target.Scheme, target.Host = "http", address
	if secure {
		target.Scheme = "https"
	}
	limited, stop := context.WithTimeout(ctx, proxyTimeout)
	defer stop()
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			return connect.orAnywhere()(ctx, address)
		},
		DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxHeader,
		ReadBufferSize: buffer, WriteBufferSize: buffer,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12}, //nolint:gosec // nothing secret is sent, and of the answer only the status counts
	}
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip((&http.Request{
		Method: http.MethodGet, URL: target, Header: http.Header{"User-Agent": {"heliostat"}, "Accept-Encoding": {"identity"}},
	}).WithContext(limited))
	if err != nil {
		kind, why := broken(ctx, err)
		return fail(kind, act, why)
	}
	defer func() { _ = response.Body.Close() }()
	said, err := io.ReadAll(io.LimitReader(response.Body, maxProxied))
	if err != nil { // an answer that breaks off is none: its replica may have died of the question
		kind, why := broken(ctx, err)
		return fail(kind, act, why)
	}
	if response.StatusCode >= http.StatusInternalServerError {
		return fail(Refused, act, fmt.Errorf("status %d: %s", response.StatusCode, text(said)))
	}
	return nil
}
