package netpol

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/heliostat-dev/heliostat/tests/localkube/internal/plan"
)

// Cluster is what decides about the rules of a node, in any order. Defaults that
// the API server sets may be missing.
type Cluster struct {
	Policies   []*networkingv1.NetworkPolicy
	Pods       []*corev1.Pod
	Namespaces []*corev1.Namespace
}

// Compile says what a node has to enforce for its own pods, in both directions
// and for their address of each family. It never fails. Pods without an address
// of a family, finished ones and those in the host's network are neither guarded
// nor anyone's peer in it. What the kernel is not told about allows nothing:
// SCTP, blocks of the other family, a port name that no pod has.
func Compile(cluster Cluster, node string, families ...plan.Family) Ruleset {
	var out Ruleset
	if len(cluster.Policies) == 0 {
		return out
	}
	for _, family := range families {
		rules := compile(cluster, node, family)
		out.Chains = append(out.Chains, rules.Chains...)
		out.Sets = append(out.Sets, rules.Sets...)
	}
	return out
}

func compile(cluster Cluster, node string, family plan.Family) Ruleset {
	c := newCompiler(cluster, family)
	var out Ruleset
	for _, pod := range c.pods {
		if pod.Spec.NodeName != node {
			continue
		}
		for _, direction := range []Direction{Egress, Ingress} {
			if chain, isolated := c.chain(pod, direction); isolated {
				out.Chains = append(out.Chains, chain)
			}
		}
	}
	for _, set := range c.sets {
		out.Sets = append(out.Sets, set)
	}
	slices.SortFunc(out.Sets, func(a, b Set) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// compiler holds a cluster in order, the peers found so far and the sets that
// rules refer to, both by the peer's key: the pods of a node share most of them.
// All addresses are of one family.
type compiler struct {
	family     plan.Family
	policies   []*networkingv1.NetworkPolicy
	pods       []endpoint
	namespaces map[string]labels.Set
	peers      map[string]peer
	sets       map[string]Set
}

// endpoint is a pod that takes part in the pods' network.
type endpoint struct {
	*corev1.Pod
	address netip.Addr
}

func newCompiler(cluster Cluster, family plan.Family) *compiler {
	c := &compiler{
		family:     family,
		policies:   slices.Clone(cluster.Policies),
		namespaces: map[string]labels.Set{},
		peers:      map[string]peer{},
		sets:       map[string]Set{},
	}
	slices.SortFunc(c.policies, func(a, b *networkingv1.NetworkPolicy) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for _, ns := range cluster.Namespaces {
		c.namespaces[ns.Name] = ns.Labels
	}
	for _, pod := range cluster.Pods {
		if address, ok := address(pod, family); ok {
			c.pods = append(c.pods, endpoint{pod, address})
		}
	}
	slices.SortFunc(c.pods, func(a, b endpoint) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return c
}

// address is the pod's address of the family, if it has one of its own that is in use.
func address(pod *corev1.Pod, family plan.Family) (netip.Addr, bool) {
	if pod.Spec.HostNetwork || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return netip.Addr{}, false
	}
	for _, ip := range pod.Status.PodIPs {
		if a, err := netip.ParseAddr(ip.IP); err == nil && family.Of(a) {
			return a, true
		}
	}
	return netip.Addr{}, false
}

// chain is the union of what the policies that select the pod allow. It is not
// isolated when there are none.
func (c *compiler) chain(pod endpoint, direction Direction) (chain Chain, isolated bool) {
	chain = Chain{Pod: pod.Namespace + "/" + pod.Name, Address: pod.address, Direction: direction}
	for _, policy := range c.policies {
		if policy.Namespace != pod.Namespace || !governs(policy, direction) ||
			!selector(&policy.Spec.PodSelector).Matches(labels.Set(pod.Labels)) {
			continue
		}
		isolated = true
		for _, allow := range allowances(policy, direction) {
			for _, rule := range c.rules(policy.Namespace, pod, allow) {
				if !slices.Contains(chain.Rules, rule) {
					chain.Rules = append(chain.Rules, rule)
				}
			}
		}
	}
	return chain, isolated
}

// governs says whether the policy is about the direction; without policyTypes
// the API's default holds: ingress always, egress if there are rules for it.
func governs(policy *networkingv1.NetworkPolicy, direction Direction) bool {
	if len(policy.Spec.PolicyTypes) == 0 {
		return direction == Ingress || len(policy.Spec.Egress) > 0
	}
	wanted := map[Direction]networkingv1.PolicyType{
		Ingress: networkingv1.PolicyTypeIngress,
		Egress:  networkingv1.PolicyTypeEgress,
	}[direction]
	return slices.Contains(policy.Spec.PolicyTypes, wanted)
}

// allowance is an ingress or egress rule of a policy: any of the peers on any of
// the ports, where none means all.
type allowance struct {
	direction Direction
	peers     []networkingv1.NetworkPolicyPeer
	ports     []networkingv1.NetworkPolicyPort
}

func allowances(policy *networkingv1.NetworkPolicy, direction Direction) []allowance {
	var out []allowance
	if direction == Ingress {
		for _, rule := range policy.Spec.Ingress {
			out = append(out, allowance{direction, rule.From, rule.Ports})
		}
		return out
	}
	for _, rule := range policy.Spec.Egress {
		out = append(out, allowance{direction, rule.To, rule.Ports})
	}
	return out
}

func (c *compiler) rules(namespace string, pod endpoint, allow allowance) []Rule {
	peers := []peer{c.everyone()}
	if len(allow.peers) > 0 {
		peers = nil
		for _, p := range allow.peers {
			peers = append(peers, c.peer(namespace, p))
		}
	}
	var out []Rule
	for _, peer := range peers {
		if len(allow.ports) == 0 {
			out = append(out, c.rule(peer))
		}
		for _, port := range allow.ports {
			out = append(out, c.portRules(pod, peer, allow.direction, port)...)
		}
	}
	return out
}

// rule allows the peer on every port.
func (c *compiler) rule(p peer) Rule {
	if p.key == "" {
		return Rule{}
	}
	name := setName(c.family, p.key)
	c.sets[p.key] = Set{Name: name, Kind: p.kind, Family: c.family, Members: p.members}
	return Rule{Set: name, Kind: p.kind}
}

// portRules allows the peer on one port of the policy. A name means what the
// pod that is connected to gives it: the guarded pod, or on the way out each peer.
func (c *compiler) portRules(pod endpoint, p peer, direction Direction, port networkingv1.NetworkPolicyPort) []Rule {
	protocol := corev1.ProtocolTCP
	if port.Protocol != nil {
		protocol = *port.Protocol
	}
	if protocol != corev1.ProtocolTCP && protocol != corev1.ProtocolUDP {
		return nil
	}
	if direction == Egress && port.Port != nil && port.Port.StrVal != "" {
		return []Rule{c.rule(p.named(protocol, port.Port.StrVal))}
	}
	var out []Rule
	for _, r := range ranges(pod.Pod, protocol, port) {
		rule := c.rule(p)
		rule.Protocol, rule.Port, rule.EndPort = strings.ToLower(string(protocol)), r.first, r.last
		out = append(out, rule)
	}
	return out
}

// ports is a range with both ends in it; the zero value is all ports.
type ports struct{ first, last uint16 }

// ranges are the ports of the pod that are meant.
func ranges(pod *corev1.Pod, protocol corev1.Protocol, port networkingv1.NetworkPolicyPort) []ports {
	switch {
	case port.Port == nil:
		return []ports{{}}
	case port.Port.StrVal != "":
		var out []ports
		for _, number := range namedPorts(pod, protocol, port.Port.StrVal) {
			out = append(out, ports{number, number})
		}
		return out
	case port.EndPort == nil:
		return []ports{{uint16(port.Port.IntVal), uint16(port.Port.IntVal)}}
	default:
		return []ports{{uint16(port.Port.IntVal), uint16(*port.EndPort)}}
	}
}

// namedPorts are the numbers that the pod's containers give to a name, sidecars
// among the init containers included, in order and each once.
func namedPorts(pod *corev1.Pod, protocol corev1.Protocol, name string) []uint16 {
	containers := slices.Clone(pod.Spec.Containers)
	for _, c := range pod.Spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			containers = append(containers, c)
		}
	}
	var out []uint16
	for _, c := range containers {
		for _, p := range c.Ports {
			if p.Name == name && cmp.Or(p.Protocol, corev1.ProtocolTCP) == protocol {
				out = append(out, uint16(p.ContainerPort))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
