package desired

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/serveconfig"
)

// Ports are those of Serve's proxies, as the serveConfig has them. GRPC is 0 where nothing
// speaks it.
type Ports struct{ HTTP, GRPC int32 }

// Names of the ports of a service that lead to Serve's proxies.
const (
	PortHTTP = "http"
	PortGRPC = "grpc"
)

// ServeService is the one address of a service, from its first minute to its end. It selects
// pods by a label that the operator gives and takes, of whatever cluster they are.
func ServeService(service *v1beta1.ClusterService, ports Ports) *corev1.Service {
	wanted := frontOf(service)
	made := &corev1.Service{
		ObjectMeta: OfService(service, service.Name),
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Selector: ServeSelector(service)},
	}
	if wanted.Type != "" {
		made.Spec.Type = wanted.Type
	}
	dress(&made.ObjectMeta, wanted.Labels, wanted.Annotations)
	made.Spec.Ports = append(made.Spec.Ports, servePort(wanted, PortHTTP, serveconfig.DefaultHTTPPort, ports.HTTP))
	if ports.GRPC != 0 {
		port := servePort(wanted, PortGRPC, serveconfig.DefaultGRPCPort, ports.GRPC)
		port.AppProtocol = new("kubernetes.io/h2c")
		made.Spec.Ports = append(made.Spec.Ports, port)
	}
	for _, port := range additionalPorts(&wanted) {
		made.Spec.Ports = append(made.Spec.Ports, servicePort(port.Name, port.Port, port.TargetPort))
	}
	for _, port := range wanted.Ports {
		setNodePort(made, port.Name, port.NodePort)
	}
	setReach(&made.Spec, &wanted.ServiceReach)
	return made
}

// ServeHead is the Service in front of the head of the version that has the requests, one of a service's own clusters. Its
// name stays whichever cluster that is. It is for programs inside the Kubernetes cluster, however the cluster's own one is
// reached.
func ServeHead(service *v1beta1.ClusterService, cluster *v1beta1.ComputeCluster, epoch int64) *corev1.Service {
	of := HeadService(cluster, epoch)
	made := &corev1.Service{
		ObjectMeta: OfService(service, naming.HeadService(service.Name)),
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, Selector: of.Spec.Selector, Ports: of.Spec.Ports,
			PublishNotReadyAddresses: of.Spec.PublishNotReadyAddresses,
		},
	}
	for i := range made.Spec.Ports {
		made.Spec.Ports[i].NodePort = 0
	}
	return made
}

// ServeURL is where a service's applications answer, inside the Kubernetes cluster.
func ServeURL(service *v1beta1.ClusterService, https bool) string {
	scheme := "http"
	if https {
		scheme = "https"
	}
	return fmt.Sprintf("%s://%s.%s.svc:%d", scheme, service.Name, service.Namespace, servePort(frontOf(service), PortHTTP, serveconfig.DefaultHTTPPort, 0).Port)
}

// frontOf is what a service says of the Service in front of it.
func frontOf(service *v1beta1.ClusterService) v1beta1.ServeService {
	if service.Spec.Service == nil {
		return v1beta1.ServeService{}
	}
	return *service.Spec.Service
}

func servePort(wanted v1beta1.ServeService, name string, number, target int32) corev1.ServicePort {
	for _, port := range wanted.Ports {
		if port.Name == name {
			number = cmp.Or(port.Port, number)
		}
	}
	return servicePort(name, number, target)
}

// additionalPorts returns the ports of a service that do not lead to Serve's proxies, each with its target port.
func additionalPorts(front *v1beta1.ServeService) []v1beta1.ServePort {
	var ports []v1beta1.ServePort
	for _, port := range front.Ports {
		if port.Name != PortHTTP && port.Name != PortGRPC {
			port.TargetPort = cmp.Or(port.TargetPort, port.Port)
			ports = append(ports, port)
		}
	}
	return ports
}

// ServeSelector selects the pods that take requests for a service.
func ServeSelector(service *v1beta1.ClusterService) map[string]string {
	return map[string]string{naming.ServeLabel(service.Name): v1beta1.ServeOn}
}

