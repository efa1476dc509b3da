package chart

import (
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// keeping are values with which history is kept in a bucket.
var keeping = append(slices.Clone(serving), "--set", "history.enabled=true,history.store.url=s3://b/p")

// TestHistory_IsReachedByItsNames: what the operator is told of replicas is what their Service and StatefulSet make, and selectors find
// their pods.
func TestHistory_IsReachedByItsNames(t *testing.T) {
	options := slices.Concat(withoutCRDs, withoutPolicies, keeping)
	set := of[*appsv1.StatefulSet](t, options...)[0]
	pod := labels.Set(set.Spec.Template.Labels)
	if set.Spec.ServiceName != set.Name || !labels.SelectorFromSet(set.Spec.Selector.MatchLabels).Matches(pod) {
		t.Errorf("the StatefulSet %s is of the Service %s, and selects %v", set.Name, set.Spec.ServiceName, set.Spec.Selector)
	}
	const host = "test-heliostat-archiver-%.test-heliostat-archiver.there.svc"
	want := strings.ReplaceAll(host, "%", "0") + ":8444," + strings.ReplaceAll(host, "%", "1") + ":8444"
	var told int
	for _, deployment := range of[*appsv1.Deployment](t, options...) {
		for _, arg := range deployment.Spec.Template.Spec.Containers[0].Args {
			if addresses, is := strings.CutPrefix(arg, "--history-archivers="); is {
				if told++; addresses != want {
					t.Errorf("%s is told of %s, want %s", deployment.Name, addresses, want)
				}
			}
			if text, is := strings.CutPrefix(arg, "--history-labels="); is {
				if selector, err := labels.ConvertSelectorToLabelsMap(text); err != nil || !selector.AsSelector().Matches(pod) {
					t.Errorf("the operator is told of the labels %s", text)
				}
			}
		}
	}
	if told != 2 {
		t.Errorf("%d of operator and server are told of archivers", told)
	}
	found := 0
	for _, service := range of[*corev1.Service](t, options...) {
		if labels.SelectorFromSet(service.Spec.Selector).Matches(pod) {
			if found++; service.Name == set.Name && !service.Spec.PublishNotReadyAddresses {
				t.Error("a replica that is not ready cannot be reached")
			}
		}
	}
	if found != 2 {
		t.Errorf("%d Services select archivers, want one for collectors and one for metrics", found)
	}
	budgets := of[*policyv1.PodDisruptionBudget](t, options...)
	if !slices.ContainsFunc(budgets, func(b *policyv1.PodDisruptionBudget) bool {
		return labels.SelectorFromSet(b.Spec.Selector.MatchLabels).Matches(pod)
	}) {
		t.Error("no budget is for archivers")
	}
}

// TestHistory_IsReachedByFew: clusters' pods, the server and the operator.
func TestHistory_IsReachedByFew(t *testing.T) {
	options := slices.Concat(withoutCRDs, withoutPolicies, keeping)
	for _, policy := range of[*networkingv1.NetworkPolicy](t, options...) {
		if policy.Name != "test-heliostat-archiver" {
			continue
		}
		for _, rule := range policy.Spec.Ingress {
			if rule.Ports[0].Port.IntValue() == 8444 && len(rule.From) != 3 {
				t.Errorf("%v reach archivers", rule.From)
			}
		}
		return
	}
	t.Error("archivers have no NetworkPolicy")
}

// TestHistory_RightsAreLeast: the archiver reads what records are of, and writes its Lease. The operator reads and changes three Secrets.
func TestHistory_RightsAreLeast(t *testing.T) {
	for _, options := range [][]string{keeping, append(slices.Clone(keeping), "--set", "watchNamespaces={a,b}")} {
		options = slices.Concat(withoutCRDs, withoutPolicies, options)
		roles := map[string][]rbacv1.PolicyRule{}
		for _, role := range of[*rbacv1.ClusterRole](t, options...) {
			roles[role.Name] = role.Rules
		}
		for _, role := range of[*rbacv1.Role](t, options...) {
			roles[role.Namespace+"/"+role.Name] = role.Rules
		}
		for name, rules := range roles {
			if !strings.HasSuffix(name, "heliostat-archiver") {
				continue
			}
			for _, rule := range rules {
				isReview := slices.Equal(rule.Resources, []string{"tokenreviews"})
				for _, verb := range rule.Verbs {
					if !slices.Contains([]string{"get", "list", "watch"}, verb) && !isReview {
						t.Errorf("%s may %s %v", name, verb, rule.Resources)
					}
				}
				for _, resource := range []string{"secrets", "configmaps", "*"} {
					if slices.Contains(rule.Resources, resource) {
						t.Errorf("%s reads %s", name, resource)
					}
				}
			}
		}
		if rules := roles["there/test-heliostat-history-certificates"]; len(rules) != 1 {
			t.Errorf("the operator has %d rules for certificates", len(rules))
		} else {
			checkRule(t, "there/test-heliostat-history-certificates", rules[0])
		}
	}
}

// TestHistory_RefusesWhatDoesNotFit: by the schema, and by the templates.
func TestHistory_RefusesWhatDoesNotFit(t *testing.T) {
	for _, bad := range [][]string{
		{"--set", "server.enabled=false"}, {"--set", "history.store.url="}, {"--set", "history.store.url=http://b"}, {"--set", "history.store.url=file:///b"},
		{"--set", "history.store.claimName=a,history.store.secretName=b,history.store.url=,history.replicas=1"},
		{"--set", "history.store.claimName=a,history.replicas=1"}, {"--set", "history.store.claimName=a,history.store.url="}, {"--set", "history.keep=Everything"},
		{"--set", "history.keepFor=30d"}, {"--set", "history.replicas=3"}, {"--set", "history.limits.objects=5"}, {"--set", "history.spool.size=20"},
	} {
		if _, err := Render(slices.Concat(withoutCRDs, withoutPolicies, keeping, bad)...); err == nil {
			t.Errorf("%v is taken", bad)
		}
	}
	claim := slices.Concat(withoutCRDs, withoutPolicies, keeping, []string{"--set", "history.store.url=,history.store.claimName=a,history.replicas=1"})
	set := of[*appsv1.StatefulSet](t, claim...)[0]
	if args := set.Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, "--claim=/var/lib/heliostat/claim") {
		t.Errorf("of a claim the archiver is told %v", args)
	}
}

// TestHistory_HoldsClustersToTheLongest: the policy has the chart's value.
func TestHistory_HoldsClustersToTheLongest(t *testing.T) {
	for _, policy := range of[*admissionv1.ValidatingAdmissionPolicy](t, slices.Concat(withoutCRDs, keeping, []string{"--set", "history.maxKeepFor=100h"})...) {
		if policy.Name == "test-heliostat-history" {
			if holds := policy.Spec.Validations[0].Expression; !strings.Contains(holds, "duration('100h')") {
				t.Errorf("it holds %s", holds)
			}
			return
		}
	}
	t.Error("there is no policy")
}
