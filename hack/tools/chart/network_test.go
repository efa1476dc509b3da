package chart

import (
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// TestEverySelectorFindsTheOperator holds the selectors of all objects and the labels that
// the operator is told of against those of its pods.
func TestEverySelectorFindsTheOperator(t *testing.T) {
	options := []string{"--set", "nameOverride=other", "--set", "podLabels.a=b"}
	deployment := of[*appsv1.Deployment](t, options...)[0]
	pod := deployment.Spec.Template
	selectors := map[string]labels.Set{
		"Deployment":          deployment.Spec.Selector.MatchLabels,
		"Service":             of[*corev1.Service](t, options...)[0].Spec.Selector,
		"NetworkPolicy":       of[*networkingv1.NetworkPolicy](t, options...)[0].Spec.PodSelector.MatchLabels,
		"PodDisruptionBudget": of[*policyv1.PodDisruptionBudget](t, options...)[0].Spec.Selector.MatchLabels,
		"affinity": pod.Spec.Affinity.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution[0].
			PodAffinityTerm.LabelSelector.MatchLabels,
	}
	for _, arg := range pod.Spec.Containers[0].Args {
		if told, ok := strings.CutPrefix(arg, "--operator-labels="); ok {
			selectors["--operator-labels"], _ = labels.ConvertSelectorToLabelsMap(told)
		}
	}
	for who, selector := range selectors {
		if len(selector) < 3 || !selector.AsSelector().Matches(labels.Set(pod.Labels)) {
			t.Errorf("%s selects %v, the operator's pods have %v", who, selector, pod.Labels)
		}
	}
	if len(selectors) != 6 {
		t.Errorf("%d selectors, want 6", len(selectors))
	}
}

func TestOthersReachProbesAndMetricsAlone(t *testing.T) {
	ports := func(options ...string) []int {
		var open []int
		for _, rule := range of[*networkingv1.NetworkPolicy](t, options...)[0].Spec.Ingress {
			for _, port := range rule.Ports {
				open = append(open, port.Port.IntValue())
			}
		}
		return open
	}
	if got := ports(); !slices.Equal(got, []int{8081, 8080}) {
		t.Errorf("the open ports are %v", got)
	}
	if got := ports("--set", "metrics.enabled=false"); !slices.Equal(got, []int{8081}) {
		t.Errorf("without metrics the open ports are %v", got)
	}
	policy := of[*networkingv1.NetworkPolicy](t)[0].Spec
	if !slices.Equal(policy.PolicyTypes, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}) {
		t.Errorf("what the operator may reach is limited though nothing says so: %v", policy.PolicyTypes)
	}
	limited := of[*networkingv1.NetworkPolicy](t, "--set-json", `networkPolicy.egress=[{"to":[{"ipBlock":{"cidr":"10.0.0.1/32"}}]}]`)[0].Spec
	if len(limited.Egress) != 4 || !slices.Contains(limited.PolicyTypes, networkingv1.PolicyTypeEgress) {
		t.Fatalf("what the operator may reach is %v, want DNS, heads, stores and what was given", limited.Egress)
	}
	reached := func(rule networkingv1.NetworkPolicyEgressRule) []int {
		var numbers []int
		for _, port := range rule.Ports {
			numbers = append(numbers, port.Port.IntValue())
		}
		return numbers
	}
	if dns := reached(limited.Egress[0]); !slices.Equal(dns, []int{53, 53, 5353, 5353}) || len(limited.Egress[0].To) > 0 {
		t.Errorf("DNS is reached at the ports %v of %v, want also that of OpenShift's pods, anywhere", dns, limited.Egress[0].To)
	}
	if heads := reached(limited.Egress[1]); !slices.Equal(heads, []int{6379, 8265, 8266, 6380}) {
		t.Errorf("of heads the operator reaches the ports %v, want GCS, dashboard and autoscaler", heads)
	}
	if stores := reached(limited.Egress[2]); !slices.Equal(stores, []int{6379, 26379}) || len(limited.Egress[2].To) > 0 {
		t.Errorf("of stores the operator reaches the ports %v of %v, want Redis and Sentinels anywhere", stores, limited.Egress[2].To)
	}
}

