package netpol

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// rendered has one of each form of rule.
var rendered = Ruleset{
	Sets: []Set{
		{Name: "lk-a", Kind: AddressSet, Members: []string{"10.244.1.3", "10.244.2.2"}},
		{Name: "lk-b", Kind: NetSet, Members: []string{"10.0.0.0/8", "10.1.0.0/16 nomatch"}},
		{Name: "lk-c", Kind: PortSet, Members: []string{"10.244.1.3,tcp:80"}},
		{Name: "lk-d", Kind: AddressSet},
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
	}},
}

func TestSetsAreFilledBesideAndSwappedIn(t *testing.T) {
	want := `create lk-a hash:ip -exist
create lk-at hash:ip -exist
flush lk-at
add lk-at 10.244.1.3
add lk-at 10.244.2.2
swap lk-at lk-a
destroy lk-at
create lk-b hash:net -exist
create lk-bt hash:net -exist
flush lk-bt
add lk-bt 10.0.0.0/8
add lk-bt 10.1.0.0/16 nomatch
swap lk-bt lk-b
destroy lk-bt
create lk-c hash:ip,port -exist
create lk-ct hash:ip,port -exist
flush lk-ct
add lk-ct 10.244.1.3,tcp:80
swap lk-ct lk-c
destroy lk-ct
create lk-d hash:ip -exist
create lk-dt hash:ip -exist
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
	if diff := cmp.Diff(want, renderChains(rendered, []string{"LK-I-stale"})); diff != "" {
		t.Errorf("chains (-want +got):\n%s", diff)
	}
}
