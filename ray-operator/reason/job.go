package reason

// What a job or a service waits for that a person may have to mend.
var (
	ClusterMissing = Reason{
		"ClusterMissing", Warning, "The ComputeCluster that clusterRef names does not exist.",
		"there is no ComputeCluster %s in this namespace",
		"Create it; what waits for it starts by itself then", nil,
	}
	ClusterSuspended = Reason{
		"ClusterSuspended", Warning, "The ComputeCluster is suspended by its spec.",
		"ComputeCluster %s is suspended",
		"Set its spec.suspend to false; what waits for it does not wake it", nil,
	}
	ClusterDeleting = Reason{
		"ClusterDeleting", Warning, "The ComputeCluster is being deleted.",
		"ComputeCluster %s is being deleted",
		"Create it again; what waits for it starts by itself then", nil,
	}
	ClusterForeign = Reason{
		"ClusterForeign", Warning, "The ComputeCluster is managed by another controller, so its head is not known here.",
		"ComputeCluster %s is managed by %s",
		"Name a cluster that this operator manages", nil,
	}
	HeadUnauthorized = Reason{
		"HeadUnauthorized", Warning, "The head does not take the cluster's token, or the token's Secret cannot be read.",
		"the head of ComputeCluster %s does not let the operator in: %s",
		"See the cluster's condition UpToDate; the head must run with the token that is in the Secret", nil,
	}
	HeadUnreachable = Reason{
		"HeadUnreachable", Warning, "The head does not answer the operator.",
		"the job API of ComputeCluster %s has not answered since %s: %s",
		"See whether the head is well, and whether a network policy keeps the operator out; what runs goes on meanwhile", nil,
	}
	PodStranded = Reason{
		"PodStranded", Warning, "A pod of a former cluster stays on a node that does not answer, and nothing waits for it any more. What it runs may go on.",
		"pod %s of ComputeCluster %s is left behind on node %s, which does not answer",
		"If that node is off for good, say so: %s", nil,
	}
)

func jobObstacles() Section {
	return Section{"What a job or a service waits for that a person may have to mend", []Reason{
		ClusterMissing, ClusterSuspended, ClusterDeleting, ClusterForeign, HeadUnauthorized, HeadUnreachable, PodStranded,
	}}
}

// How an attempt of a job ended other than well.
var (
	EntrypointFailed = Reason{
		"EntrypointFailed", Warning, "The driver's process ended with an exit code other than 0.",
		"the entrypoint ended with exit code %d",
		"See its last lines in status.attempts", nil,
	}
	RuntimeEnvFailed = Reason{
		"RuntimeEnvFailed", Warning, "Ray could not set the runtime environment up.",
		"the runtime environment could not be set up: %s",
		"Correct spec.runtimeEnv, or make what it names reachable from the cluster", nil,
	}
	DriverNotStarted = Reason{
		"DriverNotStarted", Warning, "Ray could not start the driver where it was to run.",
		"Ray did not start the driver (%s): %s",
		"See that a node has what entrypointResources and entrypointLabelSelector ask for", nil,
	}
	DriverLost = Reason{
		"DriverLost", Warning, "Ray lost the process that supervises the driver, as when its node goes.",
		"Ray lost the driver: %s",
		"Set retry to have such a loss followed by another attempt", nil,
	}
	JobFailed = Reason{
		"JobFailed", Warning, "Ray says that the job failed, for a reason of its own.",
		"Ray says that the job failed (%s): %s",
		"See its last lines in status.attempts", nil,
	}
	StoppedInRay = Reason{
		"StoppedInRay", Warning, "Someone stopped the job in Ray, not through its ClusterJob.",
		"the job was stopped in Ray", "Make a new ClusterJob to run it again", nil,
	}
	SubmissionRefused = Reason{
		"SubmissionRefused", Warning, "Ray does not take the job.",
		"Ray refused the job: %s",
		"Correct the spec in a new ClusterJob", nil,
	}
	SubmissionForeign = Reason{
		"SubmissionForeign", Warning, "Another job has the submission's name in Ray.",
		"there is another job under the name %s in Ray",
		"Make a new ClusterJob; names in Ray are never used twice", nil,
	}
	RunNotFound = Reason{
		"RunNotFound", Warning, "The head that was given the job does not know it any more.",
		"Ray does not know the job %s any more: someone deleted it there. How it ended is not known",
		"Set retry to have such a loss followed by another attempt, if it may run twice", nil,
	}
	ClusterGone = Reason{
		"ClusterGone", Warning, "The ComputeCluster was deleted under the attempt. It may have run.",
		"ComputeCluster %s was deleted under attempt %d; it may have run",
		"Set retry to have such a loss followed by another attempt", nil,
	}
	StartDeadlineExceeded = Reason{
		"StartDeadlineExceeded", Warning, "The job did not run within startDeadlineSeconds.",
		"the job did not run within %d s: %s",
		"Raise startDeadlineSeconds, or mend what it waited for", nil,
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
		"StopAbandoned", Warning, "A run on a shared cluster could not be stopped for two minutes, and is given up. It may still run.",
		"job %s could not be stopped on ComputeCluster %s and may still run: %s",
		`Stop it there with "ray job stop %s"`, nil,
	}
)

