package desired_test

import (
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

// Istio's ambient mode: tunnels arrive at 15008, and probes of kubelets from one address.
const tunnel = 15008

func meshed() desired.Site {
	with := site
	with.Mesh = desired.Mesh{TunnelPort: tunnel, ProbesFrom: []netip.Prefix{netip.MustParsePrefix("169.254.7.127/32")}}
	return with
}

// count is how many ports of a rule include a number by TCP.
func count(ports []networkingv1.NetworkPolicyPort, number int32) int {
	return len(slices.DeleteFunc(slices.Clone(ports), func(p networkingv1.NetworkPolicyPort) bool {
		last := p.Port.IntVal
		if p.EndPort != nil {
			last = *p.EndPort
		}
		return *p.Protocol != corev1.ProtocolTCP || number < p.Port.IntVal || last < number
	}))
}

// TestMesh_OpensItsTunnelToThePeersOfPorts: once in each rule with ports, and in no policy of an installation without a mesh.
func TestMesh_OpensItsTunnelToThePeersOfPorts(t *testing.T) {
	service := &v1beta1.ClusterService{}
	service.Name, service.Namespace = "front", testkit.Namespace
	encrypted := testkit.Cluster("demo")
	encrypted.Spec.Network = &v1beta1.Network{Encryption: v1beta1.Enabled}
	for name, of := range map[string]func(desired.Site) *networkingv1.NetworkPolicy{
		"a cluster":            func(s desired.Site) *networkingv1.NetworkPolicy { return desired.NetworkPolicy(open(), s) },
		"an encrypted cluster": func(s desired.Site) *networkingv1.NetworkPolicy { return desired.NetworkPolicy(encrypted, s) },
		"a store":              func(s desired.Site) *networkingv1.NetworkPolicy { return desired.StorePolicy(managed(), s) },
		"a service": func(s desired.Site) *networkingv1.NetworkPolicy {
			return desired.ServePolicy(service, s, []string{"demo"}, desired.Ports{HTTP: 8000})
		},
	} {
		plain, with := of(site).Spec.Ingress, of(meshed()).Spec.Ingress
		for i, rule := range plain {
			if rule.From == nil != (with[i].From == nil) || len(rule.From) != len(with[i].From) {
				t.Errorf("%s: the peers of rule %d are %v, not %v", name, i, with[i].From, rule.From)
			}
			if len(rule.Ports) == 0 && len(with[i].Ports) == 0 {
				continue // all ports
			}
			if got := count(with[i].Ports, tunnel); got != 1 {
				t.Errorf("%s: rule %d opens the tunnel %d times: %v", name, i, got, with[i].Ports)
			}
			if own := i == 0 && name == "an encrypted cluster"; !own && count(rule.Ports, tunnel) != 0 {
				t.Errorf("%s: rule %d opens a tunnel without a mesh", name, i)
			}
		}
	}
}

// TestMesh_LetsProbesIn: to every port of a cluster and of a store, from their addresses alone.
func TestMesh_LetsProbesIn(t *testing.T) {
	for name, policy := range map[string]*networkingv1.NetworkPolicy{
		"a cluster": desired.NetworkPolicy(testkit.Cluster("demo"), meshed()), "a store": desired.StorePolicy(managed(), meshed()),
	} {
		last := policy.Spec.Ingress[len(policy.Spec.Ingress)-1]
		if len(last.Ports) != 0 || len(last.From) != 1 || last.From[0].IPBlock == nil || last.From[0].IPBlock.CIDR != "169.254.7.127/32" {
			t.Errorf("%s: the last rule is %v", name, last)
		}
	}
	without := meshed()
	without.Mesh.ProbesFrom = nil
	if rules := desired.NetworkPolicy(testkit.Cluster("demo"), without).Spec.Ingress; len(rules) != len(desired.NetworkPolicy(testkit.Cluster("demo"), site).Spec.Ingress) {
		t.Error("without addresses of probes there is another rule, which lets everybody in")
	}
}

// TestMesh_OpensItsTunnelOutward: beside the TCP ports of allowTo and of a store; DNS, UDP and rules for all ports stay.
func TestMesh_OpensItsTunnelOutward(t *testing.T) {
	udp := corev1.ProtocolUDP
	narrow := managed()
	narrow.Spec.Network = &v1beta1.Network{AllowTo: []v1beta1.EgressRule{
		{To: anyoneHere(), Ports: []networkingv1.NetworkPolicyPort{tcp(5432)}},
		{To: anyoneHere(), Ports: []networkingv1.NetworkPolicyPort{{Protocol: &udp}}},
		{To: anyoneHere()},
	}}
	rules := desired.NetworkPolicy(narrow, meshed()).Spec.Egress
	var have []int
	for _, rule := range rules[1:] { // the first is the cluster itself
		have = append(have, len(rule.Ports))
	}
	if want := []int{4, 2, 2, 1, 0}; !slices.Equal(have, want) {
		t.Errorf("DNS, the store and what is allowed have %v ports, want %v: %v", have, want, rules)
	}
}

func anyoneHere() []networkingv1.NetworkPolicyPeer {
	return []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: "10.0.0.0/8"}}}
}
