package cluster_test

import (
	"slices"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

func TestRulesEgress_IsOfEveryPodAndSomebodyElse(t *testing.T) {
	both := []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}
	some := metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	ours := desired.NetworkPolicy(testkit.Cluster("demo"), desired.Site{})
	ours.Spec.PodSelector = metav1.LabelSelector{}
	for name, test := range map[string]struct {
		policy *networkingv1.NetworkPolicy
		want   bool
	}{
		"egress of all pods":  {&networkingv1.NetworkPolicy{Spec: networkingv1.NetworkPolicySpec{PolicyTypes: both}}, true},
		"egress of some pods": {&networkingv1.NetworkPolicy{Spec: networkingv1.NetworkPolicySpec{PolicyTypes: both, PodSelector: some}}, false},
		"ingress alone":       {&networkingv1.NetworkPolicy{Spec: networkingv1.NetworkPolicySpec{PolicyTypes: both[:1]}}, false},
		"one of a cluster":    {ours, false},
	} {
		if have := cluster.RulesEgress(test.policy); have != test.want {
			t.Errorf("%s: %v", name, have)
		}
	}
}

// TestNetworkPolicy_LeavesEgressToTheNamespace: what an administrator closes for all pods stays closed.
func TestNetworkPolicy_LeavesEgressToTheNamespace(t *testing.T) {
	allow := &v1alpha1.Network{AllowTo: []v1alpha1.EgressRule{{To: []networkingv1.NetworkPolicyPeer{}}}}
	for name, test := range map[string]struct {
		network     *v1alpha1.Network
		ruled, want bool
	}{
		"said nothing":               {nil, false, true},
		"said nothing, ruled":        {nil, true, false},
		"allowTo, ruled":             {allow, true, true},
		"metadata for them":          {&v1alpha1.Network{CloudMetadata: v1alpha1.CloudMetadataEnabled}, true, false},
		"isolation said, and ruled":  {&v1alpha1.Network{Isolation: v1alpha1.IsolationEnabled}, true, false},
		"isolation said, not ruled":  {&v1alpha1.Network{Isolation: v1alpha1.IsolationEnabled}, false, true},
		"metadata closed, not ruled": {&v1alpha1.Network{CloudMetadata: v1alpha1.CloudMetadataDisabled}, false, true},
	} {
		of := demo()
		of.Spec.Network = test.network
		plan := decide(of, cluster.Seen{Record: cluster.Record{Version: 1, Epoch: 1}, EgressRuled: test.ruled})
		var types []networkingv1.PolicyType
		for _, fixing := range plan.Fixtures {
			if policy, is := fixing.Wanted.(*networkingv1.NetworkPolicy); is && fixing.Kind == "NetworkPolicy" {
				types = policy.Spec.PolicyTypes
			}
		}
		if len(types) == 0 || slices.Contains(types, networkingv1.PolicyTypeEgress) != test.want {
			t.Errorf("%s: the policy is about %v", name, types)
		}
	}
}
