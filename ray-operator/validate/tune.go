package validate

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// words matches the words of a parameter's name. A capital letter behind a small letter or a digit begins one.
var words = regexp.MustCompile(`[A-Z]+[a-z0-9]*|[a-z0-9]+`)

// systemVariables are those by which programs and Python itself find their way. A parameter of such a name would break them.
var systemVariables = []string{
	"CUDA_VISIBLE_DEVICES", "HOME", "HOSTNAME", "LANG", "LD_LIBRARY_PATH", "LD_PRELOAD", "LOGNAME", "OMP_NUM_THREADS", "PATH", "PWD", "PYTHONHOME",
	"PYTHONPATH", "PYTHONUNBUFFERED", "SHELL", "TMPDIR", "USER", "VIRTUAL_ENV",
}

// rayPrefix is that of Ray's own variables.
const rayPrefix = "RAY_"

// TrialReference is the reference to the number of a trial, which no parameter may have as its name.
const TrialReference = "trial"

// ParameterVariable returns the name of the variable that has the value of a parameter.
func ParameterVariable(name string) string {
	return strings.ToUpper(strings.Join(words.FindAllString(name, -1), "_"))
}

// parameters returns those of the job's trials, none for a job without.
func (r *run) parameters() []v1beta1.TuneParameter {
	if r.spec.Tune == nil {
		return nil
	}
	return r.spec.Tune.Parameters
}

// isTaken reports whether the gang of a trial, the system, Ray or the operator sets a variable.
func (r *run) isTaken(variable string) bool {
	framework := v1beta1.FrameworkGeneric
	if r.spec.Gang != nil {
		framework = r.spec.Gang.Framework
	}
	return slices.Contains(GangVariables(framework), variable) || slices.Contains(systemVariables, variable) || slices.Contains(jobVariables, variable) ||
		strings.HasPrefix(variable, ownVariablePrefix) || strings.HasPrefix(variable, rayPrefix)
}

// isParameter reports whether a reference is one to a parameter, or to the number of the trial.
func (r *run) isParameter(text string) bool {
	name, is := strings.CutPrefix(strings.TrimSuffix(text, ")"), "$(tune.")
	return is && r.spec.Tune != nil && (name == TrialReference ||
		slices.ContainsFunc(r.spec.Tune.Parameters, func(p v1beta1.TuneParameter) bool { return p.Name == name }))
}

// isParameterReference is the counterpart of isParameter, for what m stands for.
const isParameterReference = "has(variables.job.tune) && m.startsWith('$(tune.') && [m.substring(7, size(m) - 1)].all(f, " +
	"f == '" + TrialReference + "' || variables.job.tune.parameters.exists(p, p.name == f))"

// tunePolicyVariables are those that expressions about trials name: the variables of parameters.
func tunePolicyVariables() []Variable {
	return []Variable{
		{Name: "parameterVariables", Expression: "variables.job.?tune.?parameters.orValue([]).map(p, p.name.findAll('" + words.String() + "').join('_').upperAscii())"},
	}
}

var parametersPath = specPath.Child("tune", "parameters")

// tuneRules are about trials, beside those of the CRD.
var tuneRules = []Rule{
	{
		ID: "parameter-variable", Field: "spec.tune.parameters[*].name", By: Policy,
		Refused: "the variable of a parameter is one that the gang, the system, Ray or the operator sets", Remedy: "choose another name",
		Holds: "variables.parameterVariables.all(v, !(v in (has(variables.job.gang) ? variables.taken : " +
			list(GangVariables(v1beta1.FrameworkGeneric)) + ")) && !(v in " + list(slices.Concat(systemVariables, jobVariables)) + ") && !v.startsWith('" +
			ownVariablePrefix + "') && !v.startsWith('" + rayPrefix + "'))",
		job: eachParameter(func(r *run, at *field.Path, bad report, variable string) {
			if r.isTaken(variable) {
				bad.at(at, variable)
			}
		}),
	},
	{
		ID: "parameter-variable-twice", Field: "spec.tune.parameters[*].name", By: Policy,
		Refused: "two parameters must not have the same variable, whose name is the words of theirs in capitals", Remedy: "rename one of them",
		Holds: "variables.parameterVariables.all(v, variables.parameterVariables.indexOf(v) == variables.parameterVariables.lastIndexOf(v))",
		job: func(r *run, bad report) {
			seen := map[string]bool{}
			eachParameter(func(_ *run, at *field.Path, bad report, variable string) {
				if seen[variable] {
					bad.at(at, variable)
				}
				seen[variable] = true
			})(r, bad)
		},
	},
	{
		ID: "tune-storage-shared", Field: "spec.tune.storage", By: Policy,
		Refused: "with clusterTemplate and retry, storage must be on a shared volume of the cluster that can be written to, or the next cluster would not have it",
		Remedy:  "add one to clusterTemplate.spec.sharedVolumes, and give a path below its mountPath",
		Holds: "!has(object.spec.clusterTemplate) || !has(object.spec.retry) || !has(variables.job.tune) || !has(variables.job.tune.storage) || " +
			"[variables.job.tune.storage].all(s, " + sharedVolumes + ".exists(v, !v.?readOnly.orValue(false) && (s == v.mountPath || s.startsWith(v.mountPath + '/'))))",
		job: func(r *run, bad report) {
			if r.cluster != nil && r.spec.Retry != nil && r.spec.Tune != nil && r.spec.Tune.Storage != "" && !r.isShared(r.spec.Tune.Storage) {
				bad.at(specPath.Child("tune", "storage"), r.spec.Tune.Storage)
			}
		},
	},
}

// isShared reports whether a path is on a volume that every pod of the job's own cluster can write to.
func (r *run) isShared(path string) bool {
	return slices.ContainsFunc(r.cluster.Spec.SharedVolumes, func(v v1beta1.SharedVolume) bool {
		return !ptr.Deref(v.ReadOnly, false) && (path == v.MountPath || strings.HasPrefix(path, v.MountPath+"/"))
	})
}

// eachParameter returns a check that visits the variable of each parameter.
func eachParameter(visit func(r *run, at *field.Path, bad report, variable string)) func(*run, report) {
	return func(r *run, bad report) {
		for i, p := range r.parameters() {
			visit(r, parametersPath.Index(i).Child("name"), bad, ParameterVariable(p.Name))
		}
	}
}
