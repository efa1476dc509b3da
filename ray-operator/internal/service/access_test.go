package service

import (
	"slices"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
)

// policyOf returns what a pass does about the policy of a service, and whether it does anything.
func policyOf(plan Plan) (Fixing, bool) {
	for _, fixing := range plan.Fixtures {
		for _, object := range []any{fixing.Wanted, fixing.Seen} {
			if _, is := object.(*networkingv1.NetworkPolicy); is {
				return fixing, true
			}
		}
	}
	return Fixing{}, false
}

// TestServePolicy_SparesOpenClusters: a policy about pods that anybody may reach would close their other ports.
func TestServePolicy_SparesOpenClusters(t *testing.T) {
	open := &v1alpha1.Network{Isolation: v1alpha1.IsolationDisabled}
	s := upgrades(t, nil)
	first, second := s.seen.Clusters[1], s.seen.Clusters[2]
	first.Spec.Network = open
	fixing, is := policyOf(s.decide())
	if !is {
		t.Fatal("there is no policy")
	}
	policy := fixing.Wanted.(*networkingv1.NetworkPolicy)
	if have := policy.Spec.PodSelector.MatchExpressions[0].Values; !slices.Equal(have, []string{second.Name}) {
		t.Errorf("the policy is about %v, want %s alone", have, second.Name)
	}
	s.seen.Standing[kindPolicy] = Standing{Object: policy}
	second.Spec.Network = open
	if fixing, is = policyOf(s.decide()); !is || fixing.Wanted != nil || fixing.Seen == nil {
		t.Errorf("the policy stays where no cluster needs one: %+v", fixing)
	}
}
