package v1beta1

import "time"

// Labels on every object that the operator creates for a cluster. They are for
// selectors: only the owner reference's UID decides ownership.
const (
	// LabelCluster is the ComputeCluster's name.
	LabelCluster = "heliostat.dev/cluster"
	// LabelRole is RoleHead or RoleWorker.
	LabelRole = "heliostat.dev/role"
	// LabelGroup is the name of the worker's group.
	LabelGroup = "heliostat.dev/group"
	// LabelSlot is the worker's slot in its group, counted from 0.
	LabelSlot = "heliostat.dev/slot"
	// LabelReplica is the number of the worker's replica, counted from 0, in a group with
	// more than one host per replica; LabelHost its number in that replica.
	LabelReplica = "heliostat.dev/replica"
	LabelHost    = "heliostat.dev/host"
	// LabelClusterUID is the ComputeCluster's UID, on its pods, because another cluster may have the same name later.
	LabelClusterUID = "heliostat.dev/cluster-uid"
	// LabelEpoch is the number of the head that the pod belongs to, counted from 1.
	LabelEpoch = "heliostat.dev/epoch"
	// LabelStore is, on the objects of a managed control store, the ComputeCluster's name. Its pod
	// has no LabelCluster, because it is not part of the Ray cluster.
	LabelStore = "heliostat.dev/store"
	// LabelVolume is, on a PersistentVolumeClaim that the operator made for a shared volume, the volume's name.
	LabelVolume = "heliostat.dev/volume"
	// AnnotationVolumeOwner is, on a PersistentVolumeClaim that the operator made for a shared volume, the UID of the ComputeCluster
	// or ClusterJob that it was made for.
	AnnotationVolumeOwner = "heliostat.dev/volume-owner"
	// LabelNote is, on a ConfigMap in the operator's namespace, the UID of the ComputeCluster whose
	// keys in a Redis it records.
	LabelNote = "heliostat.dev/store-note"
	// LabelPreset, with any value, is on a ConfigMap that holds a preset for the server.
	LabelPreset = "heliostat.dev/preset"
	// LabelJob is, on the ComputeCluster and the PersistentVolumeClaims of a ClusterJob, the job's name.
	LabelJob = "heliostat.dev/job"
	// LabelService is, on the objects of a ClusterService, the service's name.
	LabelService = "heliostat.dev/service"
	// LabelSchedule is, on a ClusterJob of a ClusterJobSchedule, the schedule's name.
	LabelSchedule = "heliostat.dev/schedule"
	// LabelServePrefix, with a ClusterService's name after it, is on pods whose proxy accepts
	// requests for that service. The value is ServeOn. The service's Service selects it.
	LabelServePrefix = "serve.heliostat.dev/"
	// LabelRoutePrefix, with a ClusterService's name after it, is on pods whose proxy accepts
	// requests for that service from a gateway. The value is ServeOn. The Services of the
	// service's versions select it.
	LabelRoutePrefix = "route.heliostat.dev/"
)

