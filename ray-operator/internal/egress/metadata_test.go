package egress

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/metadata"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/rights"
)

// clusterTo returns a cluster whose allowTo has an address, or none where that is empty.
func clusterTo(address string) *v1beta1.ComputeCluster {
	cluster := &v1beta1.ComputeCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "demo"}}
	if address != "" {
		block := networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: netip.PrefixFrom(netip.MustParseAddr(address),
			netip.MustParseAddr(address).BitLen()).String()}}
		cluster.Spec.Network = &v1beta1.Network{AllowTo: []v1beta1.EgressRule{{To: []networkingv1.NetworkPolicyPeer{block}}}}
	}
	return cluster
}

// lets reports whether the policy of a cluster that says nothing lets its pods go to a port of an address.
func lets(address netip.Addr, port int32) bool {
	holds := func(block string) bool { return netip.MustParsePrefix(block).Contains(address) }
	policy := desired.NetworkPolicy(clusterTo(""), desired.Site{})
	return slices.ContainsFunc(policy.Spec.Egress, func(rule networkingv1.NetworkPolicyEgressRule) bool {
		isTo := len(rule.To) == 0 || slices.ContainsFunc(rule.To, func(p networkingv1.NetworkPolicyPeer) bool {
			return p.IPBlock != nil && holds(p.IPBlock.CIDR) && !slices.ContainsFunc(p.IPBlock.Except, holds)
		})
		return isTo && (len(rule.Ports) == 0 || slices.ContainsFunc(rule.Ports, func(p networkingv1.NetworkPolicyPort) bool {
			return p.Port.IntVal == port
		}))
	})
}

// asks reports whether a right is asked for before a cluster's allowTo may have an address.
func asks(address netip.Addr) bool {
	return slices.ContainsFunc(rights.OfCluster(clusterTo(address.String()), rights.ChartSite()), func(d rights.Demand) bool { return d.Need.ID == "metadata" })
}

// TestMetadata_IsClosedToAllAlike: what the operator does not connect to, pods do not reach, and an allowTo needs a right.
func TestMetadata_IsClosedToAllAlike(t *testing.T) {
	t.Parallel()
	for _, known := range []string{
		"169.254.169.254", "169.254.0.23", "169.254.169.253", "168.63.129.16", "100.100.100.200", "192.0.0.192",
		"fd00:ec2::254", "fd20:ce::254", "fe80::a9fe:a9fe", "64:ff9b::169.254.169.254", "64:ff9b::168.63.129.16", "64:ff9b::100.100.100.200", "64:ff9b::192.0.0.192",
	} {
		checkClosed(t, netip.MustParseAddr(known))
	}
	for _, block := range metadata.Closed() {
		checkClosed(t, block.Addr())
		checkClosed(t, lastOf(block))
	}
}

// checkClosed reports where an address is open: to the operator, to pods, or to an allowTo without a right.
func checkClosed(t *testing.T, address netip.Addr) {
	t.Helper()
	if sort := (Rules{}).refuses(netip.AddrPortFrom(address, 80)); !strings.Contains(sort, "metadata") && sort != "link-local addresses" {
		t.Errorf("the operator refuses %s as %q", address, sort)
	}
	if lets(address, 80) || lets(address, 32526) {
		t.Errorf("pods reach %s", address)
	}
	if !asks(address) {
		t.Errorf("allowTo %s needs no right", address)
	}
}

func TestMetadata_LeavesOthersOpen(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"8.8.8.8", "169.253.255.255", "169.255.0.0", "168.63.129.17", "2001:db8::1", "fec0::1", "fd00:ec2:0:1::", "64:ff9b::8.8.8.8"} {
		address := netip.MustParseAddr(text)
		if sort := (Rules{}).refuses(netip.AddrPortFrom(address, 80)); sort != "" || !lets(address, 80) || asks(address) {
			t.Errorf("%s is closed: to the operator as %q, to pods %v, and a right is asked for: %v", text, sort, !lets(address, 80), asks(address))
		}
	}
	for _, own := range metadata.PodIdentity() {
		if !lets(own.Addr(), metadata.PodIdentityPort) || lets(own.Addr(), 443) || asks(own.Addr()) {
			t.Errorf("pods do not reach %s at its port alone", own)
		}
	}
}

// lastOf returns the last address of a block.
func lastOf(block netip.Prefix) netip.Addr {
	bytes := block.Addr().AsSlice()
	for i := block.Bits(); i < 8*len(bytes); i++ {
		bytes[i/8] |= 1 << (7 - i%8)
	}
	last, _ := netip.AddrFromSlice(bytes)
	return last
}
