package validate

import (
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var variableName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.-]*$`)

// expanded matches what Ray replaces in the value of a variable, wherever it hands one to a driver or a task: $NAME and
// ${NAME} where the node has such a variable. A ${NAME} in capitals is removed where it has none.
var expanded = regexp.MustCompile(`[$]([a-zA-Z_]|[{][^}]*[}])`)

// ownVariablePrefix is that of the variables that tell a driver of its job.
const ownVariablePrefix = "HELIOSTAT_"

// jobVariables are the variables by which a driver finds its cluster and its job.
// Those of a control store are among them, because some variables of a job become its pods'.
var jobVariables = slices.Concat([]string{"RAY_JOB_CONFIG_JSON_ENV_VAR"}, ownVariables, storeVariables)

// ofNames is an expression that asks of the name of each variable of a job, which n stands for.
func ofNames(good string) string {
	return "variables.programs.all(o, o.?env.orValue([]).all(e, [e.name].all(n, " + good + "))) && variables.vars.all(n, " + good + ")"
}

// sources are how many sources the value of a variable has.
func sources(from *corev1.EnvVarSource) int {
	given := []bool{from.FieldRef != nil, from.ResourceFieldRef != nil, from.ConfigMapKeyRef != nil, from.SecretKeyRef != nil, from.FileKeyRef != nil}
	return len(slices.DeleteFunc(given, func(one bool) bool { return !one }))
}

// inTemplate reports whether the cluster of a job's own sets a variable in its pods.
func (r *run) inTemplate(name string) bool {
	is := func(e corev1.EnvVar) bool { return e.Name == name }
	if r.cluster == nil {
		return false
	}
	if d := r.cluster.Spec.PodDefaults; d != nil && slices.ContainsFunc(d.Env, is) {
		return true
	}
	return slices.ContainsFunc(r.nodes, func(n node) bool { return n.ray != nil && slices.ContainsFunc(n.ray.Env, is) })
}

// variableRules are about the environment of a job's driver.
var variableRules = []Rule{
	{
		ID: "variable-name", Field: "spec.env, spec.gang.roles[*].env, spec.runtimeEnv.env_vars", By: Policy,
		Refused: "the name of a variable must be letters, digits, '_', '.' and '-', starting with a letter or '_'", Remedy: "correct it",
		Holds: ofNames("n.matches('" + variableName.String() + "')"),
		job: func(r *run, bad report) {
			r.eachVariable(func(path *field.Path, name string) {
				if !variableName.MatchString(name) {
					bad.at(path, name)
				}
			})
		},
	},
	{
		ID: "variable-own", Field: "spec.env, spec.gang.roles[*].env, spec.runtimeEnv.env_vars", By: Policy,
		Refused: "HELIOSTAT_... and " + joined(jobVariables, ", ") + " tell the driver of its job and its cluster", Remedy: "choose another name, or leave it out",
		Holds: ofNames("!n.startsWith('" + ownVariablePrefix + "') && !(n in " + list(jobVariables) + ")"),
		job: func(r *run, bad report) {
			r.eachVariable(func(path *field.Path, name string) {
				if strings.HasPrefix(name, ownVariablePrefix) || slices.Contains(jobVariables, name) {
					bad.at(path, name)
				}
			})
		},
	},
	{
		ID: "variable-source", Field: "spec.env", By: Policy,
		Refused: "a variable must have either a value or one source", Remedy: "set either value or valueFrom, and in valueFrom exactly one source",
		Holds: "object.spec.?env.orValue([]).all(e, !has(e.valueFrom) || (e.?value.orValue('') == '' && size(e.valueFrom) == 1))",
		job: variables(func(_ *run, e *corev1.EnvVar) bool {
			return e.ValueFrom != nil && (e.Value != "" || sources(e.ValueFrom) != 1)
		}),
	},
	{
		ID: "variable-open", Field: "spec.env", By: Policy,
		Refused: "valueFrom must not be used on a shared cluster, because every user of the cluster could read the value in Ray's store",
		Remedy:  "use clusterTemplate, or set the variable in the cluster's pods",
		Holds:   "has(object.spec.clusterTemplate) || object.spec.?env.orValue([]).all(e, !has(e.valueFrom))",
		job:     variables(func(r *run, e *corev1.EnvVar) bool { return r.cluster == nil && e.ValueFrom != nil }),
	},
	{
		ID: "variable-expanded", Field: "spec.env", By: Policy,
		Refused: "a value in env must not contain $NAME or ${...}, because Ray would replace it",
		Remedy: "set the variable in env_vars of runtimeEnv if Ray may replace it; for the text itself, use valueFrom with clusterTemplate, " +
			"or a file",
		Holds: "object.spec.?env.orValue([]).all(e, !e.?value.orValue('').matches('" + expanded.String() + "'))",
		job:   variables(func(_ *run, e *corev1.EnvVar) bool { return expanded.MatchString(e.Value) }),
	},
	{
		ID: "variable-twice", Field: "spec.env, spec.runtimeEnv.env_vars", By: Policy,
		Refused: "a variable must not be both in env and in env_vars of runtimeEnv", Remedy: "keep one of the two",
		Holds: "object.spec.?env.orValue([]).all(e, !(e.name in variables.vars))",
		job: variables(func(r *run, e *corev1.EnvVar) bool {
			_, there := r.vars[e.Name]
			return there
		}),
	},
	{
		ID: "variable-in-template", Field: "spec.env", By: Policy,
		Refused: "a variable with valueFrom must not be in clusterTemplate too, because it becomes a variable of the pods", Remedy: "keep one of the two",
		Holds: "object.spec.?env.orValue([]).all(e, !has(e.valueFrom) || !(variables.cluster.?podDefaults.?env.orValue([]).exists(p, p.name == e.name) || " +
			"variables.nodes.exists(n, n.ray.?env.orValue([]).exists(p, p.name == e.name))))",
		job: variables(func(r *run, e *corev1.EnvVar) bool { return e.ValueFrom != nil && r.inTemplate(e.Name) }),
	},
	{
		ID: "variable-room", Field: "spec.env", By: Policy,
		Refused: "clusterTemplate.spec.podDefaults.env must not have more than 256 variables, including those with valueFrom of env", Remedy: "remove some",
		Holds: "object.spec.?env.orValue([]).filter(e, has(e.valueFrom)).size() + size(variables.cluster.?podDefaults.?env.orValue([])) <= 256",
		job: func(r *run, bad report) {
			plain := func(e corev1.EnvVar) bool { return e.ValueFrom == nil }
			size := len(slices.DeleteFunc(slices.Clone(r.spec.Env), plain))
			if r.cluster != nil && r.cluster.Spec.PodDefaults != nil {
				size += len(r.cluster.Spec.PodDefaults.Env)
			}
			if size > mostVariables {
				bad.at(specPath.Child("env"), size)
			}
		},
	},
}
