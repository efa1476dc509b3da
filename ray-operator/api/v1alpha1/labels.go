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
	// LabelEpoch is the number of the head that the pod belongs to, counted from 1.
	LabelEpoch = "heliostat.dev/epoch"
)

// Values of LabelRole.
const (
	RoleHead   = "head"
	RoleWorker = "worker"
)

// Annotations.
const (
	// AnnotationRecord holds, on a ComputeCluster, the facts that are neither spec
	// nor observable: versioned JSON of at most 4 KiB. Written by the operator only.
	AnnotationRecord = "heliostat.dev/record"
	// AnnotationIntent holds, on a pod, the versioned hash of the user's intent that
	// the pod was built from.
	AnnotationIntent = "heliostat.dev/intent"
)

// TokenKey is the key of the authentication token in a cluster's token Secret,
// named as Ray's own tools expect it.
const TokenKey = "auth_token"

// ContainerRay is the name of the container that runs Ray in every pod.
const ContainerRay = "ray"
