package reason

// What a job or a service waits for that may need a fix.
var (
	ClusterMissing = Reason{
		"ClusterMissing", Warning, "The ComputeCluster that clusterRef names does not exist.",
		"there is no ComputeCluster %s in this namespace",
		"Create it; waiting jobs and services then start by themselves", nil,
	}
	ClusterSuspended = Reason{
		"ClusterSuspended", Warning, "The ComputeCluster is suspended by its spec.",
		"ComputeCluster %s is suspended",
		"Set its spec.suspend to false; waiting jobs and services do not resume it", nil,
	}
	ClusterDeleting = Reason{
		"ClusterDeleting", Warning, "The ComputeCluster is being deleted.",
		"ComputeCluster %s is being deleted",
		"Create it again; waiting jobs and services then start by themselves", nil,
	}
	ClusterForeign = Reason{
		"ClusterForeign", Warning, "The ComputeCluster is managed by another controller, so its head is not known here.",
		"ComputeCluster %s is managed by %s",
		"Name a cluster that this operator manages", nil,
	}
	HeadUnauthorized = Reason{
		"HeadUnauthorized", Warning, "The head rejects the cluster's token, or the token's Secret cannot be read.",
		"the head of ComputeCluster %s rejects the operator: %s",
		"Check the cluster's condition UpToDate; the head must run with the token in the Secret", nil,
	}
	HeadUnreachable = Reason{
		"HeadUnreachable", Warning, "The head does not answer the operator.",
		"the job API of ComputeCluster %s has not answered since %s: %s",
		"Check the head, and network policies that block the operator; running work continues meanwhile", nil,
	}
	PodStranded = Reason{
		"PodStranded", Warning, "A pod of an earlier cluster stays on a node that does not answer, and the operator no longer waits for it. Its work may continue.",
		"pod %s of ComputeCluster %s is left behind on node %s, which does not answer",
		"If that node is permanently off, taint it: %s", nil,
	}
)

func jobObstacles() Section {
	return Section{"What a job or a service waits for that may need a fix", []Reason{
		ClusterMissing, ClusterSuspended, ClusterDeleting, ClusterForeign, HeadUnauthorized, HeadUnreachable, GangTooLarge, PodStranded,
	}}
}

// How an attempt of a job failed.
var (
	EntrypointFailed = Reason{
		"EntrypointFailed", Warning, "The driver's process ended with an exit code other than 0.",
		"the entrypoint ended with exit code %d%s",
		"Check its last lines in status.attempts", nil,
	}
	RuntimeEnvFailed = Reason{
		"RuntimeEnvFailed", Warning, "Ray could not set up the runtime environment.",
		"the runtime environment could not be set up: %s",
		"Correct spec.runtimeEnv, or make what it names reachable from the cluster", nil,
	}
	DriverNotStarted = Reason{
		"DriverNotStarted", Warning, "Ray could not start the driver where the spec requests it.",
		"Ray did not start the driver (%s): %s",
		"Ensure that a node has what entrypointResources and entrypointLabelSelector request", nil,
	}
	DriverLost = Reason{
		"DriverLost", Warning, "Ray lost the process that supervises the driver, such as with its node.",
		"Ray lost the driver: %s",
		"Set retry to retry after such a loss", nil,
	}
	JobFailed = Reason{
		"JobFailed", Warning, "Ray reports that the job failed, for another reason.",
		"Ray reports that the job failed (%s): %s",
		"Check its last lines in status.attempts", nil,
	}
	StoppedInRay = Reason{
		"StoppedInRay", Warning, "A user stopped the job in Ray, not through its ClusterJob.",
		"the job was stopped in Ray", "Create a new ClusterJob to run it again", nil,
	}
	SubmissionRefused = Reason{
		"SubmissionRefused", Warning, "Ray does not accept the job.",
		"Ray refused the job: %s",
		"Correct the spec in a new ClusterJob", nil,
	}
	SubmissionForeign = Reason{
		"SubmissionForeign", Warning, "Another job has the submission ID in Ray.",
		"another job has the submission ID %s in Ray",
		"Create a new ClusterJob; submission IDs are never used twice", nil,
	}
	RunNotFound = Reason{
		"RunNotFound", Warning, "The head that accepted the job no longer knows it.",
		"Ray no longer knows the job %s: it was deleted there. How it ended is unknown",
		"Set retry to retry after such a loss, if the job may run twice", nil,
	}
	ClusterGone = Reason{
		"ClusterGone", Warning, "The ComputeCluster was deleted during the attempt. It may have run.",
		"ComputeCluster %s was deleted during attempt %d; it may have run",
		"Set retry to retry after such a loss", nil,
	}
	StartDeadlineExceeded = Reason{
		"StartDeadlineExceeded", Warning, "The job did not run within startDeadlineSeconds.",
		"the job did not run within %d s: %s",
		"Raise startDeadlineSeconds, or fix what it waited for", nil,
	}
	DeadlineExceeded = Reason{
		"DeadlineExceeded", Warning, "All attempts together took longer than activeDeadlineSeconds. The work was stopped.",
		"the job ran longer than activeDeadlineSeconds, %d s, and was stopped",
		"Raise activeDeadlineSeconds in a new ClusterJob", nil,
	}
	AttemptDeadlineExceeded = Reason{
		"AttemptDeadlineExceeded", Warning, "An attempt took longer than retry.attemptDeadlineSeconds. It was stopped.",
		"the attempt ran longer than retry.attemptDeadlineSeconds, %d s, and was stopped",
		"Raise it if the work needs longer", nil,
	}
	StopAbandoned = Reason{
		"StopAbandoned", Warning, "A run on a shared cluster could not be stopped for two minutes, and the operator gave up. It may still run.",
		"job %s could not be stopped on ComputeCluster %s and may still run: %s",
		`Stop it there with "ray job stop %s"`, nil,
	}
)

