package admission

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/rights"
)

// Variables of the policies that ask for rights. They look at all kinds.
const (
	specOfKind  = "request.resource.resource == 'clusterjobschedules' ? object.spec.jobTemplate.spec : object.spec"
	placeOfKind = "request.resource.resource == 'clusterjobschedules' ? 'spec.jobTemplate.spec' : 'spec'"
	ofAnyKind   = "request.resource.resource == 'computeclusters' ? object.spec : variables.spec.?clusterTemplate.?spec.orValue({})"
	pathOfKind  = "request.resource.resource == 'computeclusters' ? 'spec' : variables.at + '.clusterTemplate.spec'"
	rightsNodes = `([{'path': dyn(variables.path + '.head'), 'spec': dyn(variables.cluster.?head.orValue({}))}] +
variables.cluster.?workerGroups.orValue([]).transformList(i, g, {
  'path': dyn(variables.path + '.workerGroups[' + string(i) + ']'), 'spec': dyn(g)})).map(p, {
  'path': p.path, 'spec': p.spec,
  'pod': dyn(p.spec.?template.?spec.orValue({})),
  'containers': dyn(p.spec.?template.?spec.?containers.orValue([]) + p.spec.?template.?spec.?initContainers.orValue([]))})`
	mayCreatePods = "authorizer.group('').resource('pods').namespace(request.namespace).check('create').allowed()"
	byOperator    = "authorizer.group('heliostat.dev').resource('computeclusters').subresource('finalizers').namespace(request.namespace).check('update').allowed()"
)

// RightsPolicy is the specification of the ValidatingAdmissionPolicy that asks for the rights of a family, as YAML. It
// looks at a spec that is new or changed in more than its suspension, and not at what the operator writes: the rights of
// who wrote a job, a service or a schedule were asked for when they did.
func RightsPolicy(family rights.Family) ([]byte, error) {
	fail := admissionv1.Fail
	spec := admissionv1.ValidatingAdmissionPolicySpec{
		FailurePolicy:    &fail,
		MatchConstraints: writesOf("computeclusters", "clusterjobs", "clusterservices", "clusterjobschedules"),
		MatchConditions: []admissionv1.MatchCondition{
			{Name: "the-spec-is-new", Expression: isNewTo(family)},
			{Name: "by-somebody-else", Expression: "!" + byOperator},
		},
		Variables: []admissionv1.Variable{
			{Name: "spec", Expression: specOfKind},
			{Name: "at", Expression: placeOfKind},
			{Name: "path", Expression: pathOfKind},
			{Name: "cluster", Expression: ofAnyKind},
			{Name: "nodes", Expression: rightsNodes},
			{Name: "mayPods", Expression: mayCreatePods},
		},
	}
	needs := rights.Needs()
	for i := range needs {
		if needs[i].Family == family {
			demand(&spec, &needs[i])
		}
	}
	spec.Variables = append(siteVariables(spec.Variables), spec.Variables...)
	text, err := yaml.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("print the policy of the rights to %s: %w", family, err)
	}
	return text, nil
}

// isNewTo is an expression for a change that a family is asked about. A label that names a priority is no part of the spec.
func isNewTo(family rights.Family) string {
	changed := "oldObject == null || object.spec" + butSuspend + " != oldObject.spec" + butSuspend
	if family == rights.Doors {
		const priority = ".metadata.?labels[?'" + rights.PriorityLabel + "'].orValue('')"
		changed += " || object" + priority + " != oldObject" + priority
	}
	return changed
}

// placeholder begins what the chart replaces in a policy by one of its values, as an expression.
const placeholder = "VALUE_"

// siteVariables are those variables of the chart's values that others speak of.
func siteVariables(others []admissionv1.Variable) []admissionv1.Variable {
	var all []admissionv1.Variable
	for _, name := range []string{rights.SiteAnnotations, rights.SiteLabels, rights.SiteTolerations, rights.SiteAccount} {
		if slices.ContainsFunc(others, func(v admissionv1.Variable) bool { return strings.Contains(v.Expression, "variables."+name) }) {
			all = append(all, admissionv1.Variable{Name: name, Expression: placeholder + name})
		}
	}
	return all
}

// demand adds the variables and validations of a need.
func demand(spec *admissionv1.ValidatingAdmissionPolicySpec, need *rights.Need) {
	name := "of_" + strings.ReplaceAll(need.ID, "-", "_")
	entries := "(" + need.Entries + ").join(',').split(',').filter(e, e.contains(' ') && !e.endsWith(' '))"
	but := ""
	if need.OrPods {
		but = "variables.mayPods || "
	}
	if !need.IsNamed {
		spec.Variables = append(spec.Variables, admissionv1.Variable{Name: name, Expression: entries})
		holds := but + "size(variables." + name + ") == 0"
		if !need.OrPods || need.Resource != "pods" {
			holds += " || " + check(need, "")
		}
		spec.Validations = append(spec.Validations, refusal(holds, "variables."+name+"[0].split(' ')[0] + "+strconv.Quote(": "+need.Text(""))))
		return
	}
	spec.Variables = append(spec.Variables, admissionv1.Variable{Name: "all_" + name, Expression: entries}, admissionv1.Variable{
		Name:       name,
		Expression: fmt.Sprintf("variables.all_%[1]s.transformList(i, e, variables.all_%[1]s.map(o, o.split(' ')[1]).indexOf(e.split(' ')[1]) == i, e)", name),
	})
	const someName = "THE-NAME"
	text := strings.ReplaceAll(strconv.Quote(": "+need.Text(someName)), someName, `" + %[1]s.split(' ')[1] + "`)
	for i := range need.Most {
		entry := fmt.Sprintf("variables.%s[%d]", name, i)
		spec.Validations = append(spec.Validations, refusal(
			fmt.Sprintf("%ssize(variables.%s) <= %d || %s", but, name, i, check(need, entry+".split(' ')[1]")), entry+".split(' ')[0] + "+fmt.Sprintf(text, entry)))
	}
	spec.Validations = append(spec.Validations, refusal(
		fmt.Sprintf("%ssize(variables.%s) <= %d", but, name, need.Most), strconv.Quote("spec: "+need.MostText())))
}

func refusal(holds, message string) admissionv1.Validation {
	forbidden := metav1.StatusReasonForbidden
	return admissionv1.Validation{Expression: holds, MessageExpression: message, Reason: &forbidden}
}

// check is an expression for whether who writes has the right.
func check(need *rights.Need, name string) string {
	words := fmt.Sprintf("authorizer.group('%s').resource('%s')", need.Group, need.Resource)
	if need.Subresource != "" {
		words += ".subresource('" + need.Subresource + "')"
	}
	if !need.IsClusterWide {
		words += ".namespace(request.namespace)"
	}
	if name != "" {
		words += ".name(" + name + ")"
	}
	return words + ".check('" + need.Verb + "').allowed()"
}
