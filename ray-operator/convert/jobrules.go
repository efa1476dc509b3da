package convert

// jobRules are about a RayJob beside its cluster.
var jobRules = []Rule{
	{Kind: kindJob, Path: "spec.entrypoint", To: "entrypoint", Verdict: Kept},
	{
		Kind: kindJob, Path: "spec.clusterSelector", To: "clusterRef", Verdict: Kept, Whole: true,
		Text: "By ray.io/cluster alone, the name of one cluster. Another label is refused: name the cluster.",
	},
	{
		Kind: kindJob, Path: "spec.runtimeEnvYAML", To: "runtimeEnv", Verdict: Kept,
		Text: "As an object in place of a text.",
	},
	{Kind: kindJob, Path: "spec.metadata", To: "metadata", Verdict: Kept, Whole: true},
	{
		Kind: kindJob, Path: "spec.jobId", Verdict: Refused,
		Text: "Each attempt has a submission ID of its own. Leave it out, and find runs by the job's name or by " +
			"metadata.",
	},
	{
		Kind: kindJob, Path: "spec.submissionMode", Verdict: Dropped,
		Text: "The operator submits the job itself, once. InteractiveMode is refused: make a ComputeCluster with " +
			"idlePolicy Delete, and submit to it.",
	},
	{
		Kind: kindJob, Path: "spec.submitterPodTemplate", Verdict: Dropped, Whole: true,
		Text: "No pod submits the job; what it does beside that belongs into the entrypoint.",
	},
	{
		Kind: kindJob, Path: "spec.submitterConfig.backoffLimit", Verdict: Dropped,
		Text: "No pod submits the job, so that none is started again. retry is about the job itself.",
	},
	{Kind: kindJob, Path: "spec.entrypointNumCpus", To: "entrypointResources[CPU]", Verdict: Kept},
	{Kind: kindJob, Path: "spec.entrypointNumGpus", To: "entrypointResources[GPU]", Verdict: Kept},
	{
		Kind: kindJob, Path: "spec.entrypointResources", To: "entrypointResources", Verdict: Kept,
		Text: "As an object in place of a text.",
	},
	{
		Kind: kindJob, Path: "spec.backoffLimit", To: "retry.limit", Verdict: Kept,
		Text: "With scope Cluster: each retry has a new cluster. A pause of 10 s, which doubles, comes before each.",
	},
	{
		Kind: kindJob, Path: "spec.activeDeadlineSeconds", To: "activeDeadlineSeconds", Verdict: Changed, Differs: true,
		Text: "The time counts from when the job runs, not from its creation. With backoffLimit it is " +
			"retry.attemptDeadlineSeconds, of each attempt.",
	},
	{Kind: kindJob, Path: "spec.preRunningDeadlineSeconds", To: "startDeadlineSeconds", Verdict: Kept},
	{
		Kind: kindJob, Path: "spec.shutdownAfterJobFinishes", To: "cleanup", Verdict: Kept,
		Text: "Where it is false and no deletionStrategy says more, the cluster is kept for a year at most.",
	},
	{
		Kind: kindJob, Path: "spec.ttlSecondsAfterFinished", To: "cleanup[].afterSeconds", Verdict: Kept,
		Text: "It delays what cleanup does. It is not the field of that name here, which deletes the ClusterJob.",
	},
	{
		Kind: kindJob, Path: "spec.deletionStrategy.deletionRules[].policy", To: "cleanup[].action", Verdict: Kept,
		Text: "DeleteSelf becomes ttlSecondsAfterFinished, which does not ask for the outcome.",
	},
	{Kind: kindJob, Path: "spec.deletionStrategy.deletionRules[].condition.jobStatus", To: "cleanup[].outcome",
		Verdict: Kept},
	{
		Kind: kindJob, Path: "spec.deletionStrategy.deletionRules[].condition.jobDeploymentStatus", To: "cleanup[].outcome", Verdict: Kept,
		Text: "Failed becomes Failure, which has all that is no success.",
	},
	{Kind: kindJob, Path: "spec.deletionStrategy.deletionRules[].condition.ttlSeconds", To: "cleanup[].afterSeconds",
		Verdict: Kept},
	{
		Kind: kindJob, Path: "spec.deletionStrategy.onSuccess.policy", To: "cleanup", Verdict: Kept,
		Text: "As a rule of deletionRules.",
	},
	{
		Kind: kindJob, Path: "spec.deletionStrategy.onFailure.policy", To: "cleanup", Verdict: Kept,
		Text: "As a rule of deletionRules.",
	},
	{Kind: kindJob, Path: "spec.suspend", To: "suspend", Verdict: Kept},
	{
		Kind: kindJob, Path: "spec.managedBy", To: "managedBy", Verdict: Kept,
		Text: "ray.io/kuberay-operator becomes the default; kueue.x-k8s.io/multikueue stays.",
	},
}
