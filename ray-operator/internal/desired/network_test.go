package desired_test

import (
	"net/netip"
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

func tcp(number int32) networkingv1.NetworkPolicyPort {
	protocol, port := corev1.ProtocolTCP, intstr.FromInt32(number)
	return networkingv1.NetworkPolicyPort{Protocol: &protocol, Port: &port}
}

// place is a pod as a NetworkPolicy sees it.
type place struct {
	namespace string
	pod       map[string]string
}

// places are those whose reach is told apart. Kubernetes itself labels each namespace
// with its name.
var places = map[string]place{
	"itself":           {testkit.Namespace, naming.ClusterLabels("demo")},
	"neighbour":        {testkit.Namespace, map[string]string{"app": "notebook"}},
	"longer name":      {testkit.Namespace, naming.ClusterLabels("demo-2")},
	"namesake":         {"elsewhere", naming.ClusterLabels("demo")},
	"stranger":         {"elsewhere", map[string]string{"app": "notebook"}},
	"operator":         {"heliostat-system", site.OperatorLabels},
	"server":           {"heliostat-system", site.ServerLabels},
	"beside them":      {"heliostat-system", map[string]string{"app.kubernetes.io/name": "prometheus"}},
	"passed off as it": {"elsewhere", site.OperatorLabels},
	"its namesake":     {"elsewhere", site.ServerLabels},
}

// probed are the ports of Ray, some of the user's, and the autoscaler's.
var probed = []int32{6379, 8265, 10001, 8080, 8000, 9000, 5678, 8501, 80, 6380, 44217}

func matches(t *testing.T, selector *metav1.LabelSelector, set map[string]string) bool {
	t.Helper()
	met, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		t.Fatal(err)
	}
	return met.Matches(labels.Set(set))
}

// admits tells, by the rules that Kubernetes documents for NetworkPolicies, whether a
// peer meets a place. Addresses play no part here.
func admits(t *testing.T, peer networkingv1.NetworkPolicyPeer, from place) bool {
	t.Helper()
	switch {
	case peer.IPBlock != nil:
		return false
	case peer.NamespaceSelector == nil && from.namespace != testkit.Namespace:
		return false
	case peer.NamespaceSelector != nil && !matches(t, peer.NamespaceSelector, map[string]string{"kubernetes.io/metadata.name": from.namespace}):
		return false
	}
	return peer.PodSelector == nil || matches(t, peer.PodSelector, from.pod)
}

// reaches reports whether a policy lets a place reach a port.
func reaches(t *testing.T, policy *networkingv1.NetworkPolicy, from place, number int32) bool {
	t.Helper()
	return slices.ContainsFunc(policy.Spec.Ingress, func(rule networkingv1.NetworkPolicyIngressRule) bool {
		peer := len(rule.From) == 0 || slices.ContainsFunc(rule.From, func(p networkingv1.NetworkPolicyPeer) bool { return admits(t, p, from) })
		port := len(rule.Ports) == 0 || slices.ContainsFunc(rule.Ports, func(p networkingv1.NetworkPolicyPort) bool {
			return *p.Protocol == corev1.ProtocolTCP && p.Port.IntValue() == int(number)
		})
		return peer && port
	})
}

