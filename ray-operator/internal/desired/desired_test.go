package desired_test

import (
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

var site = desired.Site{
	OperatorNamespace: "heliostat-system",
	OperatorLabels:    map[string]string{"app.kubernetes.io/name": "heliostat", "app.kubernetes.io/component": "operator"},
	ServerLabels:      map[string]string{"app.kubernetes.io/name": "heliostat", "app.kubernetes.io/component": "server"},
}

// open is a cluster that says everything about how it is reached.
func open() *v1beta1.ComputeCluster {
	group := testkit.Group("tpu", 2)
	group.HostsPerReplica = 4
	group.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{
		ObjectMeta: metav1.ObjectMeta{
			Name: "scratch", Labels: map[string]string{"team": "a", v1beta1.LabelCluster: "other"}, Annotations: map[string]string{"example.com/owner": "ana"},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: testkit.Resources("storage", "10Gi")},
		},
	}}
	cluster := testkit.Cluster("demo", testkit.Group("cpu", 1), group)
	cluster.Spec.Head.Service = &v1beta1.HeadServiceSpec{
		Type:        corev1.ServiceTypeLoadBalancer,
		Labels:      map[string]string{"team": "a", v1beta1.LabelCluster: "other"},
		Annotations: map[string]string{"example.com/internal": "true"},
		Ports:       []v1beta1.ServicePort{{Name: "debug", Port: 5678}, {Name: "web", Port: 80, TargetPort: 8501, NodePort: 30080}, {Name: "dashboard", NodePort: 30265}},
		ServiceReach: v1beta1.ServiceReach{
			LoadBalancerClass:        "service.k8s.aws/nlb",
			LoadBalancerSourceRanges: []string{"203.0.113.0/24"}, ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyLocal,
			SessionAffinity: corev1.ServiceAffinityClientIP, IPFamilies: []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol},
			IPFamilyPolicy: corev1.IPFamilyPolicyPreferDualStack,
		},
	}
	cluster.Spec.Head.Ingress = &v1beta1.IngressSpec{
		ClassName: "nginx", Host: "ray.example", AdditionalHosts: []string{"ray.example.org"}, Path: "/demo", PathType: networkingv1.PathTypeExact,
		TLSSecretName: "ray-tls", Annotations: map[string]string{"cert-manager.io/cluster-issuer": "public"},
	}
	team := networkingv1.NetworkPolicyPeer{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}}
	block := networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: "10.1.0.0/16", Except: []string{"10.1.2.0/24"}}}
	cluster.Spec.Network = &v1beta1.Network{
		AllowFrom: []v1beta1.IngressRule{
			{From: []networkingv1.NetworkPolicyPeer{team, block}, Ports: []v1beta1.Port{
				v1beta1.PortDashboard, v1beta1.PortClient, v1beta1.PortServe, v1beta1.PortServeGRPC, v1beta1.PortGCS, v1beta1.PortMetrics,
			}},
			{From: []networkingv1.NetworkPolicyPeer{}, Ports: []v1beta1.Port{v1beta1.PortServe, v1beta1.PortServe}},
		},
		AllowTo: []v1beta1.EgressRule{
			{To: []networkingv1.NetworkPolicyPeer{block}, Ports: []networkingv1.NetworkPolicyPort{tcp(443)}},
			{To: []networkingv1.NetworkPolicyPeer{team}},
		},
	}
	return cluster
}

func TestGolden(t *testing.T) {
	cluster := testkit.Cluster("demo")
	testkit.Golden(t, "head-service", desired.HeadService(cluster, 3))
	testkit.Golden(t, "token-secret", desired.TokenSecret(cluster, "0123456789abcdef"))
	testkit.Golden(t, "network-policy", desired.NetworkPolicy(cluster, site))
	testkit.Golden(t, "head-budget", desired.HeadBudget(cluster))
	testkit.Golden(t, "open-head-service", desired.HeadService(open(), 3))
	testkit.Golden(t, "open-network-policy", desired.NetworkPolicy(open(), site))
	testkit.Golden(t, "open-ingress", desired.Ingress(open()))
	testkit.Golden(t, "open-hosts-service", desired.HostsService(open()))
	testkit.Golden(t, "open-claim", desired.Claim(open(), &open().Spec.WorkerGroups[1], 6, 0))
}

