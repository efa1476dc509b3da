package v1alpha1

// Labels on every object that the operator makes for a cluster. They are for
// selectors; ownership is judged by the owner reference's UID alone.
const (
	// LabelCluster is the ComputeCluster's name.
	LabelCluster = "heliostat.dev/cluster"
	// LabelRole is RoleHead or RoleWorker.
	LabelRole = "heliostat.dev/role"
	// LabelGroup is the name of the worker's group.
	LabelGroup = "heliostat.dev/group"
	// LabelSlot is the worker's place in its group, counted from 0.
	LabelSlot = "heliostat.dev/slot"
	// LabelReplica is the number of the worker's replica, counted from 0, in a group with
	// more than one host per replica; LabelHost its number in that replica.
	LabelReplica = "heliostat.dev/replica"
	LabelHost    = "heliostat.dev/host"
	// LabelClusterUID is the ComputeCluster's UID, on its pods: another cluster may have the name by now.
	LabelClusterUID = "heliostat.dev/cluster-uid"
	// LabelEpoch is the number of the head that the pod belongs to, counted from 1.
	LabelEpoch = "heliostat.dev/epoch"
	// LabelStore is, on what runs a managed control store, the ComputeCluster's name. Its pod
	// carries no LabelCluster: it is no part of the Ray cluster.
	LabelStore = "heliostat.dev/store"
	// LabelNote is, on a ConfigMap beside the operator, the UID of the ComputeCluster whose
	// keys in a Redis it remembers.
	LabelNote = "heliostat.dev/store-note"
	// LabelPreset, with any value, is on a ConfigMap that holds a preset for the server.
	LabelPreset = "heliostat.dev/preset"
	// LabelJob is, on a ComputeCluster that was made for a ClusterJob, the job's name.
	LabelJob = "heliostat.dev/job"
	// LabelService is, on what was made for a ClusterService, the service's name.
	LabelService = "heliostat.dev/service"
	// LabelServePrefix, with a ClusterService's name after it, is on pods whose proxy takes
	// requests for that service; the value is ServeOn. The service's Service selects it.
	LabelServePrefix = "serve.heliostat.dev/"
	// LabelRoutePrefix, with a ClusterService's name after it, is on pods whose proxy may take
	// requests for that service by way of a gateway; the value is ServeOn. The Services of the
	// service's versions select it.
	LabelRoutePrefix = "route.heliostat.dev/"
)

// ServeOn is the value of a label that begins with LabelServePrefix or LabelRoutePrefix.
const ServeOn = "true"

// Values of LabelRole.
const (
	RoleHead   = "head"
	RoleWorker = "worker"
)

