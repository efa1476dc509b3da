package reason

// Problems of a cluster.
var (
	InvalidSpec = Reason{
		"InvalidSpec", Warning, "The spec breaks a rule that admission could not check, such as one for a pod template.",
		"the spec is invalid: %s",
		"Correct the spec; running pods stay as they are", nil,
	}
	SpecRefused = Reason{
		"SpecRefused", Warning, "The rules of this operator are stricter than those of an earlier one. The cluster continues: it is suspended, healed and scaled.",
		"this operator refuses the spec, which an earlier one accepted: %s",
		"Correct the spec; until then the cluster continues as before", nil,
	}
	NameConflict = Reason{
		"NameConflict", Warning, "An object with a name that the cluster needs has another owner. The operator never changes it.",
		"%s exists and does not belong to this cluster",
		"Delete it if it is not needed, or create the cluster under another name", nil,
	}
	RecordDamaged = Reason{
		"RecordDamaged", Warning, "A client changed the annotation in which the operator records facts that it cannot observe.",
		"the annotation heliostat.dev/record cannot be read: %s",
		"Remove the annotation; it is restored from the status. Running pods stay as they are", nil,
	}
	HeadFailing = Reason{
		"HeadFailing", Warning, "The head has not become ready for ten minutes, and crash-loops. The operator keeps retrying.",
		"the head has not become ready for 10 minutes, and ended %d times",
		"Check its log with kubectl logs --previous, and correct the spec; the operator keeps retrying", nil,
	}
	CAMissing = Reason{
		"CAMissing", Warning, "The Secret with the cluster's certificate authority was deleted while pods, or a managed Redis, use its certificates.",
		"Secret %s with the cluster's certificate authority is missing, so new pods cannot join the running ones",
		"Restore the Secret, or suspend the cluster and resume it to start with a new one", nil,
	}
	TokenMissing = Reason{
		"TokenMissing", Warning, "The Secret that the operator created for the token was deleted while the head is running.",
		"Secret %s with the cluster's token is missing, so new pods cannot join the running head",
		"Restore the Secret, or delete the head pod to restart with a new token", nil,
	}
	TokenSecretInvalid = Reason{
		"TokenSecretInvalid", Warning, "The Secret named in authentication.secretName does not exist or does not hold a token.",
		"Secret %s of authentication.secretName %s",
		"Create it with the token under the key auth_token", nil,
	}
	TokenChanged = Reason{
		"TokenChanged", Warning, "The token in the Secret differs from the one that the running pods started with.",
		"the token in Secret %s differs from the one that %d of %d pods started with",
		"Delete the head pod at a convenient time; head and workers restart with the new token", nil,
	}
	PodsOutdated = Reason{
		"PodsOutdated", Warning, "Running pods were built from an earlier spec, and the upgrade strategy is None.",
		"%d of %d pods were built from an earlier spec: %s",
		"Delete them at a convenient time; their replacements use the current spec", nil,
	}
	HeadOutdated = Reason{
		"HeadOutdated", Warning, "RollingWorkers does not continue, because the head was built from an earlier spec.",
		"%d of %d pods were built from an earlier spec (%s), including the head, and workers are not replaced before their head",
		"Delete the head pod at a convenient time; head and workers restart with the current spec", nil,
	}
	SchedulerMissing = Reason{
		"SchedulerMissing", Warning, "The API server does not serve the kind that the cluster's scheduler uses for gangs, or no version that the operator supports.",
		"the API server has no usable %s of %s, which scheduler %s needs",
		"Install that scheduler with its CRDs, for Kubernetes enable its feature gates and API, or create the cluster without spec.scheduler", nil,
	}
	SchedulerForbidden = Reason{
		"SchedulerForbidden", Warning, "The operator has no right to manage the objects that the cluster's scheduler uses for gangs.",
		"the operator may not read %s of %s: %s",
		"Add %s to the chart's value schedulers", nil,
	}
	GangFixed = Reason{
		"GangFixed", Warning, "The size of the gang has changed, and this version of Kubernetes allows no change of its PodGroup.",
		"%s was created for another number of pods than the %d that the cluster needs now, and is immutable in Kubernetes 1.36",
		"Suspend and resume the cluster, or upgrade to Kubernetes 1.37; running pods stay as they are", nil,
	}
	QueueBlocked = Reason{
		"QueueBlocked", Warning, "The object has the label of a Kueue queue, and cannot wait there or cannot follow its admission.",
		"cannot wait in LocalQueue %s: %s",
		"Correct its labels or its spec, create what is missing, or remove the label kueue.x-k8s.io/queue-name", nil,
	}
	RayUnverified = Reason{
		"RayUnverified", Warning, "The cluster's Ray is a later release, a pre-release, a nightly or a custom build.",
		"Ray %s is not one of the releases that the operator was verified with (%s): the protocols of autoscaling, planned exits, jobs, services and control stores may differ",
		"Use one of these, or test what you need before you rely on it", nil,
	}
	Terminating = Reason{
		"Terminating", Warning, "A pod is still terminating 30 s after its grace period ended.",
		"has been terminating since %s on node %s",
		"Check the node; if it is permanently gone, delete the Node or taint it node.kubernetes.io/out-of-service", nil,
	}
)

