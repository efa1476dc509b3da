package convert

import "slices"

const (
	pageText    = "No Service leads to the application's page. heliostat open job/NAME --port 4040 shows it."
	metricsText = "No exporter of Prometheus is added. Set spark.ui.prometheus.enabled in sparkConf for metrics on the application's page."
	pauseText   = "The pause grows from 0 to 60 s."
	podText     = "In the template of the role's worker group. With --onto it is dropped or refused, with a row."
	heapText    = "As an option of spark-submit. The pod has overhead, and what Ray and Spark's own process need, beside it."
)

// sparkRules are about SparkApplications.
var sparkRules = slices.Concat([]Rule{
	{
		Kind: kindSpark, Path: "spec.type", To: "command", Verdict: Kept,
		Text: "It says the default of the overhead alone: 40 % for Python and R, else 10 %, and at least 384 MiB.",
	},
	{Kind: kindSpark, Path: "spec.mode", Verdict: Dropped, Text: "The driver runs in the gang's place of that role."},
	{Kind: kindSpark, Path: "spec.sparkVersion", Verdict: Dropped, Text: "The image has Spark."},
	{Kind: kindSpark, Path: "spec.pythonVersion", Verdict: Dropped, Text: "The image has Python."},
	{Kind: kindSpark, Path: "spec.proxyUser", To: "command", Verdict: Kept},
	{Kind: kindSpark, Path: "spec.image", To: "clusterTemplate.spec.image", Verdict: Kept, Text: "It must hold Spark, Java and Ray. --image maps it."},
	{Kind: kindSpark, Path: "spec.imagePullPolicy", To: "clusterTemplate.spec.workerGroups[].template", Verdict: Kept, Text: podText},
	{Kind: kindSpark, Path: "spec.imagePullSecrets", To: "clusterTemplate.spec.podDefaults.imagePullSecrets", Verdict: Changed, Text: "The head pulls with them too."},
	{Kind: kindSpark, Path: "spec.mainClass", To: "command", Verdict: Kept, Text: "As --class of spark-submit."},
	{
		Kind: kindSpark, Path: "spec.mainApplicationFile", To: "command", Verdict: Kept,
		Text: "local:///app/a.jar becomes the path /app/a.jar. An address of a store is downloaded by spark-submit, as there.",
	},
	{Kind: kindSpark, Path: "spec.arguments", To: "command", Verdict: Kept},
	{
		Kind: kindSpark, Path: "spec.sparkConf", To: "command", Verdict: Kept, Whole: true,
		Text: "As --conf of spark-submit. Those that fields say, such as spark.executor.cores, count where the field is missing. " +
			"spark.kubernetes.*, spark.dynamicAllocation.*, the master, addresses, ports and authentication are dropped, each with a row.",
	},
	{Kind: kindSpark, Path: "spec.hadoopConf", To: "command", Verdict: Kept, Whole: true, Text: "As --conf spark.hadoop.KEY=VALUE of spark-submit."},
	{
		Kind: kindSpark, Path: "spec.sparkConfigMap", To: "clusterTemplate.spec.workerGroups[].template", Verdict: Kept,
		Text: "Mounted, with SPARK_CONF_DIR in the pods, over which the gang puts its settings. Refused with --onto.",
	},
	{
		Kind: kindSpark, Path: "spec.hadoopConfigMap", To: "clusterTemplate.spec.workerGroups[].template", Verdict: Kept,
		Text: "Mounted, with HADOOP_CONF_DIR in the pods. Refused with --onto.",
	},
	{
		Kind: kindSpark, Path: "spec.volumes", To: "clusterTemplate.spec.workerGroups[].template", Verdict: Kept, Whole: true,
		Text: "In the template of each role that mounts it. A claim that all pods mount becomes one of sharedVolumes.",
	},
	{Kind: kindSpark, Path: "spec.nodeSelector", To: "clusterTemplate.spec.workerGroups[].template", Verdict: Kept, Whole: true, Text: podText},
	{Kind: kindSpark, Path: "spec.deps.jars", To: "command", Verdict: Kept, Text: "As --jars of spark-submit."},
	{Kind: kindSpark, Path: "spec.deps.files", To: "command", Verdict: Kept, Text: "As --files."},
	{Kind: kindSpark, Path: "spec.deps.pyFiles", To: "command", Verdict: Kept, Text: "As --py-files."},
	{Kind: kindSpark, Path: "spec.deps.packages", To: "command", Verdict: Kept, Text: "As --packages."},
	{Kind: kindSpark, Path: "spec.deps.excludePackages", To: "command", Verdict: Kept, Text: "As --exclude-packages."},
	{Kind: kindSpark, Path: "spec.deps.repositories", To: "command", Verdict: Kept, Text: "As --repositories."},
	{Kind: kindSpark, Path: "spec.deps.archives", To: "command", Verdict: Kept, Text: "As --archives."},
	{
		Kind: kindSpark, Path: "spec.memoryOverheadFactor", To: "command", Verdict: Kept,
		Text: "As spark.driver.memoryOverheadFactor and spark.executor.memoryOverheadFactor, and in the size of pods.",
	},
	{
		Kind: kindSpark, Path: "spec.restartPolicy.type", To: "gang.maxRestarts", Verdict: Changed, Differs: true,
		Text: "OnFailure and Always start driver and executors again, and none after success. Lost nodes count apart (retry.infrastructureLimit).",
	},
	{Kind: kindSpark, Path: "spec.restartPolicy.onFailureRetries", To: "gang.maxRestarts", Verdict: Kept},
	{Kind: kindSpark, Path: "spec.restartPolicy.onFailureRetryInterval", Verdict: Dropped, Text: pauseText},
	{Kind: kindSpark, Path: "spec.restartPolicy.onSubmissionFailureRetries", Verdict: Dropped, Text: "A submission that fails is repeated until it succeeds."},
	{Kind: kindSpark, Path: "spec.restartPolicy.onSubmissionFailureRetryInterval", Verdict: Dropped, Text: "A submission that fails is repeated until it succeeds."},
	{Kind: kindSpark, Path: "spec.failureRetries", To: "gang.maxRestarts", Verdict: Kept, Text: "Where restartPolicy has no number."},
	{Kind: kindSpark, Path: "spec.retryInterval", Verdict: Dropped, Text: pauseText},
	{Kind: kindSpark, Path: "spec.timeToLiveSeconds", To: "ttlSecondsAfterFinished", Verdict: Kept, Text: ttlText},
	{Kind: kindSpark, Path: "spec.suspend", To: "suspend", Verdict: Kept, Text: "With Kueue's label it is dropped: Kueue set it."},
	{
		Kind: kindSpark, Path: "spec.dynamicAllocation.enabled", To: "gang.roles[].minReplicas", Verdict: Changed, Differs: true,
		Text: "The application starts with minExecutors, and more join as places appear, up to maxExecutors. None leaves before it ends.",
	},
	{Kind: kindSpark, Path: "spec.dynamicAllocation.minExecutors", To: "gang.roles[].minReplicas", Verdict: Kept, Text: "At least 1, if dynamicAllocation is enabled."},
	{Kind: kindSpark, Path: "spec.dynamicAllocation.maxExecutors", To: "gang.roles[].replicas", Verdict: Kept, Text: "If dynamicAllocation is enabled."},
	{Kind: kindSpark, Path: "spec.dynamicAllocation.initialExecutors", To: "gang.roles[].replicas", Verdict: Kept, Text: "Where there is no maxExecutors."},
	{Kind: kindSpark, Path: "spec.dynamicAllocation.shuffleTrackingEnabled", Verdict: Dropped, Text: "No executor leaves while blocks are needed."},
	{Kind: kindSpark, Path: "spec.dynamicAllocation.shuffleTrackingTimeout", Verdict: Dropped, Text: "No executor leaves while blocks are needed."},
	{
		Kind: kindSpark, Path: "spec.batchScheduler", To: "clusterTemplate.spec.scheduler.name", Verdict: Dropped,
		Text: "volcano and yunikorn are kept, for the job's own cluster. Another one is not needed: a gang is placed all or none.",
	},
	{
		Kind: kindSpark, Path: "spec.batchSchedulerOptions.queue", To: "clusterTemplate.spec.scheduler.queue", Verdict: Dropped, Differs: true,
		Text: "It is kept with volcano and yunikorn, for the job's own cluster.",
	},
	{
		Kind: kindSpark, Path: "spec.batchSchedulerOptions.priorityClassName", To: "clusterTemplate.spec.podDefaults.priorityClassName", Verdict: Kept,
		Text: "With --onto it is dropped, as the cluster's pods have a priority of their own.",
	},
	{Kind: kindSpark, Path: "spec.batchSchedulerOptions.resources", Verdict: Dropped, Whole: true, Text: podGroupText},
	{Kind: kindSpark, Path: "spec.monitoring", Verdict: Dropped, Differs: true, Whole: true, Text: metricsText},
	{Kind: kindSpark, Path: "spec.sparkUIOptions", Verdict: Dropped, Differs: true, Whole: true, Text: pageText},
	{Kind: kindSpark, Path: "spec.driverIngressOptions", Verdict: Dropped, Differs: true, Whole: true, Text: pageText},
	{
		Kind: kindSpark, Path: "spec.driverPodDisruptionBudget", Verdict: Dropped,
		Text: "The operator guards the pods of a cluster by a budget of its own.",
	},
	{Kind: kindSpark, Path: "spec.executor.instances", To: "gang.roles[].replicas", Verdict: Kept, Text: "1 is the default. dynamicAllocation says another number."},
	{Kind: kindSpark, Path: "spec.executor.deleteOnTermination", Verdict: Dropped, Text: "An executor has no pod of its own that could stay."},
	{Kind: kindSpark, Path: "spec.driver.podName", Verdict: Dropped, Text: "The operator names pods."},
	{Kind: kindSpark, Path: "spec.driver.kubernetesMaster", Verdict: Dropped, Text: "Spark makes no pods."},
	{Kind: kindSpark, Path: "spec.driver.serviceAnnotations", Verdict: Dropped, Whole: true, Text: "The driver has no Service. Executors get its address."},
	{Kind: kindSpark, Path: "spec.driver.serviceLabels", Verdict: Dropped, Whole: true, Text: "The driver has no Service. Executors get its address."},
}, sparkPodRules("driver"), sparkPodRules("executor"))

