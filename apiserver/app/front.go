package app

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/apiserver/connections"
	"github.com/heliostat-dev/heliostat/apiserver/passthrough"
	"github.com/heliostat-dev/heliostat/apiserver/rest"
	"github.com/heliostat-dev/heliostat/dashboard-proxy/signin"
	"github.com/heliostat-dev/heliostat/dashboard-proxy/web"
	"github.com/heliostat-dev/heliostat/portal/access"
	"github.com/heliostat-dev/heliostat/portal/problem"
)

// MaxHeader is how many bytes the first line and the headers of a request may have together.
const MaxHeader = 32 << 10

// gone is the code of a request whose caller did not wait for the answer, as proxies count it.
const gone = 499

// How long an audit line waits for the name of who did it, and a request for who it is of.
const (
	nameWithin     = 4 * time.Second
	identifyWithin = 4 * time.Second
)

const requestID = "X-Request-Id"

// wellFormed is a request ID of a caller that is taken.
var wellFormed = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// front is what every request of a caller meets, by HTTP and by gRPC.
type front struct {
	kubernetes *access.Kubernetes
	// objects are Kubernetes' own paths, verbs those of the API below /v1, sessions those by which users sign in, and page is
	// what browsers load.
	objects  objects
	verbs    verbs
	sessions sessions
	page     page
	// clusters signs users in on the dashboards' origin; nil where nobody signs in.
	clusters *signin.Dashboards
	metrics  *metrics
	log      *slog.Logger
	clock    clock.WithDelayedExecution
}

// request is what a request asks for, whichever half of the server answers it.
type request struct {
	// route names it in metrics.
	route string
	// verb, resource, namespace and name are Kubernetes' words, for audit lines.
	verb, resource, namespace, name string
	isChange, isStream              bool
	// serve answers it.
	serve func(w http.ResponseWriter, r *http.Request, caller *access.Caller)
}

// half is one half of the server.
type half interface {
	// read returns what a request asks for, or why it is not served.
	read(r *http.Request) (request, error)
	// identify returns whose a request is.
	identify(ctx context.Context, r *http.Request) (*access.Caller, error)
	// refuse answers why a request is not served, in the form of this half.
	refuse(w http.ResponseWriter, err error)
}

// ServeHTTP implements http.Handler.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := f.clock.Now()
	id := idOf(r.Header)
	to := f.limit(w, r)
	defer to.finish()
	out := &answer{ResponseWriter: to, id: id}
	out.Header().Set(requestID, id)
	half := f.halfOf(r)
	asked, caller := request{route: passthrough.RouteNone}, (*access.Caller)(nil)
	opened, err := f.sessions.open(half, out, r)
	if err == nil {
		r = opened
		asked, caller, err = f.read(half, r)
	}
	r.Header.Set(requestID, id)
	if err == nil && caller != nil {
		defer use(r.Context(), out, caller)()
	}
	var owner <-chan string
	if err == nil && asked.isChange {
		owner = f.ownerOf(r.Context(), caller)
	}
	defer func() { // also where an answer that was begun is broken off
		took := f.clock.Since(began)
		code := out.codeFor(r.Context())
		f.metrics.answered(asked, code, took)
		if owner != nil {
			from, _, _ := net.SplitHostPort(r.RemoteAddr) // Go's own text
			f.audit(asked, entry{id: id, from: from, code: code, took: took, owner: owner,
				auditID: out.Header().Get("Audit-Id")})
		}
	}()
	if err != nil {
		half.refuse(out, err)
		return
	}
	f.serve(half, asked, out, r, caller)
}

// serve answers a request. One that panics fails alone, and the log has the stack.
func (f *front) serve(half half, asked request, out *answer, r *http.Request, caller *access.Caller) {
	defer func() {
		cause := recover()
		switch {
		case cause == nil:
			return
		case cause != http.ErrAbortHandler: //nolint:errorlint // a value that was thrown is compared as net/http does
			f.log.Error("A request panicked", "route", asked.route, "requestID", out.id, "cause", cause, "stack",
				string(debug.Stack()))
		}
		if out.code != 0 || cause == http.ErrAbortHandler { //nolint:errorlint // as above
			panic(http.ErrAbortHandler) // an answer that is not whole must not look as if it were
		}
		half.refuse(out, rest.ErrPanic)
	}()
	asked.serve(out, r, caller)
}

// halfOf returns who answers a request.
func (f *front) halfOf(r *http.Request) half {
	switch {
	case strings.HasPrefix(r.URL.Path, "/v1/") || r.URL.Path == rest.DocumentPath:
		return f.verbs
	case f.sessions.page != nil && signin.Owns(r.URL.Path):
		return f.sessions
	case web.Serves(r.URL.Path):
		return f.page
	}
	return f.objects
}

