package v1beta1

import "k8s.io/apimachinery/pkg/util/intstr"

// ClusterUpgradeType is how pods that were built from an earlier spec are replaced.
//
// +kubebuilder:validation:Enum=None;RollingWorkers;Recreate
type ClusterUpgradeType string

// Types of a cluster's upgrade.
const (
	// ClusterUpgradeNone: not at all. A pod that is deleted or fails is created from the current spec.
	ClusterUpgradeNone ClusterUpgradeType = "None"
	// ClusterUpgradeRollingWorkers: workers are drained and replaced, group by group.
	ClusterUpgradeRollingWorkers ClusterUpgradeType = "RollingWorkers"
	// ClusterUpgradeRecreate: all pods at once.
	ClusterUpgradeRecreate ClusterUpgradeType = "Recreate"
)

// ClusterUpgradeStrategy is how pods that were built from an earlier spec are replaced.
//
// +kubebuilder:validation:XValidation:rule="!has(self.rollingWorkers) || self.type == 'RollingWorkers'",message="rollingWorkers must be used with type RollingWorkers; set that type or leave rollingWorkers out",fieldPath=".rollingWorkers"
// +heliostat:rule=rolling-type
// +union
type ClusterUpgradeStrategy struct {
	// type None keeps them until they are deleted or fail. RollingWorkers drains and replaces workers, group by group, for changes of workers only. Recreate replaces all pods at once when any is out of date, which ends running work.
	// +kubebuilder:default=None
	// +unionDiscriminator
	// +optional
	Type ClusterUpgradeType `json:"type,omitempty"`
	// rollingWorkers sets the pace of RollingWorkers.
	// +optional
	RollingWorkers *RollingWorkers `json:"rollingWorkers,omitempty"`
}

// RollingWorkers is the pace of a rolling replacement, in replicas of a group.
//
// +kubebuilder:validation:XValidation:rule="!(string(self.maxUnavailable) in ['0', '0%']) || !(string(self.maxSurge) in ['0', '0%'])",message="maxUnavailable and maxSurge must not both be 0; set one of them above 0"
// +heliostat:rule=rolling-none
type RollingWorkers struct {
	// maxUnavailable is how many replicas of a group may be unavailable at once: a number, or a percentage of replicas, rounded down. If both it and maxSurge are 0 after rounding, it is 1.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 10000 : self.matches('^(100|[1-9]?[0-9])%$')",message="an amount must be a number from 0 to 10000 or a percentage from 0% to 100%; give one such as 1 or 25%"
	// +heliostat:rule=rolling-amount
	// +kubebuilder:default=1
	// +optional
	MaxUnavailable *intstr.IntOrString `json:"maxUnavailable,omitempty"`
	// maxSurge is how many replicas of a group may exist in addition to replicas: a number, or a percentage of replicas, rounded up.
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:MaxLength=4
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 10000 : self.matches('^(100|[1-9]?[0-9])%$')",message="an amount must be a number from 0 to 10000 or a percentage from 0% to 100%; give one such as 1 or 25%"
	// +heliostat:rule=rolling-amount
	// +kubebuilder:default=0
	// +optional
	MaxSurge *intstr.IntOrString `json:"maxSurge,omitempty"`
}

// IdleAction is what happens to an idle cluster.
//
// +kubebuilder:validation:Enum=Suspend;Delete;None
type IdleAction string

// Idle actions.
const (
	IdleSuspend IdleAction = "Suspend"
	IdleDelete  IdleAction = "Delete"
	IdleNone    IdleAction = "None"
)

// IdlePolicy is what happens to an idle cluster. A cluster is idle when Ray reports no connected driver, running job, detached actor, pending demand or busy worker.
type IdlePolicy struct {
	// afterSeconds is how long the cluster must be idle without interruption.
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=31536000
	// +required
	AfterSeconds int32 `json:"afterSeconds,omitempty"`
	// action Suspend deletes the pods; an edit of the spec, the annotation heliostat.dev/resume or a ClusterJob resumes the cluster. Delete deletes the ComputeCluster. None only reports.
	// +kubebuilder:default=None
	// +optional
	Action IdleAction `json:"action,omitempty"`
}