// sparkPodRules are about what driver and executor have in common.
func sparkPodRules(name string) []Rule {
	at := "spec." + name + "."
	const group, resources = "clusterTemplate.spec.workerGroups[].template", "gang.roles[].resources"
	rules := []Rule{
		{Path: "cores", To: resources, Verdict: Kept, Text: "1 is the default. An executor of Spark has as many cores."},
		{Path: "coreRequest", To: group, Verdict: Kept, Text: "Of the pod. Cores are those of Ray and Spark."},
		{Path: "coreLimit", To: group, Verdict: Kept, Text: "Of the pod."},
		{Path: "memory", To: "command", Verdict: Changed, Text: heapText},
		{Path: "memoryLimit", To: group, Verdict: Kept, Text: "Where it is more than what the pod gets anyway."},
		{Path: "memoryOverhead", To: "command", Verdict: Kept, Text: "As spark." + name + ".memoryOverhead, and in the pod's size."},
		{Path: "gpu", To: resources, Verdict: Kept, Whole: true, Text: "Of the pod, and of the role where Ray counts such devices."},
		{Path: "javaOptions", To: "command", Verdict: Kept, Text: "As an option of spark-submit."},
		{Path: "image", To: "clusterTemplate.spec.workerGroups[].image", Verdict: Kept, Text: "It must hold Spark, Java and Ray. --image maps it."},
		{Path: "env", To: "gang.roles[].env", Verdict: Kept, Whole: true, Text: "Those from Secrets stay in the pod, and are refused with --onto."},
		{Path: "envVars", To: "gang.roles[].env", Verdict: Kept, Whole: true},
		{Path: "envSecretKeyRefs", To: group, Verdict: Kept, Whole: true, Text: "In the pod. Refused with --onto."},
		{Path: "envFrom", To: group, Verdict: Kept, Whole: true, Text: "In the pod. Refused with --onto."},
		{Path: "configMaps", To: group, Verdict: Kept, Whole: true, Text: "Mounted. Refused with --onto."},
		{Path: "secrets", To: group, Verdict: Kept, Whole: true, Text: "Mounted, with the variable of its secretType. Refused with --onto."},
		{
			Path: "volumeMounts", To: group, Verdict: Kept, Whole: true,
			Text: "Paths of volumes named spark-local-dir-… become SPARK_LOCAL_DIRS of the role.",
		},
		{
			Path: "serviceAccount", To: group, Verdict: Changed, Differs: true,
			Text: "Pods get no token of it, as nothing makes pods. Take it out where a role of a cloud needs it not.",
		},
		{Path: "terminationGracePeriodSeconds", To: "gang.gracePeriodSeconds", Verdict: Changed, Text: "Processes of all roles get the longest time."},
		{
			Path: "shareProcessNamespace", Verdict: Dropped, Differs: true,
			Text: "The program could read the memory of other containers.",
		},
		{Path: "ports", To: group, Verdict: Kept, Whole: true, Text: podText},
	}
	for _, field := range []string{
		"affinity", "annotations", "dnsConfig", "hostAliases", "hostNetwork", "initContainers", "labels", "lifecycle", "nodeSelector",
		"podSecurityContext", "priorityClassName", "schedulerName", "securityContext", "sidecars", "template", "tolerations",
	} {
		rules = append(rules, Rule{Path: field, To: group, Verdict: Kept, Whole: true, Text: podText})
	}
	for i := range rules {
		rules[i].Kind, rules[i].Path = kindSpark, at+rules[i].Path
	}
	return rules
}

