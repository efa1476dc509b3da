package desired

import (
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/metadata"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// Site is what an installation knows of itself. A part that is empty is not let in.
type Site struct {
	// OperatorNamespace is where the operator and the server for portals run.
	OperatorNamespace string
	// OperatorLabels select the operator's pods there, ServerLabels the server's, ArchiverLabels the archiver's.
	OperatorLabels, ServerLabels, ArchiverLabels map[string]string
	// Image is that of the operator's programs in pods of clusters.
	Image pod.OperatorImage
	// AssignsUsers is whether the platform gives pods users and groups of a range of their namespace, and refuses others, as
	// OpenShift does.
	AssignsUsers bool
	// Mesh is the service mesh that pods may be in.
	Mesh Mesh
	// Installed is what the installation gives every cluster.
	pod.Installed
}

// portNumbers are the ports of Ray that rules call by name. ServeGRPC is the default of
// Serve's own configuration.
var portNumbers = map[v1beta1.Port]int32{
	v1beta1.PortDashboard: naming.PortDashboard,
	v1beta1.PortClient:    naming.PortClient,
	v1beta1.PortServe:     naming.PortServe,
	v1beta1.PortServeGRPC: 9000,
	v1beta1.PortGCS:       naming.PortGCS,
	v1beta1.PortMetrics:   naming.PortMetrics,
}

// NetworkPolicy says who reaches the cluster's pods: themselves on every port, the operator
// on Dashboard, GCS and the autoscaler's port, the server for portals on Dashboard alone,
// the same namespace on Dashboard, Client, Metrics and the further ports of the head's
// Service, everybody on the Dashboard that an Ingress opens, and whom allowFrom lets in. The
// pods reach the cluster itself, DNS wherever it is, and everything but the cloud's metadata.
// With allowTo they reach that and their control store in place of everything. It is nil
// where the spec switches isolation off.
func NetworkPolicy(cluster *v1beta1.ComputeCluster, site Site) *networkingv1.NetworkPolicy {
	network := v1beta1.Network{}
	if cluster.Spec.Network != nil {
		network = *cluster.Spec.Network
	}
	if network.Isolation == v1beta1.Disabled {
		return nil
	}
	policy := &networkingv1.NetworkPolicy{
		ObjectMeta: owned(cluster, naming.NetworkPolicy(cluster.Name)),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: naming.ClusterSelector(cluster.Name)},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress:     site.Mesh.admit(ingressRules(cluster, site, network.AllowFrom)),
		},
	}
	if network.AllowTo != nil || network.CloudMetadata != v1beta1.Enabled {
		policy.Spec.PolicyTypes = append(policy.Spec.PolicyTypes, networkingv1.PolicyTypeEgress)
		policy.Spec.Egress = egressRules(cluster, site, &network)
	}
	return policy
}

func ingressRules(cluster *v1beta1.ComputeCluster, site Site, allowed []v1beta1.IngressRule) []networkingv1.NetworkPolicyIngressRule {
	rules := []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{itself(cluster)}, Ports: among(cluster)}}
	named := func(names ...v1beta1.Port) []networkingv1.NetworkPolicyPort { return named(cluster, names) }
	// A rule without peers would let everybody in.
	if peers := sitePeers(site, site.OperatorLabels); len(peers) > 0 {
		rules = append(rules, networkingv1.NetworkPolicyIngressRule{From: peers, Ports: named(v1beta1.PortDashboard, v1beta1.PortGCS)})
	}
	if peers := sitePeers(site, site.ServerLabels); len(peers) > 0 {
		rules = append(rules, networkingv1.NetworkPolicyIngressRule{From: peers, Ports: named(v1beta1.PortDashboard)})
	}
	if peers := sitePeers(site, site.OperatorLabels); len(peers) > 0 && cluster.Spec.Autoscaling != nil {
		rules = append(rules, networkingv1.NetworkPolicyIngressRule{
			From: peers, Ports: []networkingv1.NetworkPolicyPort{port(corev1.ProtocolTCP, naming.PortScale)},
		})
	}
	neighbours := networkingv1.NetworkPolicyIngressRule{
		From:  []networkingv1.NetworkPolicyPeer{{PodSelector: &metav1.LabelSelector{}}},
		Ports: named(v1beta1.PortDashboard, v1beta1.PortClient, v1beta1.PortMetrics),
	}
	if service := cluster.Spec.Head.Service; service != nil {
		for _, further := range furtherPorts(service) {
			neighbours.Ports = append(neighbours.Ports, port(corev1.ProtocolTCP, targetOf(further)))
		}
	}
	rules = append(rules, neighbours)
	if Ingress(cluster) != nil {
		rules = append(rules, networkingv1.NetworkPolicyIngressRule{Ports: named(v1beta1.PortDashboard)})
	}
	for i := range allowed {
		rule := allowed[i].DeepCopy()
		rules = append(rules, networkingv1.NetworkPolicyIngressRule{From: rule.From, Ports: named(rule.Ports...)})
	}
	return rules
}

