package convert

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

const onePodText = "A trial's Job is one pod here."

// batchRules are about a Job of Kubernetes in a template of trials.
var batchRules = []Rule{
	{
		Kind: kindBatch, Path: "spec.template", To: "clusterTemplate.spec.workerGroups[].template", Verdict: Kept, Whole: true,
		Text: "primaryContainerName of the Experiment says which container runs the program. " + gangTemplateText,
	},
	{
		Kind: kindBatch, Path: "spec.backoffLimit", To: "gang.maxRestarts", Verdict: Kept,
		Text: "A program that fails starts again within its trial, as often. Without it that number is 6, as in a Job.",
	},
	{Kind: kindBatch, Path: "spec.activeDeadlineSeconds", To: "tune.trialDeadlineSeconds", Verdict: Changed, Differs: true, Text: deadlineText},
	{Kind: kindBatch, Path: "spec.ttlSecondsAfterFinished", Verdict: Dropped, Text: "Trials are no objects, and go with their job."},
	{Kind: kindBatch, Path: "spec.suspend", Verdict: Dropped, Text: "A trial cannot be suspended. Suspend the job."},
	{Kind: kindBatch, Path: "spec.parallelism", To: "gang.roles[].replicas", Verdict: Kept, Text: "1, and more is refused. Use a kind with roles for more."},
	{Kind: kindBatch, Path: "spec.completions", To: "gang.roles[].replicas", Verdict: Kept, Text: "1, and more is refused."},
	{Kind: kindBatch, Path: "spec.managedBy", Verdict: Dropped, Text: "Trials are no objects."},
	{Kind: kindBatch, Path: "spec.backoffLimitPerIndex", Verdict: Dropped, Text: onePodText},
	{Kind: kindBatch, Path: "spec.completionMode", Verdict: Dropped, Text: onePodText},
	{Kind: kindBatch, Path: "spec.manualSelector", Verdict: Dropped, Text: onePodText},
	{Kind: kindBatch, Path: "spec.maxFailedIndexes", Verdict: Dropped, Text: onePodText},
	{
		Kind: kindBatch, Path: "spec.podFailurePolicy", Verdict: Dropped, Differs: true, Whole: true,
		Text: "Each failure starts the program again, up to maxRestarts times in a trial.",
	},
	{Kind: kindBatch, Path: "spec.podReplacementPolicy", Verdict: Dropped, Text: onePodText},
	{Kind: kindBatch, Path: "spec.selector", Verdict: Dropped, Whole: true, Text: onePodText},
	{Kind: kindBatch, Path: "spec.successPolicy", Verdict: Dropped, Whole: true, Text: onePodText},
}

// batchJob converts a Job of Kubernetes in a template of trials: one process of a gang.
func batchJob(c *conversion, spec *batchJobSpec) runtime.Object {
	for _, one := range []struct {
		path  string
		given *int32
	}{{"spec.parallelism", spec.Parallelism}, {"spec.completions", spec.Completions}} {
		if one.given != nil && *one.given > 1 {
			c.refuse(one.path, "a trial of several pods needs roles; use a PyTorchJob or another kind with roles, or write 1")
		}
	}
	g := c.newGangJob(v1beta1.FrameworkGeneric)
	container := ""
	if c.trial != nil {
		container = c.trial.container
	}
	spec.Template.Spec.RestartPolicy = "" // a Job starts the program again by backoffLimit, whatever it is
	g.takeRoles([]roleSource{{
		name: "worker", alias: "worker", at: "spec", templateAt: "spec.template", template: spec.Template.PodTemplateSpec, container: container,
		replicas: 1, restart: restartOnFailure, restartAt: "spec.template",
	}})
	g.spec.ActiveDeadlineSeconds = atMostAYear(spec.ActiveDeadlineSeconds)
	g.takeRestarts(spec.BackoffLimit, "spec.backoffLimit", restartOnFailure, restartsOfJob)
	return g.finished()
}
