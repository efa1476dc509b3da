package cluster

import (
	"testing"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/wake"
)

func TestWakeRules_HeedPoliciesThatRuleEgress(t *testing.T) {
	policy := func(sort networkingv1.PolicyType) *networkingv1.NetworkPolicy {
		return &networkingv1.NetworkPolicy{Spec: networkingv1.NetworkPolicySpec{PolicyTypes: []networkingv1.PolicyType{sort}}}
	}
	egress, ingress := policy(networkingv1.PolicyTypeEgress), policy(networkingv1.PolicyTypeIngress)
	for what, test := range map[string]struct {
		of   wake.Change
		want bool
	}{
		"created":                   {wake.Change{New: egress}, true},
		"deleted":                   {wake.Change{Old: egress}, true},
		"begins to rule":            {wake.Change{Old: ingress, New: egress}, true},
		"ends to rule":              {wake.Change{Old: egress, New: ingress}, true},
		"rules as before":           {wake.Change{Old: egress, New: egress}, false},
		"created for ingress alone": {wake.Change{New: ingress}, false},
		"deleted for ingress alone": {wake.Change{Old: ingress}, false},
	} {
		if got := changesEgress(test.of); got != test.want {
			t.Errorf("a policy that is %s matters: %t, want %t", what, got, test.want)
		}
	}
}
