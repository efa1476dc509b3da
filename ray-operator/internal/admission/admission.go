// Package admission brings the rules of package validate to where they are enforced and
// read: the chart's ValidatingAdmissionPolicy, and the table in the documentation.
//
// In: the list of rules. Out: the policy's specification, and Markdown. What is generated
// depends on that list alone, so that a change of it shows as a change of these files.
//
// It is pure, and the operator does not use it. It must never hold a rule of its own.
package admission

import (
	"fmt"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/validate"
)

// ends are the beginnings of paths that stand for the head and the groups.
var ends = []string{"NODE", "GROUP"}

// places are the head and the groups with their paths; nodes adds to each what the rules
// ask of it. Everything is dynamic, because the lists mix kinds.
const (
	places = `[{'path': dyn('spec.head'), 'head': dyn(true), 'spec': dyn(object.spec.?head.orValue({})), 'claims': dyn([]), 'hosts': dyn(1)}] +
object.spec.?workerGroups.orValue([]).transformList(i, g, {
  'path': dyn('spec.workerGroups[' + string(i) + ']'), 'head': dyn(false), 'spec': dyn(g),
  'claims': dyn(g.?volumeClaimTemplates.orValue([])), 'hosts': dyn(g.?hostsPerReplica.orValue(1))})`
	nodes = `variables.places.map(p, {
  'path': p.path, 'head': p.head, 'spec': p.spec, 'claims': p.claims, 'hosts': p.hosts,
  'meta': dyn(p.spec.?template.?metadata.orValue({})),
  'pod': dyn(p.spec.?template.?spec.orValue({})),
  'containers': dyn(p.spec.?template.?spec.?containers.orValue([])),
  'inits': dyn(p.spec.?template.?spec.?initContainers.orValue([])),
  'volumes': dyn(p.spec.?template.?spec.?volumes.orValue([]).map(v, v.name)),
  'ray': dyn((p.spec.?template.?spec.?containers.orValue([]).filter(c, c.name == 'ray') + [{}])[0]),
  'running': dyn(p.spec.?template.?spec.?containers.orValue([]) +
    p.spec.?template.?spec.?initContainers.orValue([]).filter(c, c.?restartPolicy.orValue('') == 'Always')),
  'needs': dyn((p.spec.?template.?spec.?containers.orValue([]) + p.spec.?template.?spec.?initContainers.orValue([])).map(c, {
    'requests': dyn(c.?resources.?requests.orValue({})), 'limits': dyn(c.?resources.?limits.orValue({}))})),
  'ports': dyn(p.head ? [%s] : [%s])})`
)

// Policy is the specification of the ValidatingAdmissionPolicy that asks of a cluster what
// the CRD's schema cannot, as YAML. A change that leaves the spec alone always passes: what
// a newer rule refuses must not keep anyone from labelling or deleting a cluster.
func Policy() ([]byte, error) {
	fail, equivalent := admissionv1.Fail, admissionv1.Equivalent
	head, worker := validate.RayPorts()
	spec := admissionv1.ValidatingAdmissionPolicySpec{
		FailurePolicy: &fail,
		MatchConstraints: &admissionv1.MatchResources{
			MatchPolicy: &equivalent,
			ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
				Rule:       admissionv1.Rule{APIGroups: []string{"heliostat.dev"}, APIVersions: []string{"v1alpha1"}, Resources: []string{"computeclusters"}},
			}}},
		},
		MatchConditions: []admissionv1.MatchCondition{{
			Name: "the-spec-is-new", Expression: "oldObject == null || object.spec != oldObject.spec",
		}},
		Variables: []admissionv1.Variable{
			{Name: "places", Expression: places},
			{Name: "nodes", Expression: fmt.Sprintf(nodes, numbers(head), numbers(worker))},
		},
	}
	for _, rule := range validate.Rules() {
		if rule.By == validate.Policy {
			spec.Validations = append(spec.Validations, validation(rule))
		}
	}
	text, err := yaml.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("print the policy: %w", err)
	}
	return text, nil
}

func numbers(ports []int32) string {
	words := make([]string, len(ports))
	for i, port := range ports {
		words[i] = strconv.Itoa(int(port))
	}
	return strings.Join(words, ", ")
}

func validation(rule validate.Rule) admissionv1.Validation {
	for _, end := range ends {
		if field, ok := strings.CutPrefix(rule.Field, end); ok {
			return admissionv1.Validation{
				Expression:        fmt.Sprintf("variables.nodes.all(n, %s)", rule.Holds),
				MessageExpression: fmt.Sprintf("variables.nodes.filter(n, !(%s))[0].path + %s", rule.Holds, strconv.Quote(field+": "+rule.Text())),
			}
		}
	}
	return admissionv1.Validation{Expression: rule.Holds, Message: rule.Field + ": " + rule.Text()}
}

// Table is the page of the documentation that lists all rules.
func Table() string {
	var page strings.Builder
	page.WriteString(preface)
	for _, rule := range validate.Rules() {
		field := strings.NewReplacer("NODE", "…", "GROUP", "spec.workerGroups[*]").Replace(rule.Field)
		if strings.Contains(field, ".") {
			field = "`" + strings.ReplaceAll(field, ", ", "`, `") + "`"
		}
		fmt.Fprintf(&page, "| %s | %s | %s | %s |\n", field, cell(rule.Refused), cell(rule.Remedy), rule.By)
	}
	return page.String()
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

const preface = `# What is refused at admission

Generated by "make generate" from the rules in ` + "`ray-operator/internal/validate`" + `. Each is enforced by the API server: by the
schema of the CRD, by a rule in that schema, or by the admission policy of the chart (` + "`admission.enabled`" + `), in this order: what
one refuses, the next is not asked about. The operator asks all of them again, so a cluster that got past a policy that was
switched off is ` + "`Stalled`" + ` with the same words. In the paths … stands for ` + "`spec.head`" + ` and ` + "`spec.workerGroups[*]`" + `.

An unknown field outside of pod templates is refused by kubectl and by any client that asks for strict field validation.
Pod templates keep unknown fields, which may belong to a newer Kubernetes. What Kubernetes itself refuses of a pod and
is not listed here shows in the cluster's conditions when the pod is made.

A second policy keeps others from making pods look like those of a cluster, whose NetworkPolicy would let them in: only
who may update ` + "`computeclusters/finalizers`" + `, as the operator may, makes a pod with the label ` + "`heliostat.dev/cluster`" + ` or
changes labels and annotations of that prefix on one. The annotation ` + "`heliostat.dev/retire`" + ` is free.

Whoever may create ComputeClusters in a namespace is trusted like one who may create pods there: a template can name
any service account, Secret and volume of the namespace.

| field | refused | what helps | by |
|---|---|---|---|
`