func obstacles() Section {
	return Section{"Problems of a cluster", []Reason{
		InvalidSpec, SpecRefused, RecordDamaged, NameConflict, SchedulerMissing, SchedulerForbidden, TokenSecretInvalid, TokenMissing,
		CAMissing, HeadFailing, Terminating, TokenChanged, GangFixed, HeadOutdated, PodsOutdated, RayUnverified, QueueBlocked,
	}}
}

// Progress of a cluster.
var (
	HeadMissing = Reason{
		"HeadMissing", Progress, "The head pod is not created yet.", "there is no head pod yet", "", nil,
	}
	HeadStarting = Reason{
		"HeadStarting", Progress, "The head pod exists, and Ray does not answer yet.", "head pod %s is starting", "", nil,
	}
	WorkersStarting = Reason{
		"WorkersStarting", Progress, "Fewer workers than desired have joined, and no problem is known.",
		"%d of %d workers are ready", "", nil,
	}
	RollingOut = Reason{
		"RollingOut", Progress, "RollingWorkers replaces workers.",
		"%d of %d workers are up to date; group %s is being replaced", "", nil,
	}
	RollWaiting = Reason{
		"RollWaiting", Progress, "RollingWorkers does not continue with the next group, because an earlier one is not complete.",
		"%d of %d pods were built from an earlier spec, and the replacement waits for group %s with %d of %d replicas ready",
		"Check in status.groups what it waits for; suspend the group to continue without it", nil,
	}
	Resizing = Reason{
		"Resizing", Progress, "Workers are resized to more CPU or memory while they run.",
		"%d of %d pods are being resized while they run", "", nil,
	}
	Recreating = Reason{
		"Recreating", Progress, "Recreate replaces all pods at once.",
		"epoch %d starts: head and workers are recreated from the current spec", "", nil,
	}
	Draining = Reason{
		"Draining", Progress, "Workers on a planned exit finish their running work.",
		"%d workers of %s finish their work before they are removed", "", nil,
	}
	Suspending = Reason{
		"Suspending", Progress, "The cluster is being suspended.", "%d pods are still terminating", "", nil,
	}
	Queued = Reason{
		"Queued", Progress, "Kueue has not admitted the object, or has reclaimed its quota.", "waits in LocalQueue %s: %s", "", nil,
	}
	IdleSoon = Reason{
		"IdleSoon", Progress, "The cluster is idle, and its idle policy will act.",
		"idle since %s; will be %s at %s", "Use the cluster, or change idlePolicy, to keep it", nil,
	}
	IdleKept = Reason{
		"IdleKept", Progress, "The cluster is idle, and its annotation heliostat.dev/keep-until keeps it from its idle policy.",
		"idle since %s; kept until %s at the request of %s, and %s then", "Remove the annotation heliostat.dev/keep-until to let idlePolicy act", nil,
	}
	IdleLimitReached = Reason{
		"IdleLimitReached", Progress, "The cluster has been idle for afterSeconds of its idle policy, whose action is None.",
		"idle since %s; the idle policy only reports", "", nil,
	}
)

func passing() Section {
	return Section{"Progress of a cluster", []Reason{
		HeadMissing, HeadStarting, Recreating, RollingOut, RollWaiting, Resizing, WorkersStarting, Draining, Suspending, Queued, IdleSoon, IdleKept, IdleLimitReached,
	}}
}

