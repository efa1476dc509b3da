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

// cronRules are about a RayCronJob beside its jobs.
var cronRules = []Rule{
	{
		Kind: kindCron, Path: "spec.schedule", To: "schedule", Verdict: Kept,
		Text: "@every is refused: it has no times of its own. A time of day that a change of clocks skips or repeats comes once.",
	},
	{Kind: kindCron, Path: "spec.timeZone", To: "timeZone", Verdict: Kept, Text: "The default is UTC."},
	{Kind: kindCron, Path: "spec.suspend", To: "suspend", Verdict: Kept},
	{
		Kind: kindCron, Path: "spec.jobTemplate", To: "jobTemplate.spec", Verdict: Kept, Whole: true,
		Text: "As the spec of a RayJob, with a row for each of its fields that is not kept. Of jobs that have ended, " +
			"successfulJobsHistoryLimit and failedJobsHistoryLimit keep the latest.",
	},
}

// serviceRules are about a RayService beside its cluster.
var serviceRules = []Rule{
	{
		Kind: kindService, Path: "spec.serveConfigV2", To: "serveConfig", Verdict: Kept,
		Text: "As an object in place of a text.",
	},
	{
		Kind: kindService, Path: "spec.serveService", To: "service", Verdict: Kept, Whole: true,
		Text: "Type, labels, annotations, port and what leads to the Service are taken. Its name is the " +
			"ClusterService's; --aliases adds NAME-serve-svc.",
	},
	{
		Kind: kindService, Path: "spec.upgradeStrategy.type", To: "upgradeStrategy.type", Verdict: Kept,
		Text: "NewCluster becomes Surge in one step, NewClusterWithIncrementalUpgrade Surge in steps, None stays.",
	},
	{
		Kind: kindService, Path: "spec.upgradeStrategy.clusterUpgradeOptions.maxSurgePercent", To: "upgradeStrategy.surge.maxSurgePercent", Verdict: Kept,
		Text: "0 becomes 1.",
	},
	{
		Kind: kindService, Path: "spec.upgradeStrategy.clusterUpgradeOptions.stepSizePercent", To: "upgradeStrategy.surge.stepPercent", Verdict: Kept,
		Text: "0 becomes 1.",
	},
	{Kind: kindService, Path: "spec.upgradeStrategy.clusterUpgradeOptions.intervalSeconds",
		To: "upgradeStrategy.surge.intervalSeconds", Verdict: Kept},
	{
		Kind: kindService, Path: "spec.upgradeStrategy.clusterUpgradeOptions.gatewayClassName", Verdict: Dropped, Differs: true,
		Text: "No Gateway is made: a step is a number of endpoints. Name a Gateway in upgradeStrategy.gateway.parentRef for " +
			"exact percentages.",
	},
	{
		Kind: kindService, Path: "spec.rayClusterDeletionDelaySeconds", To: "upgradeStrategy.retireAfterSeconds", Verdict: Kept,
		Text: "A day at most.",
	},
	{
		Kind: kindService, Path: "spec.excludeHeadPodFromServeSvc", To: "service.headEndpoints", Verdict: Kept,
		Text: "Where it is false, headEndpoints is true. A cluster without workers always serves by its head.",
	},
	{Kind: kindService, Path: "spec.suspend", To: "suspend", Verdict: Kept},
	{
		Kind: kindService, Path: "spec.managedBy", To: "managedBy", Verdict: Kept,
		Text: "ray.io/kuberay-operator becomes the default; kueue.x-k8s.io/multikueue stays.",
	},
	{
		Kind: kindService, Path: "spec.serviceUnhealthySecondThreshold", Verdict: Dropped,
		Text: "It has no effect in KubeRay either; see upgradeStrategy.healthyDeadlineSeconds.",
	},
	{
		Kind: kindService, Path: "spec.deploymentUnhealthySecondThreshold", Verdict: Dropped,
		Text: "It has no effect in KubeRay either; see upgradeStrategy.healthyDeadlineSeconds.",
	},
}
