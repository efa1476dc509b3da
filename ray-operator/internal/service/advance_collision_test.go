package service

import (
	"slices"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// policyOf returns what a pass does about the policy of a service, and whether it does anything.
func policyOf(plan Plan) (reconcile.FixtureChange, bool) {
	for _, fixing := range plan.Fixtures {
		for _, object := range []any{fixing.Wanted, fixing.Seen} {
			if _, is := object.(*networkingv1.NetworkPolicy); is {
				return fixing, true
			}
		}
	}
	return reconcile.FixtureChange{}, false
}

// TestServePolicy_SparesOpenClusters: a policy about pods that anybody may reach would close their other ports.
func TestServePolicy_SparesOpenClusters(t *testing.T) {
	open := &v1beta1.Network{Isolation: v1beta1.Disabled}
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
	s.seen.Standing[kindPolicy] = reconcile.Fixture{Presence: reconcile.Ours, Object: policy}
	second.Spec.Network = open
	if fixing, is = policyOf(s.decide()); !is || fixing.Wanted != nil || fixing.Seen == nil {
		t.Errorf("the policy stays where no cluster needs one: %+v", fixing)
	}
}

// TestCollides_OnAnyOptionOfServe: it has one set for all services of a cluster, and none is without effect.
func TestCollides_OnAnyOptionOfServe(t *testing.T) {
	for name, c := range map[string]struct {
		options string
		differ  bool
	}{
		"the same":          {`"logging_config":{"log_level":"INFO"}`, false},
		"in another order":  {`"target_capacity":null,"logging_config":{"log_level":"INFO"}`, false},
		"another log level": {`"logging_config":{"log_level":"DEBUG"}`, true},
		"tracing beside it": {`"tracing_config":{"a":"b"},"logging_config":{"log_level":"INFO"}`, true},
		"another port":      {`"http_options":{"port":1},"logging_config":{"log_level":"INFO"}`, true},
		"no logging at all": {`"proxy_location":"EveryNode"`, true},
	} {
		s := shares(t)
		elder := s.service.DeepCopy()
		elder.Name, elder.UID = "elder", "elder-uid"
		elder.Spec.ServeConfig.Raw = []byte(`{"logging_config":{"log_level":"INFO"},"applications":[{"name":"elder","route_prefix":"/elder","import_path":"a:b"}]}`)
		s.seen.Elders = []Elder{readElder(elder)}
		s.service.Spec.ServeConfig.Raw = []byte(`{` + c.options + `,"applications":[{"name":"text","route_prefix":"/text","import_path":"app:v1"}]}`)
		if plan := s.decide(); (plan.Finding.Code == reason.ServeOptionsDiffer.Code) != c.differ {
			t.Errorf("%s: %s %s", name, plan.Finding.Code, plan.Finding.Text)
		}
	}
}

// TestCollides_OnNameOrRoute: an application's name and its route are each of one service of a cluster.
func TestCollides_OnNameOrRoute(t *testing.T) {
	for name, c := range map[string]struct {
		elders   string
		collides bool
	}{
		"another name and route": {`"name":"elder","route_prefix":"/elder"`, false},
		"the same name":          {`"name":"text","route_prefix":"/elder"`, true},
		"the same route":         {`"name":"elder","route_prefix":"/text"`, true},
	} {
		s := shares(t)
		elder := s.service.DeepCopy()
		elder.Name, elder.UID = "elder", "elder-uid"
		elder.Spec.ServeConfig.Raw = []byte(`{"applications":[{` + c.elders + `,"import_path":"a:b"}]}`)
		s.seen.Elders = []Elder{readElder(elder)}
		if plan := s.decide(); (plan.Finding.Code == reason.ServeCollision.Code) != c.collides {
			t.Errorf("%s: %s %s", name, plan.Finding.Code, plan.Finding.Text)
		}
	}
}