// Good states of a cluster.
var (
	AllReady = Reason{
		"AllReady", Fine, "Head and all desired workers are ready.", "head and %d of %d workers are ready", "", nil,
	}
	HeadReady    = Reason{"HeadReady", Fine, "The head answers.", "head pod %s answers", "", nil}
	WorkersReady = Reason{"WorkersReady", Fine, "All desired workers have joined.", "%d of %d workers are ready", "", nil}
	ScalingUp    = Reason{
		"ScalingUp", Fine, "The head and as many workers as each group must have are ready; the autoscaler has asked for more.",
		"%d of %d workers are ready, as many as must be; the autoscaler has asked for the others%s", "", nil,
	}
	PodsUpToDate    = Reason{"PodsUpToDate", Fine, "No pod is out of date.", "every pod was built from the current spec", "", nil}
	NotStalled      = Reason{"NotStalled", Fine, "Nothing keeps the operator from going on.", "the operator goes on by itself, or has nothing left to do", "", nil}
	Settled         = Reason{"Settled", Fine, "The condition does not hold, and nothing is left to do.", "nothing is left to do", "", nil}
	SuspendedBySpec = Reason{
		"SuspendedBySpec", Fine, "spec.suspend is true and no pod is left.",
		"suspended by spec.suspend", "Set spec.suspend to false to resume", nil,
	}
	SuspendedIdle = Reason{
		"SuspendedIdle", Fine, "The idle policy suspended the cluster and no pod is left.",
		"suspended by the idle policy; idle since %s", "Change the annotation heliostat.dev/resume or the spec to resume", nil,
	}
	GroupSuspended = Reason{
		"GroupSuspended", Fine, "The group's suspend is true.", "the group is suspended", "Set its suspend to false to resume", nil,
	}
)

func states() Section {
	return Section{"Good states of a cluster", []Reason{
		AllReady, HeadReady, WorkersReady, ScalingUp, PodsUpToDate, NotStalled, Settled, SuspendedBySpec, SuspendedIdle, GroupSuspended,
	}}
}

// Events of a cluster.
var (
	HeadLost = Reason{
		"HeadLost", Warning, "The head is lost, and with it the Ray session and its work. For an attempt of a job: it may have run.",
		"head pod %s is lost, and with it its Ray session: %s", "", nil,
	}
	WorkerFailed = Reason{
		"WorkerFailed", Warning, "A worker pod failed.", "worker pod %s failed and is replaced: %s", "", nil,
	}
	NodeDraining = Reason{
		"NodeDraining", Progress, "A worker is drained, because a taint announces the removal of its node.",
		"worker pod %s is drained and replaced: its node %s will be removed (taint %s)", "", nil,
	}
	Retired = Reason{
		"Retired", Progress, "A worker starts a planned exit.", "worker pod %s is drained and then removed, as its annotation %s requests", "", nil,
	}
	NeverStarted = Reason{
		"NeverStarted", Progress, "Pods that never ran, or ended before they were ready, are replaced, because their spec was corrected.",
		"%s was never ready: replaced, because the spec has changed since", "", nil,
	}
	HeadReplaced = Reason{"HeadReplaced", Fine, "A head was created for a new epoch.", "head pod %s was created for epoch %d", "", nil}
	BudgetLifted = Reason{
		"BudgetLifted", Progress, "The PodDisruptionBudget of the head is removed, because a taint announces the removal of its node.",
		"the PodDisruptionBudget of head pod %s is removed, because its node %s will be removed: an eviction ends the Ray session", "", nil,
	}
	DeletedIdle = Reason{
		"DeletedIdle", Warning, "The idle policy deleted the cluster.", "idle since %s; the idle policy deletes the cluster", "", nil,
	}
	Resumed = Reason{"Resumed", Fine, "A suspended cluster runs again.", "the cluster is resumed (%s); epoch %d starts", "", nil}
)

func events() Section {
	return Section{"Events of a cluster", []Reason{
		HeadLost, WorkerFailed, NeverStarted, NodeDraining, Retired, BudgetLifted, HeadReplaced, Resumed, DeletedIdle,
	}}
}
