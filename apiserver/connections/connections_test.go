package connections

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"testing"

	"github.com/heliostat-dev/heliostat/portal/problem"
)

// peer is a connection from an address.
type peer struct {
	net.Conn
	address  net.Addr
	isClosed bool
}

func (p *peer) RemoteAddr() net.Addr { return p.address }

func (p *peer) Close() error {
	p.isClosed = true
	return nil
}

// queued is a listener with connections that wait.
type queued struct {
	net.Listener
	waiting []*peer
}

func (q *queued) Accept() (net.Conn, error) {
	if len(q.waiting) == 0 {
		return nil, errors.New("nobody waits")
	}
	next := q.waiting[0]
	q.waiting = q.waiting[1:]
	return next, nil
}

// site is a listener, and all that came to it.
type site struct {
	*Limits
	inner *queued
	ports uint16
}

func newSite() *site { return &site{Limits: New(), inner: &queued{}} }

// connect accepts a connection from a host, and returns it with the context of its requests.
func (s *site) connect(t *testing.T, host string) (*peer, net.Conn, context.Context) {
	t.Helper()
	s.ports++
	one := &peer{address: net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(host), s.ports))}
	s.inner.waiting = append(s.inner.waiting, one)
	accepted, err := s.Listen(s.inner).Accept()
	if err != nil {
		t.Fatal(err)
	}
	return one, accepted, s.With(t.Context(), one.address)
}

func TestListen_ClosesWhatServedNobodyForLongest(t *testing.T) {
	s := newSite()
	other, _, _ := s.connect(t, "10.0.0.9")
	first, _, used := s.connect(t, "10.0.0.1")
	giveBack := Use(used)
	second, _, _ := s.connect(t, "10.0.0.1")
	third, _, _ := s.connect(t, "::ffff:10.0.0.1")
	for range maxSpareEach - 1 {
		s.connect(t, "10.0.0.1")
	}
	if first.isClosed || other.isClosed || !second.isClosed || third.isClosed {
		t.Errorf("one that serves is closed: %v; of another host: %v; the longest spare one: %v; the next: %v",
			first.isClosed, other.isClosed, second.isClosed, third.isClosed)
	}
	giveBack() // now it is the newest of the spare ones
	if first.isClosed || !third.isClosed {
		t.Errorf("one that served is closed: %v; the longest spare one: %v", first.isClosed, third.isClosed)
	}
}

func TestListen_BoundsAllHostsTogether(t *testing.T) {
	s := newSite()
	first, _, _ := s.connect(t, "10.0.0.1")
	for i := range maxSpare - 1 {
		s.connect(t, fmt.Sprintf("10.0.1.%d", i%200))
	}
	if first.isClosed {
		t.Fatal("one is closed too early")
	}
	if s.connect(t, "10.0.0.2"); !first.isClosed {
		t.Error("there are more than may be")
	}
}

func TestClose_CountsAConnectionNoMore(t *testing.T) {
	s := newSite()
	_, one, ctx := s.connect(t, "10.0.0.1")
	giveBack := Use(ctx)
	done, err := Ask(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // net/http and grpc close more than once
		_ = one.Close()
	}
	giveBack()
	giveBack()
	done()
	done()
	if len(s.open) != 0 || len(s.hosts) != 0 || s.spare.Len() != 0 || s.asking != 0 {
		t.Errorf("%d connections, %d hosts, %d spare ones and %d questions are left", len(s.open), len(s.hosts), s.spare.Len(), s.asking)
	}
	if _, err := Ask(ctx); err == nil {
		t.Error("a connection that is closed asks")
	}
}

func TestAsk_IsBounded(t *testing.T) {
	s := newSite()
	_, _, ctx := s.connect(t, "10.0.0.1")
	_, _, other := s.connect(t, "10.0.0.2")
	_, _, third := s.connect(t, "10.0.0.3")
	ask := func(ctx context.Context, times int) (last func()) {
		t.Helper()
		for range times {
			done, err := Ask(ctx)
			if err != nil {
				t.Fatal(err)
			}
			last = done
		}
		return last
	}
	done := ask(ctx, maxAskingEach)
	if _, err := Ask(ctx); problem.Of(err).Code != http.StatusTooManyRequests || problem.Of(err).RetryAfter == 0 {
		t.Errorf("one too many of a host is %v", err)
	}
	ask(other, maxAsking-maxAskingEach)
	if _, err := Ask(third); err == nil {
		t.Error("there are more of all hosts than may be")
	}
	done()
	ask(third, 1)
}

// TestUse_IsNothingWithoutAConnection, as in tests and behind other listeners.
func TestUse_IsNothingWithoutAConnection(t *testing.T) {
	ctx := New().With(t.Context(), net.TCPAddrFromAddrPort(netip.MustParseAddrPort("10.0.0.1:1")))
	done, err := Ask(ctx)
	if err != nil {
		t.Fatal(err)
	}
	done()
	Use(ctx)()
}
