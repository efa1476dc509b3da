package v1beta1

// Upgrade strategies.
const (
	UpgradeOnDelete       = "OnDelete"
	UpgradeRollingWorkers = "RollingWorkers"
	UpgradeRecreate       = "Recreate"
)

// UpgradeStrategy is how pods that were built from an earlier spec are replaced.
//
// +kubebuilder:validation:XValidation:rule="!has(self.rolling) || self.type == 'RollingWorkers'",message="rolling must be used with type RollingWorkers; set that type or leave rolling out"
type UpgradeStrategy struct {
	// type OnDelete keeps them until a user deletes them. RollingWorkers drains and replaces workers, group by group, for changes of workers only. Recreate replaces all pods at once when any is out of date, which ends running work.
	// +kubebuilder:validation:Enum=OnDelete;RollingWorkers;Recreate
	// +kubebuilder:default=OnDelete
	// +optional
	Type string `json:"type,omitempty"`
	// rolling sets the pace of RollingWorkers.
	// +optional
	Rolling *Rolling `json:"rolling,omitempty"`
}

// Rolling is the pace of a rolling replacement, in replicas of a group.
//
// +kubebuilder:validation:XValidation:rule="self.maxUnavailable > 0 || self.maxSurge > 0",message="maxUnavailable and maxSurge must not both be 0; set one of them above 0"
type Rolling struct {
	// maxUnavailable is how many replicas may be unavailable at once.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	// +kubebuilder:default=1
	// +optional
	MaxUnavailable int32 `json:"maxUnavailable"`
	// maxSurge is how many replicas may exist in addition to replicas.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	// +kubebuilder:default=0
	// +optional
	MaxSurge int32 `json:"maxSurge"`
}

// Idle actions.
const (
	IdleSuspend = "Suspend"
	IdleDelete  = "Delete"
	IdleNone    = "None"
)

// IdlePolicy is what happens to an idle cluster. A cluster is idle when Ray reports no connected driver, running job, detached actor, pending demand or busy worker.
type IdlePolicy struct {
	// afterSeconds is how long the cluster must be idle without interruption.
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=31536000
	// +required
	AfterSeconds int32 `json:"afterSeconds"`
	// action Suspend deletes the pods; an edit of the spec, the annotation heliostat.dev/resume or a ClusterJob resumes the cluster. Delete deletes the ComputeCluster. None only reports.
	// +kubebuilder:validation:Enum=Suspend;Delete;None
	// +kubebuilder:default=None
	// +optional
	Action string `json:"action,omitempty"`
}
