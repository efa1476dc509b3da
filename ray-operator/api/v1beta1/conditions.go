package v1beta1

// Condition types of a ComputeCluster. Ready, Reconciling and Stalled follow
// kstatus, so that kubectl wait, Argo CD and Flux understand them.
const (
	// ConditionReady is True when the head and all wanted workers are ready. Absent while the object is
	// suspended, so that clients that wait for it do not wait for ever.
	ConditionReady = "Ready"
	// ConditionReconciling is True while the operator works towards the spec.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True when nothing will change until a user acts, and while a head crash-loops.
	ConditionStalled = "Stalled"
	// ConditionHeadReady is True when the head answers and accepts work.
	ConditionHeadReady = "HeadReady"
	// ConditionWorkersReady is True when every wanted worker has joined.
	ConditionWorkersReady = "WorkersReady"
	// ConditionUpToDate is True when every pod was built from the current spec. Of a ClusterJob it is False while the API server
	// refuses to make or to change a claim of its shared volumes, and absent otherwise.
	ConditionUpToDate = "UpToDate"
	// ConditionControlStoreReady is True while the control store works, False with
	// a remedy while it does not, and Unknown until that is known. Absent without a store.
	ConditionControlStoreReady = "ControlStoreReady"
	// ConditionAutoscaling is True while the autoscaler of the current head decides the number of workers,
	// and False with a remedy while it does not. Absent without autoscaling.
	ConditionAutoscaling = "Autoscaling"
	// ConditionInvalidSpec is True while the operator refuses a spec that an earlier operator accepted. The cluster continues
	// as before.
	ConditionInvalidSpec = "InvalidSpec"
	// ConditionNameConflict is True while an object of another owner has a name that the
	// cluster needs. Absent otherwise.
	ConditionNameConflict = "NameConflict"
	// ConditionVolumeNotReady is True while pods cannot mount a shared volume. Absent otherwise.
	ConditionVolumeNotReady = "VolumeNotReady"
	// ConditionSuspended is True while the cluster has no pods because it is suspended,
	// and False with the time before its idle policy suspends it.
	ConditionSuspended = "Suspended"
	// ConditionVersionMismatch is True while workers cannot join because their versions of Ray or
	// Python differ from the head's. Absent otherwise.
	ConditionVersionMismatch = "VersionMismatch"
	// ConditionHistoryReady is True while the archive keeps all that it is to keep of the cluster, and False with a remedy
	// while it does not. No phase waits for it. Absent without history.
	ConditionHistoryReady = "HistoryReady"
	// ConditionRayUnverified is True while the cluster's Ray is none of the releases that the
	// operator was verified with. Absent otherwise.
	ConditionRayUnverified = "RayUnverified"
)

// Condition types of a ClusterJob, beside Ready, Reconciling, Stalled, Suspended and UpToDate. Ready
// is True when the job has succeeded.
const (
	// ConditionComplete is True when the job has succeeded.
	ConditionComplete = "Complete"
	// ConditionFailed is True when the job has ended in any other way.
	ConditionFailed = "Failed"
	// ConditionFinished is True when the job has ended, in whatever way. A client that waits for it waits for no longer
	// than the job runs.
	ConditionFinished = "Finished"
)

// Condition types of a ClusterService, beside Ready, Reconciling, Stalled, Suspended and
// NameConflict. Ready is True while all applications of the active version run
// and at least one endpoint is ready.
const (
	// ConditionUpgrading is True while traffic moves to another version, or back.
	ConditionUpgrading = "Upgrading"
	// ConditionRolledBack is True while the version of the spec was rolled back, because it
	// failed. It is not retried until the spec changes.
	ConditionRolledBack = "RolledBack"
	// ConditionGatewayProgrammed is True while the gateway has accepted the current route of the service,
	// and False with a remedy while it has not. Absent without a gateway.
	ConditionGatewayProgrammed = "GatewayProgrammed"
)

// Phases of a ComputeCluster: one word for people. The set is open; programs
// read conditions.
const (
	PhasePending    = "Pending"
	PhaseStarting   = "Starting"
	PhaseReady      = "Ready"
	PhaseRecovering = "Recovering"
	PhaseUpdating   = "Updating"
	PhaseSuspending = "Suspending"
	PhaseSuspended  = "Suspended"
	PhaseFailed     = "Failed"
)

// Phases of a ClusterJob: one word for people. The set is open; programs read
// conditions. PhasePending, PhaseSuspending, PhaseSuspended and PhaseFailed are theirs too.
const (
	PhaseProvisioning = "Provisioning"
	PhaseSubmitting   = "Submitting"
	PhaseGathering    = "Gathering"
	PhaseRunning      = "Running"
	PhaseRetrying     = "Retrying"
	PhaseSucceeded    = "Succeeded"
	PhaseStopped      = "Stopped"
)

// Phases of a ClusterService: one word for people. The set is open; programs read conditions.
// PhasePending, PhaseStarting, PhaseReady, PhaseSuspending and PhaseSuspended are theirs too.
const (
	PhaseUpgrading   = "Upgrading"
	PhaseRollingBack = "RollingBack"
	PhaseDegraded    = "Degraded"
	PhaseDeleting    = "Deleting"
)
