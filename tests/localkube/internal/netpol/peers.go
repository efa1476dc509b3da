package netpol

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// peer is a set that has not been asked for yet. The zero key is everyone.
type peer struct {
	key     string
	kind    Kind
	members []string
	// pods are those the members stand for; a block of addresses has none.
	pods []endpoint
}

func (c *compiler) everyone() peer { return peer{pods: c.pods} }

// peer says who is meant in a policy of the namespace.
func (c *compiler) peer(namespace string, p networkingv1.NetworkPolicyPeer) peer {
	if p.IPBlock != nil {
		return c.block(p.IPBlock)
	}
	pods := selector(p.PodSelector)
	if p.PodSelector == nil {
		pods = labels.Everything()
	}
	scope, inScope := "in "+namespace, func(name string) bool { return name == namespace }
	if p.NamespaceSelector != nil {
		spaces := selector(p.NamespaceSelector)
		scope, inScope = "where "+spaces.String(), func(name string) bool {
			namespaceLabels, known := c.namespaces[name]
			return known && spaces.Matches(namespaceLabels)
		}
	}
	out := peer{key: fmt.Sprintf("pods %q %s", pods, scope), kind: AddressSet}
	if known, ok := c.peers[out.key]; ok {
		return known
	}
	for _, pod := range c.pods {
		if inScope(pod.Namespace) && pods.Matches(labels.Set(pod.Labels)) {
			out.members = append(out.members, pod.address.String())
			out.pods = append(out.pods, pod)
		}
	}
	out.members = ordered(out.members)
	c.peers[out.key] = out
	return out
}

// named narrows the peer to the port that each of its pods gives the name to.
func (p peer) named(protocol corev1.Protocol, name string) peer {
	out := peer{key: fmt.Sprintf("port %s %s of %s", protocol, name, p.key), kind: PortSet}
	for _, pod := range p.pods {
		for _, number := range namedPorts(pod.Pod, protocol, name) {
			out.members = append(out.members, fmt.Sprintf("%s,%s:%d", pod.address, strings.ToLower(string(protocol)), number))
		}
	}
	out.members = ordered(out.members)
	return out
}

// block is a range of addresses without its exceptions. An exception wins over
// the same range allowed, which occurs when /0 is given as its two halves.
func (c *compiler) block(b *networkingv1.IPBlock) peer {
	out := peer{key: fmt.Sprintf("block %s except %s", b.CIDR, strings.Join(b.Except, " ")), kind: NetSet}
	except := c.halves(b.Except...)
	for _, prefix := range c.halves(b.CIDR) {
		if !slices.Contains(except, prefix) {
			out.members = append(out.members, prefix.String())
		}
	}
	for _, prefix := range except {
		out.members = append(out.members, prefix.String()+" nomatch")
	}
	out.members = ordered(out.members)
	return out
}

// halves are the ranges of the family among the texts; a /0 is two ranges,
// because an ipset cannot hold it as one.
func (c *compiler) halves(cidrs ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, text := range cidrs {
		prefix, err := netip.ParsePrefix(text)
		switch {
		case err != nil || !c.family.Of(prefix.Addr()):
		case prefix.Bits() == 0:
			upper := prefix.Addr().AsSlice()
			upper[0] = 128
			from, _ := netip.AddrFromSlice(upper) // as long as before
			out = append(out, netip.PrefixFrom(prefix.Addr(), 1).Masked(), netip.PrefixFrom(from, 1).Masked())
		default:
			out = append(out, prefix.Masked())
		}
	}
	return out
}

// selector is the label selector as a matcher. One that the API server would
// have refused selects nothing.
func selector(s *metav1.LabelSelector) labels.Selector {
	out, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return labels.Nothing()
	}
	return out
}

// ordered sorts the members and drops those that are there twice.
func ordered(members []string) []string {
	slices.Sort(members)
	return slices.Compact(members)
}
