package reason

// What a gang waits for, and how one failed.
var (
	GangTooLarge = Reason{
		"GangTooLarge", Warning, "No worker group can ever hold a place of the gang, or the worker groups can never hold as many places as it needs. The job waits, and the next one may run.",
		"ComputeCluster %s cannot hold the gang: %s",
		"Lower replicas or resources in a new job, or change the worker groups; waiting jobs then start by themselves", nil,
	}
	GangLost = Reason{
		"GangLost", Warning, "The gang lost a place and may not restart again after that, or did not find all places in time.",
		"the gang ended without all its places: %s",
		"Raise retry.infrastructureLimit to restart after more losses, or gang.gatherTimeoutSeconds to wait longer for places", nil,
	}
	ProcessFailed = Reason{
		"ProcessFailed", Warning, "A process of the gang failed first, and no restart was left. The other processes were stopped.",
		"%s on pod %s failed first, with exit code %d: %s",
		"Check its last lines in status.attempts",
		[]Case{
			{"OutOfMemory", "Give its worker group more memory, or make the program use less"},
			{"NotFound", "Correct the command, or use an image that has the program"},
			{"DiskFull", "Free space on that pod's disk, or give its worker group more ephemeral storage"},
			{"Unreachable", "Allow the pods of the cluster to reach each other on the ports 20000 to 29999, in network policies and in the mesh"},
		},
	}
)

// How trials failed.
var (
	MetricMissing = Reason{
		"MetricMissing", Warning, "Too many trials failed, or none succeeded, and the output of the last one had no value of the metric.",
		"the metric is missing: %s",
		"Print the metric in the first process by the name that spec.tune.objective.metric has", nil,
	}
	TuningFailed = Reason{
		"TuningFailed", Warning, "Too many trials failed, none succeeded, or the trials could not begin or go on.",
		"the trials ended without a result: %s",
		"Check the table of trials at the end of the job's output",
		[]Case{
			{"Study", "Correct what the message names"},
		},
	}
)

// Progress of a gang.
var (
	GangQueued = Reason{
		"GangQueued", Progress, "An older gang gathers its places on this cluster. Even at its largest, the cluster cannot hold both gangs beside those that run.",
		"the gang of ClusterJob %s gathers first on ComputeCluster %s; position %d in the queue", "", nil,
	}
	GangGathering = Reason{
		"GangGathering", Progress, "The gang waits until all its places are there.",
		"attempt %d waits for its places on ComputeCluster %s: %s", "", nil,
	}
)

// StorageInUse is progress of trials.
var StorageInUse = Reason{
	"StorageInUse", Progress, "Another job, or another attempt, has the storage of the trials. The job waits until that one has ended.",
	"attempt %d waits for storage %s: %s has it", "", nil,
}

// Events of a gang.
var (
	GangPlaced = Reason{
		"GangPlaced", Fine, "All places of the gang are there, and its processes start.",
		"attempt %d has %d places on ComputeCluster %s", "", nil,
	}
	GangRestarted = Reason{
		"GangRestarted", Fine, "All processes of the gang start again within the attempt.",
		"attempt %d starts round %d: %s", "", nil,
	}
)
