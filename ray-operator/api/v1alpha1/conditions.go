package v1alpha1

// Condition types of a ComputeCluster. Ready, Reconciling and Stalled follow
// kstatus, so that kubectl wait, Argo CD and Flux understand them.
const (
	// ConditionReady is True when the head and all wanted workers are ready. Absent of what is suspended, which is as its
	// spec says: who waits for it would wait for ever.
	ConditionReady = "Ready"
	// ConditionReconciling is True while the operator works towards the spec.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True when nothing will change until a person acts, and while a head ends again and again.
	ConditionStalled = "Stalled"
	// ConditionHeadReady is True when the head answers and takes work.
	ConditionHeadReady = "HeadReady"
	// ConditionWorkersReady is True when every wanted worker has joined.
	ConditionWorkersReady = "WorkersReady"
	// ConditionUpToDate is True when every pod was built from the spec as it is now.
	ConditionUpToDate = "UpToDate"
	// ConditionControlStoreReady is True while the store behind the head serves, False with
	// what helps while it does not, and Unknown until that is known. Absent without a store.
	ConditionControlStoreReady = "ControlStoreReady"
	// ConditionAutoscaling is True while the autoscaler of the live head says how many workers
	// there are, and False with what helps while nobody does. Absent without autoscaling.
	ConditionAutoscaling = "Autoscaling"
	// ConditionInvalidSpec is True while the operator refuses a spec that an earlier operator accepted. The cluster goes on
	// as before.
	ConditionInvalidSpec = "InvalidSpec"
	// ConditionNameConflict is True while an object that is not the cluster's own
	// stands under a name that the cluster needs. Absent otherwise.
	ConditionNameConflict = "NameConflict"
	// ConditionSuspended is True while the cluster has no pods because it is suspended,
	// and False with the time ahead where its idle policy will suspend it.
	ConditionSuspended = "Suspended"
	// ConditionVersionMismatch is True while workers refuse to join because they hold
	// another version of Ray or Python than the head. Absent otherwise.
	ConditionVersionMismatch = "VersionMismatch"
	// ConditionRayUnverified is True while the cluster's Ray is none of the releases that the
	// operator was verified with. Absent otherwise.
	ConditionRayUnverified = "RayUnverified"
)

// Condition types of a ClusterJob, beside Ready, Reconciling, Stalled and Suspended. Ready
// is True when the job has succeeded.
const (
	// ConditionComplete is True when the job has succeeded.
	ConditionComplete = "Complete"
	// ConditionFailed is True when the job has come to any other end.
	ConditionFailed = "Failed"
)

// Condition types of a ClusterService, beside Ready, Reconciling, Stalled, Suspended and
// NameConflict. Ready is True while all applications of the version that has the requests run
// and there is a pod to answer.
const (
	// ConditionUpgrading is True while another version is on its way to the requests or back.
	ConditionUpgrading = "Upgrading"
	// ConditionRolledBack is True while what the spec asks for was taken back, because it
	// failed; it is not tried again until the spec is changed.
	ConditionRolledBack = "RolledBack"
	// ConditionGatewayProgrammed is True while the gateway has taken the service's route as it
	// is, and False with what helps while it has not. Absent where no gateway is asked for.
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
