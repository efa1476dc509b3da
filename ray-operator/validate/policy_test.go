package validate_test

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/heliostat-dev/heliostat/ray-operator/validate"
)

// TestTheChartAsksWhatTheRulesSay: each expression of a rule stands in the chart's policies,
// as a real API server compiled it in the tests of admission.
func TestTheChartAsksWhatTheRulesSay(t *testing.T) {
	chartAsks(t, "computeclusters", validate.Rules())
	chartAsks(t, "clusterjobs", append(validate.Rules(), validate.JobRules()...))
	chartAsks(t, "clusterservices", append(validate.Rules(), validate.ServiceRules()...))
	chartAsks(t, "clusterjobschedules", slices.Concat(validate.Rules(), validate.JobTemplateRules(), validate.ScheduleRules()))
}

func TestTheChartHasTheVariablesOfRules(t *testing.T) {
	for kind, want := range map[string][]validate.Variable{
		"clusterservices": validate.ServiceVariables(), "clusterjobs": validate.JobVariables(), "clusterjobschedules": validate.JobVariables(),
	} {
		var have []validate.Variable
		for _, variable := range policyOf(t, kind).Variables {
			have = append(have, validate.Variable{Name: variable.Name, Expression: variable.Expression})
		}
		if diff := cmp.Diff(have[max(0, len(have)-len(want)):], want); diff != "" { // after those of clusters
			t.Errorf("the chart has other variables of %s (- chart):\n%s", kind, diff)
		}
	}
}

// policyOf is the chart's policy of a kind.
func policyOf(t *testing.T, kind string) *admissionv1.ValidatingAdmissionPolicySpec {
	t.Helper()
	text, err := os.ReadFile("../../helm-chart/heliostat/files/admission/" + kind + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	var policy admissionv1.ValidatingAdmissionPolicySpec
	if err := yaml.Unmarshal(text, &policy); err != nil {
		t.Fatal(err)
	}
	return &policy
}

func chartAsks(t *testing.T, kind string, rules []validate.Rule) {
	t.Helper()
	policy, asked := policyOf(t, kind), 0
	for _, rule := range rules {
		if !slices.Contains([]validate.Layer{validate.Schema, validate.Expression, validate.Policy}, rule.By) {
			t.Errorf("the rule %s is nobody's: %q", rule.ID, rule.By)
		}
		if rule.By != validate.Policy {
			continue
		}
		asked++
		if !slices.ContainsFunc(policy.Validations, func(v admissionv1.Validation) bool { return asks(&v, rule) }) {
			t.Errorf("the chart's policy of %s does not ask %s: %s", kind, rule.ID, rule.Holds)
		}
	}
	if asked != len(policy.Validations) {
		t.Errorf("%d rules are the policy's of %s, it has %d", asked, kind, len(policy.Validations))
	}
}

// asks reports whether a validation is a rule's: as it stands, with the place that the rule names, or of each node.
func asks(v *admissionv1.Validation, rule validate.Rule) bool {
	if strings.HasPrefix(rule.Field, "NODE") || strings.HasPrefix(rule.Field, "GROUP") {
		return v.Expression == "variables.nodes.all(n, "+rule.Holds+")"
	}
	place := ""
	if rule.At != "" {
		place = rule.At + " + " + strconv.Quote(": "+rule.Text())
		if rule.Which != "" {
			place += " + ' (' + " + rule.Which + " + ')'"
		}
	}
	return v.Expression == rule.Holds && v.MessageExpression == place
}
