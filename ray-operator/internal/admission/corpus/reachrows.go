package corpus

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// Edits of how a Service is reached, and whether it has an address.
type (
	headEdit  = func(*v1beta1.HeadServiceSpec)
	serveEdit = func(*v1beta1.ServeService)
)

var (
	wholeReach = v1beta1.ServiceReach{
		LoadBalancerClass: "service.k8s.aws/nlb", LoadBalancerSourceRanges: []string{"203.0.113.0/24", "2001:db8::/32"},
		ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal, SessionAffinity: corev1.ServiceAffinityClientIP,
		IPFamilies: []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol}, IPFamilyPolicy: corev1.IPFamilyPolicyPreferDualStack,
	}
	headOfClassA headEdit  = func(s *v1beta1.HeadServiceSpec) { s.Type, s.LoadBalancerClass = corev1.ServiceTypeLoadBalancer, "a" }
	headOfClassB headEdit  = func(s *v1beta1.HeadServiceSpec) { s.Type, s.LoadBalancerClass = corev1.ServiceTypeLoadBalancer, "b" }
	headless     headEdit  = func(s *v1beta1.HeadServiceSpec) { s.Headless = new(true) }
	proxiesOfA   serveEdit = func(s *v1beta1.ServeService) { s.Type, s.LoadBalancerClass = corev1.ServiceTypeLoadBalancer, "a" }
	proxiesOfB   serveEdit = func(s *v1beta1.ServeService) { s.Type, s.LoadBalancerClass = corev1.ServiceTypeLoadBalancer, "b" }
)

// ofNodes is a Service of the type NodePort with some ports.
func ofNodes(ports ...v1beta1.ServicePort) edit {
	return both(service(func(s *v1beta1.HeadServiceSpec) { s.Type = corev1.ServiceTypeNodePort }), servicePorts(ports...))
}

// headFamilies is a head's Service of some IP families, dual-stack where there are two.
func headFamilies(families ...corev1.IPFamily) headEdit {
	return func(s *v1beta1.HeadServiceSpec) { setFamilies(&s.ServiceReach, families) }
}

// proxyFamilies is the same of the Service in front of the proxies.
func proxyFamilies(families ...corev1.IPFamily) serveEdit {
	return func(s *v1beta1.ServeService) { setFamilies(&s.ServiceReach, families) }
}

func setFamilies(r *v1beta1.ServiceReach, families []corev1.IPFamily) {
	r.IPFamilies = families
	if len(families) > 1 {
		r.IPFamilyPolicy = corev1.IPFamilyPolicyRequireDualStack
	}
}

