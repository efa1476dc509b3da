package validate

import (
	"encoding/json"
	"slices"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

var (
	ownOfJobs = slices.Concat(jobSchemaRules, jobExpressions, jobRules, commandRules, runtimeEnvRules, variableRules, gangRules, tuneRules, placementRules, homeRules, cleanupRules)
	allOfJobs = slices.Concat(all, ownOfJobs)
)

// JobRules are the rules about a job beside Rules, which hold for the cluster that it
// describes, and of which some are asked of the rest of a job too.
func JobRules() []Rule { return slices.Clone(ownOfJobs) }

// Job returns all that is wrong with a job, but for what the CRD alone refuses. The cluster of its own is refused where the
// ComputeCluster would be, with the same words.
func Job(job *v1beta1.ClusterJob) Findings {
	var found Findings
	r := runOf(job)
	for i := range allOfJobs {
		bad := report{rule: &allOfJobs[i], found: &found}
		if bad.rule.job != nil {
			bad.rule.job(r, bad)
		}
		bad.rule.askHome(&r.home, bad)
	}
	return found
}

// JobUpdate returns all that is wrong with a change of a job: what is wrong with its new
// state, and what cannot be changed. Both have what the API server fills in.
func JobUpdate(before, after *v1beta1.ClusterJob) Findings {
	found := Job(after)
	was, is := runOf(before), runOf(after)
	for i := range allOfJobs {
		bad := report{rule: &allOfJobs[i], found: &found}
		if bad.rule.jobChange != nil {
			bad.rule.jobChange(was, is, bad)
		}
	}
	return found
}

// run is a job with what most of its rules ask of it at hand.
type run struct {
	job  *v1beta1.ClusterJob
	spec *v1beta1.ClusterJobSpec
	home
	// runtimeEnv is as JSON has it, nil where it is none or no object. vars are its env_vars, nil where they are no object.
	runtimeEnv map[string]any
	vars       map[string]any
}

func runOf(job *v1beta1.ClusterJob) *run {
	r := &run{job: job, spec: &job.Spec, home: homeOf(job.Spec.ClusterTemplate)}
	if raw := job.Spec.RuntimeEnv; raw != nil && len(raw.Raw) > 0 {
		if json.Unmarshal(raw.Raw, &r.runtimeEnv) != nil {
			r.runtimeEnv = nil
		}
		r.vars, _ = r.runtimeEnv["env_vars"].(map[string]any)
	}
	return r
}

var specPath = field.NewPath("spec")

// jobRules are about the job as a whole.
var jobRules = []Rule{
	{
		ID: "job-fixed", Field: "spec." + joined(runFields, ", spec."), By: Policy,
		Refused: "fields that define the run are immutable", Remedy: "suspend the job and change it before it resumes, or create a new one",
		Holds: "oldObject == null || object.spec.?suspend.orValue(false) || oldObject.spec.?suspend.orValue(false) || " +
			unchanged(runFields),
		jobChange: func(before, after *run, bad report) {
			if ptr.Deref(before.spec.Suspend, false) || ptr.Deref(after.spec.Suspend, false) {
				return
			}
			for _, name := range changed(before.spec, after.spec, runFields) {
				bad.at(specPath.Child(name), nil)
			}
		},
	},
	{
		ID: "job-ended", Field: "spec." + joined(endedFields, ", spec."), By: Policy,
		Refused: "a job that has ended never runs again, and this field has no effect on it", Remedy: "create a new job",
		Holds: "oldObject == null || !oldObject.?status.?endTime.hasValue() || " +
			unchanged(endedFields),
		jobChange: func(before, after *run, bad report) {
			if before.job.Status.EndTime == nil {
				return
			}
			for _, name := range changed(before.spec, after.spec, endedFields) {
				bad.at(specPath.Child(name), nil)
			}
		},
	},
}

// given is a number, or what the API server fills in where there is none.
func given(value *int32, otherwise int32) int32 {
	if value == nil {
		return otherwise
	}
	return *value
}

// eachVariable visits the variables of a job, of the roles of its gang and of its runtime environment with their places.
func (r *run) eachVariable(visit func(path *field.Path, name string)) {
	for _, p := range r.programs() {
		for i := range p.env {
			visit(p.path.Child("env").Index(i), p.env[i].Name)
		}
	}
	for _, name := range sorted(r.vars) {
		visit(specPath.Child("runtimeEnv", "env_vars").Key(name), name)
	}
}

// variables reports the entries of env that are wrong.
func variables(wrong func(r *run, e *corev1.EnvVar) bool) func(*run, report) {
	return func(r *run, bad report) {
		each(bad, specPath, "env", r.spec.Env, func(e *corev1.EnvVar) bool { return wrong(r, e) })
	}
}
