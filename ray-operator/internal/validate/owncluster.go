package validate

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
)

// cleanups reports the rules of a job's cleanup that do not go with another one.
func cleanups(wrong func(rule, other *v1alpha1.CleanupRule) bool) func(*run, report) {
	return func(r *run, bad report) {
		rules := r.spec.Cleanup
		for i := range rules {
			for j := range rules {
				if i != j && wrong(&rules[i], &rules[j]) {
					bad.at(specPath.Child("cleanup").Index(i), nil)
					break
				}
			}
		}
	}
}

// inTemplateSpec reports a field of a job's cluster that is wrong for a job.
func inTemplateSpec(child string, wrong func(spec *v1alpha1.ComputeClusterSpec) bool) func(*run, report) {
	return func(r *run, bad report) {
		if r.cluster != nil && wrong(&r.cluster.Spec) {
			bad.at(below(templateSpec, child), nil)
		}
	}
}

var (
	templatePath = field.NewPath("spec", "clusterTemplate")
	templateMeta = templatePath.Child("metadata")
	templateSpec = templatePath.Child("spec")
)

// Expressions for the labels and annotations that a job's cluster gets.
const (
	ofTemplateLabels      = "object.spec.?clusterTemplate.?metadata.?labels.orValue({})"
	ofTemplateAnnotations = "object.spec.?clusterTemplate.?metadata.?annotations.orValue({})"
)

// ownClusterRules are about the cluster of a job's own, beside what holds for every cluster.
var ownClusterRules = []Rule{
	{
		ID: "own-cluster-metadata", Field: "spec.clusterTemplate.metadata.labels, spec.clusterTemplate.metadata.annotations", By: Expression,
		Refused: "the prefix heliostat.dev is the operator's own", Remedy: chooseOther,
		job: func(r *run, bad report) {
			keys(bad, templateMeta, "labels", r.ownMetadata().Labels, isOwnAnnotation)
			keys(bad, templateMeta, "annotations", r.ownMetadata().Annotations, isOwnAnnotation)
		},
	},
	{
		ID: "own-cluster-labels", Field: "spec.clusterTemplate.metadata.labels", By: Policy,
		Refused: labelGrammar, Remedy: "correct the key or the value", Holds: fmt.Sprintf(goodLabels, ofTemplateLabels),
		job: func(r *run, bad report) {
			labels := r.ownMetadata().Labels
			keys(bad, templateMeta, "labels", labels, badLabels(labels))
		},
	},
	{
		ID: "own-cluster-annotations", Field: "spec.clusterTemplate.metadata.annotations", By: Policy,
		Refused: "a key of an annotation must follow Kubernetes' grammar", Remedy: "use letters, digits, '-', '_' and '.', at most 63, with an optional DNS prefix and '/'",
		Holds: fmt.Sprintf(goodAnnotations, ofTemplateAnnotations),
		job: func(r *run, bad report) {
			keys(bad, templateMeta, "annotations", r.ownMetadata().Annotations, badAnnotation)
		},
	},
	{
		ID: "own-cluster-suspend", Field: "spec.clusterTemplate.spec.suspend", By: Expression,
		Refused: "a suspended cluster would never run its job", Remedy: "suspend the job with spec.suspend",
		job: inTemplateSpec("suspend", func(s *v1alpha1.ComputeClusterSpec) bool { return s.Suspend }),
	},
	{
		ID: "own-cluster-managed-by", Field: "spec.clusterTemplate.spec.managedBy", By: Expression,
		Refused: "who looks after a job looks after its cluster", Remedy: "set spec.managedBy of the job, and leave this out",
		job: inTemplateSpec("managedBy", func(s *v1alpha1.ComputeClusterSpec) bool {
			return s.ManagedBy != "" && s.ManagedBy != v1alpha1.ManagedByOperator
		}),
	},
	{
		ID: "own-cluster-idle", Field: "spec.clusterTemplate.spec.idlePolicy", By: Expression,
		Refused: "the cluster of a job goes by the job's cleanup", Remedy: "leave idlePolicy out, or use action None",
		job: inTemplateSpec("idlePolicy", func(s *v1alpha1.ComputeClusterSpec) bool {
			return s.IdlePolicy != nil && s.IdlePolicy.Action != "" && s.IdlePolicy.Action != v1alpha1.IdleNone
		}),
	},
	{
		ID: "cleanup-own", Field: "spec.cleanup", By: Expression,
		Refused: "a job cleans up only a cluster of its own", Remedy: "leave cleanup out, or use clusterTemplate",
		job: func(r *run, bad report) {
			if len(r.spec.Cleanup) > 0 && r.cluster == nil {
				bad.at(specPath.Child("cleanup"), nil)
			}
		},
	},
	{
		ID: "cleanup-twice", Field: "spec.cleanup", By: Expression,
		Refused: "two rules say when the same goes after the same outcome", Remedy: "keep one of them",
		job: cleanups(func(rule, other *v1alpha1.CleanupRule) bool {
			return rule.Outcome == other.Outcome && rule.Action == other.Action
		}),
	},
	{
		ID: "cleanup-order", Field: "spec.cleanup", By: Expression,
		Refused: "DeleteWorkers comes after DeleteCluster or with it, and so has nothing to do", Remedy: "lower its afterSeconds or take it out",
		job: cleanups(func(rule, other *v1alpha1.CleanupRule) bool {
			return rule.Action == v1alpha1.CleanupDeleteWorkers && other.Action == v1alpha1.CleanupDeleteCluster &&
				rule.Outcome == other.Outcome && rule.AfterSeconds >= other.AfterSeconds
		}),
	},
	{
		ID: "cleanup-workers", Field: "spec.cleanup", By: Policy,
		Refused: "the cluster has no workers that DeleteWorkers could take away", Remedy: "use DeleteCluster",
		Holds: "!has(object.spec.clusterTemplate) || size(variables.cluster.?workerGroups.orValue([])) > 0 || " +
			"object.spec.?cleanup.orValue([]).all(c, c.action != 'DeleteWorkers')",
		job: func(r *run, bad report) {
			has := slices.ContainsFunc(r.spec.Cleanup, func(c v1alpha1.CleanupRule) bool { return c.Action == v1alpha1.CleanupDeleteWorkers })
			if has && r.cluster != nil && len(r.cluster.Spec.WorkerGroups) == 0 {
				bad.at(specPath.Child("cleanup"), nil)
			}
		},
	},
}
