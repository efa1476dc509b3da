// Package connections bounds the connections of a listener that serve no caller, and the requests whose caller is not
// known yet.
//
// In: a listener, and when a request of a known caller begins and ends. Out: the same listener, which closes what has
// served nobody for the longest time where there are too many connections.
//
// It must never close a connection that serves a request of a known caller: places bound those. It never waits for a peer.
package connections

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/heliostat-dev/heliostat/portal/problem"
)

// Bounds of a listener. A connection takes about 50 KiB, so all that serve nobody take 50 MiB. A request whose caller is not
// known yet parks up to 64 KiB of a message, and half of that in headers.
const (
	maxSpare      = 1024
	maxSpareEach  = 512
	maxAsking     = 512
	maxAskingEach = 256
)

// errCrowded is that too many requests wait for who they are of.
var errCrowded = problem.New(http.StatusTooManyRequests, "TooManyRequests",
	"too many requests wait until their callers are known", "try again").Later(time.Second)

// Limits are the connections of one listener. They may be used by many goroutines.
type Limits struct {
	mutex sync.Mutex
	// open has each connection by the address of its peer, and hosts what is counted of a host.
	open  map[string]*connection
	hosts map[string]*host
	// spare are the connections that serve no caller, the longest first.
	spare  list.List
	asking int
}

// host is what is counted of an address without its port.
type host struct{ open, spare, asking int }

// New returns the limits of a listener.
func New() *Limits { return &Limits{open: map[string]*connection{}, hosts: map[string]*host{}} }

// connection is one of a listener.
type connection struct {
	net.Conn
	limits *Limits
	host   string
	// place is where it stands among the spare ones; nil while it serves a caller, or is closed.
	place    *list.Element
	serving  int
	isClosed bool
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.limits.mutex.Lock()
	c.limits.forget(c)
	c.limits.mutex.Unlock()
	return c.Conn.Close()
}

// Listen returns a listener whose connections are bounded.
func (l *Limits) Listen(inner net.Listener) net.Listener {
	return &listener{Listener: inner, limits: l}
}

type listener struct {
	net.Listener
	limits *Limits
}

// Accept implements net.Listener.
func (n *listener) Accept() (net.Conn, error) {
	accepted, err := n.Listener.Accept()
	if err != nil {
		return nil, err
	}
	one := &connection{Conn: accepted, limits: n.limits, host: hostOf(accepted.RemoteAddr())}
	if surplus := n.limits.add(one); surplus != nil {
		_ = surplus.Conn.Close() // whose it was may be gone
	}
	return one, nil
}

// hostOf returns an address without its port.
func hostOf(address net.Addr) string {
	parsed, err := netip.ParseAddrPort(address.String())
	if err != nil {
		return address.String()
	}
	return parsed.Addr().Unmap().String()
}

// add notes a new connection, and returns the one that must go for it.
func (l *Limits) add(c *connection) *connection {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.open[c.RemoteAddr().String()] = c
	of := l.hosts[c.host]
	if of == nil {
		of = &host{}
		l.hosts[c.host] = of
	}
	of.open++
	return l.rest(c)
}

// rest puts a connection behind the spare ones, and returns the one that must go for it.
func (l *Limits) rest(c *connection) (surplus *connection) {
	of := l.hosts[c.host]
	of.spare++
	c.place = l.spare.PushBack(c)
	if of.spare <= maxSpareEach && l.spare.Len() <= maxSpare {
		return nil
	}
	for at := l.spare.Front(); at != nil; at = at.Next() {
		one, _ := at.Value.(*connection) // the list holds nothing else
		if of.spare <= maxSpareEach || one.host == c.host {
			l.forget(one)
			return one
		}
	}
	return nil
}

// leave takes a connection out of the spare ones.
func (l *Limits) leave(c *connection) {
	if c.place != nil {
		l.spare.Remove(c.place)
		c.place = nil
		l.hosts[c.host].spare--
	}
}

// forget counts a connection no more.
func (l *Limits) forget(c *connection) {
	if c.isClosed {
		return
	}
	c.isClosed = true
	l.leave(c)
	if key := c.RemoteAddr().String(); l.open[key] == c {
		delete(l.open, key)
	}
	l.hosts[c.host].open--
	l.tidy(c.host)
}

// tidy drops a host of which nothing is counted.
func (l *Limits) tidy(name string) {
	if of := l.hosts[name]; of.open == 0 && of.asking == 0 {
		delete(l.hosts, name)
	}
}

type connectionKey struct{}

// With returns the context of a connection with where it is counted.
func (l *Limits) With(ctx context.Context, peer net.Addr) context.Context {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if one, is := l.open[peer.String()]; is {
		return context.WithValue(ctx, connectionKey{}, one)
	}
	return ctx
}

// Use keeps the connection of a request open until it is given back: the request's caller is known. Without a connection in the
// context it does nothing.
func Use(ctx context.Context) (giveBack func()) {
	c, is := ctx.Value(connectionKey{}).(*connection)
	if !is {
		return func() {}
	}
	c.limits.mutex.Lock()
	defer c.limits.mutex.Unlock()
	c.serving++
	c.limits.leave(c)
	return sync.OnceFunc(c.release)
}

// release ends one use of a connection.
func (c *connection) release() {
	l := c.limits
	l.mutex.Lock()
	var surplus *connection
	if c.serving--; c.serving == 0 && !c.isClosed {
		surplus = l.rest(c)
	}
	l.mutex.Unlock()
	if surplus != nil {
		_ = surplus.Conn.Close() // whose it was may be gone
	}
}

// Ask counts a request until its caller is known, or returns a Problem where too many wait for that. Without a connection in the
// context nothing is counted.
func Ask(ctx context.Context) (done func(), err error) {
	c, is := ctx.Value(connectionKey{}).(*connection)
	if !is {
		return func() {}, nil
	}
	l := c.limits
	l.mutex.Lock()
	defer l.mutex.Unlock()
	of := l.hosts[c.host]
	if c.isClosed || l.asking >= maxAsking || of.asking >= maxAskingEach {
		return nil, errCrowded
	}
	l.asking++
	of.asking++
	return sync.OnceFunc(func() {
		l.mutex.Lock()
		defer l.mutex.Unlock()
		l.asking--
		of.asking--
		l.tidy(c.host)
	}), nil
}
