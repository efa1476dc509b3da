package network

import (
	"net/netip"
	"testing"

	"github.com/heliostat-dev/heliostat/tests/localkube/internal/plan"
)

func TestRoutes(t *testing.T) {
	n := Network{Addresses: plan.Families("ipv4,ipv6").Networks(1)}
	want := map[netip.Prefix]netip.Addr{}
	for _, a := range n.Addresses {
		want[a.NodePods(1)], want[a.NodePods(2)], want[a.Services()] = a.Node(1), a.Node(2), a.Node(1)
	}
	host := n.Routes(2, 0)
	if len(host) != len(want) {
		t.Errorf("the host has %d routes, want %d", len(host), len(want))
	}
	for _, r := range host {
		if want[r.To] != r.Via {
			t.Errorf("the host reaches %s via %s, want %s", r.To, r.Via, want[r.To])
		}
	}
	for _, r := range n.Routes(2, 2) {
		for _, a := range n.Addresses {
			if r.To == a.NodePods(2) {
				t.Errorf("node 2 has a route to its own pods %s by way of the network", r.To)
			}
			if r.To == a.Services() && r.Via.IsValid() {
				t.Errorf("node 2 sends services %s to another node instead of rewriting them", r.To)
			}
		}
	}
	if r := n.Routes(0, 0); len(r) != 0 {
		t.Errorf("without nodes there are routes: %v", r)
	}
}