func jobEnds() Section {
	return Section{"How an attempt of a job failed", []Reason{
		EntrypointFailed, ProcessFailed, MetricMissing, TuningFailed, GangLost, RuntimeEnvFailed, DriverNotStarted, DriverLost, JobFailed, StoppedInRay,
		SubmissionRefused, SubmissionForeign, RunNotFound, ClusterGone, StartDeadlineExceeded, DeadlineExceeded, AttemptDeadlineExceeded,
		StopAbandoned,
	}}
}

// Progress of a job.
var (
	JobQueued = Reason{
		"JobQueued", Progress, "The cluster runs as many jobs as its maxConcurrentJobs allows.",
		"ComputeCluster %s runs %d of the %d jobs that its maxConcurrentJobs allows; position %d in the queue", "", nil,
	}
	ClusterStarting = Reason{
		"ClusterStarting", Progress, "The cluster has no head yet that accepts jobs.",
		"ComputeCluster %s has no head yet that accepts jobs: %s", "", nil,
	}
	JobAPIStarting = Reason{
		"JobAPIStarting", Progress, "The head runs, and its job API does not answer yet.",
		"the job API of ComputeCluster %s does not answer yet", "", nil,
	}
	ClusterEnding = Reason{
		"ClusterEnding", Progress, "The job's previous cluster must be deleted before the next is created.",
		"ComputeCluster %s and its pods are still terminating", "", nil,
	}
	Submitting = Reason{
		"Submitting", Progress, "The attempt is bound to a head and is being submitted.",
		"attempt %d is being submitted to ComputeCluster %s", "", nil,
	}
	JobPending = Reason{
		"JobPending", Progress, "Ray has the job and has not started its driver.",
		"Ray has the job and has not started its driver: %s", "", nil,
	}
	JobRunning = Reason{
		"JobRunning", Progress, "The driver runs.", "attempt %d runs on ComputeCluster %s", "", nil,
	}
	Stopping = Reason{
		"Stopping", Progress, "The run is being stopped.", "attempt %d is being stopped: %s", "", nil,
	}
	Retrying = Reason{
		"Retrying", Progress, "An attempt ended, and another will follow.",
		"attempt %d ended (%s); the next follows at %s", "", nil,
	}
	Collecting = Reason{
		"Collecting", Progress, "The attempt is over, and the last lines of its output are being read.",
		"attempt %d is over; its last lines are being read", "", nil,
	}
)

func jobProgress() Section {
	return Section{"Progress of a job", []Reason{
		Stopping, Retrying, JobQueued, GangQueued, ClusterEnding, ClusterStarting, JobAPIStarting, Submitting, JobPending, StorageInUse, GangGathering,
		JobRunning, Collecting,
	}}
}

// States of a job that need nothing.
var (
	JobSucceeded = Reason{"JobSucceeded", Fine, "The driver's process ended with exit code 0.", "the job succeeded with attempt %d", "", nil}
	JobSuspended = Reason{"JobSuspended", Fine, "The job is suspended.", "suspended by spec.suspend", "Set it to false to start the next attempt", nil}
	JobPreempted = Reason{"JobPreempted", Fine, "Kueue reclaimed the quota of the job; another attempt follows.", "Kueue reclaimed its quota", "", nil}
	Stopped      = Reason{
		"Stopped", Fine, "The job was stopped by its annotation heliostat.dev/stop.",
		"stopped by the annotation heliostat.dev/stop", "Create a new ClusterJob to run it again", nil,
	}
	JobSubmitted = Reason{"JobSubmitted", Fine, "An attempt was submitted.", "attempt %d was submitted to ComputeCluster %s as %s", "", nil}
	AttemptEnded = Reason{"AttemptEnded", Fine, "An attempt ended and another follows.", "attempt %d ended (%s): %s", "", nil}
)

func jobStates() Section {
	return Section{"States and events of jobs", []Reason{
		JobSucceeded, JobSuspended, JobPreempted, Stopped, JobSubmitted, GangPlaced, GangRestarted, AttemptEnded,
	}}
}
