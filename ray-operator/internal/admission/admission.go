// Package admission brings the rules of package validate to where they are enforced: the chart's
// ValidatingAdmissionPolicies. Its tests write these, and the tables in the documentation.
//
// In: the lists of rules. Out: the policies' specifications. What is generated
// depends on those lists alone, so that a change of them shows as a change of these files.
//
// It is pure, and the operator does not use it. It must never hold a rule of its own.
package admission

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"

	"github.com/heliostat-dev/heliostat/ray-operator/validate"
)

// ends are the beginnings of paths that stand for the head and the groups.
var ends = []string{"NODE", "GROUP"}

// places are the head and the groups with their paths; nodes adds to each what the
// rules ask of it. Everything is dynamic, because the lists mix kinds.
const (
	places = `[{'path': dyn('%[1]s.head'), 'head': dyn(true), 'spec': dyn(variables.cluster.?head.orValue({})), 'claims': dyn([]), 'hosts': dyn(1)}] +
variables.cluster.?workerGroups.orValue([]).transformList(i, g, {
  'path': dyn('%[1]s.workerGroups[' + string(i) + ']'), 'head': dyn(false), 'spec': dyn(g),
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
    'name': dyn(c.name), 'requests': dyn(c.?resources.?requests.orValue({})), 'limits': dyn(c.?resources.?limits.orValue({}))})),
  'ports': dyn(p.head ? [%s] : [%s])})`
)

// kind is what a policy is about.
type kind struct {
	resource string
	// isNew tells a change that the rules are asked about: what a newer rule refuses must not
	// keep anyone from labelling or deleting an object from before it.
	isNew string
	// cluster is the spec of the cluster, which lies at path.
	cluster, path string
	variables     []admissionv1.Variable
	// own are the rules beside those of the cluster.
	own []validate.Rule
}

// ClusterPolicy is the specification of the ValidatingAdmissionPolicy that asks of a cluster
// what the CRD's schema cannot, as YAML. Suspending and resuming is no change that it is asked about: what a newer rule
// refuses must not keep a cluster from either.
func ClusterPolicy() ([]byte, error) {
	return policy(kind{
		resource: "computeclusters", isNew: "oldObject == null || object.spec" + butSuspend + " != oldObject.spec" + butSuspend, cluster: "object.spec", path: inCluster,
	})
}

const butSuspend = ".transformMap(k, v, k != 'suspend', v)"

// JobPolicy is the same for a job. Suspending and resuming is no change that it is asked about.
func JobPolicy() ([]byte, error) {
	return policy(kind{
		resource: "clusterjobs",
		isNew:    "oldObject == null || object.spec" + butSuspend + " != oldObject.spec" + butSuspend,
		cluster:  inTemplate, path: ofTemplate,
		variables: varsOfRun(inCluster),
		own:       validate.JobRules(),
	})
}

// SchedulePolicy is the same for a schedule. Its jobs are asked what a ClusterJob is.
func SchedulePolicy() ([]byte, error) {
	return policy(kind{
		resource: "clusterjobschedules",
		isNew:    "oldObject == null || object.spec" + butSuspend + " != oldObject.spec" + butSuspend,
		cluster:  strings.Replace(inTemplate, inCluster, inJobTemplate, 1), path: inJobTemplate + ".clusterTemplate.spec",
		variables: varsOfRun(inJobTemplate),
		own:       slices.Concat(validate.JobTemplateRules(), validate.ScheduleRules()),
	})
}

// varsOfRun are the variables that rules about a job speak of. Its spec lies at a path.
func varsOfRun(at string) []admissionv1.Variable {
	return append([]admissionv1.Variable{
		{Name: "job", Expression: "object." + at},
		{Name: "runtimeEnv", Expression: "object." + at + ".?runtimeEnv.orValue({})"},
		{Name: "vars", Expression: "[variables.runtimeEnv.?env_vars.orValue(dyn(null))].map(m, type(m) == map ? m : {})[0]"},
	}, variables(validate.JobVariables())...)
}

func variables(all []validate.Variable) []admissionv1.Variable {
	of := make([]admissionv1.Variable, len(all))
	for i, variable := range all {
		of[i] = admissionv1.Variable{Name: variable.Name, Expression: variable.Expression}
	}
	return of
}

