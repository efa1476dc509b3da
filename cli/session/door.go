package session

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/dashboard-proxy/gate"
)

const (
	// cookie holds the secret of the session in the browser.
	cookie = "heliostat-open"
	// here is the address that the fallback has, and that names must lead to.
	here = "127.0.0.1"
	// resolveWithin is how long the machine may take to say where a name leads.
	resolveWithin = 2 * time.Second
	// tries is how many ports are tried until one is free on both loopback addresses.
	tries = 20
	// notFromHere is the text of all refusals.
	notFromHere = "the request does not come from the page that heliostat open serves: open the address that it printed; " +
		"programs reach the cluster by heliostat session"
)

// door is where one browser is let in. Its host or its path has a random name, so that cookies of the door go to no other
// server of this machine: they know no ports.
type door struct {
	// host is that of the printed address, with its port; all requests are below path, which ends in a slash.
	host, path string
	secret     string
}

// newDoor returns a door at a port. Its name is a host below localhost, or a path of 127.0.0.1 where such hosts do not lead
// to this machine.
func newDoor(ctx context.Context, resolve console.Resolve, port string) *door {
	name := strings.ToLower(rand.Text())
	probe := strings.ToLower(rand.Text()) + ".localhost" // a name server learns this one, and never the door's
	if leadsHere(ctx, resolve, probe) {
		return &door{host: net.JoinHostPort(name+".localhost", port), path: "/", secret: rand.Text()}
	}
	return &door{host: net.JoinHostPort(here, port), path: "/" + name + "/", secret: rand.Text()}
}

// leadsHere reports whether a host leads to the addresses that open listens on, and to no other.
func leadsHere(ctx context.Context, resolve console.Resolve, host string) bool {
	ctx, cancel := context.WithTimeout(ctx, resolveWithin)
	defer cancel()
	found, err := resolve(ctx, host)
	ours := []netip.Addr{netip.MustParseAddr(here), netip.IPv6Loopback()}
	isOther := func(one netip.Addr) bool { return !slices.Contains(ours, one.Unmap()) }
	isHere := func(one netip.Addr) bool { return one.Unmap() == ours[0] }
	return err == nil && slices.ContainsFunc(found, isHere) && !slices.ContainsFunc(found, isOther)
}

// listenLocally listens on one port of each loopback address, a free one where port is 0. A browser takes a name below localhost
// to ::1 too, where another user of this machine could listen otherwise.
func listenLocally(ctx context.Context, port int) ([]net.Listener, error) {
	var config net.ListenConfig
	var failed error
	wanted := strconv.Itoa(port)
	for range tries {
		six, err := config.Listen(ctx, "tcp", net.JoinHostPort("::1", wanted))
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, err
		}
		if err != nil { // this machine has no IPv6, so no browser reaches anybody by it
			four, err := config.Listen(ctx, "tcp", net.JoinHostPort(here, wanted))
			return []net.Listener{four}, err
		}
		four, err := config.Listen(ctx, "tcp", net.JoinHostPort(here, portOf(six)))
		if err == nil {
			return []net.Listener{four, six}, nil
		}
		failed = err
		_ = six.Close() // nothing was promised
	}
	return nil, failed
}

// portOf returns the port that a listener has.
func portOf(listener net.Listener) string {
	address := listener.Addr().String()
	return address[strings.LastIndexByte(address, ':')+1:]
}

// address returns what the user opens.
func (d *door) address() string { return fmt.Sprintf("http://%s%s?key=%s", d.host, d.path, d.secret) }

// clean takes out of an answer of the head what would sign the browser in elsewhere or tell other sites the name, and has a
// redirect lead to where the dashboard is served.
func (d *door) clean(answer *http.Response) {
	answer.Header.Del("Set-Cookie")
	answer.Header.Del("Referrer-Policy") // the door has set its own
	if to, err := answer.Location(); err == nil && to.Host == upstream {
		answer.Header.Set("Location", strings.TrimSuffix(d.path, "/")+to.RequestURI())
	}
}

// guard lets requests in that show the secret and come from the page that is served here. The first one shows the secret in the
// address, and gets it as a cookie that no other site and no other port can use.
func (d *door) guard(next http.Handler) http.Handler {
	next = http.StripPrefix(strings.TrimSuffix(d.path, "/"), next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Referrer-Policy", "same-origin") // no other site learns the name
		if code := d.judge(r); code != http.StatusOK {
			http.Error(w, notFromHere, code)
			return
		}
		if d.isSecret(r.URL.Query().Get("key")) {
			http.SetCookie(w, &http.Cookie{ //nolint:gosec // no TLS on the loopback address, where Safari keeps no Secure cookie
				Name: cookie, Value: d.secret, Path: d.path, HttpOnly: true, SameSite: http.SameSiteStrictMode})
			http.Redirect(w, r, d.path, http.StatusSeeOther)
			return
		}
		if shown, err := r.Cookie(cookie); err != nil || !d.isSecret(shown.Value) {
			http.Error(w, notFromHere, http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// judge returns 200 where a request comes from the page that is served here, or from a link to its start, and otherwise the
// code that refuses it. Nothing that a request brings but the cookie signs it in, so none is exempt.
func (d *door) judge(r *http.Request) int {
	var refusal *gate.Refusal
	facts, err := gate.Read(r)
	if err == nil {
		if strings.EqualFold(r.Host, d.host) {
			facts.Own = "http://" + d.host
		}
		facts.IsLinkable = r.URL.Path == d.path
		err = gate.Judge(facts)
	}
	switch {
	case errors.As(err, &refusal):
		return refusal.Code
	case !strings.HasPrefix(r.URL.Path, d.path):
		return http.StatusForbidden
	case r.Header.Get("Service-Worker") != "": // it would act on what is served at this port later
		return http.StatusForbidden
	}
	return http.StatusOK
}

func (d *door) isSecret(text string) bool {
	return subtle.ConstantTimeCompare([]byte(text), []byte(d.secret)) == 1
}
