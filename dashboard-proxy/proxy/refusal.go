package proxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/heliostat-dev/heliostat/dashboard-proxy/gate"
	"github.com/heliostat-dev/heliostat/dashboard-proxy/route"
	"github.com/heliostat-dev/heliostat/dashboard-proxy/serve"
	"github.com/heliostat-dev/heliostat/portal/access"
	"github.com/heliostat-dev/heliostat/portal/heads"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// speaker begins each text: Ray prints them among its own.
const speaker = "Heliostat dashboard proxy: "

// retrySuspended is after how long a client may look whether an object was resumed.
const retrySuspended = 30 * time.Second

// Refusal is an answer of the proxy's own. It is an error.
type Refusal struct {
	Code int
	// Text says what is wrong and what helps.
	Text string
	// RetryAfter is after how long the same request may be answered; 0 is that nobody knows.
	RetryAfter time.Duration
	// Command is what helps, as users type it.
	Command string
	// Phases are how far an object is on its way, which starts.
	Phases []Phase
	// Resumes is what a browser is shown a button for, which resumes it.
	Resumes *route.Target
}

// Error implements error.
func (r *Refusal) Error() string { return r.Text }

// refuser answers requests that are refused. It is a part of each proxy, and has what that is made of.
type refuser struct {
	Needs
	ways *ways
}

// refuse answers a request that is refused: a browser's with a page, others with a text.
func (f *refuser) refuse(w http.ResponseWriter, r *http.Request, err error) {
	refusal := f.refusalOf(r, err)
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	if refusal.RetryAfter > 0 {
		header.Set("Retry-After", strconv.Itoa(int(refusal.RetryAfter/time.Second)))
	}
	switch refusal.Code {
	case http.StatusUnauthorized:
		header.Set("Www-Authenticate", `Bearer realm="heliostat"`)
	case http.StatusMethodNotAllowed:
		header.Set("Allow", route.Methods())
	}
	if isNavigation(r) {
		writePage(w, refusal.Code, pageOf(refusal))
		return
	}
	header.Set("Content-Type", "text/plain; charset=utf-8")
	text := refusal.plain()
	if isGreeting(r, refusal.Code) && f.writePhrase(w, exchangeOf(r.Context()), refusal.Code, text) {
		return
	}
	w.WriteHeader(refusal.Code)
	//nolint:gosec // G705: it is plain text, which no browser sniffs
	_, _ = w.Write([]byte(text)) // who asks and goes needs no answer
}

// plain is what a program is told, in one line that ends with the command.
func (r *Refusal) plain() string {
	text := speaker + r.Text
	for i, phase := range r.Phases {
		text += []string{". Phases: ", ", "}[min(i, 1)] + phase.Name + " " + phase.State
		if phase.WaitsFor != "" {
			text += " (" + phase.WaitsFor + ")"
		}
	}
	if r.Command != "" {
		text += ". Run: " + r.Command
	}
	return text + "\n"
}

// refuseFailed answers a request that got no answer of its upstream, or one that is not passed on.
func (f *refuser) refuseFailed(w http.ResponseWriter, r *http.Request, err error) {
	x := exchangeOf(r.Context())
	var ended *Refusal
	switch {
	case errors.As(context.Cause(r.Context()), &ended):
		err = ended
	case errors.As(err, &ended): // of a body, whose end looks as if its caller had gone
	case r.Context().Err() != nil:
		panic(http.ErrAbortHandler) // its caller has gone
	}
	var large *http.MaxBytesError
	if ended == nil && !errors.As(err, &large) && !errors.Is(err, errBadAnswer) {
		err = f.ways.explain(x, err)
	}
	f.refuse(w, r, err)
}

// refusalOf returns the answer that an error is.
func (f *refuser) refusalOf(r *http.Request, err error) *Refusal {
	x := exchangeOf(r.Context())
	var (
		refusal     *Refusal
		wrong       *route.Refusal
		foreign     *gate.Refusal
		unavailable *heads.Unavailable
		large       *http.MaxBytesError
	)
	switch {
	case errors.As(err, &refusal):
		return refusal
	case errors.As(err, &wrong):
		return &Refusal{Code: wrong.Code, Text: wrong.Text}
	case errors.As(err, &foreign):
		return &Refusal{Code: foreign.Code, Text: foreign.Text}
	case errors.Is(err, access.ErrUnauthorized):
		return &Refusal{Code: http.StatusUnauthorized, Text: explainIdentity(err),
			Command: `export RAY_JOB_HEADERS='{"Authorization": "Bearer TOKEN"}'`}
	case errors.Is(err, errAbsent), errors.Is(err, serve.ErrMissing):
		return absent(x.target)
	case errors.Is(err, serve.ErrHTTPS):
		return &Refusal{Code: http.StatusBadGateway, Text: serve.ErrHTTPS.Error()}
	case errors.As(err, &large):
		return f.tooLarge()
	case errors.As(err, &unavailable) && unavailable.Code == reason.ClusterMissing.Code:
		return absent(x.target)
	case errors.As(err, &unavailable):
		return f.unavailable(r.Context(), x, unavailable)
	case len(x.endpoints) > 0:
		return f.failed(x, err)
	}
	if r.Context().Err() == nil { // its caller waits
		f.Log.Error("Cannot authorize a request", "error", err)
	}
	return &Refusal{Code: http.StatusServiceUnavailable, RetryAfter: time.Second,
		Text: "the API server did not answer, and nothing was done: try again"}
}

