package kubeflow

// bases are the specs of kinds beside the jobs with roles, with what the kind must have.
var bases = map[string]map[string]any{
	"SparkApplication": application(),
	"ScheduledSparkApplication": {
		"schedule": "0 3 * * *", "template": application(),
	},
	"Experiment": {
		"objective": map[string]any{"type": "maximize", "objectiveMetricName": "accuracy"},
		"algorithm": map[string]any{"algorithmName": "random"}, "maxTrialCount": int64(12),
		"parameters": []any{
			map[string]any{"name": "lr", "parameterType": "double", "feasibleSpace": map[string]any{"min": "0.01", "max": "0.05"}},
			map[string]any{"name": "layers", "parameterType": "int", "feasibleSpace": map[string]any{"min": "1", "max": "5"}},
		},
		"trialTemplate": map[string]any{
			"primaryContainerName": "main",
			"trialParameters": []any{
				map[string]any{"name": "rate", "reference": "lr"}, map[string]any{"name": "depth", "reference": "layers"},
			},
			"trialSpec": map[string]any{"apiVersion": "batch/v1", "kind": "Job", "spec": batch()},
		},
	},
	"OptimizationJob": {
		"objectives": []any{map[string]any{"metric": "val_error"}}, "numTrials": int64(6),
		"parameters": []any{map[string]any{"name": "lr", "searchSpace": map[string]any{"uniform": map[string]any{"min": "0.01", "max": "0.1"}}}},
		"trainJobTemplate": map[string]any{"spec": map[string]any{
			"runtimeRef": map[string]any{"name": "torch-distributed"}, "trainer": map[string]any{"image": image, "command": []any{"torchrun", "/src/train.py"}},
		}},
	},
	"Job": batch(),
}

func application() map[string]any {
	return map[string]any{
		"type": "Scala", "image": image, "mainClass": "org.example.Main", "mainApplicationFile": "local:///app/main.jar",
		"driver": map[string]any{"cores": int64(1), "memory": "1g"}, "executor": map[string]any{"instances": int64(2), "cores": int64(2), "memory": "2g"},
	}
}

func batch() map[string]any {
	made := template("main")
	container := made["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
	container["args"] = []any{"--lr=${trialParameters.rate}", "--layers=${trialParameters.depth}"}
	return map[string]any{"template": made}
}

// ofTypes are values of Kubernetes' own types, the plainest first.
var ofTypes = map[string][]any{
	"affinity": {map[string]any{"podAntiAffinity": map[string]any{"requiredDuringSchedulingIgnoredDuringExecution": []any{
		map[string]any{"topologyKey": "kubernetes.io/hostname"}}}}},
	"dnsConfig":          {map[string]any{"nameservers": []any{"192.0.2.1"}}},
	"lifecycle":          {map[string]any{"postStart": map[string]any{"exec": map[string]any{"command": []any{"true"}}}}},
	"podSecurityContext": {map[string]any{"fsGroup": int64(185)}}, "securityContext": {map[string]any{"runAsUser": int64(185)}},
	"hostAliases":             {[]any{map[string]any{"ip": "192.0.2.2", "hostnames": []any{"store"}}}},
	"ports":                   {[]any{map[string]any{"name": "web", "containerPort": int64(9090)}}},
	"array of envFrom":        {[]any{map[string]any{"configMapRef": map[string]any{"name": "settings"}}}},
	"array of initContainers": {[]any{map[string]any{"name": "fetch", "image": "busybox:1.36"}}},
	"array of sidecars":       {[]any{map[string]any{"name": "log", "image": "busybox:1.36"}}},
	"array of tolerations":    {[]any{map[string]any{"key": "gpu", "operator": "Exists"}}},
	"array of volumeMounts":   {[]any{map[string]any{"name": "data", "mountPath": "/data"}}},
	"array of volumes":        {[]any{map[string]any{"name": "data", "emptyDir": map[string]any{}}}},
	"array of numbers":        {[]any{int64(1)}},
	"container":               {map[string]any{"name": "collector", "image": "busybox:1.36"}},
	"httpGet":                 {map[string]any{"port": int64(8080)}},
	"selector":                {map[string]any{"matchLabels": map[string]any{"team": "a"}}},
	"successRules":            {map[string]any{"rules": []any{map[string]any{"succeededIndexes": "0"}}}},
	"podFailurePolicy": {map[string]any{"rules": []any{map[string]any{"action": "FailJob", "onExitCodes": map[string]any{
		"operator": "In", "values": []any{int64(42)}}}}}},
	"trialSpec": {
		map[string]any{"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "spec": map[string]any{"pytorchReplicaSpecs": map[string]any{
			"Worker": map[string]any{"replicas": int64(2), "template": template("pytorch")}}}},
		map[string]any{"apiVersion": "tekton.dev/v1", "kind": "PipelineRun", "spec": map[string]any{}},
	},
	"trainJob": {map[string]any{"runtimeRef": map[string]any{"name": "jax-distributed"}, "trainer": map[string]any{
		"image": image, "command": []any{"python", "/src/other.py"}}}},
	"sparkApplication": {other(application())},
	"tuned": {map[string]any{
		"learningRate": map[string]any{"type": "float", "min": 0.001, "max": 0.1}, "batchSize": map[string]any{"type": "int", "values": []any{int64(16), int64(32)}},
	}},
}