// LabelPrivileged, with the value PrivilegedAllowed, is on a Namespace in which the operator may create pods that reach the
// node or other namespaces. An administrator sets it.
const (
	LabelPrivileged   = "heliostat.dev/privileged"
	PrivilegedAllowed = "allowed"
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
	// AnnotationRecord holds, on an object of our kinds, facts that are neither in the spec nor
	// observable: versioned JSON of at most 4 KiB. Only the operator writes it.
	AnnotationRecord = "heliostat.dev/record"
	// AnnotationIntent holds, on a pod, the versioned hash of the user's intent that
	// the pod was built from.
	AnnotationIntent = "heliostat.dev/intent"
	// AnnotationShape holds, on a worker pod, the hash of the user's intent without CPU and
	// memory, which can be changed while the pod runs.
	AnnotationShape = "heliostat.dev/intent-shape"
	// AnnotationRetire requests the planned exit of a worker pod: it is drained through
	// Ray and then deleted. Any client that may edit the pod may set it, to any value.
	AnnotationRetire = "heliostat.dev/retire"
	// AnnotationDrain marks a worker pod on its planned exit: when and why it started, as
	// versioned JSON. Only the operator writes it.
	AnnotationDrain = "heliostat.dev/drain"
	// AnnotationFailures counts, on a worker pod, consecutive earlier pods in its group that ended soon after their
	// creation. Only the operator writes it.
	AnnotationFailures = "heliostat.dev/failures"
	// AnnotationResume resumes a ComputeCluster that its idle policy suspended, each time that its value changes.
	// The value may be any text, such as the time.
	AnnotationResume = "heliostat.dev/resume"
	// AnnotationKeepUntil keeps the idle policy of a ComputeCluster from acting before a time, in RFC 3339 and at most
	// MaxKeep ahead. AnnotationKeepRequestedBy names who asked for that. It is not verified: any client that may edit the
	// cluster may set both.
	AnnotationKeepUntil       = "heliostat.dev/keep-until"
	AnnotationKeepRequestedBy = "heliostat.dev/keep-requested-by"
	// AnnotationRetry retries the version of a ClusterService that was rolled back, each time that its value changes. The
	// value may be any text, such as the time.
	AnnotationRetry = "heliostat.dev/retry"
	// AnnotationOwner names, on an object of any kind of ours, the user who created it. It is not verified: any client
	// that may edit the object may set it.
	AnnotationOwner = "heliostat.dev/owner"
	// AnnotationStop, with the value StopOn, stops a ClusterJob for good. Any client that may
	// edit the job may set it.
	AnnotationStop = "heliostat.dev/stop"
	// AnnotationScheduledAt is, on a ClusterJob of a ClusterJobSchedule, the time that the job stands for, in RFC 3339 with
	// the offset of the schedule's zone.
	AnnotationScheduledAt = "heliostat.dev/scheduled-at"
	// AnnotationRetryOf names, on a ClusterJob that the server created as a retry of an ended job, the first job of the
	// series.
	AnnotationRetryOf = "heliostat.dev/retry-of"
	// AnnotationRequest holds, on an object that was created with an Idempotency-Key, a hash of the request.
	AnnotationRequest = "heliostat.dev/request"
	// AnnotationRetainedBy names, on the ComputeCluster of a ClusterJob that has ended, what retains the cluster and
	// until when.
	AnnotationRetainedBy = "heliostat.dev/retained-by"
	// AnnotationReleasedAt is, on the ComputeCluster of a ClusterJob, when the job released it: it is
	// suspended first, and then deleted.
	AnnotationReleasedAt = "heliostat.dev/released-at"
	// AnnotationRevisionCluster holds, on a ComputeCluster of a ClusterService, its number among the service's
	// clusters, counted from 1.
	AnnotationRevisionCluster = "heliostat.dev/revision-cluster"
	// AnnotationFullReplicas holds, on a ComputeCluster of a ClusterService with less than its full capacity, the
	// replicas of each group at full capacity, as JSON.
	AnnotationFullReplicas = "heliostat.dev/full-replicas"
	// AnnotationStartup holds, on a ComputeCluster of a ClusterService, a hash of the options
	// that Serve read at its first start there.
	AnnotationStartup = "heliostat.dev/startup"
	// AnnotationRestart holds, on the head pod of a cluster of a ClusterService, the same hash of
	// the options that Serve must read, if they differ from those at the cluster's creation.
	// Another value replaces the pod, so that Serve starts again.
	AnnotationRestart = "serve.heliostat.dev/startup"
	// AnnotationClosed is, on a pod that no longer accepts requests for a ClusterService, since when,
	// in RFC 3339. Only the operator writes it.
	AnnotationClosed = "serve.heliostat.dev/closed"
	// AnnotationToken holds, on a pod, a short hash of the token that it was started with.
	AnnotationToken = "heliostat.dev/token" //nolint:gosec // the name of an annotation
	// AnnotationEncryption is Enabled on a pod that uses TLS. No template can set it.
	AnnotationEncryption = "heliostat.dev/encryption"
	// AnnotationApplied holds, on an object of a fixed name, the hash of what the operator
	// last applied to it.
	AnnotationApplied = "heliostat.dev/applied"
)

// MaxKeep is how far ahead AnnotationKeepUntil may be. A time further ahead has no effect until it is that near.
const MaxKeep = 7 * 24 * time.Hour

// StopOn is the value of AnnotationStop that stops the job.
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

// ContainerHistory is the name of the container that sends Ray's files to the archive.
const ContainerHistory = "heliostat-history"

// FinalizerRun keeps a ClusterJob on a shared cluster until its run is stopped, or could
// not be stopped for a stated time.
const FinalizerRun = "heliostat.dev/run"

// FinalizerServe keeps a ClusterService until its requests in flight have ended, and its applications
// are removed from a shared cluster, or could not be removed for a stated time.
const FinalizerServe = "heliostat.dev/serve"

// Environment of a job's driver and its tasks.
const (
	// EnvJobName is the ClusterJob's name, EnvJobAttempt the attempt's number, from 1.
	EnvJobName    = "HELIOSTAT_JOB_NAME"
	EnvJobAttempt = "HELIOSTAT_JOB_ATTEMPT"
	// EnvJobEnds is shell code that the entrypoint begins with: it ends what the driver leaves behind in its process group.
	EnvJobEnds = "HELIOSTAT_JOB_ENDS"
	// EntrypointPrefix is what stands before the user's entrypoint in Ray.
	EntrypointPrefix = `eval "$` + EnvJobEnds + `"; `
	// EnvScheduledAt is, in a job of a ClusterJobSchedule, what AnnotationScheduledAt says.
	EnvScheduledAt = "HELIOSTAT_SCHEDULED_AT"
)