// TestOwnedAndLabelled: garbage collection, adoption and every selector hang on it.
func TestOwnedAndLabelled(t *testing.T) {
	cluster := open()
	for name, object := range map[string]metav1.Object{
		naming.HeadService("demo"):                             desired.HeadService(cluster, 1),
		naming.TokenSecret("demo"):                             desired.TokenSecret(cluster, "t"),
		naming.NetworkPolicy("demo"):                           desired.NetworkPolicy(cluster, site),
		naming.Ingress("demo"):                                 desired.Ingress(cluster),
		naming.HostsService("demo"):                            desired.HostsService(cluster),
		"budget " + naming.HeadBudget("demo"):                  desired.HeadBudget(cluster),
		naming.Claim("demo", cluster.UID, "tpu", 3, "scratch"): desired.Claim(cluster, &cluster.Spec.WorkerGroups[1], 3, 0),
	} {
		name = strings.TrimPrefix(name, "budget ") // the head's Service has the same
		if object.GetName() != name || object.GetNamespace() != testkit.Namespace || !metav1.IsControlledBy(object, cluster) {
			t.Errorf("%s/%s is not %s of the cluster", object.GetNamespace(), object.GetName(), name)
		}
		for key, value := range naming.ClusterLabels("demo") {
			if object.GetLabels()[key] != value {
				t.Errorf("%s: label %s is %q", name, key, object.GetLabels()[key])
			}
		}
	}
}

// TestBuildIsAFunction: what is built shares nothing with the spec, so that a write
// of it cannot change a cached object.
func TestBuildIsAFunction(t *testing.T) {
	cluster, before := open(), open()
	service := desired.HeadService(cluster, 1)
	service.Labels["x"], service.Annotations["x"] = "y", "y"
	made := desired.Claim(cluster, &cluster.Spec.WorkerGroups[1], 0, 0)
	made.Labels["x"], made.Annotations["x"] = "y", "y"
	made.Spec.Resources.Requests["x"] = made.Spec.Resources.Requests["storage"]
	policy := desired.NetworkPolicy(cluster, site)
	for _, rule := range policy.Spec.Ingress {
		for i := range rule.From {
			rule.From[i] = networkingv1.NetworkPolicyPeer{}
		}
	}
	for _, rule := range policy.Spec.Egress {
		for i := range rule.To {
			rule.To[i] = networkingv1.NetworkPolicyPeer{}
		}
	}
	ingress := desired.Ingress(cluster)
	*ingress.Spec.IngressClassName, ingress.Annotations["x"] = "x", "y"
	service.Spec.LoadBalancerSourceRanges[0], service.Spec.IPFamilies[0], *service.Spec.IPFamilyPolicy = "x", "x", "x"
	if !reflect.DeepEqual(cluster, before) {
		t.Error("building an object shares memory with the spec")
	}
	if len(site.OperatorLabels) != 2 || len(site.ServerLabels) != 2 {
		t.Error("the site was changed")
	}
}

// TestTokenIsTheArgument: the package draws nothing itself.
func TestTokenIsTheArgument(t *testing.T) {
	secret := desired.TokenSecret(testkit.Cluster("demo"), "given")
	if secret.StringData[v1beta1.TokenKey] != "given" || len(secret.StringData) != 1 || secret.Immutable != nil {
		t.Errorf("%+v", secret)
	}
}

// TestHeadServiceType: the one that the spec says.
func TestHeadServiceType(t *testing.T) {
	for given, want := range map[corev1.ServiceType]corev1.ServiceType{
		"": corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort: corev1.ServiceTypeNodePort,
	} {
		cluster := testkit.Cluster("demo")
		cluster.Spec.Head.Service = &v1beta1.HeadServiceSpec{Type: given}
		if have := desired.HeadService(cluster, 1).Spec.Type; have != want {
			t.Errorf("type %q became %s", given, have)
		}
	}
}

// TestHeadServiceHeadless: no address of its own, and it still publishes a head that is not ready.
func TestHeadServiceHeadless(t *testing.T) {
	cluster := testkit.Cluster("demo")
	cluster.Spec.Head.Service = &v1beta1.HeadServiceSpec{Headless: new(true)}
	made := desired.HeadService(cluster, 1).Spec
	if made.ClusterIP != corev1.ClusterIPNone || made.Type != corev1.ServiceTypeClusterIP || !made.PublishNotReadyAddresses {
		t.Errorf("clusterIP %q, type %s, publishes %v", made.ClusterIP, made.Type, made.PublishNotReadyAddresses)
	}
}