// failed is the answer where an upstream gave none.
func (f *refuser) failed(x *exchange, err error) *Refusal {
	var (
		not  *unconnected
		slow interface{ Timeout() bool }
	)
	switch {
	case errors.As(err, &not): // of other failures the text may hold what the upstream has said
		f.Log.Debug("Cannot connect", "to", x.named(), "error", err)
		return &Refusal{Code: http.StatusBadGateway, Text: x.named() +
			" cannot be connected to: see whether it is well, and whether a network policy keeps the server out"}
	case errors.As(err, &slow) && slow.Timeout():
		return &Refusal{Code: http.StatusGatewayTimeout,
			Text: x.named() + " did not begin its answer in time: look whether it is busy"}
	}
	return &Refusal{Code: http.StatusBadGateway, Text: x.named() + " gave no answer that can be passed on: see its log"}
}

// explainIdentity returns why a caller is not believed, in the words of access.
func explainIdentity(err error) string {
	for next := err; next != nil; next = errors.Unwrap(next) {
		err = next
	}
	return err.Error()
}

// named names what a request is for.
func (x *exchange) named() string {
	if x.target.Kind == route.Service {
		return "ClusterService " + x.target.Address
	}
	return "the head of ComputeCluster " + x.target.Address
}

// absent is the answer for an object that does not exist, and for one that the caller cannot open: it is the same, and says
// no more than the address did.
func absent(target route.Target) *Refusal {
	if target.IsBelowWildcard {
		return &Refusal{Code: http.StatusForbidden, Text: fmt.Sprintf(
			"nothing is at %s, or you have no right to open it: ask for the ClusterRole edit in its namespace", target.Address)}
	}
	return &Refusal{Code: http.StatusForbidden, Text: fmt.Sprintf("there is no %s %s, or you have no right to %s %s/proxy there",
		target.Kind.Resource(), target.Address, target.Verb, target.Kind),
		Command: fmt.Sprintf("kubectl auth can-i %s %s/%s --subresource=proxy -n %s", target.Verb, target.Kind, target.Name, target.Namespace)}
}

// unavailable is the answer for an object that does not answer now.
func (f *refuser) unavailable(ctx context.Context, x *exchange, u *heads.Unavailable) *Refusal {
	target := x.target
	kind := strings.ToLower(target.Kind.Resource())
	refusal := &Refusal{Code: http.StatusServiceUnavailable, Text: u.Error(), RetryAfter: u.RetryAfter}
	switch u.Code {
	case reason.SuspendedBySpec.Code:
		refusal.Command = fmt.Sprintf(`kubectl patch %s %s -n %s --type merge -p '{"spec":{"suspend":false}}'`,
			kind, target.Name, target.Namespace)
	case reason.SuspendedIdle.Code:
		refusal.Command = fmt.Sprintf(`kubectl annotate %s %s -n %s heliostat.dev/resume="$(date)" --overwrite`,
			kind, target.Name, target.Namespace)
	default:
		if u.Temporary {
			refusal.Phases = f.Objects.Phases(target.Kind, target.Namespace, target.Name)
		}
		return refusal
	}
	refusal.Text, refusal.RetryAfter = u.Message, retrySuspended
	if what := attributes(target); x.caller != nil {
		what.Verb, what.Subresource = "patch", ""
		ctx, cancel := context.WithTimeout(ctx, askWithin)
		defer cancel()
		if f.Access.MayLately(ctx, x.caller, what) == nil {
			refusal.Resumes = &target
		}
	}
	return refusal
}

func (f *refuser) tooLarge() *Refusal {
	return &Refusal{Code: http.StatusRequestEntityTooLarge, Text: fmt.Sprintf("the body of the request has more than %d bytes: send less, "+
		"such as by excludes in the runtime environment, or have dashboards.maxUpload raised", f.MaxUpload)}
}
