package convert

import "slices"

// KubeflowJobs is the kind of a rule that holds for each job of kubeflow.org.
const KubeflowJobs = "every job of kubeflow.org"

// policyKinds are the kinds that have a runPolicy.
var policyKinds = []string{kindPyTorch, kindTF, kindJAX, kindXGBoost, kindMPI, kindPaddle, kindMX}

// kubeflowRules are about Kubeflow's kinds, in the order in which people read them.
func kubeflowRules() []Rule {
	return slices.Concat(policyRules, pyTorchRules, tfRules, jaxRules, xgBoostRules, mpiRules, paddleRules, mxRules, trainRules, runtimeRules,
		mlRules, sparkRules, sparkScheduleRules, experimentRules, optimizationRules, batchRules)
}

const (
	deadlineText = "The time counts from when all processes run, and not from the job's creation."
	limitText    = "It becomes the number of restarts of the whole gang, where a restart policy restarts something. Without it that " +
		"number is 10, and 6 for an MPIJob whose launcher is a Job of Kubernetes."
	ttlText   = "At most a year."
	cleanText = "The job's own cluster goes with all its pods when the job ends, and its last lines are in the status; cleanup keeps the " +
		"cluster. Of a job on a cluster that is there no process stays."
	podGroupText = "A gang is placed all or none, so that no PodGroup is needed."
)

// policyRules are about what every job of kubeflow.org has.
var policyRules = []Rule{
	{Kind: KubeflowJobs, Path: "spec.runPolicy.activeDeadlineSeconds", To: "activeDeadlineSeconds", Verdict: Changed, Differs: true, Text: deadlineText},
	{Kind: KubeflowJobs, Path: "spec.runPolicy.backoffLimit", To: "gang.maxRestarts", Verdict: Kept, Text: limitText},
	{Kind: KubeflowJobs, Path: "spec.runPolicy.cleanPodPolicy", Verdict: Dropped, Text: cleanText},
	{
		Kind: KubeflowJobs, Path: "spec.runPolicy.managedBy", To: "managedBy", Verdict: Kept,
		Text: "The name of Kubeflow's own operator becomes the default; kueue.x-k8s.io/multikueue stays.",
	},
	{
		Kind: KubeflowJobs, Path: "spec.runPolicy.suspend", To: "suspend", Verdict: Kept,
		Text: "With Kueue's label it is dropped: Kueue set it.",
	},
	{Kind: KubeflowJobs, Path: "spec.runPolicy.ttlSecondsAfterFinished", To: "ttlSecondsAfterFinished", Verdict: Kept, Text: ttlText},
	{Kind: KubeflowJobs, Path: "spec.runPolicy.schedulingPolicy.minAvailable", Verdict: Dropped, Text: podGroupText},
	{Kind: KubeflowJobs, Path: "spec.runPolicy.schedulingPolicy.minResources", Verdict: Dropped, Whole: true, Text: podGroupText},
	{Kind: KubeflowJobs, Path: "spec.runPolicy.schedulingPolicy.scheduleTimeoutSeconds", Verdict: Dropped, Text: podGroupText},
	{
		Kind: KubeflowJobs, Path: "spec.runPolicy.schedulingPolicy.priorityClass", To: "clusterTemplate.spec.podDefaults.priorityClassName", Verdict: Kept,
		Text: "With --onto it is dropped, as the cluster's pods have a priority of their own.",
	},
	{
		Kind: KubeflowJobs, Path: "spec.runPolicy.schedulingPolicy.queue", Verdict: Dropped, Differs: true,
		Text: "Which scheduler has the queue is not in the object. For Volcano, set clusterTemplate.spec.scheduler to {name: Volcano, " +
			"queue: QUEUE}. Beside Kueue's label it has no effect.",
	},
	{Kind: KubeflowJobs, Path: "spec.activeDeadlineSeconds", To: "activeDeadlineSeconds", Verdict: Changed, Differs: true, Text: deadlineText},
	{Kind: KubeflowJobs, Path: "spec.backoffLimit", To: "gang.maxRestarts", Verdict: Kept, Text: limitText},
	{Kind: KubeflowJobs, Path: "spec.cleanPodPolicy", Verdict: Dropped, Text: cleanText},
	{Kind: KubeflowJobs, Path: "spec.ttlSecondsAfterFinished", To: "ttlSecondsAfterFinished", Verdict: Kept, Text: ttlText},
}

// replicaRules are about the roles of a kind.
func replicaRules(kind, field, roles string) []Rule {
	return []Rule{
		{
			Kind: kind, Path: "spec." + field + "{}.replicas", To: "gang.roles[].replicas", Verdict: Kept,
			Text: "Roles are " + roles + ". Each becomes a role of the gang, and a worker group of the job's own cluster.",
		},
		{
			Kind: kind, Path: "spec." + field + "{}.restartPolicy", To: "gang.maxRestarts", Verdict: Changed, Differs: true,
			Text: "OnFailure and Always restart the whole gang, and not one pod. ExitCode does so after codes of 128 or more " +
				"(retry.onExitCodes). Never restarts nothing. Lost nodes count apart (retry.infrastructureLimit).",
		},
		{
			Kind: kind, Path: "spec." + field + "{}.template", To: "clusterTemplate.spec.workerGroups[].template", Verdict: Kept, Whole: true,
			Text: gangTemplateText,
		},
	}
}

const gangTemplateText = "The container that runs the program is named ray, and runs Ray: its image must hold Ray. Its command and " +
	"args become the role's command, its variables with a value the role's env, and CPUs and GPUs the role's resources. A claim that " +
	"the pods of all roles mount becomes one of sharedVolumes. All else stays in the template: other volumes, init containers, " +
	"sidecars, service account, variables from Secrets. With --onto these are dropped or refused, each with a row. Names of pods " +
	"such as NAME-worker-0 become references such as $(worker.0.host)."
