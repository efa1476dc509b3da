package controlstore

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/egress"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// The servers that a server names are held to the same rules as itself.
func TestAsk_RefusesAddressesOnEveryHop(t *testing.T) {
	t.Parallel()
	one := Client{ConnectGiven: egress.Rules{Local: true}.Narrowed([]netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}).Connect}
	none := Client{ConnectGiven: egress.Rules{}.Connect}
	refused := listen(t, "127.0.0.2:0")
	host, port, _ := net.SplitHostPort(refused.Addr().String())
	for name, test := range map[string]struct {
		client  Client
		canned  map[string]string
		address string
	}{
		"its own address":         {none, nil, "redis://" + refused.Addr().String()},
		"a name":                  {none, nil, "redis://localhost:" + port},
		"where a Sentinel leads":  {one, sentinel(list(list(bulk("ip"), bulk(host), bulk("port"), bulk(port)))), ""},
		"where a key is moved to": {one, map[string]string{"HDEL": "-MOVED 1 " + refused.Addr().String() + "\r\n"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := test.address
			if address == "" {
				address = startFake(t, &fake{canned: test.canned}).address
			}
			expect(t, test.client.Ask(context.Background(), Server{Address: address, Given: true}, claim()), reason.StoreNotAllowed, "does not connect")
			if _, err := test.client.Sweep(context.Background(), Server{Address: address, Given: true}, "ns", "uid-1"); err == nil {
				t.Error("swept")
			}
		})
	}
	t.Cleanup(func() { // after the parallel ones
		if n := refused.taken(); n > 0 {
			t.Errorf("%d connections were made to an address that is refused", n)
		}
	})
}

// listener counts who connects.
type listener struct {
	net.Listener
	connections chan net.Conn
}

func listen(t *testing.T, address string) *listener {
	t.Helper()
	inner, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	l := &listener{Listener: inner, connections: make(chan net.Conn, 100)}
	go func() {
		defer close(l.connections)
		for {
			connection, err := inner.Accept()
			if err != nil {
				return
			}
			l.connections <- connection
		}
	}()
	return l
}

// taken closes the listener and counts the connections that it had.
func (l *listener) taken() (n int) {
	_ = l.Close()
	for connection := range l.connections {
		_ = connection.Close()
		n++
	}
	return n
}

// Heads seek a short name in their own namespace, and so does the operator, in whatever namespace it is itself.
func TestAsk_SeeksShortNamesBesideTheCluster(t *testing.T) {
	t.Parallel()
	f := startFake(t, &fake{canned: sentinel(list(list(bulk("ip"), bulk("primary"), bulk("port"), bulk("6379"))))})
	var sought []string
	client := Client{ConnectGiven: func(ctx context.Context, address string) (net.Conn, error) {
		if sought = append(sought, address); len(sought) > 1 {
			return nil, &net.DNSError{Name: address, IsNotFound: true}
		}
		return (&net.Dialer{}).DialContext(ctx, "tcp", f.address[len("redis://"):])
	}}
	have := client.Ask(context.Background(), Server{Address: "redis://cache:26379", Given: true, Namespace: "team-a"}, claim())
	expect(t, have, reason.StoreUnreachable, "there is no host of this name")
	if want := []string{"cache.team-a:26379", "primary.team-a:6379"}; !slices.Equal(sought, want) {
		t.Errorf("sought %v", sought)
	}
	sought = nil
	client.Ask(context.Background(), Server{Address: "redis://[::1]:6379", Given: true, Namespace: "team-a"}, claim())
	client.Ask(context.Background(), Server{Address: "redis://cache.other:6379", Given: true, Namespace: "team-a"}, claim())
	if want := "[::1]:6379"; sought[0] != want || sought[len(sought)-1] != "cache.other:6379" {
		t.Errorf("sought %v", sought)
	}
}
