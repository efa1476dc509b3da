package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/dashboard-proxy/route"
	"github.com/heliostat-dev/heliostat/portal/access"
	"github.com/heliostat-dev/heliostat/portal/heads"
	"github.com/heliostat-dev/heliostat/portal/limits"
)

// exchange is one request on its way, and its answer.
type exchange struct {
	known    *Request
	target   route.Target
	isSocket bool
	caller   *access.Caller
	// token is the caller's own, which no upstream gets. It is empty of one whom a front proxy signs in.
	token string
	// until is when the session ends that the request came by; zero is that it came by none.
	until time.Time
	// head and way are of a cluster's request.
	head heads.Head
	way  *heads.Way
	// endpoints are where the request can go; any is as good.
	endpoints []endpoint
	// host is what the upstream that the request went to is called.
	host string
}

// holder returns whose places an exchange takes, and for which object.
func (x *exchange) holder() limits.Holder {
	return x.caller.Holder().For(string(x.target.Kind) + " " + x.target.Namespace + "/" + x.target.Name)
}

type exchangeKey struct{}

func exchangeOf(ctx context.Context) *exchange {
	one, _ := ctx.Value(exchangeKey{}).(*exchange)
	return one
}

// errAbsent is that there is no such object, or none that the caller can open: nobody learns which.
var errAbsent = errors.New("there is no such object, or none that the caller can open")

// errEnded is that the answer is over.
var errEnded = errors.New("the answer is over")

// serveTarget answers a request for an object, or returns why it is refused.
func (p *Proxy) serveTarget(w http.ResponseWriter, r *http.Request, x *exchange) error {
	if isHandled, err := p.admit(w, r, x); isHandled || err != nil {
		return err
	}
	if x.target.Kind == route.Service { // it changes what the application has, and nothing that Kubernetes has
		x.known.IsChange = false
	}
	if r.Header.Get("Service-Worker") != "" {
		return &Refusal{Code: http.StatusForbidden, Text: "service workers are not served here: they would outlive the right to the dashboard"}
	}
	if r.ContentLength > p.MaxUpload {
		return p.tooLarge()
	}
	giveBack, err := p.places.take(x.holder(), r, x.isSocket)
	if err != nil {
		return err
	}
	if err := p.find(r.Context(), x); err != nil {
		giveBack()
		return err
	}
	if x.isSocket {
		return p.serveSocket(w, r, x, giveBack)
	}
	defer giveBack()
	p.serveRequest(w, r, x)
	return nil
}

// admit finds who the caller is and whether they may, within askWithin. Where it is handled, the request was answered.
func (p *Proxy) admit(w http.ResponseWriter, r *http.Request, x *exchange) (isHandled bool, err error) {
	ctx, cancel := context.WithTimeout(r.Context(), askWithin)
	defer cancel()
	if isHandled, err = p.identify(ctx, w, r, x); isHandled || err != nil {
		return isHandled, err
	}
	if isHeldBy(x.target.Path, x.token) || isHeldBy(x.target.Query, x.token) {
		return false, &Refusal{Code: http.StatusBadRequest, Text: "the address holds the token of its caller, which heads and applications never get: send it in the header Authorization alone"}
	}
	return false, permit(ctx, p.Access, x)
}

// permit returns errAbsent where a caller may not do what a request needs.
func permit(ctx context.Context, by Access, x *exchange) error {
	if x.target.Name == "" { // a label that is of no object
		return errAbsent
	}
	err := by.MayLately(ctx, x.caller, attributes(x.target))
	switch {
	case errors.Is(err, access.ErrForbidden):
		return errAbsent
	case err != nil:
		return fmt.Errorf("ask what the caller may do: %w", err)
	}
	return nil
}

