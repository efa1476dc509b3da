package convert

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
