package admission_test

import (
	"strconv"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/admission"
	"github.com/heliostat-dev/heliostat/ray-operator/validate"
)

// TestPoliciesHoldEveryRuleOfTheirLayer: each once, with its words, in the order of the
// lists, and of a job's cluster with the path that the field has there.
func TestPoliciesHoldEveryRuleOfTheirLayer(t *testing.T) {
	text, err := admission.ClusterPolicy()
	holds(t, text, err, place{validate.Rules(), "spec."})
	text, err = admission.JobPolicy()
	holds(t, text, err, place{validate.Rules(), "spec.clusterTemplate.spec."}, place{validate.JobRules(), "spec."})
	text, err = admission.ServicePolicy()
	holds(t, text, err, place{validate.Rules(), "spec.clusterTemplate.spec."}, place{validate.ServiceRules(), "spec."})
	text, err = admission.SchedulePolicy()
	holds(t, text, err, place{validate.Rules(), "spec.jobTemplate.spec.clusterTemplate.spec."},
		place{validate.JobTemplateRules(), "spec.jobTemplate.spec."}, place{validate.ScheduleRules(), "spec."})
}

// place are rules and the beginning of the paths of their fields.
type place struct {
	rules []validate.Rule
	begin string
}

func holds(t *testing.T, text []byte, err error, places ...place) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var spec admissionv1.ValidatingAdmissionPolicySpec
	if err := yaml.UnmarshalStrict(text, &spec); err != nil {
		t.Fatal(err)
	}
	asked := spec.Validations
	for _, place := range places {
		for _, rule := range place.rules {
			if rule.By != validate.Policy {
				continue
			}
			if len(asked) == 0 {
				t.Fatalf("the policy lacks the rule %s", rule.ID)
			}
			place.is(t, rule, asked[0])
			asked = asked[1:]
		}
	}
	if len(asked) > 0 {
		t.Errorf("the policy asks what no rule does: %+v", asked)
	}
	if *spec.FailurePolicy != admissionv1.Fail {
		t.Errorf("the policy's failurePolicy is %s, want Fail", *spec.FailurePolicy)
	}
}

// is reports whether a validation is that of a rule of the place.
func (p place) is(t *testing.T, rule validate.Rule, one admissionv1.Validation) {
	t.Helper()
	quoted := strings.Trim(strconv.Quote(rule.Text()), `"`)
	if !strings.Contains(one.Expression, rule.Holds) || !strings.Contains(one.Message, rule.Text()) && !strings.Contains(one.MessageExpression, quoted) {
		t.Errorf("where the rule %s should stand, the policy has %+v", rule.ID, one)
	}
	// An answer names the field: by itself, or behind the path of the head or group, or by an
	// expression that finds it.
	found := strings.HasPrefix(rule.Field, "NODE") || strings.HasPrefix(rule.Field, "GROUP") || rule.At != ""
	if found == (one.Message != "") || !found && !strings.HasPrefix(one.Message, p.begin) {
		t.Errorf("the rule %s is about %s, and its message is %+v", rule.ID, rule.Field, one)
	}
}