func other(spec map[string]any) map[string]any {
	spec["arguments"] = []any{"1000"}
	return spec
}

// ofKinds are values of fields of one kind, the plainest first.
var ofKinds = map[string][]any{
	"Experiment spec.objective.goal":                          {0.99, int64(1)},
	"Experiment spec.objective.type":                          {"minimize", "maximize", "other"},
	"Experiment spec.objective.metricStrategies[].name":       {"accuracy"},
	"Experiment spec.algorithm.algorithmName":                 {"tpe", "grid", "bayesianoptimization", "cmaes", "sobol", "hyperband", "multivariate-tpe", "enas", "pbt"},
	"Experiment spec.algorithm.algorithmSettings[].name":      {"sigma", "random_state"},
	"Experiment spec.algorithm.algorithmSettings[].value":     {"7", "a"},
	"Experiment spec.earlyStopping.algorithmName":             {"medianstop", "other"},
	"Experiment spec.parameters[].name":                       {"rate", "--rate"},
	"Experiment spec.parameters[].parameterType":              {"categorical", "int", "discrete", "double"},
	"Experiment spec.parameters[].feasibleSpace.min":          {"0.02", "0.05"},
	"Experiment spec.parameters[].feasibleSpace.max":          {"0.04"},
	"Experiment spec.parameters[].feasibleSpace.list":         {[]any{"0.02", "0.03"}},
	"Experiment spec.parameters[].feasibleSpace.step":         {"0.01"},
	"Experiment spec.parameters[].feasibleSpace.distribution": {"logUniform", "uniform", "normal", "logNormal", "other"},
	"Experiment spec.parallelTrialCount":                      {int64(2), int64(40)},
	"Experiment spec.maxTrialCount":                           {int64(20), int64(2)},
	"Experiment spec.maxFailedTrialCount":                     {int64(3), int64(0)},
	"Experiment spec.resumePolicy":                            {"FromVolume", "LongRunning", "Never", "other"},
	"Experiment spec.trialTemplate.trialParameters[].name":    {"rate"}, // whose placeholder the template has
	"Experiment spec.trialTemplate.trialParameters[].reference": {
		"layers", "${trialSpec.Name}", "${trialSpec.Namespace}", "${trialSpec.Labels[a]}", "none",
	},
	"Experiment spec.trialTemplate.primaryContainerName":               {"main"},
	"Experiment spec.metricsCollectorSpec.collector.kind":              {"File", "StdOut", "TensorFlowEvent"},
	"Experiment spec.metricsCollectorSpec.source.filter.metricsFormat": {[]any{`{name: (\w+)}`}, []any{`([\w|-]+)\s*=\s*([+-]?\d*(\.\d+)?([Ee][+-]?\d+)?)`}},
	"OptimizationJob spec.objectives[].metric":                         {"loss"},
	"OptimizationJob spec.objectives[].direction":                      {"Maximize", "Minimize"},
	"OptimizationJob spec.searchAlgorithm.random.seed":                 {int64(7), int64(-1)},
	"OptimizationJob spec.searchAlgorithm.grid":                        {map[string]any{}},
	"OptimizationJob spec.parameters[].name":                           {"rate"},
	"OptimizationJob spec.parameters[].searchSpace.uniform.min":        {"0.02"},
	"OptimizationJob spec.parameters[].searchSpace.uniform.max":        {"0.2"},
	"OptimizationJob spec.parameters[].searchSpace.logUniform.min":     {"0.02"},
	"OptimizationJob spec.parameters[].searchSpace.logUniform.max":     {"0.2"},
	"OptimizationJob spec.numTrials":                                   {int64(9), int64(2)},
	"OptimizationJob spec.parallelTrials":                              {int64(2), int64(9)},
	"ScheduledSparkApplication spec.schedule":                          {"30 4 * * 1", "@every 3m", "@every 7m", "@daily"},
	"ScheduledSparkApplication spec.timeZone":                          {"Europe/Berlin", "Local"},
	"ScheduledSparkApplication spec.concurrencyPolicy":                 {"Forbid", "Replace", "Allow"},
	"ScheduledSparkApplication spec.successfulRunHistoryLimit":         {int64(5)},
	"ScheduledSparkApplication spec.failedRunHistoryLimit":             {int64(5)},
	"MLTrainingJob spec.autoTuning.algorithm":                          {"bayesian", "random", "grid", "pbt"},
	"MLTrainingJob spec.autoTuning.objective":                          {"val_accuracy", "loss", "score"},
	"MLTrainingJob spec.autoTuning.maxTrials":                          {int64(8)},
	"MLTrainingJob spec.autoTuning.parallelTrials":                     {int64(2), int64(20)},
	"SparkApplication spec.imagePullPolicy":                            {"Always"},
	"SparkApplication spec.imagePullSecrets":                           {[]any{"hub"}},
	"SparkApplication spec.mainApplicationFile":                        {"local:///app/other.jar", "s3a://bucket/app.jar"},
	"SparkApplication spec.memoryOverheadFactor":                       {"0.3", "a third"},
	"SparkApplication spec.batchScheduler":                             {"kube-scheduler", "volcano", "yunikorn"},
	"SparkApplication spec.sparkConf": {
		map[string]any{"spark.sql.shuffle.partitions": "8"},
		map[string]any{"spark.kubernetes.namespace": "team", "spark.executor.cores": "3", "spark.driver.memory": "3g", "spark.master": "k8s://x"},
		map[string]any{"spark.dynamicAllocation.enabled": "true", "spark.dynamicAllocation.maxExecutors": "4", "spark.eventLog.dir": "s3a://$(x)/y"},
	},
	"SparkApplication spec.restartPolicy.type":         {"OnFailure", "Always", "Never"},
	"Job spec.parallelism":                             {int64(1), int64(2)},
	"Job spec.completions":                             {int64(1), int64(2)},
	"SparkApplication spec.volumes":                    {[]any{map[string]any{"name": "data", "emptyDir": map[string]any{}}}},
	"SparkApplication spec.driver.template":            {podOfSpark()},
	"SparkApplication spec.executor.template":          {podOfSpark()},
	"SparkApplication spec.driver.cores":               {int64(3)},
	"SparkApplication spec.executor.cores":             {int64(3)},
	"SparkApplication spec.driver.coreRequest":         {"500m", "half"},
	"SparkApplication spec.executor.coreRequest":       {"500m"},
	"SparkApplication spec.driver.coreLimit":           {"1200m"},
	"SparkApplication spec.executor.coreLimit":         {"2500m"},
	"SparkApplication spec.driver.memory":              {"4g", "512m", "2Gi"},
	"SparkApplication spec.executor.memory":            {"4g", "1024"},
	"SparkApplication spec.driver.memoryLimit":         {"16Gi"},
	"SparkApplication spec.executor.memoryLimit":       {"16Gi"},
	"SparkApplication spec.driver.memoryOverhead":      {"1g"},
	"SparkApplication spec.executor.memoryOverhead":    {"1g"},
	"SparkApplication spec.driver.gpu.name":            {"nvidia.com/gpu"},
	"SparkApplication spec.executor.gpu.name":          {"nvidia.com/gpu"},
	"SparkApplication spec.driver.gpu.quantity":        {int64(1)},
	"SparkApplication spec.executor.gpu.quantity":      {int64(2)},
	"SparkApplication spec.driver.configMaps[].path":   {"/etc/settings"},
	"SparkApplication spec.executor.configMaps[].path": {"/etc/settings"},
	"SparkApplication spec.driver.secrets[].path":      {"/etc/keys"},
	"SparkApplication spec.executor.secrets[].path":    {"/etc/keys"},
	"SparkApplication spec.driver.secrets[].secretType": {
		"GCPServiceAccount", "Generic",
	},
	"SparkApplication spec.executor.secrets[].secretType":      {"HadoopDelegationToken", "Generic"},
	"SparkApplication spec.dynamicAllocation.maxExecutors":     {int64(5)},
	"SparkApplication spec.dynamicAllocation.initialExecutors": {int64(4)},
	"SparkApplication spec.dynamicAllocation.minExecutors":     {int64(2)},
}

func podOfSpark() map[string]any {
	return map[string]any{"metadata": map[string]any{"labels": map[string]any{"team": "a"}}, "spec": map[string]any{
		"containers":   []any{map[string]any{"name": "spark-kubernetes-driver", "env": []any{map[string]any{"name": "A", "value": "b"}}}},
		"nodeSelector": map[string]any{"pool": "cpu"},
	}}
}