// TestMesh_OpensItsTunnelToThePeersOfPorts: in each rule of the operator and the server with ports of TCP, but not to those who
// reach the probes, which are everybody.
func TestMesh_OpensItsTunnelToThePeersOfPorts(t *testing.T) {
	options := append(slices.Clone(serving), "--set", "mesh.tunnelPort=15008,server.dashboards.enabled=true", "--set-json",
		`networkPolicy.egress=[{"to":[{"ipBlock":{"cidr":"10.0.0.1/32"}}]}]`)
	opened := map[bool]int{}
	look := func(ports []networkingv1.NetworkPolicyPort) {
		has := func(number int) bool {
			return slices.ContainsFunc(ports, func(p networkingv1.NetworkPolicyPort) bool { return p.Port.IntValue() == number })
		}
		wanted := len(ports) > 0 && !has(8081) && !has(53)
		opened[wanted]++
		if has(15008) != wanted {
			t.Errorf("a rule opens the ports %v", ports)
		}
	}
	for _, policy := range of[*networkingv1.NetworkPolicy](t, options...) {
		for _, rule := range policy.Spec.Ingress {
			look(rule.Ports)
		}
		for _, rule := range policy.Spec.Egress {
			look(rule.Ports)
		}
	}
	if opened[true] != 6 || opened[false] == 0 {
		t.Errorf("%d rules with the tunnel and %d without, want 6 and some", opened[true], opened[false])
	}
}

func TestServiceMonitorFindsTheService(t *testing.T) {
	if found := of[*ServiceMonitor](t); len(found) > 0 {
		t.Error("there is a ServiceMonitor though nobody asked for it")
	}
	options := []string{"--set", "metrics.serviceMonitor.enabled=true", "--set", "metrics.serviceMonitor.labels.release=prom"}
	monitors := of[*ServiceMonitor](t, options...)
	if len(monitors) != 1 {
		t.Fatalf("%d ServiceMonitors, want 1", len(monitors))
	}
	monitor, service := monitors[0], of[*corev1.Service](t, options...)[0]
	if monitor.Labels["release"] != "prom" {
		t.Errorf("the ServiceMonitor has the labels %v", monitor.Labels)
	}
	selector := labels.Set(monitor.Spec.Selector.MatchLabels).AsSelector()
	if !selector.Matches(labels.Set(service.Labels)) || !slices.Contains(monitor.Spec.NamespaceSelector.MatchNames, service.Namespace) {
		t.Errorf("it looks for %v in %v, the Service has %v in %s", selector, monitor.Spec.NamespaceSelector, service.Labels, service.Namespace)
	}
	if endpoint := monitor.Spec.Endpoints[0]; endpoint.Port != service.Spec.Ports[0].Name || endpoint.Interval != "30s" {
		t.Errorf("it scrapes %v of the ports %v", endpoint, service.Spec.Ports)
	}
	container := of[*appsv1.Deployment](t)[0].Spec.Template.Spec.Containers[0]
	if container.Ports[0].Name != service.Spec.Ports[0].TargetPort.StrVal || !slices.Contains(container.Args, "--metrics-bind-address=:8080") {
		t.Errorf("the Service leads to %v of %v", service.Spec.Ports[0].TargetPort, container.Ports)
	}
}

func TestOneOperatorMayAlwaysBeEvicted(t *testing.T) {
	if budget := of[*policyv1.PodDisruptionBudget](t)[0]; budget.Spec.MaxUnavailable.IntValue() != 1 || budget.Spec.MinAvailable != nil {
		t.Errorf("the budget is %v", budget.Spec)
	}
	if budgets := of[*policyv1.PodDisruptionBudget](t, "--set", "replicas=1"); len(budgets) > 0 {
		t.Error("a single operator has a budget")
	}
	if deployment := of[*appsv1.Deployment](t)[0]; *deployment.Spec.Replicas != 2 || !slices.Contains(deployment.Spec.Template.Spec.Containers[0].Args, "--leader-elect=true") {
		t.Errorf("%d operators with the flags %v", *deployment.Spec.Replicas, deployment.Spec.Template.Spec.Containers[0].Args)
	}
}
