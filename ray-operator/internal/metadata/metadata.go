// Package metadata knows the addresses at which clouds give credentials to code that asks from a node.
//
// In: nothing. Out: the addresses that are closed to the operator and to pods, and those among them that pods may have.
//
// It is the only list. Egress of the operator, NetworkPolicies of clusters and the rights of tenants all use it, and it must
// never differ among them.
package metadata

import (
	"net/netip"
	"slices"
)

// Closed returns the blocks that are closed: those of IPv4 first, and those of NAT64 that lead there last.
//
// The whole link-local block is among them, as clouds choose addresses in it: 169.254.169.254 of most, 169.254.0.23 of
// Tencent. Others are of Azure's host, Alibaba, Oracle's older cloud, AWS and Google.
func Closed() []netip.Prefix {
	v4 := prefixes("169.254.0.0/16", "168.63.129.16/32", "100.100.100.200/32", "192.0.0.192/32")
	all := append(slices.Clone(v4), prefixes("fe80::/10", "fd00:ec2::/64", "fd20:ce::254/128")...)
	for _, block := range v4 {
		all = append(all, translated(block))
	}
	return all
}

// translated returns the block of IPv6 by which NAT64 leads to one of IPv4.
func translated(v4 netip.Prefix) netip.Prefix {
	bytes := netip.MustParseAddr("64:ff9b::").As16()
	copy(bytes[12:], v4.Addr().AsSlice())
	return netip.PrefixFrom(netip.AddrFrom16(bytes), 96+v4.Bits())
}

// PodIdentity returns the addresses of EKS Pod Identity, which gives a pod its own credentials, at PodIdentityPort. They
// lie in closed blocks.
func PodIdentity() []netip.Prefix { return prefixes("169.254.170.23/32", "fd00:ec2::23/128") }

// PodIdentityPort is the port of EKS Pod Identity.
const PodIdentityPort = 80

// Covers reports whether a block holds all of another one.
func Covers(block, other netip.Prefix) bool {
	return block.Overlaps(other) && block.Bits() <= other.Bits()
}

func prefixes(texts ...string) []netip.Prefix {
	all := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		all[i] = netip.MustParsePrefix(text)
	}
	return all
}
