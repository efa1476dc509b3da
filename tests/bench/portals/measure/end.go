package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"

	"github.com/heliostat-dev/heliostat/tests/bench/beside"
)

// end is where callers ask: the server, or the API server itself. Callers speak HTTP/2 unless isHTTP1 holds.
type end struct {
	url       string
	authority []byte
	isHTTP1   bool
}

// caller returns a client with connections of its own, as each user has.
func (e end) caller(token string) (*caller, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(e.authority) {
		return nil, errors.New("read an authority: it holds no certificate")
	}
	return &caller{url: e.url, token: token, Client: http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: !e.isHTTP1,
	}}}, nil
}

// server is the server for portals as it runs.
type server struct {
	*beside.Process
	end
}

// startServer starts the server, and waits until it has read everything.
func (w *world) startServer(ctx context.Context) (*server, error) {
	certificate, err := w.Certificate()
	if err != nil {
		return nil, err
	}
	address, err := beside.FreeAddress()
	if err != nil {
		return nil, err
	}
	p, err := w.StartServer(ctx, address)
	return &server{Process: p, end: end{url: "https://" + address, authority: certificate}}, err
}

// direct is the API server itself.
func (w *world) direct() end { return end{url: w.Config.Host, authority: w.Authority} }