var reachRows = []row{
	{Name: "a load balancer with all that it can have", Edit: service(func(s *v1beta1.HeadServiceSpec) {
		s.Type, s.ServiceReach = corev1.ServiceTypeLoadBalancer, wholeReach
	})},
	{Name: "ports of nodes", Edit: ofNodes(v1beta1.ServicePort{Name: "dashboard", NodePort: 30265}, v1beta1.ServicePort{Name: "web", Port: 80, NodePort: 30080})},
	{Name: "a port of nodes behind no port", Rule: "port-name-ray", Edit: ofNodes(v1beta1.ServicePort{Name: "debug", NodePort: 30265})},
	{Name: "a port of nodes below all numbers", Rule: "out-of-bounds", Edit: ofNodes(v1beta1.ServicePort{Name: "web", Port: 80, NodePort: -1})},
	{Name: "a port of nodes above all numbers", Rule: "out-of-bounds", Edit: ofNodes(v1beta1.ServicePort{Name: "web", Port: 80, NodePort: 65536})},
	{Name: "a port of nodes twice", Rule: "node-port-twice", Edit: ofNodes(v1beta1.ServicePort{Name: "web", Port: 80, NodePort: 30080}, v1beta1.ServicePort{Name: "gcs", NodePort: 30080})},
	{Name: "ports of nodes without a type", Rule: "service-reach", Edit: servicePorts(v1beta1.ServicePort{Name: "gcs", NodePort: 30080})},
	{Name: "a policy without a type", Rule: "service-reach", Edit: service(func(s *v1beta1.HeadServiceSpec) {
		s.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	})},
	{Name: "a class of ports of nodes", Rule: "service-reach", Edit: service(func(s *v1beta1.HeadServiceSpec) {
		s.Type, s.LoadBalancerClass = corev1.ServiceTypeNodePort, "a"
	})},
	{Name: "ranges of ports of nodes", Rule: "service-reach", Edit: service(func(s *v1beta1.HeadServiceSpec) {
		s.Type, s.LoadBalancerSourceRanges = corev1.ServiceTypeNodePort, []string{"10.0.0.0/8"}
	})},
	{Name: "a class of no name", Rule: "load-balancer-class", Edit: service(func(s *v1beta1.HeadServiceSpec) {
		s.Type, s.LoadBalancerClass = corev1.ServiceTypeLoadBalancer, "a b"
	})},
	{Name: "another class", Rule: "load-balancer-class-fixed", Before: service(headOfClassA), Edit: service(headOfClassB)},
	{Name: "a class with the type", Before: service(func(s *v1beta1.HeadServiceSpec) {}), Edit: service(headOfClassB)},
	{Name: "a range that is an address", Rule: "source-range", Edit: service(func(s *v1beta1.HeadServiceSpec) {
		s.Type, s.LoadBalancerSourceRanges = corev1.ServiceTypeLoadBalancer, []string{"10.0.0.1"}
	})},
	{Name: "a range with bits of hosts", Rule: "source-range", Edit: service(func(s *v1beta1.HeadServiceSpec) {
		s.Type, s.LoadBalancerSourceRanges = corev1.ServiceTypeLoadBalancer, []string{"10.0.0.1/8"}
	})},
	{Name: "an unknown affinity", Rule: "unknown-word", Edit: service(func(s *v1beta1.HeadServiceSpec) { s.SessionAffinity = "Cookie" })},
	{Name: "a family", Edit: service(headFamilies("IPv6"))},
	{Name: "a family with a policy for two", Edit: service(func(s *v1beta1.HeadServiceSpec) {
		s.IPFamilies, s.IPFamilyPolicy = []corev1.IPFamily{"IPv6"}, "PreferDualStack"
	})},
	{Name: "an unknown family", Rule: "unknown-word", Edit: service(headFamilies("IPv5"))},
	{Name: "an unknown policy of families", Rule: "unknown-word", Edit: service(func(s *v1beta1.HeadServiceSpec) { s.IPFamilyPolicy = "DualStack" })},
	{Name: "a family twice", Rule: "ip-family-twice", Edit: service(headFamilies("IPv4", "IPv4"))},
	{Name: "two families without a policy", Rule: "ip-family-policy", Edit: service(func(s *v1beta1.HeadServiceSpec) {
		s.IPFamilies = []corev1.IPFamily{"IPv4", "IPv6"}
	})},
	{Name: "two families of a single stack", Rule: "ip-family-policy", Edit: service(func(s *v1beta1.HeadServiceSpec) {
		s.IPFamilies, s.IPFamilyPolicy = []corev1.IPFamily{"IPv4", "IPv6"}, "SingleStack"
	})},
	{Name: "another first family", Rule: "ip-family-fixed", Before: service(headFamilies("IPv4")), Edit: service(headFamilies("IPv6"))},
	{Name: "families the other way round", Rule: "ip-family-fixed", Before: service(headFamilies("IPv4", "IPv6")), Edit: service(headFamilies("IPv6", "IPv4"))},
	{Name: "a second family", Before: service(headFamilies("IPv6")), Edit: service(headFamilies("IPv6", "IPv4"))},
	{Name: "a second family no more", Before: service(headFamilies("IPv6", "IPv4")), Edit: service(headFamilies("IPv6"))},
	{Name: "families no more", Before: service(headFamilies("IPv6")), Edit: service(headFamilies())},
	{Name: "families at last", Before: service(headFamilies()), Edit: service(headFamilies("IPv6"))},
	{Name: "another first family of a headless Service", Before: both(service(headless), service(headFamilies("IPv4"))),
		Edit: both(service(headless), service(headFamilies("IPv6")))},
	{Name: "a headless Service", Edit: both(service(headless), servicePorts(v1beta1.ServicePort{Name: "a", Port: 80, TargetPort: 80}))},
	{Name: "a headless load balancer", Rule: "headless", Edit: both(service(headless),
		service(func(s *v1beta1.HeadServiceSpec) { s.Type = corev1.ServiceTypeLoadBalancer }))},
	{Name: "a headless Service to another port", Rule: "headless", Edit: both(service(headless),
		servicePorts(v1beta1.ServicePort{Name: "a", Port: 80, TargetPort: 81}))},
	{Name: "a headless Service with encryption", Rule: "encryption-headless", Edit: both(service(headless), func(c *cluster) {
		c.Spec.Network = &v1beta1.Network{Encryption: v1beta1.Enabled}
	})},
	{Name: "headless later", Rule: "headless-fixed", Before: func(*cluster) {}, Edit: service(headless)},
	{Name: "headless no more", Rule: "headless-fixed", Before: service(headless), Edit: service(func(s *v1beta1.HeadServiceSpec) { s.Headless = new(false) })},
	{Name: "an ingress of several hosts", Edit: ingress(func(g *v1beta1.IngressSpec) {
		g.AdditionalHosts, g.PathType, g.Path = []string{"ray.example.org", "*.example.net"}, "ImplementationSpecific", "/*"
		g.Annotations = map[string]string{"cert-manager.io/cluster-issuer": "public"}
	})},
	{Name: "an ingress at a further address", Rule: "ingress-host", Edit: ingress(func(g *v1beta1.IngressSpec) { g.AdditionalHosts = []string{"10.0.0.1"} })},
	{Name: "an ingress of one host twice", Rule: "duplicate", Edit: ingress(func(g *v1beta1.IngressSpec) { g.AdditionalHosts = []string{"a.b", "a.b"} })},
	{Name: "an ingress of an unknown path type", Rule: "unknown-word", Edit: ingress(func(g *v1beta1.IngressSpec) { g.PathType = "Regex" })},
	{Name: "an annotation of ours on an ingress", Rule: "own-annotation", Edit: ingress(func(g *v1beta1.IngressSpec) { g.Annotations = ours })},
	{Name: "an annotation's key on an ingress", Rule: "annotation-grammar", Edit: ingress(func(g *v1beta1.IngressSpec) { g.Annotations = badKey })},
}

