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
	ownOfJobs = slices.Concat(jobRules, commandRules, runtimeEnvRules, variableRules, placementRules, homeRules, cleanupRules)
	allOfJobs = slices.Concat(all, ownOfJobs)
)

// JobRules are the rules about a job beside Rules, which hold for the cluster that it
// describes, and of which some are asked of the rest of a job too.
func JobRules() []Rule { return slices.Clone(ownOfJobs) }

// Job returns all that is wrong with a job. The cluster of its own is refused where the
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
// state, and what cannot be changed. What the API server fills in counts as given.
func JobUpdate(before, after *v1beta1.ClusterJob) Findings {
	found := Job(after)
	was, is := runOf(before), runOf(after)
	for i := range allOfJobs {
		bad := report{rule: &allOfJobs[i], found: &found}
		if bad.rule.jobChange != nil {
			bad.rule.jobChange(was, is, bad)
		}
		if bad.rule.change != nil && was.cluster != nil && is.cluster != nil {
			bad.above = aboveTemplate
			bad.rule.change(was.cluster, is.cluster, bad)
		}
	}
	return found
}

// run is a job with what most of its rules ask of it at hand.
type run struct {
	job  *v1beta1.ClusterJob
	spec *v1beta1.ClusterJobSpec
	home
	// runtimeEnv is as JSON has it, nil where it is none or no object; noObject tells of the
	// latter. vars are its env_vars, nil where they are no object.
	runtimeEnv map[string]any
	noObject   bool
	vars       map[string]any
}

func runOf(job *v1beta1.ClusterJob) *run {
	r := &run{job: job, spec: &job.Spec, home: homeOf(job.Spec.ClusterRef, job.Spec.ClusterTemplate)}
	if raw := job.Spec.RuntimeEnv; raw != nil && len(raw.Raw) > 0 {
		r.noObject = json.Unmarshal(raw.Raw, &r.runtimeEnv) != nil || r.runtimeEnv == nil
		r.vars, _ = r.runtimeEnv["env_vars"].(map[string]any)
	}
	return r
}

var specPath = field.NewPath("spec")

func jobManagedBy(job *v1beta1.ClusterJob) string {
	if job.Spec.ManagedBy == "" {
		return v1beta1.ManagedByOperator
	}
	return job.Spec.ManagedBy
}

// maxJob is the longest name of a job: a label's value.
const maxJob = 63

// jobRules are about the job as a whole.
var jobRules = []Rule{
	{
		ID: "job-name", Field: "metadata.name", By: Expression,
		Refused: "metadata.name must be a DNS-1035 label of at most 63 characters: lower-case letters, digits and '-', starting with a letter",
		Remedy:  "choose a shorter or simpler name",
		job: func(r *run, bad report) {
			if !label.MatchString(r.job.Name) || len(r.job.Name) > maxJob {
				bad.at(field.NewPath("metadata", "name"), r.job.Name)
			}
		},
	},
	{
		ID: "job-where", Field: "spec", By: Expression,
		Refused: "a job must run either on an existing cluster or on its own", Remedy: "set exactly one of clusterRef and clusterTemplate",
		job: func(r *run, bad report) {
			if (r.spec.ClusterRef != nil) == (r.spec.ClusterTemplate != nil) {
				bad.at(specPath, nil)
			}
		},
	},
	{
		ID: "job-managed-by-fixed", Field: "spec.managedBy", By: Expression,
		Refused: "managedBy is immutable", Remedy: "create a new job",
		jobChange: func(before, after *run, bad report) {
			if jobManagedBy(before.job) != jobManagedBy(after.job) {
				bad.at(specPath.Child("managedBy"), after.spec.ManagedBy)
			}
		},
	},
	{
		ID: "job-fixed", Field: "spec." + joined(runFields, ", spec."), By: Policy,
		Refused: "fields that define the run are immutable", Remedy: "suspend the job and change it before it resumes, or create a new one",
		Holds: "oldObject == null || object.spec.?suspend.orValue(false) || oldObject.spec.?suspend.orValue(false) || " +
			list(runFields) + ".all(f, object.spec[?f] == oldObject.spec[?f])",
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
			list(endedFields) + ".all(f, object.spec[?f] == oldObject.spec[?f])",
		jobChange: func(before, after *run, bad report) {
			if before.job.Status.EndTime == nil {
				return
			}
			for _, name := range changed(before.spec, after.spec, endedFields) {
				bad.at(specPath.Child(name), nil)
			}
		},
	},
	{
		ID: "retry-scope", Field: "spec.retry.scope", By: Expression,
		Refused: "scope Cluster must be used with clusterTemplate only", Remedy: "use scope Driver, or clusterTemplate",
		job: func(r *run, bad report) {
			if retry := r.spec.Retry; retry != nil && retry.Scope == v1beta1.RetryCluster && r.cluster == nil {
				bad.at(specPath.Child("retry", "scope"), nil)
			}
		},
	},
	{
		ID: "retry-backoff", Field: "spec.retry.backoffSeconds", By: Expression,
		Refused: "backoffSeconds (default 10) must not be above maxBackoffSeconds (default 360)", Remedy: "lower it or raise the other",
		job: func(r *run, bad report) {
			if retry := r.spec.Retry; retry != nil && given(retry.BackoffSeconds, 10) > given(retry.MaxBackoffSeconds, 360) {
				bad.at(specPath.Child("retry", "backoffSeconds"), given(retry.BackoffSeconds, 10))
			}
		},
	},
	{
		ID: "retry-exit-codes", Field: "spec.retry.onExitCodes", By: Expression,
		Refused: "exit codes must be either those that are retried or those that are not", Remedy: "set exactly one of in and notIn",
		job: func(r *run, bad report) {
			if retry := r.spec.Retry; retry != nil && retry.OnExitCodes != nil && (len(retry.OnExitCodes.In) > 0) == (len(retry.OnExitCodes.NotIn) > 0) {
				bad.at(specPath.Child("retry", "onExitCodes"), nil)
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

// eachVariable visits the variables of a job and of its runtime environment with their places.
func (r *run) eachVariable(visit func(path *field.Path, name string)) {
	for i := range r.spec.Env {
		visit(specPath.Child("env").Index(i), r.spec.Env[i].Name)
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