// reachRows are edits of a cluster or another site, whom they let in to more, and whom
// they leave out.
var reachRows = map[string]struct {
	edit func(*v1beta1.ComputeClusterSpec)
	site *desired.Site
	more map[string][]int32
	none []string
}{
	"default": {},
	"said": {edit: func(s *v1beta1.ComputeClusterSpec) {
		s.Network = &v1beta1.Network{Isolation: v1beta1.Enabled}
	}},
	"egress": {edit: func(s *v1beta1.ComputeClusterSpec) {
		s.Network = &v1beta1.Network{AllowTo: []v1beta1.EgressRule{{}}}
	}},
	"no site": {site: &desired.Site{}, none: []string{"operator", "server"}},
	"no namespace": {
		site: &desired.Site{OperatorLabels: site.OperatorLabels, ServerLabels: site.ServerLabels}, none: []string{"operator", "server"},
	},
	"no server":   {site: &desired.Site{OperatorNamespace: "heliostat-system", OperatorLabels: site.OperatorLabels}, none: []string{"server"}},
	"only server": {site: &desired.Site{OperatorNamespace: "heliostat-system", ServerLabels: site.ServerLabels}, none: []string{"operator"}},
	"anyone":      {edit: allow(nil, v1beta1.PortServe, v1beta1.PortServeGRPC), more: everybody(8000, 9000)},
	"anyone, to every port": {
		edit: allow(nil, v1beta1.PortDashboard, v1beta1.PortClient, v1beta1.PortServe, v1beta1.PortServeGRPC, v1beta1.PortGCS, v1beta1.PortMetrics),
		more: everybody(8265, 10001, 8000, 9000, 6379, 8080),
	},
	"one namespace": {
		edit: allow(map[string]string{"kubernetes.io/metadata.name": "elsewhere"}, v1beta1.PortClient),
		more: map[string][]int32{"stranger": {10001}, "namesake": {10001}, "passed off as it": {10001}, "its namesake": {10001}},
	},
	"further ports of the Service": {
		edit: func(s *v1beta1.ComputeClusterSpec) {
			s.Head.Service = &v1beta1.HeadServiceSpec{Ports: []v1beta1.ServicePort{{Name: "debug", Port: 5678}, {Name: "web", Port: 80, TargetPort: 8501}}}
		},
		more: map[string][]int32{"neighbour": {5678, 8501}, "longer name": {5678, 8501}},
	},
	"autoscaling": {
		edit: scaled, more: map[string][]int32{"operator": {6380}, "neighbour": {44217}, "longer name": {44217}},
	},
	"autoscaling without a site": {edit: scaled, site: &desired.Site{}, none: []string{"operator", "server"}, more: map[string][]int32{"neighbour": {44217}, "longer name": {44217}}},
	"autoscaling with a server alone": {
		edit: scaled, site: &desired.Site{OperatorNamespace: "heliostat-system", ServerLabels: site.ServerLabels}, none: []string{"operator"},
		more: map[string][]int32{"neighbour": {44217}, "longer name": {44217}},
	},
	"autoscaling and anyone, to every port": {
		edit: func(s *v1beta1.ComputeClusterSpec) {
			allow(nil, v1beta1.PortDashboard, v1beta1.PortClient, v1beta1.PortServe, v1beta1.PortServeGRPC, v1beta1.PortGCS, v1beta1.PortMetrics)(s)
			scaled(s)
		},
		more: withOperator(6380, everybody(8265, 10001, 8000, 9000, 6379, 8080, 44217)),
	},
	"Ingress": {edit: ingress, more: everybody(8265)},
	"Ingress that is refused": {edit: func(s *v1beta1.ComputeClusterSpec) {
		ingress(s)
		s.Authentication = &v1beta1.Authentication{Mode: v1beta1.AuthenticationDisabled}
	}},
}

// TestReach holds who reaches what, exactly: by default, what each field opens beyond
// that, and who is left out where the installation does not know itself.
func TestReach(t *testing.T) {
	neighbour := []int32{8265, 10001, 8080}
	byDefault := map[string][]int32{
		"itself": probed, "operator": {6379, 8265}, "server": {8265}, "neighbour": neighbour, "longer name": neighbour,
	}
	for name, test := range reachRows {
		t.Run(name, func(t *testing.T) {
			cluster, at := testkit.Cluster("demo", testkit.Group("cpu", 1)), site
			if test.edit != nil {
				test.edit(&cluster.Spec)
			}
			if test.site != nil {
				at = *test.site
			}
			policy := desired.NetworkPolicy(cluster, at)
			for who, from := range places {
				want := map[int32]bool{}
				for _, number := range slices.Concat(byDefault[who], test.more[who]) {
					want[number] = !slices.Contains(test.none, who)
				}
				for _, number := range probed {
					if have := reaches(t, policy, from, number); have != want[number] {
						t.Errorf("%s reaches %d: %v", who, number, have)
					}
				}
			}
		})
	}
}

// allow lets the namespaces of some labels in, or everybody.
func allow(namespaces map[string]string, ports ...v1beta1.Port) func(*v1beta1.ComputeClusterSpec) {
	rule := v1beta1.IngressRule{Ports: ports}
	if namespaces != nil {
		rule.From = []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{MatchLabels: namespaces}}}
	}
	return func(s *v1beta1.ComputeClusterSpec) {
		s.Network = &v1beta1.Network{AllowFrom: []v1beta1.IngressRule{rule}}
	}
}

func ingress(s *v1beta1.ComputeClusterSpec) {
	s.Head.Ingress = &v1beta1.IngressSpec{Host: "ray.example"}
}

func scaled(s *v1beta1.ComputeClusterSpec) { s.Autoscaling = &v1beta1.Autoscaling{} }

// withOperator lets the operator reach one port more.
func withOperator(port int32, more map[string][]int32) map[string][]int32 {
	more["operator"] = append(slices.Clone(more["operator"]), port)
	return more
}

func everybody(ports ...int32) map[string][]int32 {
	more := map[string][]int32{}
	for who := range places {
		more[who] = ports
	}
	return more
}

