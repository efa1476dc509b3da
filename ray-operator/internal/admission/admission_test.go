package admission_test

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/admission"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/validate"
)

// TestPolicyHoldsEveryRuleOfItsLayer: each once, with its words, in the order of the list.
func TestPolicyHoldsEveryRuleOfItsLayer(t *testing.T) {
	text, err := admission.Policy()
	if err != nil {
		t.Fatal(err)
	}
	var spec admissionv1.ValidatingAdmissionPolicySpec
	if err := yaml.UnmarshalStrict(text, &spec); err != nil {
		t.Fatal(err)
	}
	asked := spec.Validations
	for _, rule := range validate.Rules() {
		if rule.By != validate.Policy {
			continue
		}
		if len(asked) == 0 {
			t.Fatalf("the policy lacks the rule %s", rule.ID)
		}
		one := asked[0]
		asked = asked[1:]
		if !strings.Contains(one.Expression, rule.Holds) || !strings.Contains(one.Message+one.MessageExpression, rule.Text()) {
			t.Errorf("where the rule %s should stand, the policy has %+v", rule.ID, one)
		}
		// An answer names the field: by itself, or behind the path of the head or group.
		if perNode := strings.HasPrefix(rule.Field, "NODE") || strings.HasPrefix(rule.Field, "GROUP"); perNode == (one.Message != "") {
			t.Errorf("the rule %s is about %s, and its message is %+v", rule.ID, rule.Field, one)
		}
	}
	if len(asked) > 0 {
		t.Errorf("the policy asks what no rule does: %+v", asked)
	}
	if *spec.FailurePolicy != admissionv1.Fail {
		t.Errorf("the policy's failurePolicy is %s, want Fail", *spec.FailurePolicy)
	}
}

func TestTableHoldsEveryRule(t *testing.T) {
	rows := strings.Count(admission.Table(), "\n| ") - 1 // the heading
	if rules := len(validate.Rules()); rows != rules {
		t.Errorf("the table has %d rows, there are %d rules", rows, rules)
	}
	for _, rule := range validate.Rules() {
		if !strings.Contains(admission.Table(), rule.Refused+" | "+rule.Remedy) {
			t.Errorf("the table lacks the rule %s", rule.ID)
		}
	}
}
