package plan

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

func names(t *testing.T, base, name string) Names {
	t.Helper()
	n, err := NewNames(base, name)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestNamesNeverMeet(t *testing.T) {
	all := []Names{
		names(t, "/var/lib/localkube", "a"), names(t, "/var/lib/localkube", "ab"),
		names(t, "/var/lib/localkube", "a-b"), names(t, "/elsewhere", "a"),
	}
	for i, one := range all {
		for j, other := range all {
			same := i == j
			if one.OwnsLink(other.Bridge()) != same || one.OwnsLink(other.Link("node1")) != same {
				t.Errorf("%s owns the links of %s: want %v", one.Tag, other.Tag, same)
			}
			if one.OwnsNetns(other.Netns("node1")) != same {
				t.Errorf("%s owns the namespaces of %s: want %v", one.Tag, other.Tag, same)
			}
			if strings.HasPrefix(other.Cgroup("run")+"/", one.Cgroup()+"/") != same {
				t.Errorf("%s holds the cgroup of %s: want %v", one.Tag, other.Tag, same)
			}
		}
	}
}

func TestLinkFitsTheKernel(t *testing.T) {
	n := names(t, "/var/lib/localkube", "twenty-characters-ok")
	for _, link := range []string{n.Bridge(), n.Link(ControlPlane), n.Link(Node(MaxNodes))} {
		if len(link) > 15 {
			t.Errorf("interface %q has %d bytes, more than 15", link, len(link))
		}
	}
}

func TestNamesRefused(t *testing.T) {
	for _, name := range []string{"", "A", "-a", "a-", "a.b", "a/b", "..", strings.Repeat("a", 21)} {
		if _, err := NewNames("/var/lib/localkube", name); err == nil {
			t.Errorf("name %q was accepted", name)
		}
	}
}

func TestAddressesAreApart(t *testing.T) {
	var seen []netip.Prefix
	for i := range MaxInstances {
		for _, a := range Families("ipv4,ipv6").Networks(i) {
			for _, p := range []netip.Prefix{a.Network(), a.Pods(), a.Services()} {
				for _, s := range seen {
					if s.Overlaps(p) {
						t.Fatalf("instance %d: %s overlaps %s", i, p, s)
					}
				}
				seen = append(seen, p)
			}
			if !a.Network().Contains(a.Node(MaxNodes)) || !a.Pods().Contains(a.NodePods(MaxNodes).Addr()) {
				t.Fatalf("instance %d: the last node is outside its networks", i)
			}
			if !a.Services().Contains(a.DNSService()) || a.DNSService() == a.APIService() {
				t.Fatalf("instance %d: service addresses are wrong", i)
			}
			for _, one := range []netip.Addr{a.Node(1), a.NodePods(1).Addr(), a.DNSService(), a.Family.Everything().Addr()} {
				if !a.Family.Of(one) {
					t.Fatalf("instance %d: %s is not an address of %s", i, one, a.Family)
				}
			}
		}
	}
}

func TestNewFamilies_KeepsTheirOrder(t *testing.T) {
	for text, want := range map[string][]Family{
		"ipv4": {IPv4}, "ipv6": {IPv6}, "ipv4,ipv6": {IPv4, IPv6}, "ipv6,ipv4": {IPv6, IPv4},
		"": nil, "ipv5": nil, "ipv4,ipv4": nil, "ipv4, ipv6": nil, "ipv4,": nil,
	} {
		got, err := NewFamilies(text)
		if (err == nil) != (want != nil) || err == nil && !slices.Equal(got.List(), want) {
			t.Errorf("families %q are %v, %v, want %v", text, got, err, want)
		}
	}
	if older := Families("").List(); !slices.Equal(older, []Family{IPv4}) {
		t.Errorf("the families of an older instance are %v, want IPv4", older)
	}
}

func TestFreeIndex(t *testing.T) {
	var routes []netip.Prefix
	for _, text := range []string{"0.0.0.0/0", "::/0", "10.129.0.0/16", "fd6c:6b:3:2::/64"} {
		routes = append(routes, netip.MustParsePrefix(text))
	}
	got, err := FreeIndex(map[int]bool{0: true, 2: true}, routes)
	if err != nil || got != 4 {
		t.Errorf("FreeIndex = %d, %v; want 4: 0 and 2 are taken, the host has routes to 1 and 3", got, err)
	}
	if _, err := FreeIndex(nil, []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}); err == nil {
		t.Error("FreeIndex found networks although the host routes all of 10.0.0.0/8")
	}
}
