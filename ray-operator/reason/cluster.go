package reason

// What keeps a cluster from being as it should.
var (
	InvalidSpec = Reason{
		"InvalidSpec", Warning, "A rule that admission could not check is broken, such as one inside a pod template.",
		"the spec cannot be carried out: %s",
		"Correct the spec; running pods are left as they are", nil,
	}
	SpecRefused = Reason{
		"SpecRefused", Warning, "The rules of this operator are stricter than those of the one before. The cluster goes on: it is suspended, healed and scaled.",
		"this operator refuses the spec, which an earlier one accepted: %s",
		"Correct the spec; until then the cluster goes on as before", nil,
	}
	NameConflict = Reason{
		"NameConflict", Warning, "An object of a name that the cluster needs belongs to someone else. It is never touched.",
		"%s exists and does not belong to this cluster",
		"Delete it if nobody needs it, or create the cluster under another name", nil,
	}
	RecordDamaged = Reason{
		"RecordDamaged", Warning, "Someone changed the annotation in which the operator keeps what it cannot see elsewhere.",
		"the annotation heliostat.dev/record cannot be read: %s",
		"Remove the annotation; it is restored from the status. Running pods are left as they are", nil,
	}
	HeadFailing = Reason{
		"HeadFailing", Warning, "The head has not become ready for ten minutes, and ends again and again. The operator goes on trying.",
		"the head has not become ready for 10 minutes, and ended %d times",
		"See its log with kubectl logs --previous, and correct the spec; the operator goes on trying", nil,
	}
	CAMissing = Reason{
		"CAMissing", Warning, "The Secret with the cluster's certificate authority was deleted while pods, or a managed Redis, have certificates of it.",
		"Secret %s with the cluster's certificate authority is gone, so no new pod could join those that run",
		"Restore the Secret, or suspend the cluster and resume it to start with a new one", nil,
	}
	TokenMissing = Reason{
		"TokenMissing", Warning, "The Secret that the operator made for the token was deleted while the head lives.",
		"Secret %s with the cluster's token is gone, so no new pod could join the running head",
		"Restore the Secret, or delete the head pod to start afresh with a new token", nil,
	}
	TokenSecretInvalid = Reason{
		"TokenSecretInvalid", Warning, "The Secret named in authentication.secretName is not there or does not hold a token.",
		"Secret %s of authentication.secretName %s",
		"Create it with the token under the key auth_token", nil,
	}
	TokenChanged = Reason{
		"TokenChanged", Warning, "The content of the token's Secret is not what the running pods were started with.",
		"the token in Secret %s is not the one that %d of %d pods were started with, and a pod keeps its own",
		"Delete the head pod when it suits you; head and workers start afresh with the new token", nil,
	}
	PodsOutdated = Reason{
		"PodsOutdated", Warning, "Pods run that were built from an earlier spec, and the upgrade strategy is OnDelete.",
		"%d of %d pods were built from an earlier spec: %s",
		"Delete them when it suits you; their successors follow the current spec", nil,
	}
	HeadOutdated = Reason{
		"HeadOutdated", Warning, "RollingWorkers does not go on, because the head itself was built from an earlier spec.",
		"%d of %d pods were built from an earlier spec (%s), the head among them, and workers are not rolled past their head",
		"Delete the head pod when it suits you; head and workers start afresh with the current spec", nil,
	}
	SchedulerMissing = Reason{
		"SchedulerMissing", Warning, "The API server does not know the kind by which the cluster's scheduler knows a gang, or no version of it that the operator writes.",
		"the API server has no usable %s of %s, without which scheduler %s places nothing",
		"Install that scheduler with its CRDs, for Kubernetes turn on its feature gates and API, or make the cluster without spec.scheduler", nil,
	}
	SchedulerForbidden = Reason{
		"SchedulerForbidden", Warning, "The operator has no right to keep the objects by which the cluster's scheduler knows gangs.",
		"the operator may not read %s of %s: %s",
		"Add %s to the chart's value schedulers", nil,
	}
	GangFixed = Reason{
		"GangFixed", Warning, "The gang has another size by now, and this version of Kubernetes takes no change of its PodGroup.",
		"%s was made for another number of pods than the %d that the cluster needs now, and Kubernetes 1.36 changes none",
		"Suspend the cluster and resume it, or move to Kubernetes 1.37; pods that run are left as they are", nil,
	}
	QueueBlocked = Reason{
		"QueueBlocked", Warning, "The object has the label of a queue of Kueue, and cannot wait there or cannot follow its admission.",
		"cannot wait in LocalQueue %s: %s",
		"Correct its labels or its spec, create what is missing, or remove the label kueue.x-k8s.io/queue-name", nil,
	}
	RayUnverified = Reason{
		"RayUnverified", Warning, "The cluster's Ray is a later release, a pre-release, a nightly or a build of one's own.",
		"Ray %s is not one of the releases that the operator was verified with (%s): the protocols of autoscaling, planned exits, jobs, services and control stores may differ",
		"Use one of these, or try what you need before you rely on it", nil,
	}
	Terminating = Reason{
		"Terminating", Warning, "A pod that was told to go is still there half a minute after its grace period.",
		"has been terminating since %s on node %s",
		"See whether the node is well; if it is gone for good, delete the Node or taint it node.kubernetes.io/out-of-service", nil,
	}
)

