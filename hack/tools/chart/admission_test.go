package chart

import (
	"os"
	"reflect"
	"slices"
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

// TestRights_AreByTheChartsValues: each policy that asks for rights has the values of the chart where its expressions speak of them.
func TestRights_AreByTheChartsValues(t *testing.T) {
	for _, c := range []struct {
		options []string
		want    map[string]string
	}{
		{nil, map[string]string{"account": `"default"`, "podLabels": `["app.kubernetes.io/component","app.kubernetes.io/part-of","app.kubernetes.io/version"]`}},
		{[]string{"--set", "podDefaults.serviceAccountName=ours,tenancy.podAnnotations={a.example.com/,b},tenancy.podLabels={team},tenancy.tolerations={dedicated}"}, map[string]string{
			"account": `"ours"`, "podAnnotations": `["a.example.com/","b"]`, "podLabels": `["team"]`, "tolerations": `["dedicated"]`,
		}},
	} {
		seen := map[string]bool{}
		for _, policy := range of[*admissionv1.ValidatingAdmissionPolicy](t, c.options...) {
			for _, variable := range policy.Spec.Variables {
				if strings.Contains(variable.Expression, "VALUE_") {
					t.Errorf("%s: the variable %s is without its value: %s", policy.Name, variable.Name, variable.Expression)
				}
				if want, is := c.want[variable.Name]; is && strings.Contains(policy.Name, "-rights-") {
					if seen[variable.Name] = true; variable.Expression != want {
						t.Errorf("%s: %s is %s, want %s", policy.Name, variable.Name, variable.Expression, want)
					}
				}
			}
		}
		if len(seen) != len(c.want) {
			t.Errorf("the policies have %v of %v", seen, c.want)
		}
	}
}

// TestGuards_AskAllInTheirConditions: the API server converts an object four times for a policy whose condition holds, and
// once for another one. So a write that is allowed meets no validation: each condition is of the validations themselves. And a
// write of a pod meets one policy, unless it is a deletion. Conditions see no namespace, so that its label is asked afterwards.
func TestGuards_AskAllInTheirConditions(t *testing.T) {
	const consents = "namespaceObject.metadata.?labels[?'heliostat.dev/privileged'].orValue('') == 'allowed'"
	for account, options := range map[string][]string{
		"test-heliostat": nil,
		"ours":           {"--set", "serviceAccount.create=false", "--set", "serviceAccount.name=ours"},
	} {
		guards := map[string]admissionv1.ValidatingAdmissionPolicySpec{}
		for _, policy := range of[*admissionv1.ValidatingAdmissionPolicy](t, options...) {
			guards[strings.TrimPrefix(policy.Name, "test-heliostat-")] = policy.Spec
		}
		isOperator := "request.userInfo.username == 'system:serviceaccount:there:" + account + "'"
		breaks := func(validations []admissionv1.Validation, least int) string {
			var rules []string
			for _, rule := range validations {
				judged := strings.TrimPrefix(rule.Expression, "!("+isOperator+") || ")
				rules = append(rules, "("+strings.TrimSuffix(judged, " || "+consents)+")")
			}
			if len(rules) < least {
				t.Errorf("only %d rules: %s", len(rules), rules)
			}
			return "!(" + strings.Join(rules, " && ") + ")"
		}
		pods, operator := guards["pods"], guards["operator"]
		forges := strings.TrimPrefix(pods.Validations[0].Expression, isOperator+" || !")
		for name, want := range map[string]string{
			"pods":     isOperator + " ? " + breaks(pods.Validations[1:], 5) + " : " + forges,
			"operator": isOperator + " && " + breaks(operator.Validations, 6),
		} {
			conditions := guards[name].MatchConditions
			if len(conditions) != 1 || strings.Join(strings.Fields(conditions[0].Expression), " ") != want {
				t.Errorf("the policy of %s judges where %v, want where %s", name, conditions, want)
			}
		}
		for _, rule := range operator.MatchConstraints.ResourceRules {
			if slices.Contains(rule.Resources, "pods") && !slices.Equal(rule.Operations, []admissionv1.OperationType{admissionv1.Delete}) {
				t.Errorf("the policy of the operator judges pods at %v", rule.Operations)
			}
		}
	}
}

// TestGuards_HoldTheOwnersOfAllThatTheOperatorMakes: of each kind that the operator creates for others, a guard judges who names
// the controller.
func TestGuards_HoldTheOwnersOfAllThatTheOperatorMakes(t *testing.T) {
	options := []string{"--set", "kueue.enabled=true", "--set", "schedulers={Volcano,KAI,SchedulerPlugins,Kubernetes}"}
	held := map[string]bool{"/events": true, "events.k8s.io/events": true} // nobody takes an event for its own
	for _, policy := range of[*admissionv1.ValidatingAdmissionPolicy](t, options...) {
		judged := policy.Spec.MatchConditions
		texts := make([]string, 0, len(judged)+len(policy.Spec.Validations))
		for _, condition := range judged {
			texts = append(texts, condition.Expression)
		}
		for _, validation := range policy.Spec.Validations {
			texts = append(texts, validation.Expression)
		}
		if !strings.Contains(strings.Join(texts, " "), "o.uid == r.uid") || strings.HasSuffix(policy.Name, "-operator") {
			continue
		}
		for _, rule := range policy.Spec.MatchConstraints.ResourceRules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					operations := []admissionv1.OperationType{admissionv1.Create, admissionv1.Update}
					held[group+"/"+resource] = held[group+"/"+resource] || slices.Equal(rule.Operations, operations)
				}
			}
		}
	}
	created := createdByOperator(t, options...)
	for _, resource := range created {
		if !held[resource] {
			t.Errorf("anybody names the controller of %s", resource)
		}
	}
	if len(created) < 12 {
		t.Errorf("only %d kinds are created", len(created))
	}
}

// createdByOperator returns the resources that the operator may create, each behind its group and a slash.
func createdByOperator(t *testing.T, options ...string) []string {
	t.Helper()
	var created []string
	for _, rule := range granted(t, options...)["test-heliostat"] {
		if !slices.Contains(rule.Verbs, "create") {
			continue
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				created = append(created, group+"/"+resource)
			}
		}
	}
	return created
}
