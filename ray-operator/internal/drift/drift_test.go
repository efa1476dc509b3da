package drift_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/drift"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

// edited returns what Has and Excess say of an object of ours after an edit.
func edited[T client.Object](t *testing.T, wanted T, edit func(T)) (has bool, excess map[string]any) {
	t.Helper()
	seen, _ := wanted.DeepCopyObject().(T)
	edit(seen)
	fields := func(obj client.Object) map[string]any {
		form, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			t.Fatal(err)
		}
		return form
	}
	return drift.Has(seen, wanted), drift.Excess(wanted, fields(seen), fields(wanted))
}

func TestHas_NetworkPolicy(t *testing.T) {
	type policy = networkingv1.NetworkPolicy
	wanted := desired.NetworkPolicy(testkit.Cluster("demo"), desired.Site{})
	for name, test := range map[string]struct {
		edit func(*policy)
		want bool
	}{
		"nothing":            {func(*policy) {}, false},
		"a label":            {func(p *policy) { p.Labels["more"] = "x" }, false},
		"no list, an empty":  {func(p *policy) { p.Spec.PodSelector.MatchExpressions = []metav1.LabelSelectorRequirement{} }, false},
		"a rule":             {func(p *policy) { p.Spec.Ingress = append(p.Spec.Ingress, networkingv1.NetworkPolicyIngressRule{}) }, true},
		"a rule outwards":    {func(p *policy) { p.Spec.Egress = append(p.Spec.Egress, networkingv1.NetworkPolicyEgressRule{}) }, true},
		"a type":             {func(p *policy) { p.Spec.PolicyTypes = append(p.Spec.PolicyTypes, "Other") }, true},
		"a label to select":  {func(p *policy) { p.Spec.PodSelector.MatchLabels["app"] = "x" }, true},
		"an end of a port":   {func(p *policy) { p.Spec.Ingress[1].Ports[0].EndPort = new(int32(65535)) }, true},
		"all namespaces":     {func(p *policy) { p.Spec.Ingress[0].From[0].NamespaceSelector = &metav1.LabelSelector{} }, true},
		"a network of peers": {func(p *policy) { p.Spec.Ingress[0].From[0].IPBlock = &networkingv1.IPBlock{CIDR: "0.0.0.0/0"} }, true},
	} {
		if have, _ := edited(t, wanted, test.edit); have != test.want {
			t.Errorf("%s: %v", name, have)
		}
	}
}

// TestHas_Service: what the API server and clouds fill in is no addition.
func TestHas_Service(t *testing.T) {
	type service = corev1.Service
	wanted := desired.HeadService(testkit.Cluster("demo"), 1)
	ours, _ := edited(t, wanted, func(s *service) {
		s.Spec.ClusterIP, s.Spec.ClusterIPs, s.Spec.IPFamilies = "10.0.0.1", []string{"10.0.0.1"}, []corev1.IPFamily{corev1.IPv4Protocol}
		s.Spec.IPFamilyPolicy, s.Spec.SessionAffinity = new(corev1.IPFamilyPolicySingleStack), corev1.ServiceAffinityNone
		s.Spec.InternalTrafficPolicy, s.Spec.Ports[0].NodePort = new(corev1.ServiceInternalTrafficPolicyCluster), 30000
		s.Spec.LoadBalancerClass, s.Spec.HealthCheckNodePort = new("cloud"), 30001
	})
	if ours {
		t.Error("what Kubernetes fills in counts as added")
	}
	for name, test := range map[string]struct {
		edit   func(*service)
		excess map[string]any
	}{
		"a label to select": {func(s *service) { s.Spec.Selector["app"] = "x" }, nil}, // which an apply takes away
		"an address":        {func(s *service) { s.Spec.ExternalIPs = []string{"1.2.3.4"} }, map[string]any{"externalIPs": nil}},
	} {
		if has, excess := edited(t, wanted, test.edit); !has || !cmp.Equal(excess, test.excess) {
			t.Errorf("%s: %v, %v", name, has, excess)
		}
	}
	has, excess := edited(t, wanted, func(s *service) {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "zz", Port: 9999, TargetPort: intstr.FromInt32(22)})
	})
	if ports, _ := excess["ports"].([]any); !has || len(ports) != len(wanted.Spec.Ports) {
		t.Errorf("a port: %v, %v", has, excess)
	}
}

// TestComplete: a dual-stack Service keeps the second family, whichever is wanted first.
func TestComplete(t *testing.T) {
	const (
		v4, v6 = corev1.IPv4Protocol, corev1.IPv6Protocol
		single = corev1.IPFamilyPolicySingleStack
		prefer = corev1.IPFamilyPolicyPreferDualStack
	)
	type families = []corev1.IPFamily
	service := func(policy corev1.IPFamilyPolicy, of families) *corev1.Service {
		made := &corev1.Service{Spec: corev1.ServiceSpec{IPFamilies: of}}
		if policy != "" {
			made.Spec.IPFamilyPolicy = &policy
		}
		return made
	}
	for name, test := range map[string]struct {
		seen, wanted *corev1.Service
		want         families
	}{
		"the first alone":                 {service(prefer, families{v4, v6}), service(prefer, families{v4}), families{v4, v6}},
		"without a policy":                {service(prefer, families{v4, v6}), service("", families{v4}), families{v4, v6}},
		"the second first":                {service(prefer, families{v4, v6}), service(prefer, families{v6}), families{v6, v4}},
		"one stack again":                 {service(prefer, families{v4, v6}), service(single, families{v4}), families{v4}},
		"no family":                       {service(prefer, families{v4, v6}), service(prefer, nil), nil},
		"both":                            {service(prefer, families{v4, v6}), service(prefer, families{v4, v6}), families{v4, v6}},
		"a cluster of one family":         {service(prefer, families{v4}), service(prefer, families{v4}), families{v4}},
		"one that no API server has seen": {service("", nil), service("", families{v4}), families{v4}},
	} {
		drift.Complete(test.seen, test.wanted)
		if !cmp.Equal(test.wanted.Spec.IPFamilies, test.want) {
			t.Errorf("%s: %v", name, test.wanted.Spec.IPFamilies)
		}
	}
	drift.Complete(&corev1.Pod{}, &corev1.Pod{})
}

func TestHas_OtherKinds(t *testing.T) {
	budget := desired.HeadBudget(testkit.Cluster("demo"))
	if has, _ := edited(t, budget, func(b *policyv1.PodDisruptionBudget) {
		b.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "a"}}
	}); !has {
		t.Error("a budget may select less")
	}
	ingress := &networkingv1.Ingress{}
	if has, excess := edited(t, ingress, func(i *networkingv1.Ingress) {
		i.Spec.DefaultBackend = &networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: "other"}}
	}); !has || !cmp.Equal(excess, map[string]any{"defaultBackend": nil}) {
		t.Errorf("an Ingress may lead elsewhere: %v", excess)
	}
	if has, excess := edited(t, &corev1.Pod{}, func(p *corev1.Pod) { p.Spec.NodeName = "a" }); has || excess != nil {
		t.Error("a pod's spec is not ours as a whole")
	}
}
