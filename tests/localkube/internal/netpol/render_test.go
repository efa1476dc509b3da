package netpol

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/heliostat-dev/heliostat/tests/localkube/internal/plan"
)

// rendered has one of each form of rule.
var rendered = Ruleset{
	Sets: []Set{
		{Name: "lk-a", Kind: AddressSet, Family: plan.IPv4, Members: []string{"10.244.1.3", "10.244.2.2"}},
		{Name: "lk-b", Kind: NetSet, Family: plan.IPv4, Members: []string{"10.0.0.0/8", "10.1.0.0/16 nomatch"}},
		{Name: "lk-c", Kind: PortSet, Family: plan.IPv6, Members: []string{"fd00::3,tcp:80"}},
		{Name: "lk-d", Kind: AddressSet, Family: plan.IPv6},
	},
	Chains: []Chain{{
		Pod: "shop/web", Address: netip.MustParseAddr("10.244.1.2"), Direction: Egress,
		Rules: []Rule{{Set: "lk-a", Kind: AddressSet}, {Set: "lk-c", Kind: PortSet}},
	}, {
		Pod: "shop/web", Address: netip.MustParseAddr("10.244.1.2"), Direction: Ingress,
		Rules: []Rule{
			{},
			{Protocol: "udp"},
			{Set: "lk-b", Kind: NetSet, Protocol: "tcp", Port: 80, EndPort: 90},
		},
	}, {
		Pod: "shop/web", Address: netip.MustParseAddr("fd00::2"), Direction: Ingress,
	}},
}

func TestSetsAreFilledBesideAndSwappedIn(t *testing.T) {
	want := `create lk-a hash:ip family inet -exist
create lk-at hash:ip family inet -exist
flush lk-at
add lk-at 10.244.1.3
add lk-at 10.244.2.2
swap lk-at lk-a
destroy lk-at
create lk-b hash:net family inet -exist
create lk-bt hash:net family inet -exist
flush lk-bt
add lk-bt 10.0.0.0/8
add lk-bt 10.1.0.0/16 nomatch
swap lk-bt lk-b
destroy lk-bt
create lk-c hash:ip,port family inet6 -exist
create lk-ct hash:ip,port family inet6 -exist
flush lk-ct
add lk-ct fd00::3,tcp:80
swap lk-ct lk-c
destroy lk-ct
create lk-d hash:ip family inet6 -exist
create lk-dt hash:ip family inet6 -exist
flush lk-dt
swap lk-dt lk-d
destroy lk-dt
`
	if diff := cmp.Diff(want, renderSets(rendered.Sets)); diff != "" {
		t.Errorf("sets (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff("destroy lk-x\ndestroy lk-y\n", renderDestroy([]string{"lk-x", "lk-y"})); diff != "" {
		t.Errorf("sets to go (-want +got):\n%s", diff)
	}
}

func TestChainsAreOneTransaction(t *testing.T) {
	want := `*mangle
:LK-POLICY - [0:0]
:LK-I-stale - [0:0]
:LK-E-97375646b1deb3d2 - [0:0]
:LK-I-97375646b1deb3d2 - [0:0]
-A LK-POLICY -m conntrack --ctstate RELATED,ESTABLISHED -j RETURN
-A LK-POLICY -s 10.244.1.2 -j LK-E-97375646b1deb3d2
-A LK-POLICY -d 10.244.1.2 -j LK-I-97375646b1deb3d2
-A LK-E-97375646b1deb3d2 -d 10.244.1.2 -j RETURN
-A LK-E-97375646b1deb3d2 -m set --match-set lk-a dst -j RETURN
-A LK-E-97375646b1deb3d2 -m set --match-set lk-c dst,dst -j RETURN
-A LK-E-97375646b1deb3d2 -j DROP
-A LK-I-97375646b1deb3d2 -s 10.244.1.2 -j RETURN
-A LK-I-97375646b1deb3d2 -j RETURN
-A LK-I-97375646b1deb3d2 -p udp -j RETURN
-A LK-I-97375646b1deb3d2 -p tcp --dport 80:90 -m set --match-set lk-b src -j RETURN
-A LK-I-97375646b1deb3d2 -j DROP
-X LK-I-stale
COMMIT
`
	if diff := cmp.Diff(want, renderChains(rendered.of(plan.IPv4), []string{"LK-I-stale"})); diff != "" {
		t.Errorf("chains (-want +got):\n%s", diff)
	}
	want = `*mangle
:LK-POLICY - [0:0]
:LK-I-97375646b1deb3d2 - [0:0]
-A LK-POLICY -m conntrack --ctstate RELATED,ESTABLISHED -j RETURN
-A LK-POLICY -d fd00::2 -j LK-I-97375646b1deb3d2
-A LK-I-97375646b1deb3d2 -s fd00::2 -j RETURN
-A LK-I-97375646b1deb3d2 -j DROP
COMMIT
`
	if diff := cmp.Diff(want, renderChains(rendered.of(plan.IPv6), nil)); diff != "" {
		t.Errorf("chains of IPv6 (-want +got):\n%s", diff)
	}
}
