package chart

import (
	"os"
	"reflect"
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