func obstacles() Section {
	return Section{"What keeps a cluster from being as it should", []Reason{
		InvalidSpec, SpecRefused, RecordDamaged, NameConflict, SchedulerMissing, SchedulerForbidden, TokenSecretInvalid, TokenMissing,
		CAMissing, HeadFailing, Terminating, TokenChanged, GangFixed, HeadOutdated, PodsOutdated, RayUnverified, QueueBlocked,
	}}
}

// What is on its way by itself.
var (
	HeadMissing = Reason{
		"HeadMissing", Progress, "The head pod has not been made yet.", "there is no head pod yet", "", nil,
	}
	HeadStarting = Reason{
		"HeadStarting", Progress, "The head pod is there and Ray does not answer yet.", "head pod %s is starting", "", nil,
	}
	WorkersStarting = Reason{
		"WorkersStarting", Progress, "Fewer workers than wanted have joined, and nothing is known to be wrong.",
		"%d of %d workers are ready", "", nil,
	}
	RollingOut = Reason{
		"RollingOut", Progress, "RollingWorkers replaces workers.",
		"%d of %d workers are up to date; group %s is being replaced", "", nil,
	}
	RollWaiting = Reason{
		"RollWaiting", Progress, "RollingWorkers does not go on to the next group, because an earlier one is not complete.",
		"%d of %d pods were built from an earlier spec, and the replacement waits for group %s, of which %d of %d replicas are ready",
		"See in status.groups what it waits for; suspend the group to go on without it", nil,
	}
	Resizing = Reason{
		"Resizing", Progress, "Workers get more CPU or memory while they run.",
		"%d of %d pods are given their new size while they run", "", nil,
	}
	Recreating = Reason{
		"Recreating", Progress, "Recreate replaces all pods at once.",
		"epoch %d begins: head and workers are recreated from the current spec", "", nil,
	}
	Draining = Reason{
		"Draining", Progress, "Workers on a planned exit finish what runs on them.",
		"%d workers of %s finish their work before they go", "", nil,
	}
	Suspending = Reason{
		"Suspending", Progress, "The cluster is being suspended.", "%d pods are still going", "", nil,
	}
	Queued = Reason{
		"Queued", Progress, "Kueue has not admitted the object, or has taken its quota back.", "waits in LocalQueue %s: %s", "", nil,
	}
	IdleSoon = Reason{
		"IdleSoon", Progress, "The cluster is idle, and its idle policy is going to act.",
		"idle since %s; will be %s at %s", "Use the cluster, or change idlePolicy, to keep it", nil,
	}
	IdleLimitReached = Reason{
		"IdleLimitReached", Progress, "The cluster has been idle for as long as its idle policy says, whose action is None.",
		"idle since %s; the idle policy only tells", "", nil,
	}
)

func passing() Section {
	return Section{"What is on its way by itself", []Reason{
		HeadMissing, HeadStarting, Recreating, RollingOut, RollWaiting, Resizing, WorkersStarting, Draining, Suspending, Queued, IdleSoon, IdleLimitReached,
	}}
}

// States of a cluster that is as it should be.
var (
	AllReady = Reason{
		"AllReady", Fine, "Head and all wanted workers are ready.", "head and %d of %d workers are ready", "", nil,
	}
	HeadReady       = Reason{"HeadReady", Fine, "The head answers.", "head pod %s answers", "", nil}
	WorkersReady    = Reason{"WorkersReady", Fine, "All wanted workers have joined.", "%d of %d workers are ready", "", nil}
	PodsUpToDate    = Reason{"PodsUpToDate", Fine, "No pod is out of date.", "every pod was built from the current spec", "", nil}
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
	return Section{"States that need nothing", []Reason{
		AllReady, HeadReady, WorkersReady, PodsUpToDate, Settled, SuspendedBySpec, SuspendedIdle, GroupSuspended,
	}}
}

// Changes that a person gains by being told of, as events.
var (
	HeadLost = Reason{
		"HeadLost", Warning, "The head is gone, and with it the Ray session and what ran in it. Of an attempt of a job: it may have run.",
		"head pod %s is lost, and with it its Ray session: %s", "", nil,
	}
	WorkerFailed = Reason{
		"WorkerFailed", Warning, "A worker pod ended as a whole.", "worker pod %s failed and is replaced: %s", "", nil,
	}
	NodeDraining = Reason{
		"NodeDraining", Progress, "A worker leaves a node that announces by a taint that it is about to go.",
		"worker pod %s is drained and replaced: its node %s is going (taint %s)", "", nil,
	}
	Retired = Reason{
		"Retired", Progress, "A worker begins a planned exit.", "worker pod %s is drained and then removed, as its annotation %s asks", "", nil,
	}
	HeadReplaced = Reason{"HeadReplaced", Fine, "A head was made for a new epoch.", "head pod %s was made for epoch %d", "", nil}
	BudgetLifted = Reason{
		"BudgetLifted", Progress, "The PodDisruptionBudget of the head is removed, because its node is going.",
		"the budget of head pod %s is lifted, because its node %s is going: an eviction ends the Ray session", "", nil,
	}
	DeletedIdle = Reason{
		"DeletedIdle", Warning, "The idle policy deleted the cluster.", "idle since %s; the idle policy deletes the cluster", "", nil,
	}
	Resumed = Reason{"Resumed", Fine, "A suspended cluster runs again.", "the cluster is resumed (%s); epoch %d begins", "", nil}
)

func events() Section {
	return Section{"Changes, told by events", []Reason{
		HeadLost, WorkerFailed, NodeDraining, Retired, BudgetLifted, HeadReplaced, Resumed, DeletedIdle,
	}}
}