// read returns what a request asks for and whose it is, or why it is not served.
func (f *front) read(half half, r *http.Request) (request, *access.Caller, error) {
	none := request{route: passthrough.RouteNone}
	if sizeOf(r)-f.sessions.size(r) > MaxHeader {
		return none, nil, problem.New(http.StatusRequestHeaderFieldsTooLarge, "RequestHeaderFieldsTooLarge",
			"the headers of the request have more than 32 KiB", "send fewer")
	}
	asks := r.Header["Upgrade"] != nil || httpguts.HeaderValuesContainsToken(r.Header["Connection"], "upgrade")
	if asks || r.Method == http.MethodConnect {
		return none, nil, problem.New(http.StatusBadRequest, "BadRequest",
			"the request asks for another protocol, and none is served", "leave out the header Upgrade")
	}
	caller, err := f.identify(half, r)
	if err != nil {
		return none, nil, err
	}
	if caller != nil && caller.Method() == access.MethodFrontProxy && new(http.CrossOriginProtection).Check(r) != nil {
		return none, nil, problem.New(http.StatusForbidden, "Forbidden",
			"the front proxy sends a request that another site made its user's browser send", "send it from a page of its own")
	}
	asked, err := half.read(r)
	return asked, caller, err
}

// use keeps the connection of a request open while its caller is answered. Where the API server judges who that is, it has done so
// once it answers well.
func use(ctx context.Context, out *answer, caller *access.Caller) (giveBack func()) {
	if caller.User().Username != "" {
		return connections.Use(ctx)
	}
	release := func() {}
	out.accepted = func() { release = connections.Use(ctx) }
	return func() { release() }
}

// identify returns whose a request is, or why it has no caller.
func (f *front) identify(half half, r *http.Request) (*access.Caller, error) {
	ctx, cancel := context.WithTimeout(r.Context(), identifyWithin)
	defer cancel()
	done, err := connections.Ask(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	caller, err := half.identify(ctx, r)
	if err != nil {
		return nil, f.unidentified(err)
	}
	return caller, nil
}

// unidentified returns why a request has no caller.
func (f *front) unidentified(err error) error {
	if errors.Is(err, access.ErrUnauthorized) {
		return err
	}
	f.log.Error("Cannot authenticate a caller", "error", err)
	return problem.New(http.StatusServiceUnavailable, "ServiceUnavailable",
		"the authentication backend is unavailable; the request was not executed",
		"try again").Later(time.Second)
}

// sizeOf returns how many bytes the first line and the headers of a request have, as HTTP/1.1 writes them.
func sizeOf(r *http.Request) int {
	size := len(r.Method) + len(r.RequestURI) + len(r.Proto) + len("Host") + len(r.Host) + 8
	for name, values := range r.Header {
		for _, value := range values {
			size += len(name) + len(value) + len(": \r\n")
		}
	}
	return size
}

// idOf returns the caller's ID of a request, or a new one.
func idOf(header http.Header) string {
	if given := header.Values(requestID); len(given) == 1 && wellFormed.MatchString(given[0]) {
		return given[0]
	}
	var random [16]byte
	_, _ = rand.Read(random[:]) // never fails
	return hex.EncodeToString(random[:])
}

// ownerOf asks for the name of a caller while the request is on its way. It is unknown where nobody says it.
func (f *front) ownerOf(ctx context.Context, caller *access.Caller) <-chan string {
	owner := make(chan string, 1)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), nameWithin)
	go func() {
		defer cancel()
		name, err := f.kubernetes.Name(ctx, caller)
		switch {
		case errors.Is(err, access.ErrUnauthorized):
			name = "unauthenticated"
		case err != nil:
			f.log.Error("Cannot authenticate a caller", "error", err)
			name = "unknown"
		}
		owner <- name
	}()
	return owner
}

// entry is what an audit line says of a request beside what it asked for.
type entry struct {
	id, from string
	code     int
	took     time.Duration
	owner    <-chan string
	auditID  string
}

// audit writes a line about a request that changes something: who, what, and how it was answered. The ID of the API server's
// own audit log leads to all that is known there, such as a name that was made for an object. Whether it is a dry run is
// not said: a deletion's body may take back what its query says.
func (f *front) audit(asked request, of entry) {
	f.log.Info("Audit", "requestID", of.id, "user", <-of.owner, "from", of.from, "verb", asked.verb,
		"resource", shortened(asked.resource),
		"namespace", shortened(asked.namespace), "name", shortened(asked.name), "code", of.code, "milliseconds", of.took.Milliseconds(), "auditID", of.auditID)
}

// longestName is how many bytes of a caller's word a line of the log has: no name of an object has more.
const longestName = 253

// shortened returns a caller's word as it is fit for a line of the log. A call of gRPC is noted whatever it names.
func shortened(word string) string {
	if len(word) <= longestName {
		return word
	}
	return strings.ToValidUTF8(word[:longestName], "") + "…"
}

// answer notes the code of an answer, and puts the request's ID into it. Answers before the last one are not passed on.
type answer struct {
	http.ResponseWriter
	id   string
	code int
	// accepted is called where the answer says that its caller is one; nil is that nobody waits for that.
	accepted func()
}

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(code int) {
	if code < http.StatusOK || a.code != 0 {
		return
	}
	a.code = code
	if a.accepted != nil && code < http.StatusBadRequest {
		a.accepted()
	}
	a.Header().Set(requestID, a.id)
	a.ResponseWriter.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (a *answer) Write(body []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.ResponseWriter.Write(body)
}

// Unwrap lets http.ResponseController find what is below.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// codeFor returns the code of the answer for metrics and logs.
func (a *answer) codeFor(ctx context.Context) int {
	if a.code == 0 || a.code == http.StatusServiceUnavailable && ctx.Err() != nil {
		return gone
	}
	return a.code
}