var serviceReachRows = []offerRow{
	{Name: "a Service with all that it can have", Edit: front(func(s *v1beta1.ServeService) {
		s.Type, s.ServiceReach = corev1.ServiceTypeLoadBalancer, wholeReach
		s.Ports = []v1beta1.ServePort{{Name: "http", NodePort: 30080}}
	})},
	{Name: "a Service's port of nodes behind no port", Rule: "service-port-number", Edit: front(func(s *v1beta1.ServeService) {
		s.Type, s.Ports = corev1.ServiceTypeNodePort, []v1beta1.ServePort{{Name: "web", NodePort: 30080}}
	})},
	{Name: "a Service's port of nodes twice", Rule: "node-port-twice", Edit: front(func(s *v1beta1.ServeService) {
		s.Type, s.Ports = corev1.ServiceTypeNodePort, []v1beta1.ServePort{{Name: "http", NodePort: 30080}, {Name: "web", Port: 80, NodePort: 30080}}
	})},
	{Name: "a Service's port of nodes for gRPC", Rule: "service-grpc", Edit: front(func(s *v1beta1.ServeService) {
		s.Type, s.Ports = corev1.ServiceTypeNodePort, []v1beta1.ServePort{{Name: "grpc", NodePort: 30080}}
	})},
	{Name: "a Service's ranges without a type", Rule: "service-reach", Edit: front(func(s *v1beta1.ServeService) {
		s.LoadBalancerSourceRanges = []string{"10.0.0.0/8"}
	})},
	{Name: "a Service's other class", Rule: "load-balancer-class-fixed", Before: front(proxiesOfA), Edit: front(proxiesOfB)},
	{Name: "a Service's other first family", Rule: "ip-family-fixed", Before: front(proxyFamilies("IPv4")), Edit: front(proxyFamilies("IPv6", "IPv4"))},
	{Name: "a Service's second family", Before: front(proxyFamilies("IPv4")), Edit: front(proxyFamilies("IPv4", "IPv6"))},
	{Name: "a Service's two families without a policy", Rule: "ip-family-policy", Edit: front(func(s *v1beta1.ServeService) {
		s.IPFamilies = []corev1.IPFamily{"IPv4", "IPv6"}
	})},
	{Name: "a Service's family twice", Rule: "ip-family-twice", Edit: front(proxyFamilies("IPv6", "IPv6"))},
	{Name: "a Service's unknown family", Rule: "unknown-word", Edit: front(proxyFamilies("IPv5"))},
}