// TestSelectors: each Service and budget meets the pods that it is for and no other, of
// a cluster whose name is a prefix too.
func TestSelectors(t *testing.T) {
	cluster, longer := open(), testkit.Cluster("demo-tpu", testkit.Group("tpu", 1))
	pods := map[string]*corev1.Pod{
		"head": pod.Head(cluster, 3), "former head": pod.Head(cluster, 2), "worker": pod.Worker(cluster, &cluster.Spec.WorkerGroups[0], 0, 3),
		"host": pod.Worker(cluster, &cluster.Spec.WorkerGroups[1], 0, 3), "another's head": pod.Head(longer, 3),
		"another's worker": pod.Worker(longer, &longer.Spec.WorkerGroups[0], 0, 3),
	}
	budget, policy := desired.HeadBudget(cluster).Spec.Selector, desired.NetworkPolicy(cluster, site).Spec.PodSelector
	for name, test := range map[string]struct {
		selector map[string]string
		want     []string
	}{
		"head's Service":  {desired.HeadService(cluster, 3).Spec.Selector, []string{"head"}},
		"hosts' Service":  {desired.HostsService(cluster).Spec.Selector, []string{"worker", "host"}},
		"head's budget":   {budget.MatchLabels, []string{"head", "former head"}},
		"policy":          {policy.MatchLabels, []string{"head", "former head", "worker", "host"}},
		"policy's itself": {itself(t, cluster), []string{"head", "former head", "worker", "host"}},
	} {
		t.Run(name, func(t *testing.T) {
			wanted := map[string]bool{}
			for _, pod := range test.want {
				wanted[pod] = true
			}
			for which, candidate := range pods {
				if met := labels.SelectorFromSet(test.selector).Matches(labels.Set(candidate.Labels)); met != wanted[which] {
					t.Errorf("%v meets %s: %v", test.selector, which, met)
				}
			}
		})
	}
}

func itself(t *testing.T, cluster *v1beta1.ComputeCluster) map[string]string {
	t.Helper()
	first := desired.NetworkPolicy(cluster, site).Spec.Ingress[0]
	if len(first.From) != 1 || first.From[0].NamespaceSelector != nil || len(first.Ports) != 0 {
		t.Fatalf("the first rule is not for the cluster itself: %+v", first)
	}
	return first.From[0].PodSelector.MatchLabels
}

// TestHostsServiceIsForHosts: there only where a group has replicas of several.
func TestHostsServiceIsForHosts(t *testing.T) {
	for name, test := range map[string]struct {
		hosts []int32
		want  bool
	}{
		"no group": {nil, false}, "one host": {[]int32{0, 1}, false}, "the last": {[]int32{1, 2}, true}, "the first": {[]int32{2, 1}, true},
	} {
		cluster := testkit.Cluster("demo")
		for _, hosts := range test.hosts {
			cluster.Spec.WorkerGroups = append(cluster.Spec.WorkerGroups, v1beta1.WorkerGroup{HostsPerReplica: hosts})
		}
		service := desired.HostsService(cluster)
		if (service != nil) != test.want {
			t.Errorf("%s: %+v", name, service)
		}
		if service != nil && (service.Spec.ClusterIP != corev1.ClusterIPNone || !service.Spec.PublishNotReadyAddresses) {
			t.Errorf("%s: %+v", name, service.Spec)
		}
	}
}

// TestIngress: only where it is asked for, and never without authentication.
func TestIngress(t *testing.T) {
	cluster := testkit.Cluster("demo")
	if ingress := desired.Ingress(cluster); ingress != nil {
		t.Errorf("nobody asked for %+v", ingress)
	}
	cluster.Spec.Head.Ingress = &v1beta1.IngressSpec{Host: "ray.example"}
	ingress := desired.Ingress(cluster)
	if path := ingress.Spec.Rules[0].HTTP.Paths[0].Path; path != "/" || ingress.Spec.IngressClassName != nil || ingress.Spec.TLS != nil {
		t.Errorf("%+v", ingress.Spec)
	}
	cluster.Spec.Authentication = &v1beta1.Authentication{Mode: v1beta1.AuthenticationDisabled}
	if ingress := desired.Ingress(cluster); ingress != nil {
		t.Errorf("open to everybody: %+v", ingress)
	}
}

// TestIngressMeetsAPort of the head's Service.
func TestIngressMeetsAPort(t *testing.T) {
	backend := desired.Ingress(open()).Spec.Rules[0].HTTP.Paths[0].Backend.Service
	for _, port := range desired.HeadService(open(), 1).Spec.Ports {
		if port.Name == backend.Port.Name && port.TargetPort.IntValue() == naming.PortDashboard && backend.Name == naming.HeadService("demo") {
			return
		}
	}
	t.Errorf("%+v is no port of the head's Service", backend)
}