// Annotations.
const (
	// AnnotationRecord holds, on an object with a controller of ours, the facts that are
	// neither spec nor observable: versioned JSON of at most 4 KiB. Written by the operator
	// only.
	AnnotationRecord = "heliostat.dev/record"
	// AnnotationIntent holds, on a pod, the versioned hash of the user's intent that
	// the pod was built from.
	AnnotationIntent = "heliostat.dev/intent"
	// AnnotationShape holds, on a worker pod, the hash of the user's intent without CPU and
	// memory, which can be changed while the pod runs.
	AnnotationShape = "heliostat.dev/intent-shape"
	// AnnotationRetire asks, on a worker pod, for its planned exit: it is drained through
	// Ray and then removed. Any client that may edit the pod may set it, to any value.
	AnnotationRetire = "heliostat.dev/retire"
	// AnnotationDrain marks a worker pod on its planned exit: when and why it began, as
	// versioned JSON. Written by the operator only.
	AnnotationDrain = "heliostat.dev/drain"
	// AnnotationFailures counts, on a worker pod, those before it in its group that ended soon after they were made, one
	// in place of the other. Written by the operator only.
	AnnotationFailures = "heliostat.dev/failures"
	// AnnotationResume wakes, on a ComputeCluster that its idle policy suspended, the
	// cluster each time that its value changes; any text will do, such as the time.
	AnnotationResume = "heliostat.dev/resume"
	// AnnotationRetry tries, on a ClusterService, a version again that was taken back, each time that its value changes; any
	// text will do, such as the time.
	AnnotationRetry = "heliostat.dev/retry"
	// AnnotationOwner names, on an object of the three kinds, who created it. It is what an object says of itself: any client
	// that may edit it may set it.
	AnnotationOwner = "heliostat.dev/owner"
	// AnnotationStop, with the value StopOn, stops a ClusterJob for good. Any client that may
	// edit the job may set it.
	AnnotationStop = "heliostat.dev/stop"
	// AnnotationRetryOf names, on a ClusterJob that the server for portals created from one that had ended, the first job of
	// them.
	AnnotationRetryOf = "heliostat.dev/retry-of"
	// AnnotationRequest holds, on an object that was created with an Idempotency-Key, a hash of what was asked for.
	AnnotationRequest = "heliostat.dev/request"
	// AnnotationRetainedBy says, on a ComputeCluster that a ClusterJob made for itself and keeps
	// after its end, who keeps it and until when.
	AnnotationRetainedBy = "heliostat.dev/retained-by"
	// AnnotationReleasedAt says, on a ComputeCluster that a ClusterJob made for itself, since when
	// the job lets it go: it is suspended first, and then deleted.
	AnnotationReleasedAt = "heliostat.dev/released-at"
	// AnnotationRevisionCluster holds, on a ComputeCluster that was made for a ClusterService, its number
	// among those, counted from 1.
	AnnotationRevisionCluster = "heliostat.dev/revision-cluster"
	// AnnotationFullReplicas holds, on a ComputeCluster that was made for a ClusterService and has less
	// than its whole capacity, how many replicas of each group the whole has, as JSON.
	AnnotationFullReplicas = "heliostat.dev/full-replicas"
	// AnnotationStartup holds, on a ComputeCluster that was made for a ClusterService, a hash of
	// what Serve read at its first start there.
	AnnotationStartup = "heliostat.dev/startup"
	// AnnotationRestart holds, on the head's pod of a cluster that was made for a
	// ClusterService, the same of what Serve must read, where it is not what the cluster was
	// made with: another value makes another pod, in which Serve starts again.
	AnnotationRestart = "serve.heliostat.dev/startup"
	// AnnotationClosed says, on a pod that took requests for a ClusterService and takes none any
	// more, since when, in RFC 3339. Written by the operator only.
	AnnotationClosed = "serve.heliostat.dev/closed"
	// AnnotationToken holds, on a pod, a short hash of the token that it was started with.
	AnnotationToken = "heliostat.dev/token" //nolint:gosec // the name of an annotation
	// AnnotationEncryption has, on a pod, the value Required where it speaks TLS. No template can set it.
	AnnotationEncryption = "heliostat.dev/encryption"
	// AnnotationApplied holds, on an object of a fixed name, the hash of what the operator
	// last applied to it.
	AnnotationApplied = "heliostat.dev/applied"
)

// StopOn is the value of AnnotationStop that asks for the stop.
const StopOn = "true"

// ManagedByOperator is the value of managedBy that lets this operator work.
const ManagedByOperator = "heliostat.dev/operator"

// TokenKey is the key of the authentication token in a cluster's token Secret,
// named as Ray's own tools expect it.
const TokenKey = "auth_token"

// Keys of the Secret of a cluster's certificate authority, PEM each.
const (
	AuthorityCertificateKey = "ca.crt"
	AuthorityKeyKey         = "ca.key"
)

// Keys of the Secret of a managed control store: the passwords of the operator's user and of
// the heads', and the SHA-256 of the first in hexadecimal, which Redis takes in its place.
const (
	StoreOperatorKey = "operator"
	StoreHeadKey     = "head"
	StoreDigestKey   = "operator-sha256"
)

// StoreOperatorUser is the operator's own user in a managed control store.
const StoreOperatorUser = "operator"

// ContainerRay is the name of the container that runs Ray in every pod.
const ContainerRay = "ray"

// ContainerAutoscaler is the name of the container that runs beside Ray in the head's pod of
// a cluster with autoscaling.
const ContainerAutoscaler = "autoscaler"

// Names of the containers that clusters with encryption have beside Ray: the init container that makes a pod's certificate,
// and the one that takes HTTPS for the dashboard of a head.
const (
	ContainerCertificates = "certificates"
	ContainerEncryption   = "encryption"
)

// FinalizerRun keeps a ClusterJob that runs on a cluster that is not its own until its
// run was stopped, or could not be for a stated time. FinalizerFormerRun is what former
// operators gave it as a name: it is honoured and removed, and never added.
const (
	FinalizerRun       = "heliostat.dev/run"
	FinalizerFormerRun = "heliostat.dev/stop"
)

// FinalizerServe keeps a ClusterService until the requests that it has were answered, and its
// applications were taken from a cluster that is not its own, or could not be for a stated time.
const FinalizerServe = "heliostat.dev/serve"

// Environment of a job's driver and its tasks.
const (
	// EnvJobName is the ClusterJob's name, EnvJobAttempt the attempt's number, from 1.
	EnvJobName    = "HELIOSTAT_JOB_NAME"
	EnvJobAttempt = "HELIOSTAT_JOB_ATTEMPT"
)
