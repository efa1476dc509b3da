package convert

const (
	settingsText = "The seed (random_state) is kept, and resource_name with r_l of hyperband. Others have no counterpart: algorithms have Optuna's settings."
	stopText     = "A trial is ended from the sixth one on, by its value at the same step."
	outputText   = "The metric is read from the output of the first process. Have the program print it, such as by a line for a shell that ends with " +
		"'&& cat FILE', and take metricsCollectorSpec out."
	statusText = "A trial succeeds and fails as its job would: by the exit codes of its processes."
)

// experimentRules are about Experiments of Katib.
var experimentRules = []Rule{
	{
		Kind: kindExperiment, Path: "spec.objective.type", To: "tune.objective.direction", Verdict: Kept,
		Text: "The best value of a trial counts, as there (value: Best), unless metricStrategies says otherwise.",
	},
	{Kind: kindExperiment, Path: "spec.objective.goal", To: "tune.objective.goal", Verdict: Kept},
	{
		Kind: kindExperiment, Path: "spec.objective.objectiveMetricName", To: "tune.objective.metric", Verdict: Kept,
		Text: "Lines with loss=0.3 and with \"loss\": 0.3 are found. Names have letters, digits, _, ., / and -.",
	},
	{
		Kind: kindExperiment, Path: "spec.objective.additionalMetricNames", Verdict: Dropped, Differs: true,
		Text: "Only the objective is read. Others are in the job's output.",
	},
	{
		Kind: kindExperiment, Path: "spec.objective.metricStrategies[].name", To: "tune.objective.value", Verdict: Kept,
		Text: "Of the objective. Those of other metrics are dropped.",
	},
	{
		Kind: kindExperiment, Path: "spec.objective.metricStrategies[].value", To: "tune.objective.value", Verdict: Kept,
		Text: "latest becomes Last; max with maximize, and min with minimize, become Best. Others are refused.",
	},
	{
		Kind: kindExperiment, Path: "spec.algorithm.algorithmName", To: "tune.algorithm", Verdict: Changed,
		Text: "random, grid, tpe and cmaes are there. bayesianoptimization becomes GaussianProcess, sobol QMC, multivariate-tpe TPE, and hyperband " +
			"Random with earlyStopping Hyperband. enas, darts and pbt are refused. The Python that has Ray needs optuna.",
	},
	{
		Kind: kindExperiment, Path: "spec.algorithm.algorithmSettings[].name", Verdict: Dropped, Differs: true,
		Text: settingsText,
	},
	{Kind: kindExperiment, Path: "spec.algorithm.algorithmSettings[].value", To: "tune.seed", Verdict: Kept, Text: settingsText},
	{
		Kind: kindExperiment, Path: "spec.earlyStopping.algorithmName", To: "tune.earlyStopping", Verdict: Changed,
		Text: "medianstop becomes Median. " + stopText,
	},
	{
		Kind: kindExperiment, Path: "spec.earlyStopping.algorithmSettings[].name", Verdict: Dropped, Differs: true,
		Text: stopText,
	},
	{
		Kind: kindExperiment, Path: "spec.earlyStopping.algorithmSettings[].value", Verdict: Dropped, Differs: true,
		Text: stopText,
	},
	{
		Kind: kindExperiment, Path: "spec.parameters[].name", To: "tune.parameters[].name", Verdict: Kept,
		Text: "Without the dashes of an option, and with _ in place of other signs.",
	},
	{
		Kind: kindExperiment, Path: "spec.parameters[].parameterType", To: "tune.parameters[].type", Verdict: Kept,
		Text: "double and discrete become Float, int Int, and categorical Categorical.",
	},
	{Kind: kindExperiment, Path: "spec.parameters[].feasibleSpace.min", To: "tune.parameters[].min", Verdict: Kept},
	{Kind: kindExperiment, Path: "spec.parameters[].feasibleSpace.max", To: "tune.parameters[].max", Verdict: Kept},
	{Kind: kindExperiment, Path: "spec.parameters[].feasibleSpace.list", To: "tune.parameters[].values", Verdict: Kept},
	{
		Kind: kindExperiment, Path: "spec.parameters[].feasibleSpace.step", To: "tune.parameters[].step", Verdict: Kept,
		Text: "With grid a double becomes the values of its range. With a logarithmic distribution it is dropped.",
	},
	{
		Kind: kindExperiment, Path: "spec.parameters[].feasibleSpace.distribution", To: "tune.parameters[].scale", Verdict: Kept,
		Text: "uniform becomes Linear, and logUniform Log. normal and logNormal become the same, and differ.",
	},
	{
		Kind: kindExperiment, Path: "spec.parallelTrialCount", To: "tune.parallelTrials", Verdict: Kept,
		Text: "3 is the default. The job's own cluster has workers for as many trials.",
	},
	{Kind: kindExperiment, Path: "spec.maxTrialCount", To: "tune.maxTrials", Verdict: Kept, Text: "Without it the Experiment is refused."},
	{
		Kind: kindExperiment, Path: "spec.maxFailedTrialCount", To: "tune.maxFailedTrials", Verdict: Changed,
		Text: "One less: Katib gives up at its number, and maxFailedTrials may fail. Without it any number may fail, as there.",
	},
	{
		Kind: kindExperiment, Path: "spec.resumePolicy", To: "tune.storage", Verdict: Changed, Differs: true,
		Text: "LongRunning and FromVolume get a storage on a claim that all pods mount. Without one they are dropped.",
	},
	{
		Kind: kindExperiment, Path: "spec.trialTemplate.trialSpec", To: "gang", Verdict: Kept, Whole: true,
		Text: "As an object of its kind, with a row for each of its fields that is not kept: a Job, a job of kubeflow.org, a TrainJob or a " +
			"SparkApplication. ${trialParameters.lr} becomes $(tune.lr), in command, args and variables of the program's container.",
	},
	{
		Kind: kindExperiment, Path: "spec.trialTemplate.configMap", Verdict: Refused, Whole: true,
		Text: "The template is not in the manifest. Write what the ConfigMap has below trialSpec.",
	},
	{Kind: kindExperiment, Path: "spec.trialTemplate.trialParameters[].name", To: "command", Verdict: Kept},
	{Kind: kindExperiment, Path: "spec.trialTemplate.trialParameters[].description", Verdict: Dropped, Text: "A reference has none."},
	{
		Kind: kindExperiment, Path: "spec.trialTemplate.trialParameters[].reference", To: "command", Verdict: Kept,
		Text: "${trialSpec.Name} becomes the job's name with the number of the trial. Labels and annotations are those of the template.",
	},
	{
		Kind: kindExperiment, Path: "spec.trialTemplate.primaryContainerName", To: "clusterTemplate.spec.workerGroups[].template", Verdict: Kept,
		Text: "Of a Job. Jobs of Kubeflow have a name of their own for that container.",
	},
	{
		Kind: kindExperiment, Path: "spec.trialTemplate.primaryPodLabels", Verdict: Dropped, Whole: true,
		Text: "The metric is read from the first process: rank 0, or with MPI the command.",
	},
	{Kind: kindExperiment, Path: "spec.trialTemplate.retain", Verdict: Dropped, Text: "Trials leave no objects. Their output is the job's."},
	{Kind: kindExperiment, Path: "spec.trialTemplate.successCondition", Verdict: Dropped, Text: statusText},
	{Kind: kindExperiment, Path: "spec.trialTemplate.failureCondition", Verdict: Dropped, Text: statusText},
	{
		Kind: kindExperiment, Path: "spec.metricsCollectorSpec.collector.kind", To: "tune.objective.metric", Verdict: Refused,
		Text: "StdOut is kept. " + outputText,
	},
	{Kind: kindExperiment, Path: "spec.metricsCollectorSpec.collector.customCollector", Verdict: Refused, Whole: true, Text: outputText},
	{Kind: kindExperiment, Path: "spec.metricsCollectorSpec.source.fileSystemPath", Verdict: Refused, Whole: true, Text: outputText},
	{Kind: kindExperiment, Path: "spec.metricsCollectorSpec.source.httpGet", Verdict: Refused, Whole: true, Text: outputText},
	{
		Kind: kindExperiment, Path: "spec.metricsCollectorSpec.source.filter.metricsFormat", Verdict: Refused,
		Text: "Katib's own filter is kept. Another form is not found: have the program print the metric as in loss=0.3.",
	},
	{
		Kind: kindExperiment, Path: "spec.nasConfig", Verdict: Refused, Whole: true,
		Text: "No algorithm searches for architectures. Search parameters, or run the search in a program of its own.",
	},
}
