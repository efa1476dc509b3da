package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"testing"
)

func TestRules_Refuse(t *testing.T) {
	t.Parallel()
	rules := Rules{
		Own: []netip.Addr{netip.MustParseAddr("10.1.2.3"), netip.MustParseAddr("2001:db8::3")},
		APIServer: []netip.AddrPort{
			netip.MustParseAddrPort("10.96.0.1:443"), netip.MustParseAddrPort("192.168.0.10:6443"),
		},
	}
	const (
		loopback  = "loopback addresses"
		own       = "its own addresses"
		linkLocal = "link-local addresses"
		metadata  = "a cloud's metadata addresses"
		nowhere   = "addresses that no single host has"
		server    = "the API server"
	)
	for at, want := range map[string]string{
		"10.1.2.4:6379":               "",
		"10.96.0.2:6379":              "",
		"[2001:db8::4]:6379":          "",
		"[fd00::4]:6379":              "",
		"127.0.0.1:6379":              loopback,
		"127.255.0.1:6379":            loopback,
		"[::1]:6379":                  loopback,
		"[::ffff:127.0.0.1]:6379":     loopback,
		"[64:ff9b::127.0.0.1]:6379":   loopback,
		"169.254.169.254:80":          linkLocal,
		"[fe80::1]:6379":              linkLocal,
		"[fe80::1%eth0]:6379":         linkLocal,
		"[::ffff:169.254.169.254]:80": linkLocal,
		"[fd00:ec2::254]:80":          metadata,
		"100.100.100.200:80":          metadata,
		"168.63.129.16:80":            metadata,
		"0.0.0.0:6379":                nowhere,
		"[::]:6379":                   nowhere,
		"0.1.2.3:6379":                nowhere,
		"224.0.0.1:6379":              nowhere,
		"[ff02::1]:6379":              nowhere,
		"255.255.255.255:6379":        nowhere,
		"10.1.2.3:8080":               own,
		"[2001:db8::3]:8081":          own,
		"10.96.0.1:443":               server,
		"[::ffff:10.96.0.1]:443":      server,
		"192.168.0.10:6443":           server,
		"192.168.0.10:6379":           "", // a Redis on the same machine
	} {
		if have := rules.refuses(netip.MustParseAddrPort(at)); have != want {
			t.Errorf("%s: %q instead of %q", at, have, want)
		}
	}
}

func TestRules_AreNarrowedAndLocal(t *testing.T) {
	t.Parallel()
	narrow := Rules{}.Narrowed([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("127.0.0.0/8")})
	local := Rules{Local: true, Own: []netip.Addr{netip.MustParseAddr("10.1.2.3")}}
	for _, c := range []struct {
		rules   Rules
		at      string
		refused bool
	}{
		{narrow, "10.1.2.3:6379", false},
		{narrow, "[::ffff:10.1.2.3]:6379", false},
		{narrow, "192.168.0.1:6379", true},
		{narrow, "[fd00::1]:6379", true},
		{narrow, "127.0.0.1:6379", true}, // what is listed is not let in for that
		{local, "127.0.0.1:6379", false},
		{local, "10.1.2.3:6379", false},
		{local, "169.254.169.254:80", true},
	} {
		if sort := c.rules.refuses(netip.MustParseAddrPort(c.at)); (sort != "") != c.refused {
			t.Errorf("%+v: %s: refused as %q", c.rules, c.at, sort)
		}
	}
}

// A name is refused by what it leads to, and nobody is connected to meanwhile.
func TestConnect_RefusesAfterTheLookUp(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	for _, host := range []string{"127.0.0.1", "localhost", "::ffff:127.0.0.1"} {
		connection, err := Rules{}.Connect(context.Background(), net.JoinHostPort(host, port))
		if refused := (&RefusedError{}); !errors.As(err, &refused) || refused.Sort != "loopback addresses" {
			t.Errorf("%s: %v", host, err)
		}
		if connection != nil {
			t.Errorf("%s: connected", host)
		}
	}
	connection, err := Rules{Local: true}.Connect(context.Background(), listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	first, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if first.RemoteAddr().String() != connection.LocalAddr().String() {
		t.Errorf("%s was connected before %s", first.RemoteAddr(), connection.LocalAddr())
	}
}