// egressRules returns what the pods reach where that is limited.
func egressRules(cluster *v1beta1.ComputeCluster, site Site, network *v1beta1.Network) []networkingv1.NetworkPolicyEgressRule {
	rules := []networkingv1.NetworkPolicyEgressRule{
		{To: []networkingv1.NetworkPolicyPeer{itself(cluster)}},
		// To anywhere: a node-local cache of DNS has an address that no selector meets.
		{Ports: dnsPorts()},
	}
	if network.AllowTo == nil {
		return append(rules, networkingv1.NetworkPolicyEgressRule{To: allButMetadata()}, toPodIdentity())
	}
	narrowed := append(toStore(cluster), toArchiver(cluster, site)...)
	for i := range network.AllowTo {
		rule := network.AllowTo[i].DeepCopy()
		narrowed = append(narrowed, networkingv1.NetworkPolicyEgressRule{To: rule.To, Ports: rule.Ports})
	}
	for i := range narrowed {
		narrowed[i].Ports = site.Mesh.open(narrowed[i].Ports)
	}
	rules = append(rules, narrowed...)
	if network.CloudMetadata == v1beta1.Enabled {
		rules = append(rules, networkingv1.NetworkPolicyEgressRule{To: blocks(metadata.Closed())})
	}
	return rules
}

// toArchiver returns the rule for the way to the archive, where outputs are kept.
func toArchiver(cluster *v1beta1.ComputeCluster, site Site) []networkingv1.NetworkPolicyEgressRule {
	history := site.History.Under(cluster).Spec.History
	peers := sitePeers(site, site.ArchiverLabels)
	if history == nil || history.Keep != v1beta1.HistoryOutputs || len(peers) == 0 {
		return nil
	}
	return []networkingv1.NetworkPolicyEgressRule{{To: peers, Ports: []networkingv1.NetworkPolicyPort{port(corev1.ProtocolTCP, naming.PortArchive)}}}
}

// dnsPorts are the ports of DNS. Policies are judged after the address of a Service has become that of a pod, and the pods
// of DNS listen on 5353 on OpenShift, where the Service has 53.
func dnsPorts() []networkingv1.NetworkPolicyPort {
	return []networkingv1.NetworkPolicyPort{
		port(corev1.ProtocolUDP, 53), port(corev1.ProtocolTCP, 53), port(corev1.ProtocolUDP, 5353), port(corev1.ProtocolTCP, 5353),
	}
}

// addresses returns all addresses, by family, except those at which clouds give a node's credentials.
func addresses() []networkingv1.IPBlock {
	all := []networkingv1.IPBlock{{CIDR: "0.0.0.0/0"}, {CIDR: "::/0"}}
	for _, closed := range metadata.Closed() {
		family := 0
		if closed.Addr().Is6() {
			family = 1
		}
		all[family].Except = append(all[family].Except, closed.String())
	}
	return all
}