// TestNoIsolation has to be said.
func TestNoIsolation(t *testing.T) {
	cluster := testkit.Cluster("demo")
	cluster.Spec.Network = &v1beta1.Network{Isolation: v1beta1.Disabled}
	if policy := desired.NetworkPolicy(cluster, site); policy != nil {
		t.Errorf("%+v", policy)
	}
}

// TestEgress: free where metadata is and allowTo is not given, were it empty; then the
// cluster itself, DNS, and what it says.
func TestEgress(t *testing.T) {
	for name, test := range map[string]struct {
		allowTo []v1beta1.EgressRule
		rules   int
	}{
		"free": {}, "nothing": {[]v1beta1.EgressRule{}, 2}, "something": {[]v1beta1.EgressRule{{Ports: []networkingv1.NetworkPolicyPort{tcp(443)}}}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := testkit.Cluster("demo")
			cluster.Spec.Network = &v1beta1.Network{AllowTo: test.allowTo}
			if test.rules == 0 {
				cluster.Spec.Network.CloudMetadata = v1beta1.Enabled
			}
			have := desired.NetworkPolicy(cluster, site).Spec
			types := []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
			if test.rules > 0 {
				types = append(types, networkingv1.PolicyTypeEgress)
			}
			if !slices.Equal(have.PolicyTypes, types) || len(have.Egress) != test.rules {
				t.Fatalf("%+v", have)
			}
			if test.rules == 0 {
				return
			}
			checkEgress(t, have, test.allowTo)
		})
	}
}

func checkEgress(t *testing.T, have networkingv1.NetworkPolicySpec, allowTo []v1beta1.EgressRule) {
	t.Helper()
	own, dns := have.Egress[0], have.Egress[1]
	if len(own.To) != 1 || !reflect.DeepEqual(own.To[0], have.Ingress[0].From[0]) || own.Ports != nil {
		t.Errorf("the cluster itself: %+v", own)
	}
	var want []networkingv1.NetworkPolicyPort
	for _, number := range []int32{53, 5353} { // the second is that of the pods of DNS on OpenShift
		for _, protocol := range []corev1.Protocol{corev1.ProtocolUDP, corev1.ProtocolTCP} {
			want = append(want, networkingv1.NetworkPolicyPort{Protocol: &protocol, Port: new(intstr.FromInt32(number))})
		}
	}
	if len(dns.To) != 0 || !reflect.DeepEqual(dns.Ports, want) {
		t.Errorf("DNS: %+v", dns)
	}
	for i, rule := range allowTo {
		if !reflect.DeepEqual(have.Egress[i+2], networkingv1.NetworkPolicyEgressRule{To: rule.To, Ports: rule.Ports}) {
			t.Errorf("%+v, want %+v", have.Egress[i+2], rule)
		}
	}
}

// goes reports whether a policy lets the cluster's pods go to a port of an address, which is
// no pod's.
func goes(policy *networkingv1.NetworkPolicy, to string, number int32) bool {
	address := netip.MustParseAddr(to)
	holds := func(block string) bool { return netip.MustParsePrefix(block).Contains(address) }
	limited := slices.Contains(policy.Spec.PolicyTypes, networkingv1.PolicyTypeEgress)
	return !limited || slices.ContainsFunc(policy.Spec.Egress, func(rule networkingv1.NetworkPolicyEgressRule) bool {
		peer := len(rule.To) == 0 || slices.ContainsFunc(rule.To, func(p networkingv1.NetworkPolicyPeer) bool {
			return p.IPBlock != nil && holds(p.IPBlock.CIDR) && !slices.ContainsFunc(p.IPBlock.Except, holds)
		})
		return peer && (len(rule.Ports) == 0 || slices.ContainsFunc(rule.Ports, func(p networkingv1.NetworkPolicyPort) bool {
			return p.Port.IntVal == number
		}))
	})
}

