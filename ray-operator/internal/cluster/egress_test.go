package cluster_test

import (
	"slices"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster"
)

// TestNetworkPolicy_LeavesEgressToTheNamespace: what an administrator closes for all pods stays closed.
func TestNetworkPolicy_LeavesEgressToTheNamespace(t *testing.T) {
	allow := &v1beta1.Network{AllowTo: []v1beta1.EgressRule{{To: []networkingv1.NetworkPolicyPeer{}}}}
	for name, test := range map[string]struct {
		network     *v1beta1.Network
		ruled, want bool
	}{
		"said nothing":               {nil, false, true},
		"said nothing, ruled":        {nil, true, false},
		"allowTo, ruled":             {allow, true, true},
		"metadata for them":          {&v1beta1.Network{CloudMetadata: v1beta1.Enabled}, true, false},
		"isolation said, and ruled":  {&v1beta1.Network{Isolation: v1beta1.Enabled}, true, false},
		"isolation said, not ruled":  {&v1beta1.Network{Isolation: v1beta1.Enabled}, false, true},
		"metadata closed, not ruled": {&v1beta1.Network{CloudMetadata: v1beta1.Disabled}, false, true},
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