// toPodIdentity returns the rule for EKS Pod Identity, which gives a pod credentials of its own.
func toPodIdentity() networkingv1.NetworkPolicyEgressRule {
	return networkingv1.NetworkPolicyEgressRule{
		To:    blocks(metadata.PodIdentity()),
		Ports: []networkingv1.NetworkPolicyPort{port(corev1.ProtocolTCP, metadata.PodIdentityPort)},
	}
}

// allButMetadata returns peers that are everything but the cloud's metadata. Pods are peers of
// their own, because some network plugins do not count them among addresses.
func allButMetadata() []networkingv1.NetworkPolicyPeer {
	peers := []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{}}}
	for _, block := range addresses() {
		peers = append(peers, networkingv1.NetworkPolicyPeer{IPBlock: &block})
	}
	return peers
}

// blocks returns peers that are blocks and nothing else.
func blocks(all []netip.Prefix) []networkingv1.NetworkPolicyPeer {
	peers := make([]networkingv1.NetworkPolicyPeer, len(all))
	for i, block := range all {
		peers[i].IPBlock = &networkingv1.IPBlock{CIDR: block.String()}
	}
	return peers
}

// itself selects the cluster's own pods, in its own namespace.
func itself(cluster *v1beta1.ComputeCluster) networkingv1.NetworkPolicyPeer {
	return networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{MatchLabels: naming.ClusterSelector(cluster.Name)}}
}

// sitePeers are pods of the site that have one of some labels, as far as the site names
// them: an empty selector would let every pod of the namespace in, or of all namespaces.
func sitePeers(site Site, who ...map[string]string) []networkingv1.NetworkPolicyPeer {
	var peers []networkingv1.NetworkPolicyPeer
	for _, labels := range who {
		if site.OperatorNamespace == "" || len(labels) == 0 {
			continue
		}
		peers = append(peers, networkingv1.NetworkPolicyPeer{
			NamespaceSelector: namespaceSelector(site.OperatorNamespace),
			PodSelector:       &metav1.LabelSelector{MatchLabels: maps.Clone(labels)},
		})
	}
	return peers
}

// namespaceSelector selects a namespace by the label that every one has.
func namespaceSelector(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: name}}
}

// named are the ports of the given names, each once. With autoscaling the autoscaler's
// metrics go with those of Ray.
func named(cluster *v1beta1.ComputeCluster, names []v1beta1.Port) []networkingv1.NetworkPolicyPort {
	var ports []networkingv1.NetworkPolicyPort
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			continue
		}
		number := portNumbers[name]
		if name == v1beta1.PortDashboard && naming.EncryptionRequired(cluster) {
			number = naming.PortDashboardTLS
		}
		ports = append(ports, port(corev1.ProtocolTCP, number))
		if name == v1beta1.PortMetrics && cluster.Spec.Autoscaling != nil {
			ports = append(ports, port(corev1.ProtocolTCP, naming.PortScaleMetrics))
		}
	}
	return ports
}

// among are the ports on which the pods of a cluster reach each other; nil is all of them. With encryption the agents are
// left out, which take the token in clear text.
func among(cluster *v1beta1.ComputeCluster) []networkingv1.NetworkPolicyPort {
	if !naming.EncryptionRequired(cluster) {
		return nil
	}
	const last = 65535
	ports := []networkingv1.NetworkPolicyPort{
		port(corev1.ProtocolTCP, 1), port(corev1.ProtocolTCP, naming.PortAgent+1), port(corev1.ProtocolUDP, 1), port(corev1.ProtocolSCTP, 1),
	}
	for i, end := range []int32{naming.PortAgent - 1, last, last, last} {
		ports[i].EndPort = new(end)
	}
	return ports
}

func port(protocol corev1.Protocol, number int32) networkingv1.NetworkPolicyPort {
	value := intstr.FromInt32(number)
	return networkingv1.NetworkPolicyPort{Protocol: &protocol, Port: &value}
}
