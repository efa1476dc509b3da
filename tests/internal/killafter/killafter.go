// Package killafter acts on a program in the middle of its writes. A Fuse ends it right after the n-th: the write is done,
// and the program will never know. A Gate holds one of them back.
//
// In: the writes of one program, as a way to the API server that it takes meets them, and other sources of some; after
// how many of them to blow, or which to hold, and what happens then. Out: the same requests and answers, but for the
// write that is held, and the answer to the write that blows the fuse, which waits until what happens has happened.
//
// It must never count what did not come about, or what programs write while they do nothing:
// Leases and events.
package killafter

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
)

// Fuse counts. The zero value does nothing until it is armed.
type Fuse struct {
	mu    sync.Mutex
	after int
	wrote int
	blow  func()
}

// Arm counts from 0 on, and calls blow once, after so many writes.
func (f *Fuse) Arm(after int, blow func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.after, f.wrote, f.blow = after, 0, blow
}

// Disarm ends that, and tells how many writes there were at most up to the one that blew it,
// and whether it did.
func (f *Fuse) Disarm() (wrote int, blown bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	wrote, blown = f.wrote, f.after > 0 && f.wrote >= f.after
	f.after, f.blow = 0, nil
	return wrote, blown
}

// Wrote counts a write whose answer is not on its way yet. It returns when what it may set off
// has happened.
func (f *Fuse) Wrote() {
	f.mu.Lock()
	var blow func()
	if f.after > 0 && f.wrote < f.after {
		if f.wrote++; f.wrote == f.after {
			blow = f.blow
		}
	}
	f.mu.Unlock()
	if blow != nil {
		blow()
	}
}

// Watch is what hears of the writes on a way; what is nil hears of none.
type Watch struct {
	// Coming is called with each write before it goes on, and may hold it.
	Coming func(*http.Request)
	// Wrote is called for each write that was done, before its answer goes out.
	Wrote func()
}

// Way is a way to an API server that counts.
type Way struct {
	// Server is its URL, CA the certificate by which it is known, as PEM.
	Server string
	CA     []byte
	server *http.Server
	ended  sync.WaitGroup
}

// longestHeader is against hanging alone.
const longestHeader = time.Minute

// Lead begins to lead those whom a listener accepts to the API server of a config, whose
// credentials are not used: each brings its own.
func Lead(listener net.Listener, config *rest.Config, watch Watch) (*Way, error) {
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, fmt.Errorf("read the address of the API server: %w", err)
	}
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(config))
	if err != nil {
		return nil, fmt.Errorf("prepare the way to the API server: %w", err)
	}
	host, _, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return nil, fmt.Errorf("read an address: %w", err)
	}
	known, key, err := cert.GenerateSelfSignedCertKey(host, []net.IP{net.ParseIP(host)}, nil)
	if err != nil {
		return nil, fmt.Errorf("make a certificate for %s: %w", host, err)
	}
	pair, err := tls.X509KeyPair(known, key)
	if err != nil {
		return nil, fmt.Errorf("read the certificate for %s: %w", host, err)
	}
	w := &Way{Server: "https://" + listener.Addr().String(), CA: known}
	w.server = &http.Server{
		Handler: watch.over(target, transport), ReadHeaderTimeout: longestHeader,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
	}
	w.ended.Go(func() { _ = w.server.ServeTLS(listener, "", "") }) // it ends by Close
	return w, nil
}

// over passes requests on to a target.
func (w Watch) over(target *url.URL, transport http.RoundTripper) http.Handler {
	passing := &httputil.ReverseProxy{
		Rewrite:   func(request *httputil.ProxyRequest) { request.SetURL(target) },
		Transport: transport, FlushInterval: -1,
		ModifyResponse: func(response *http.Response) error {
			if w.Wrote != nil && isWrite(response.Request) && response.StatusCode < http.StatusMultipleChoices {
				w.Wrote()
			}
			return nil
		},
		// No answer is not another one.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	return http.HandlerFunc(func(out http.ResponseWriter, request *http.Request) {
		if w.Coming != nil && isWrite(request) {
			w.Coming(request)
		}
		passing.ServeHTTP(out, request)
	})
}

// Close ends the way, and cuts who is on it.
func (w *Way) Close() {
	_ = w.server.Close()
	w.ended.Wait()
}

// isWrite reports whether a request is one that changes something that is meant to last.
func isWrite(request *http.Request) bool {
	switch request.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
	default:
		return false
	}
	for part := range strings.SplitSeq(request.URL.Path, "/") {
		switch part {
		case "leases", "events", "selfsubjectaccessreviews", "selfsubjectrulesreviews":
			return false
		}
	}
	return true
}
