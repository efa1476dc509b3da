package v1alpha1

// Upgrade strategies.
const (
	UpgradeOnDelete       = "OnDelete"
	UpgradeRollingWorkers = "RollingWorkers"
	UpgradeRecreate       = "Recreate"
)

// UpgradeStrategy says what happens to pods that were built from an earlier spec.
//
// +kubebuilder:validation:XValidation:rule="!has(self.rolling) || self.type == 'RollingWorkers'",message="rolling belongs to type RollingWorkers; set that type or leave rolling out"
type UpgradeStrategy struct {
	// Type OnDelete leaves them until someone deletes them. RollingWorkers replaces workers, group by group, drained through Ray, for changes that touch workers only. Recreate replaces all pods at once when any is out of date, and so ends what runs.
	// +kubebuilder:validation:Enum=OnDelete;RollingWorkers;Recreate
	// +kubebuilder:default=OnDelete
	// +optional
	Type string `json:"type,omitempty"`
	// Rolling sets the pace of RollingWorkers.
	// +optional
	Rolling *Rolling `json:"rolling,omitempty"`
}

// Rolling is the pace of a rolling replacement, in replicas of a group.
//
// +kubebuilder:validation:XValidation:rule="self.maxUnavailable > 0 || self.maxSurge > 0",message="with maxUnavailable and maxSurge both 0 no worker could ever be replaced; set one of them above 0"
type Rolling struct {
	// MaxUnavailable is how many may be missing at once.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	// +kubebuilder:default=1
	// +optional
	MaxUnavailable int32 `json:"maxUnavailable"`
	// MaxSurge is how many may be there beyond replicas.
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

// IdlePolicy says what happens to a cluster that nobody uses: no driver is connected, no job runs, no detached actor lives, nothing is asked for and no worker is busy, by Ray's own account.
type IdlePolicy struct {
	// AfterSeconds is for how long the cluster must have been idle without a break.
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=31536000
	// +required
	AfterSeconds int32 `json:"afterSeconds"`
	// Action Suspend takes the pods away; an edit of the spec, the annotation heliostat.dev/resume or a ClusterJob brings them back. Delete deletes the ComputeCluster. None only tells.
	// +kubebuilder:validation:Enum=Suspend;Delete;None
	// +kubebuilder:default=None
	// +optional
	Action string `json:"action,omitempty"`
}
