package network

import (
	"net/netip"
	"testing"

	"github.com/heliostat-dev/heliostat/tests/localkube/internal/plan"
)

func TestRoutes(t *testing.T) {
	n := Network{Addresses: plan.Addresses{Index: 1}}
	a := n.Addresses
	host := n.Routes(2, 0)
	want := map[netip.Prefix]netip.Addr{
		a.NodePods(1): a.Node(1), a.NodePods(2): a.Node(2), a.Services(): a.Node(1),
	}
	if len(host) != len(want) {
		t.Errorf("the host has %d routes, want %d", len(host), len(want))
	}
	for _, r := range host {
		if want[r.To] != r.Via {
			t.Errorf("the host reaches %s via %s, want %s", r.To, r.Via, want[r.To])
		}
	}
	for _, r := range n.Routes(2, 2) {
		if r.To == a.NodePods(2) {
			t.Error("node 2 has a route to its own pods by way of the network")
		}
		if r.To == a.Services() && r.Via.IsValid() {
			t.Error("node 2 sends services to another node instead of rewriting them")
		}
	}
	if r := n.Routes(0, 0); len(r) != 0 {
		t.Errorf("without nodes there are routes: %v", r)
	}
}