// TestNetworkPolicy_HoldsPodsFromMetadata: whatever else the pods reach, the cloud's metadata
// is for the field alone to open, and for an allowTo that names it.
func TestNetworkPolicy_HoldsPodsFromMetadata(t *testing.T) {
	metadata := []string{
		"169.254.169.254", "169.254.169.252", "169.254.0.23", "169.254.168.254", "100.100.100.200", "168.63.129.16", "192.0.0.192",
		"fd00:ec2::254", "fd20:ce::254", "fe80::1",
	}
	others := []string{
		"8.8.8.8", "10.1.0.7", "169.254.170.23", "168.63.129.17", "100.100.100.201", "2001:db8::1", "fd00:ec2::23",
	}
	identities := []string{others[2], others[6]}
	enabled, block := v1beta1.Enabled, func(cidr string) []v1beta1.EgressRule {
		return []v1beta1.EgressRule{{To: []networkingv1.NetworkPolicyPeer{{IPBlock: &networkingv1.IPBlock{CIDR: cidr}}}}}
	}
	atPort80 := &v1beta1.ControlStore{Redis: &v1beta1.GivenRedis{Address: "redis://r.example:80"}}
	none, inTen := []v1beta1.EgressRule{}, block("10.0.0.0/8")
	for name, test := range map[string]struct {
		network            *v1beta1.Network
		store              *v1beta1.ControlStore
		toMetadata, beyond []string
	}{
		"nothing said":    {nil, nil, nil, others},
		"isolation":       {&v1beta1.Network{Isolation: v1beta1.Enabled}, nil, nil, others},
		"disabled":        {&v1beta1.Network{CloudMetadata: v1beta1.Disabled}, nil, nil, others},
		"enabled":         {&v1beta1.Network{CloudMetadata: enabled}, nil, metadata, others},
		"nothing allowed": {&v1beta1.Network{AllowTo: none}, nil, nil, nil},
		"a block":         {&v1beta1.Network{AllowTo: inTen}, nil, nil, others[1:2]},
		"a block and enabled": {&v1beta1.Network{AllowTo: inTen, CloudMetadata: enabled}, nil, metadata,
			append(slices.Clone(identities), others[1])},
		"an address of metadata":  {&v1beta1.Network{AllowTo: block("169.254.169.254/32")}, nil, metadata[:1], nil},
		"a store, and no allowTo": {nil, atPort80, nil, others},
		"a store at their port": {&v1beta1.Network{AllowTo: none}, atPort80, nil, slices.DeleteFunc(slices.Clone(others),
			func(address string) bool { return slices.Contains(identities, address) })},
		"such a store and enabled": {&v1beta1.Network{AllowTo: none, CloudMetadata: enabled}, atPort80, metadata, others},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := testkit.Cluster("demo")
			cluster.Spec.Network, cluster.Spec.ControlStore = test.network, test.store
			policy := desired.NetworkPolicy(cluster, site)
			for _, address := range slices.Concat(metadata, others) {
				want := slices.Contains(test.toMetadata, address) || slices.Contains(test.beyond, address)
				if have := goes(policy, address, 80); have != want {
					t.Errorf("reaches %s: %v, want %v", address, have, want)
				}
				if have := goes(policy, address, 81); have && test.network == nil && slices.Contains(identities, address) {
					t.Errorf("reaches another port of %s", address)
				}
				for _, dns := range []int32{53, 5353} {
					if !goes(policy, address, dns) {
						t.Errorf("reaches no DNS on port %d of %s", dns, address)
					}
				}
			}
		})
	}
}

// TestNetworkPolicy_LetsPodsReachAllPods: some network plugins do not count pods among the
// addresses of blocks.
func TestNetworkPolicy_LetsPodsReachAllPods(t *testing.T) {
	policy := desired.NetworkPolicy(testkit.Cluster("demo"), site)
	for name, to := range places {
		if !slices.ContainsFunc(policy.Spec.Egress, func(rule networkingv1.NetworkPolicyEgressRule) bool {
			return len(rule.Ports) == 0 && slices.ContainsFunc(rule.To, func(p networkingv1.NetworkPolicyPeer) bool {
				return admits(t, p, to)
			})
		}) {
			t.Errorf("does not reach %s", name)
		}
	}
}

func TestNetworkPolicy_LetsCollectorsReachTheArchiver(t *testing.T) {
	archived := site
	archived.ArchiverLabels = map[string]string{"app.kubernetes.io/component": "archiver"}
	archived.History = &pod.History{Keep: v1beta1.HistoryOutputs, Authority: "PEM"}
	records := archived
	records.History = &pod.History{Keep: v1beta1.HistoryRecords}
	for name, test := range map[string]struct {
		site  desired.Site
		rules int // beside those of the cluster itself and of DNS
	}{
		"outputs": {archived, 1}, "records": {records, 0}, "no archive": {site, 0},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := testkit.Cluster("demo")
			cluster.Spec.Network = &v1beta1.Network{AllowTo: []v1beta1.EgressRule{}}
			egress := desired.NetworkPolicy(cluster, test.site).Spec.Egress
			if len(egress) != 2+test.rules {
				t.Fatalf("%+v", egress)
			}
			if test.rules == 0 {
				return
			}
			to := egress[2].To
			if len(to) != 1 || !matches(t, to[0].PodSelector, archived.ArchiverLabels) || !matches(t, to[0].NamespaceSelector, map[string]string{corev1.LabelMetadataName: site.OperatorNamespace}) {
				t.Errorf("the way leads to %+v", to)
			}
			if !reflect.DeepEqual(egress[2].Ports, []networkingv1.NetworkPolicyPort{tcp(naming.PortArchive)}) {
				t.Errorf("the way leads to ports %+v", egress[2].Ports)
			}
		})
	}
}
