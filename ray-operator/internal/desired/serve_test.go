package desired_test

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/google/go-cmp/cmp"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

func TestGoldenOfServices(t *testing.T) {
	service, ports := testkit.Service("text"), desired.Ports{HTTP: 8001, GRPC: 9001}
	testkit.Golden(t, "serve-service", desired.ServeService(service, ports))
	testkit.Golden(t, "serve-version", desired.ServeVersion(service, "text-2-abcde", ports))
	testkit.Golden(t, "serve-policy", desired.ServePolicy(service, site, []string{"text-1-fghij", "text-2-abcde"}, ports))
	testkit.Golden(t, "serve-budget", desired.ServeBudget(service, 3))
}

// TestServeService: one port, or two where something speaks gRPC, that lead to what the
// configuration says, then the additional ones, and pods by the operator's label alone.
func TestServeService(t *testing.T) {
	service := testkit.Service("text")
	service.Spec.Service = &v1beta1.ServeService{
		Type: corev1.ServiceTypeLoadBalancer, Ports: []v1beta1.ServePort{{Name: "sidecar", Port: 81, TargetPort: 9100}, {Name: "more", Port: 82}, {Name: "http", Port: 80}},
		Labels: map[string]string{"team": "a", v1beta1.LabelService: "mine"}, Annotations: map[string]string{"b": "c"},
	}
	made := desired.ServeService(service, desired.Ports{HTTP: 8001, GRPC: 9001})
	want := []corev1.ServicePort{
		{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8001), Protocol: corev1.ProtocolTCP},
		{Name: "grpc", Port: 9000, TargetPort: intstr.FromInt32(9001), Protocol: corev1.ProtocolTCP, AppProtocol: new("kubernetes.io/h2c")},
		{Name: "sidecar", Port: 81, TargetPort: intstr.FromInt32(9100), Protocol: corev1.ProtocolTCP},
		{Name: "more", Port: 82, TargetPort: intstr.FromInt32(82), Protocol: corev1.ProtocolTCP},
	}
	if diff := cmp.Diff(want, made.Spec.Ports); diff != "" {
		t.Errorf("ports (- wanted, + made):\n%s", diff)
	}
	if !maps.Equal(made.Spec.Selector, map[string]string{"serve.heliostat.dev/text": "true"}) || made.Spec.Type != corev1.ServiceTypeLoadBalancer {
		t.Errorf("it selects %v as a %s", made.Spec.Selector, made.Spec.Type)
	}
	if made.Name != "text" || made.Labels["team"] != "a" || made.Labels[v1beta1.LabelService] != "text" || made.Annotations["b"] != "c" {
		t.Errorf("%s has %v and %v", made.Name, made.Labels, made.Annotations)
	}
	if plain := desired.ServeService(testkit.Service("text"), desired.Ports{HTTP: 8000}); len(plain.Spec.Ports) != 1 || plain.Spec.Type != corev1.ServiceTypeClusterIP {
		t.Errorf("by default it is %+v", plain.Spec)
	}
}

// TestServeHead_IsForInside: its name is of the service, and how the cluster's own head is reached from outside is not its
// concern.
func TestServeHead_IsForInside(t *testing.T) {
	cluster := testkit.Cluster("text-3-abc")
	cluster.Spec.Head.Service = &v1beta1.HeadServiceSpec{
		Type: corev1.ServiceTypeNodePort, Annotations: map[string]string{"b": "c"}, Ports: []v1beta1.ServicePort{{Name: "more", Port: 9999, NodePort: 30000}},
	}
	made := desired.ServeHead(testkit.Service("text"), cluster, 4)
	if made.Name != "text-head" || made.Labels[v1beta1.LabelService] != "text" || len(made.Annotations) != 0 || made.OwnerReferences[0].Kind != "ClusterService" {
		t.Errorf("%+v", made.ObjectMeta)
	}
	of := desired.HeadService(cluster, 4)
	if !maps.Equal(made.Spec.Selector, of.Spec.Selector) || made.Spec.Type != corev1.ServiceTypeClusterIP || !made.Spec.PublishNotReadyAddresses {
		t.Errorf("%+v", made.Spec)
	}
	for i, port := range made.Spec.Ports {
		if port.Port != of.Spec.Ports[i].Port || port.NodePort != 0 {
			t.Errorf("port %+v of %+v", port, of.Spec.Ports[i])
		}
	}
}

func TestServeURL(t *testing.T) {
	service := testkit.Service("text")
	if have := desired.ServeURL(service, false); have != "http://text.default.svc:8000" {
		t.Error(have)
	}
	service.Spec.Service = &v1beta1.ServeService{Ports: []v1beta1.ServePort{{Name: "http", Port: 443}}}
	if have := desired.ServeURL(service, true); have != "https://text.default.svc:443" {
		t.Error(have)
	}
}