// sparkScheduleRules are about a ScheduledSparkApplication beside its applications.
var sparkScheduleRules = []Rule{
	{
		Kind: kindSparkSchedule, Path: "spec.schedule", To: "schedule", Verdict: Kept,
		Text: "@every becomes fixed times where it divides an hour or a day, and is refused elsewhere. A time of day that a change of clocks skips or repeats comes once.",
	},
	{Kind: kindSparkSchedule, Path: "spec.timeZone", To: "timeZone", Verdict: Kept, Text: "The default is UTC. Local is refused: write the zone of the operator's pod."},
	{Kind: kindSparkSchedule, Path: "spec.suspend", To: "suspend", Verdict: Kept},
	{
		Kind: kindSparkSchedule, Path: "spec.concurrencyPolicy", To: "concurrencyPolicy", Verdict: Kept,
		Text: "Forbid starts one job for the latest time that passed, when the earlier one has ended.",
	},
	{Kind: kindSparkSchedule, Path: "spec.successfulRunHistoryLimit", To: "successfulJobsHistoryLimit", Verdict: Kept, Text: "1 is the default."},
	{Kind: kindSparkSchedule, Path: "spec.failedRunHistoryLimit", To: "failedJobsHistoryLimit", Verdict: Kept, Text: "1 is the default."},
	{
		Kind: kindSparkSchedule, Path: "spec.template", To: "jobTemplate.spec", Verdict: Kept, Whole: true,
		Text: "As the spec of a SparkApplication, with a row for each of its fields that is not kept.",
	},
}
