package validate

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// Bounds of a job's own fields that the CRD's schema states; those of its cluster are the
// ComputeCluster's.

const (
	mostSeconds = 31536000 // a year
	mostBackoff = 86400
	mostRetries = 1000
	mostCode    = 255
)

func longJobTexts(r *run, bad report) {
	text(bad, specPath, "entrypoint", r.spec.Entrypoint, maxLine)
	for i := range r.spec.Command {
		text(bad, specPath.Child("command").Index(i), "", r.spec.Command[i], maxLine)
	}
	text(bad, specPath, "managedBy", r.spec.ManagedBy, 63)
}

func longJobLists(r *run, bad report) {
	count(bad, specPath, "command", len(r.spec.Command), 1024)
	count(bad, specPath, "env", len(r.spec.Env), mostVariables)
	count(bad, specPath, "entrypointResources", len(r.spec.EntrypointResources), 64)
	count(bad, specPath, "entrypointLabelSelector", len(r.spec.EntrypointLabelSelector), 64)
	count(bad, specPath, "metadata", len(r.spec.Metadata), 64)
	count(bad, specPath, "cleanup", len(r.spec.Cleanup), 8)
	for _, codes := range r.exitCodes() {
		count(bad, codes.path, "", len(codes.list), mostCode)
	}
}

// codes are a list of exit codes and where it stands.
type codes struct {
	path *field.Path
	list []int32
}

func (r *run) exitCodes() []codes {
	if r.spec.Retry == nil || r.spec.Retry.OnExitCodes == nil {
		return nil
	}
	at := specPath.Child("retry", "onExitCodes")
	return []codes{{at.Child("in"), r.spec.Retry.OnExitCodes.In}, {at.Child("notIn"), r.spec.Retry.OnExitCodes.NotIn}}
}

func unknownJobWords(r *run, bad report) {
	if retry := r.spec.Retry; retry != nil {
		word(bad, specPath, "retry.scope", retry.Scope, v1beta1.RetryDriver, v1beta1.RetryCluster)
	}
	for i := range r.spec.Cleanup {
		rule, at := &r.spec.Cleanup[i], specPath.Child("cleanup").Index(i)
		oneOf(bad, at.Child("outcome"), rule.Outcome, v1beta1.OutcomeSuccess, v1beta1.OutcomeFailure)
		oneOf(bad, at.Child("action"), rule.Action, v1beta1.CleanupDeleteCluster, v1beta1.CleanupDeleteWorkers)
	}
}

// oneOf reports a value that is none of the known ones, where there is no default.
func oneOf[T ~string](bad report, path *field.Path, value T, known ...T) {
	if !slices.Contains(known, value) {
		bad.at(path, string(value))
	}
}

func jobOutOfBounds(r *run, bad report) {
	optional := func(child string, value *int32, allowed span) {
		if value != nil {
			within(bad, specPath, child, *value, allowed)
		}
	}
	optional("startDeadlineSeconds", r.spec.StartDeadlineSeconds, span{1, mostSeconds})
	optional("activeDeadlineSeconds", r.spec.ActiveDeadlineSeconds, span{1, mostSeconds})
	optional("ttlSecondsAfterFinished", r.spec.TTLSecondsAfterFinished, span{0, mostSeconds})
	if retry := r.spec.Retry; retry != nil {
		within(bad, specPath, "retry.limit", retry.Limit, span{0, mostRetries})
		optional("retry.infrastructureLimit", retry.InfrastructureLimit, span{0, mostRetries})
		optional("retry.backoffSeconds", retry.BackoffSeconds, span{0, mostBackoff})
		optional("retry.maxBackoffSeconds", retry.MaxBackoffSeconds, span{0, mostBackoff})
		optional("retry.attemptDeadlineSeconds", retry.AttemptDeadlineSeconds, span{1, mostSeconds})
	}
	for _, codes := range r.exitCodes() {
		for i, code := range codes.list {
			within(bad, codes.path.Index(i), "", code, span{1, mostCode})
		}
	}
	for i := range r.spec.Cleanup {
		within(bad, specPath.Child("cleanup").Index(i), "afterSeconds", r.spec.Cleanup[i].AfterSeconds, span{0, mostSeconds})
	}
}

func jobDuplicates(r *run, bad report) {
	twice(bad, specPath, "env", r.spec.Env, func(e *corev1.EnvVar) string { return e.Name })
	for _, codes := range r.exitCodes() {
		twice(bad, codes.path, "", codes.list, func(code *int32) string { return strconv.Itoa(int(*code)) })
	}
}