// ServicePolicy is the same for a service, whose suspension is asked about as little.
func ServicePolicy() ([]byte, error) {
	return policy(kind{
		resource: "clusterservices",
		isNew:    "oldObject == null || object.spec" + butSuspend + " != oldObject.spec" + butSuspend,
		cluster:  inTemplate, path: ofTemplate,
		variables: variables(validate.ServiceVariables()),
		own:       validate.ServiceRules(),
	})
}

// Where the spec of a cluster lies, and an expression for that of a job or a service.
const (
	inCluster  = "spec"
	ofTemplate = "spec.clusterTemplate.spec"
	inTemplate = "object.spec.?clusterTemplate.?spec.orValue({})"
	// inJobTemplate is where the spec of a schedule's jobs lies.
	inJobTemplate = "spec.jobTemplate.spec"
)

func policy(of kind) ([]byte, error) {
	fail := admissionv1.Fail
	head, worker := validate.RayPorts()
	spec := admissionv1.ValidatingAdmissionPolicySpec{
		FailurePolicy:    &fail,
		MatchConstraints: writesOf(of.resource),
		MatchConditions:  []admissionv1.MatchCondition{{Name: "the-spec-is-new", Expression: of.isNew}},
		Variables: append([]admissionv1.Variable{
			{Name: "cluster", Expression: of.cluster},
			{Name: "places", Expression: fmt.Sprintf(places, of.path)},
			{Name: "nodes", Expression: fmt.Sprintf(nodes, numbers(head), numbers(worker))},
		}, of.variables...),
	}
	for _, rule := range validate.Rules() {
		if rule.By == validate.Policy {
			spec.Validations = append(spec.Validations, validation(rule, of.path))
		}
	}
	for _, rule := range of.own {
		if rule.By == validate.Policy {
			spec.Validations = append(spec.Validations, validation(rule, inCluster))
		}
	}
	text, err := yaml.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("print the policy of %s: %w", of.resource, err)
	}
	return text, nil
}

// writesOf is what creates and changes objects of our kinds.
func writesOf(resources ...string) *admissionv1.MatchResources {
	equivalent := admissionv1.Equivalent
	return &admissionv1.MatchResources{
		MatchPolicy: &equivalent,
		ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
			Rule:       admissionv1.Rule{APIGroups: []string{"heliostat.dev"}, APIVersions: []string{"v1beta1"}, Resources: resources},
		}}},
	}
}

func numbers(ports []int32) string {
	words := make([]string, len(ports))
	for i, port := range ports {
		words[i] = strconv.Itoa(int(port))
	}
	return strings.Join(words, ", ")
}

// validation is a rule whose field lies below path, where others say spec.
func validation(rule validate.Rule, path string) admissionv1.Validation {
	for _, end := range ends {
		if field, ok := strings.CutPrefix(rule.Field, end); ok {
			return admissionv1.Validation{
				Expression:        fmt.Sprintf("variables.nodes.all(n, %s)", rule.Holds),
				MessageExpression: messageOf(&rule, strconv.Quote(field+": "+rule.Text())),
			}
		}
	}
	if rule.At != "" {
		return admissionv1.Validation{Expression: rule.Holds, MessageExpression: rule.At + " + " + strconv.Quote(": "+rule.Text()) + which(&rule)}
	}
	fields := strings.Split(rule.Field, ", ")
	for i := range fields {
		if below, ok := strings.CutPrefix(fields[i], inCluster+"."); ok {
			fields[i] = path + "." + below
		}
	}
	return admissionv1.Validation{Expression: rule.Holds, Message: strings.Join(fields, ", ") + ": " + rule.Text()}
}

// messageOf is an expression for the refusal of a rule about nodes: where the first broken one lies, the text, and what of
// it is broken.
func messageOf(rule *validate.Rule, text string) string {
	broken := fmt.Sprintf("variables.nodes.filter(n, !(%s))", rule.Holds)
	if rule.Which == "" {
		return broken + "[0].path + " + text
	}
	return fmt.Sprintf("%s.map(n, n.path + %s)[0]", broken, text+which(rule))
}

// which is an expression for what the refusal of a rule adds to its text.
func which(rule *validate.Rule) string {
	if rule.Which == "" {
		return ""
	}
	return " + ' (' + " + rule.Which + " + ')'"
}