func jobEnds() Section {
	return Section{"How an attempt of a job ended other than well", []Reason{
		EntrypointFailed, RuntimeEnvFailed, DriverNotStarted, DriverLost, JobFailed, StoppedInRay, SubmissionRefused,
		SubmissionForeign, RunNotFound, ClusterGone, StartDeadlineExceeded, DeadlineExceeded, AttemptDeadlineExceeded,
		StopAbandoned,
	}}
}

// What a job is at.
var (
	JobQueued = Reason{
		"JobQueued", Progress, "The cluster runs as many jobs as it may.",
		"ComputeCluster %s runs %d of the %d jobs that its maxConcurrentJobs lets; place %d in the queue", "", nil,
	}
	ClusterStarting = Reason{
		"ClusterStarting", Progress, "The cluster has no head yet that a job could be sent to.",
		"ComputeCluster %s has no head yet that takes jobs: %s", "", nil,
	}
	JobAPIStarting = Reason{
		"JobAPIStarting", Progress, "The head is there, and its job API does not answer yet.",
		"the job API of ComputeCluster %s does not answer yet", "", nil,
	}
	ClusterEnding = Reason{
		"ClusterEnding", Progress, "The job's former cluster has to be gone before the next is made.",
		"ComputeCluster %s and its pods are still going", "", nil,
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
	return Section{"What a job is at", []Reason{
		Stopping, Retrying, JobQueued, ClusterEnding, ClusterStarting, JobAPIStarting, Submitting, JobPending, JobRunning, Collecting,
	}}
}

// States of a job that is as it should be.
var (
	JobSucceeded = Reason{"JobSucceeded", Fine, "The driver's process ended with exit code 0.", "the job succeeded with attempt %d", "", nil}
	JobSuspended = Reason{"JobSuspended", Fine, "The job is suspended.", "suspended by spec.suspend", "Set it to false to start the next attempt", nil}
	JobPreempted = Reason{"JobPreempted", Fine, "Kueue took the quota of the job back; another attempt follows.", "Kueue took its quota back", "", nil}
	Stopped      = Reason{
		"Stopped", Fine, "The job was stopped by its annotation heliostat.dev/stop.",
		"stopped by the annotation heliostat.dev/stop", "Make a new ClusterJob to run it again", nil,
	}
	JobSubmitted = Reason{"JobSubmitted", Fine, "An attempt was submitted.", "attempt %d was submitted to ComputeCluster %s as %s", "", nil}
	AttemptEnded = Reason{"AttemptEnded", Fine, "An attempt ended and another follows.", "attempt %d ended (%s): %s", "", nil}
)

func jobStates() Section {
	return Section{"States and events of jobs", []Reason{JobSucceeded, JobSuspended, JobPreempted, Stopped, JobSubmitted, AttemptEnded}}
}