// TestServePolicy_OpensTheServePorts and the additional ones of the service's clusters, each once, and nothing else.
func TestServePolicy_OpensTheServePorts(t *testing.T) {
	service := testkit.Service("text")
	service.Spec.Service = &v1beta1.ServeService{Ports: []v1beta1.ServePort{
		{Name: "http", Port: 80}, {Name: "sidecar", Port: 81, TargetPort: 9100}, {Name: "more", Port: 82}, {Name: "again", Port: 83, TargetPort: 8000},
	}}
	policy := desired.ServePolicy(service, site, []string{"a", "b"}, desired.Ports{HTTP: 8000, GRPC: 9000})
	var ports []int
	for _, rule := range policy.Spec.Ingress {
		for _, port := range rule.Ports {
			ports = append(ports, port.Port.IntValue())
		}
	}
	if diff := cmp.Diff([]int{8000, 9000, 9100, 82}, ports); diff != "" {
		t.Error(diff)
	}
	selects := policy.Spec.PodSelector.MatchExpressions
	if len(selects) != 1 || selects[0].Key != v1beta1.LabelCluster || cmp.Diff([]string{"a", "b"}, selects[0].Values) != "" {
		t.Errorf("it is for %+v", selects)
	}
	if one := desired.ServePolicy(testkit.Service("text"), site, []string{"a"}, desired.Ports{HTTP: 8000}); len(one.Spec.Ingress[0].Ports) != 1 {
		t.Errorf("without gRPC it opens %+v", one.Spec.Ingress[0].Ports)
	}
}

// describePeer returns a peer of a policy as one text.
func describePeer(peer networkingv1.NetworkPolicyPeer) string {
	if peer.IPBlock != nil {
		return peer.IPBlock.CIDR
	}
	text := "own namespace"
	if peer.NamespaceSelector != nil {
		text = metav1.FormatLabelSelector(peer.NamespaceSelector)
	}
	return text + " " + metav1.FormatLabelSelector(peer.PodSelector)
}

// letIn returns whom the policy of a service lets in on a site; nobody at all is one text, and everybody none.
func letIn(front *v1beta1.ServeService, gateway string, on desired.Site) []string {
	service := testkit.OwnService("text")
	service.Spec.Service = front
	if gateway != "" {
		service.Spec.UpgradeStrategy = &v1beta1.ServiceUpgradeStrategy{Gateway: &v1beta1.ServiceGateway{
			ParentRef: v1beta1.GatewayReference{Name: "public", Namespace: gateway},
		}}
	}
	rules := desired.ServePolicy(service, on, []string{"a"}, desired.Ports{HTTP: 8000}).Spec.Ingress
	if len(rules) == 0 {
		return []string{"nobody"}
	}
	var all []string
	for _, peer := range rules[0].From {
		all = append(all, describePeer(peer))
	}
	return all
}

func TestServePolicy_LetsInWhomTheSpecNames(t *testing.T) {
	system := desired.Site{
		OperatorNamespace: "system", OperatorLabels: map[string]string{"app": "operator"}, ServerLabels: map[string]string{"app": "server"},
	}
	const (
		own, edge        = "own namespace <none>", "kubernetes.io/metadata.name=edge <none>"
		operator, server = "kubernetes.io/metadata.name=system app=operator", "kubernetes.io/metadata.name=system app=server"
	)
	block := v1beta1.ServePeer{NetworkPolicyPeer: networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: "10.0.0.0/8"}}}
	theServer := v1beta1.ServePeer{Server: &v1beta1.ServerPeer{}}
	named := func(kind corev1.ServiceType, peers ...v1beta1.ServePeer) *v1beta1.ServeService {
		return &v1beta1.ServeService{Type: kind, AllowFrom: peers}
	}
	for name, test := range map[string]struct {
		front   *v1beta1.ServeService
		gateway string
		site    *desired.Site
		// want is empty where everybody reaches it.
		want []string
	}{
		"its namespace, the operator and the server": {want: []string{own, operator, server}},
		"the namespace of its gateway":               {gateway: "edge", want: []string{own, edge, operator, server}},
		"its own namespace once":                     {gateway: testkit.Namespace, want: []string{own, operator, server}},
		"whom allowFrom names, not the server":       {front: named("", block), want: []string{own, operator, "10.0.0.0/8"}},
		"the server alone":                           {front: named("", theServer), want: []string{operator, server}},
		"the server and its gateway":                 {front: named("", theServer), gateway: "edge", want: []string{edge, operator, server}},
		"the server and others, complete":            {front: named("", block, theServer), want: []string{operator, "10.0.0.0/8", server}},
		"nobody where there is no server":            {front: named("", theServer), site: &desired.Site{}, want: []string{"nobody"}},
		"everybody by a load balancer":               {front: named(corev1.ServiceTypeLoadBalancer)},
		"everybody by ports of nodes":                {front: named(corev1.ServiceTypeNodePort)},
		"nobody more by a type for the inside":       {front: named(corev1.ServiceTypeClusterIP), want: []string{own, operator, server}},
		"some by a load balancer":                    {front: named(corev1.ServiceTypeLoadBalancer, block), want: []string{own, operator, "10.0.0.0/8"}},
		"the server by a load balancer":              {front: named(corev1.ServiceTypeLoadBalancer, theServer), want: []string{operator, server}},
	} {
		t.Run(name, func(t *testing.T) {
			if test.site == nil {
				test.site = &system
			}
			if diff := cmp.Diff(test.want, letIn(test.front, test.gateway, *test.site)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestServeBudget: one of several may go at a time, and the last one none.
func TestServeBudget(t *testing.T) {
	for pods, least := range map[int]int{1: 1, 2: 1, 3: 2, 100: 99} {
		budget := desired.ServeBudget(testkit.Service("text"), pods)
		if have := budget.Spec.MinAvailable.IntValue(); have != least {
			t.Errorf("of %d pods %d must stay, want %d", pods, have, least)
		}
	}
}
