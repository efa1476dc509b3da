package desired

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

// Mesh is what NetworkPolicies must know of a service mesh, whose proxies change ports and addresses before a policy is
// judged. The zero value stands for an installation without a mesh.
type Mesh struct {
	// TunnelPort is the port at which the mesh's tunnels arrive in pods, whatever port they lead to: 15008 with Istio's ambient
	// mode, 4143 with Linkerd. 0 stands for no tunnel.
	TunnelPort int32
	// ProbesFrom are the addresses from which the mesh sends on the probes of kubelets.
	ProbesFrom []netip.Prefix
}

// open returns the ports of a rule with the tunnel's, which leads to each of them. Tunnels are for TCP alone, and a rule
// without ports is about all of them.
func (m Mesh) open(ports []networkingv1.NetworkPolicyPort) []networkingv1.NetworkPolicyPort {
	if m.TunnelPort == 0 || !slices.ContainsFunc(ports, isTCP) || slices.ContainsFunc(ports, m.isTunnel) {
		return ports
	}
	return append(slices.Clone(ports), port(corev1.ProtocolTCP, m.TunnelPort))
}

func isTCP(given networkingv1.NetworkPolicyPort) bool {
	return given.Protocol == nil || *given.Protocol == corev1.ProtocolTCP
}

// isTunnel reports whether a port of a rule is the tunnel's, or a range with it.
func (m Mesh) isTunnel(given networkingv1.NetworkPolicyPort) bool {
	if !isTCP(given) {
		return false
	}
	if given.Port == nil { // all ports
		return true
	}
	first := given.Port.IntVal
	last := first
	if given.EndPort != nil {
		last = *given.EndPort
	}
	return first <= m.TunnelPort && m.TunnelPort <= last
}

// admit opens the tunnel in the rules of who reaches pods, and lets the probes of kubelets in.
func (m Mesh) admit(rules []networkingv1.NetworkPolicyIngressRule) []networkingv1.NetworkPolicyIngressRule {
	for i := range rules {
		rules[i].Ports = m.open(rules[i].Ports)
	}
	if len(m.ProbesFrom) > 0 { // a rule without peers would let everybody in
		rules = append(rules, networkingv1.NetworkPolicyIngressRule{From: blocks(m.ProbesFrom)})
	}
	return rules
}
