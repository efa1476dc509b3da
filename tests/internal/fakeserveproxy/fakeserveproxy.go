// Package fakeserveproxy is the HTTP proxy of Ray Serve on a node, without Ray: it answers as
// examples/serve/echo does, in the version that the node's head serves.
//
// In: a listener, and what the proxy leads to, asked again for each request. Out: answers by
// which a load client knows who gave them. It answers /-/healthz as Serve's proxy does; it
// leaves as that one does, or at once, as its pod's process does.
//
// It must never be kinder than Serve: what has begun when its pod ends is cut, and a client
// learns that a connection is closed by nothing but CloseKept.
package fakeserveproxy

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Leads is what a proxy leads to.
type Leads struct {
	// Draining: it is to go.
	Draining bool
	// Versions of the applications that have a replica, by route_prefix.
	Versions map[string]string
}

// Proxy is one. Its methods may be called at any time.
type Proxy struct {
	node   string
	look   func() Leads
	server *http.Server
	ended  sync.WaitGroup

	mu   sync.Mutex
	open map[net.Conn]*kept
}

// kept is a connection, last whether its next answer is its last one.
type kept struct{ last atomic.Bool }

// key is that of the connection in the context of a request.
type key struct{}

// longestHeader is against hanging alone.
const longestHeader = time.Minute

// New begins to answer those whom a listener accepts, in the name of a node.
func New(listener net.Listener, node string, look func() Leads) *Proxy {
	p := &Proxy{node: node, look: look, open: map[net.Conn]*kept{}}
	routes := http.NewServeMux()
	routes.HandleFunc("/-/healthz", p.health)
	routes.HandleFunc("/", p.answer)
	p.server = &http.Server{Handler: routes, ReadHeaderTimeout: longestHeader, ConnContext: p.opened, ConnState: p.changed}
	p.ended.Go(func() { _ = p.server.Serve(listener) }) // it ends by Close or Leave
	return p
}

// opened notes a new connection.
func (p *Proxy) opened(ctx context.Context, connection net.Conn) context.Context {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open[connection] = &kept{}
	return context.WithValue(ctx, key{}, p.open[connection])
}

// changed forgets one that is closed.
func (p *Proxy) changed(connection net.Conn, state http.ConnState) {
	if state != http.StateClosed && state != http.StateHijacked {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, connection)
}

// CloseKept has each connection that is open now say with its next answer that it is closed
// after it. Those that are opened later are kept.
func (p *Proxy) CloseKept() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.open {
		one.last.Store(true)
	}
}

// Leave takes no more connections, finishes what has begun, and closes what is idle. It
// returns when that is done, or when the context ends; the rest is cut then.
func (p *Proxy) Leave(ctx context.Context) {
	_ = p.server.Shutdown(ctx) // what is left is cut
	p.Close()
}

// Close is the end of the proxy's process: nobody is answered any more.
func (p *Proxy) Close() {
	_ = p.server.Close()
	p.ended.Wait()
}

// health says whether the proxy takes requests, in the words of Serve.
func (p *Proxy) health(out http.ResponseWriter, request *http.Request) {
	status, said := http.StatusOK, "success"
	switch leads := p.look(); {
	case leads.Draining:
		status, said = http.StatusServiceUnavailable, "This node is being drained."
	case len(leads.Versions) == 0:
		status, said = http.StatusServiceUnavailable, "Route table is not populated yet."
	}
	p.say(out, request, status, []byte(said))
}

// answered is what the application says.
type answered struct {
	Version string `json:"version"`
	PID     int    `json:"pid"`
	Node    string `json:"node"`
	Said    string `json:"said"`
}

// answer is that of the application with the longest route_prefix that fits: what it was told,
// after as many seconds as it was asked to take.
func (p *Proxy) answer(out http.ResponseWriter, request *http.Request) {
	version, rest, found := route(p.look().Versions, request.URL.Path)
	if !found {
		p.say(out, request, http.StatusNotFound, []byte("Path '"+request.URL.Path+"' not found."))
		return
	}
	said := request.URL.Query().Get("said")
	if request.Method != http.MethodGet {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			panic(http.ErrAbortHandler) // half a request is none
		}
		said = string(body)
	}
	if rest == "/slow" {
		seconds, err := strconv.ParseFloat(request.URL.Query().Get("s"), 64)
		if err != nil {
			p.say(out, request, http.StatusUnprocessableEntity, fmt.Appendf(nil, "s is %v", err))
			return
		}
		timer := time.NewTimer(time.Duration(seconds * float64(time.Second)))
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-request.Context().Done():
			return
		}
	}
	text, _ := json.Marshal(answered{Version: version, PID: 1, Node: p.node, Said: said}) // texts and a number always marshal
	p.say(out, request, http.StatusOK, text)
}

// route finds the version that a path leads to, and the path there.
func route(versions map[string]string, path string) (version, rest string, found bool) {
	longest := -1
	for prefix, one := range versions {
		trimmed := strings.TrimSuffix(prefix, "/")
		if len(trimmed) > longest && (path == trimmed || strings.HasPrefix(path, trimmed+"/")) {
			version, rest, found, longest = one, strings.TrimPrefix(path, trimmed), true, len(trimmed)
		}
	}
	return version, rest, found
}

// say answers, and closes the connection after it if it must be.
func (p *Proxy) say(out http.ResponseWriter, request *http.Request, status int, text []byte) {
	if one, ok := request.Context().Value(key{}).(*kept); ok && one.last.Load() {
		out.Header().Set("Connection", "close")
	}
	out.WriteHeader(status)
	_, _ = out.Write(text) // a client that has gone is none of our business
}
