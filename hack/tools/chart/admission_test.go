package chart

import (
	"os"
	"reflect"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"
)

// TestPoliciesAreTheGenerated: each kind's policy is the generated one, and every policy is
// in force.
func TestPoliciesAreTheGenerated(t *testing.T) {
	bound := map[string]bool{}
	for _, binding := range of[*admissionv1.ValidatingAdmissionPolicyBinding](t) {
		bound[binding.Spec.PolicyName] = true
	}
	have := map[string]admissionv1.ValidatingAdmissionPolicySpec{}
	for _, policy := range of[*admissionv1.ValidatingAdmissionPolicy](t) {
		have[policy.Name] = policy.Spec
		if !bound[policy.Name] {
			t.Errorf("nothing binds the policy %s", policy.Name)
		}
	}
	for _, kind := range []string{"computeclusters", "clusterjobs", "clusterservices", "clusterjobschedules"} {
		text, err := os.ReadFile(dir + "/files/admission/" + kind + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		var want admissionv1.ValidatingAdmissionPolicySpec
		if err := yaml.UnmarshalStrict(text, &want); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(want, have["test-heliostat-"+kind]) {
			t.Errorf("the policy of %s is not the generated one", kind)
		}
	}
}

// TestGuards_AskAllInTheirConditions: the API server converts an object four times for a policy whose condition holds, and
// once for another one. So a write of a pod that is allowed meets no validation, and the operator's validations are those
// of its condition.
func TestGuards_AskAllInTheirConditions(t *testing.T) {
	for account, options := range map[string][]string{
		"test-heliostat": nil,
		"ours":           {"--set", "serviceAccount.create=false", "--set", "serviceAccount.name=ours"},
	} {
		guards := map[string]admissionv1.ValidatingAdmissionPolicySpec{}
		for _, policy := range of[*admissionv1.ValidatingAdmissionPolicy](t, options...) {
			guards[strings.TrimPrefix(policy.Name, "test-heliostat-")] = policy.Spec
		}
		pods, operator := guards["pods"], guards["operator"]
		if len(pods.MatchConditions) != 1 || len(pods.Validations) != 1 || pods.Validations[0].Expression != "false" {
			t.Errorf("the policy of pods asks %v after its condition", pods.Validations)
		}
		var rules []string
		for _, rule := range operator.Validations {
			rules = append(rules, "("+rule.Expression+")")
		}
		want := "request.userInfo.username == 'system:serviceaccount:there:" + account + "' && !(" + strings.Join(rules, " && ") + ")"
		have := operator.MatchConditions[0].Expression
		if strings.Join(strings.Fields(have), " ") != want || len(operator.MatchConditions) != 1 || len(rules) < 4 {
			t.Errorf("the policy of the operator judges where %s, want where %s", have, want)
		}
	}
}