// ServePolicy says who reaches the proxies of a service and its additional ports: pods of its own namespace and of its Gateway's, the operator,
// the server, and allowFrom. Where its Service is for the outside and allowFrom names nobody, it is everybody. Policies
// add up, and that of a cluster lets nobody in there.
func ServePolicy(service *v1beta1.ClusterService, site Site, clusters []string, ports Ports) *networkingv1.NetworkPolicy {
	numbers := []int32{ports.HTTP}
	if ports.GRPC != 0 {
		numbers = append(numbers, ports.GRPC)
	}
	front := frontOf(service)
	for _, additional := range additionalPorts(&front) {
		if !slices.Contains(numbers, additional.TargetPort) {
			numbers = append(numbers, additional.TargetPort)
		}
	}
	var open []networkingv1.NetworkPolicyPort
	for _, number := range numbers {
		open = append(open, port(corev1.ProtocolTCP, number))
	}
	open = site.Mesh.open(open)
	return &networkingv1.NetworkPolicy{
		ObjectMeta: OfService(service, naming.ServePolicy(service.Name)),
		Spec: networkingv1.NetworkPolicySpec{
			// By the cluster and not by the label of those that serve: the operator asks a
			// proxy before it gets requests.
			PodSelector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: v1beta1.LabelCluster, Operator: metav1.LabelSelectorOpIn, Values: clusters},
			}},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress:     serveRules(service, site, open),
		},
	}
}

// serveRules returns the rules by which the open ports of a service are reached.
func serveRules(service *v1beta1.ClusterService, site Site, open []networkingv1.NetworkPolicyPort) []networkingv1.NetworkPolicyIngressRule {
	front := frontOf(service)
	if front.Type != "" && front.Type != corev1.ServiceTypeClusterIP && len(front.AllowFrom) == 0 {
		return []networkingv1.NetworkPolicyIngressRule{{Ports: open}}
	}
	peers := serveClients(service, site, front.AllowFrom)
	if len(peers) == 0 { // a rule without peers would let everybody in
		return nil
	}
	return []networkingv1.NetworkPolicyIngressRule{{From: peers, Ports: open}}
}

// serveClients returns the peers that reach a service. A list with the server is complete, but for the Gateway and the
// operator; one without it adds to the own namespace; and without a list the server is a peer.
func serveClients(service *v1beta1.ClusterService, site Site, allowed []v1beta1.ServePeer) []networkingv1.NetworkPolicyPeer {
	var peers []networkingv1.NetworkPolicyPeer
	if !slices.ContainsFunc(allowed, isServer) {
		peers = append(peers, networkingv1.NetworkPolicyPeer{PodSelector: &metav1.LabelSelector{}})
	}
	if upgrade := service.Spec.UpgradeStrategy; upgrade != nil && upgrade.Gateway != nil {
		if there := upgrade.Gateway.ParentRef.Namespace; there != "" && there != service.Namespace {
			peers = append(peers, networkingv1.NetworkPolicyPeer{NamespaceSelector: namespaceSelector(there)})
		}
	}
	peers = append(peers, sitePeers(site, site.OperatorLabels)...)
	if len(allowed) == 0 {
		allowed = []v1beta1.ServePeer{{Server: &v1beta1.ServerPeer{}}}
	}
	for i := range allowed {
		if isServer(allowed[i]) {
			peers = append(peers, sitePeers(site, site.ServerLabels)...)
			continue
		}
		peers = append(peers, *allowed[i].NetworkPolicyPeer.DeepCopy())
	}
	return peers
}

func isServer(peer v1beta1.ServePeer) bool { return peer.Server != nil }

// ServeBudget lets one pod at a time of those that take requests be evicted; of a single one
// none, until there is another. pods is how many there are.
func ServeBudget(service *v1beta1.ClusterService, pods int) *policyv1.PodDisruptionBudget {
	least, unready := intstr.FromInt32(int32(max(1, pods-1))), policyv1.AlwaysAllow
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: OfService(service, service.Name),
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable:               &least,
			Selector:                   &metav1.LabelSelector{MatchLabels: ServeSelector(service)},
			UnhealthyPodEvictionPolicy: &unready,
		},
	}
}

// OfService is the metadata of an object that belongs to a service and goes with it.
func OfService(service *v1beta1.ClusterService, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: service.Namespace, Labels: naming.ServiceLabels(service.Name),
		OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(service, v1beta1.GroupVersion.WithKind("ClusterService")),
		},
	}
}