// find finds where a request goes.
func (p *Proxy) find(ctx context.Context, x *exchange) error {
	if x.target.Kind == route.Service {
		found, err := p.Services.Find(x.target.Namespace, x.target.Name)
		for _, one := range found {
			x.endpoints = append(x.endpoints, endpoint{
				key: "pod-" + string(one.UID), host: one.Service + "." + one.Namespace + ".svc",
				connect: func(ctx context.Context) (net.Conn, error) { return p.Services.Connect(ctx, one) },
			})
		}
		return err
	}
	var err error
	x.head, err = p.Heads.FindHead(heads.Reference{Namespace: x.target.Namespace, Name: x.target.Name})
	if err != nil {
		return err
	}
	if x.way, err = p.ways.find(ctx, x.head, wayKept); err != nil {
		return err
	}
	x.endpoints = []endpoint{{
		key: "head-" + string(x.head.UID), host: x.way.Address(),
		connect: func(ctx context.Context) (net.Conn, error) {
			way, err := p.ways.find(ctx, x.head, wayFresh)
			if err != nil {
				return nil, err
			}
			return way.Connect(ctx)
		},
	}}
	return nil
}

// serveRequest hands on what is no WebSocket.
func (p *Proxy) serveRequest(w http.ResponseWriter, r *http.Request, x *exchange) {
	ctx, end := context.WithCancelCause(r.Context())
	control := http.NewResponseController(w)
	watch := p.guard(x, func(refusal *Refusal) {
		end(refusal)
		soon := p.Clock.Now().Add(leaveWithin)
		_, _ = control.SetReadDeadline(soon), control.SetWriteDeadline(soon)
	})
	watch.start()
	defer func() {
		watch.stop()
		end(errEnded)
		_ = control.SetWriteDeadline(time.Time{}) // a connection that is kept would have that of the request before
	}()
	r = r.WithContext(ctx)
	if r.ContentLength != 0 {
		body := &paced{ReadCloser: http.MaxBytesReader(w, r.Body, p.MaxUpload), control: control, clock: p.Clock}
		defer body.end()
		r.Body = body
	}
	p.reverse.ServeHTTP(&final{ResponseWriter: w, header: http.Header{}}, r)
}

// leastRate is how many bytes of a body must come in a second, after those that stuckAfter is enough for.
const leastRate = 16 << 10

// paced is a body that must go on: one that stands still, or drips, would keep its place from others. The time that the
// upstream takes does not count.
type paced struct {
	io.ReadCloser
	control *http.ResponseController
	clock   clock.PassiveClock
	// spent is how long was waited for the bytes that came.
	spent time.Duration
	came  int64

	mutex sync.Mutex
	// isOver is that the request is answered. The transport may still read by then.
	isOver bool
}

// setDeadline sets until when a read may take, while the request is not answered. HTTP/2 panics when one is set later, and
// HTTP/1.1 would set that of the next request.
func (p *paced) setDeadline(at time.Time) (isSet bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.isOver {
		return false
	}
	_ = p.control.SetReadDeadline(at) // every server's connections have them
	return true
}

// end must be called before the handler returns. No deadline is set after it.
func (p *paced) end() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.isOver = true
}

// Read implements io.Reader.
func (p *paced) Read(into []byte) (int, error) {
	left := stuckAfter + time.Duration(p.came/leastRate)*time.Second - p.spent
	began := p.clock.Now()
	if !p.setDeadline(began.Add(min(left, stuckAfter))) {
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := p.ReadCloser.Read(into)
	p.came += int64(n)
	p.spent += p.clock.Since(began)
	if errors.Is(err, io.EOF) {
		p.setDeadline(time.Time{}) // else the connection would look as if its caller had gone
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = &Refusal{Code: http.StatusRequestTimeout, Text: "the body of the request stood still for a minute, or came at less than 16 KiB a second: send it again"}
	}
	return n, err
}

// guard returns what watches over an exchange.
func (p *Proxy) guard(x *exchange, end func(*Refusal)) *guard {
	caller, what, until := x.caller, attributes(x.target), x.until
	return &guard{clock: p.Clock, end: end, confirm: func() error {
		if !until.IsZero() && !p.Clock.Now().Before(until) {
			return access.ErrExpired
		}
		return p.rights.confirm(caller, what)
	}}
}

// explain returns what a failure of an upstream means.
func (w *ways) explain(x *exchange, err error) error {
	var unavailable *heads.Unavailable
	if errors.As(err, &unavailable) || x.target.Kind != route.Cluster {
		return err
	}
	way, found := w.find(w.ending, x.head, 0)
	if errors.As(found, &unavailable) {
		return unavailable
	}
	if found == nil && way.Starting() != nil {
		return way.Starting()
	}
	return err
}
