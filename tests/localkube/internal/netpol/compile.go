package netpol

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Cluster is what decides about the rules of a node, in any order. Defaults that
// the API server sets may be missing.
type Cluster struct {
	Policies   []*networkingv1.NetworkPolicy
	Pods       []*corev1.Pod
	Namespaces []*corev1.Namespace
}

// Compile says what a node has to enforce for its own pods, in both directions.
// It never fails. Pods without an IPv4 address, finished ones and those in the
// host's network are neither guarded nor anyone's peer. What the kernel is not
// told about allows nothing: SCTP, IPv6 blocks, a port name that no pod has.
func Compile(cluster Cluster, node string) Ruleset {
	if len(cluster.Policies) == 0 {
		return Ruleset{}
	}
	c := newCompiler(cluster)
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

// compiler holds a cluster in order, and the sets asked for so far.
type compiler struct {
	policies   []*networkingv1.NetworkPolicy
	pods       []endpoint
	namespaces map[string]labels.Set
	sets       map[string]Set
}

// endpoint is a pod that takes part in the pods' network.
type endpoint struct {
	*corev1.Pod
	address netip.Addr
}

func newCompiler(cluster Cluster) *compiler {
	c := &compiler{
		policies:   slices.Clone(cluster.Policies),
		namespaces: map[string]labels.Set{},
		sets:       map[string]Set{},
	}
	slices.SortFunc(c.policies, func(a, b *networkingv1.NetworkPolicy) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for _, ns := range cluster.Namespaces {
		c.namespaces[ns.Name] = ns.Labels
	}
	for _, pod := range cluster.Pods {
		if address, ok := address(pod); ok {
			c.pods = append(c.pods, endpoint{pod, address})
		}
	}
	slices.SortFunc(c.pods, func(a, b endpoint) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return c
}

// address is the pod's IPv4 address, if it has one of its own that is in use.
func address(pod *corev1.Pod) (netip.Addr, bool) {
	if pod.Spec.HostNetwork || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return netip.Addr{}, false
	}
	for _, ip := range pod.Status.PodIPs {
		if a, err := netip.ParseAddr(ip.IP); err == nil && a.Is4() {
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
	c.sets[p.key] = Set{Name: setName(p.key), Kind: p.kind, Members: p.members}
	return Rule{Set: setName(p.key), Kind: p.kind}
}

func (c *compiler) portRules(pod endpoint, p peer, direction Direction, port networkingv1.NetworkPolicyPort) []Rule {
	protocol := corev1.ProtocolTCP
	if port.Protocol != nil {
		protocol = *port.Protocol
	}
	if protocol != corev1.ProtocolTCP && protocol != corev1.ProtocolUDP {
		return nil
	}
	named := port.Port != nil && port.Port.StrVal != ""
	if named && direction == Egress {
		return []Rule{c.rule(p.named(protocol, port.Port.StrVal))}
	}
	var numbers []uint16
	rule := c.rule(p)
	rule.Protocol = strings.ToLower(string(protocol))
	switch {
	case named:
		numbers = namedPorts(pod.Pod, protocol, port.Port.StrVal)
	case port.Port == nil:
		return []Rule{rule}
	default:
		numbers = []uint16{uint16(port.Port.IntVal)}
	}
	var out []Rule
	for _, number := range numbers {
		rule.Port, rule.EndPort = number, number
		if port.EndPort != nil {
			rule.EndPort = uint16(*port.EndPort)
		}
		out = append(out, rule)
	}
	return out
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
		return block(p.IPBlock)
	}
	spaces := labels.SelectorFromSet(nil)
	scope := "in " + namespace
	if p.NamespaceSelector != nil {
		spaces = selector(p.NamespaceSelector)
		scope = "where " + spaces.String()
	}
	pods := selector(p.PodSelector)
	if p.PodSelector == nil {
		pods = labels.Everything()
	}
	out := peer{key: fmt.Sprintf("pods %q %s", pods, scope), kind: AddressSet}
	for _, pod := range c.pods {
		inScope := pod.Namespace == namespace
		if p.NamespaceSelector != nil {
			nsLabels, known := c.namespaces[pod.Namespace]
			inScope = known && spaces.Matches(nsLabels)
		}
		if inScope && pods.Matches(labels.Set(pod.Labels)) {
			out.members = append(out.members, pod.address.String())
			out.pods = append(out.pods, pod)
		}
	}
	slices.Sort(out.members)
	out.members = slices.Compact(out.members)
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
	slices.Sort(out.members)
	out.members = slices.Compact(out.members)
	return out
}

// block is a range of addresses without its exceptions. An exception wins over
// the same range allowed, which occurs when /0 is given as its two halves.
func block(b *networkingv1.IPBlock) peer {
	out := peer{key: fmt.Sprintf("block %s except %s", b.CIDR, strings.Join(b.Except, " ")), kind: NetSet}
	except := halves(b.Except...)
	for _, prefix := range halves(b.CIDR) {
		if !slices.Contains(except, prefix) {
			out.members = append(out.members, prefix.String())
		}
	}
	for _, prefix := range except {
		out.members = append(out.members, prefix.String()+" nomatch")
	}
	slices.Sort(out.members)
	out.members = slices.Compact(out.members)
	return out
}

// halves are the IPv4 ranges among the texts; a /0 is two ranges, because an
// ipset cannot hold it as one.
func halves(cidrs ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, text := range cidrs {
		prefix, err := netip.ParsePrefix(text)
		switch {
		case err != nil || !prefix.Addr().Is4():
		case prefix.Bits() == 0:
			out = append(out, netip.MustParsePrefix("0.0.0.0/1"), netip.MustParsePrefix("128.0.0.0/1"))
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
