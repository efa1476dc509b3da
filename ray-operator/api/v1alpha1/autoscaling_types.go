package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Paces of autoscaling.
const (
	PaceDefault      = "Default"
	PaceConservative = "Conservative"
	PaceAggressive   = "Aggressive"
)

// Autoscaling gives a cluster workers when tasks, actors or placement groups do not fit, and gives idle ones back. It needs maxReplicas of each group.
type Autoscaling struct {
	// IdleTimeoutSeconds is for how long nothing has run on a worker before it goes.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=31536000
	// +kubebuilder:default=60
	// +optional
	IdleTimeoutSeconds *int32 `json:"idleTimeoutSeconds,omitempty"`

	// Pace is how many workers may be on their way at once: Conservative as many as have joined, but one always; Default a hundred, or as many as have joined if that is more; Aggressive all that are needed.
	// +kubebuilder:validation:Enum=Default;Conservative;Aggressive
	// +kubebuilder:default=Default
	// +optional
	Pace string `json:"pace,omitempty"`

	// MaxNodes is how many workers' pods there may be in all groups together. Default: what the groups' maxReplicas allow.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	// +optional
	MaxNodes *int32 `json:"maxNodes,omitempty"`

	// Size of the autoscaler's container beside the head: cpu is a request, memory request and limit. Default: cpu 50m, memory 64Mi.
	// +kubebuilder:validation:MaxProperties=2
	// +kubebuilder:validation:XValidation:rule="self.all(name, name in ['cpu', 'memory'])",message="the autoscaler's size is of cpu and memory; take the rest out"
	// +kubebuilder:validation:XValidation:rule="!self.exists(name, name == 'cpu' && sign(quantity(string(self[name]))) <= 0) && !self.exists(name, name == 'memory' && quantity(string(self[name])).isLessThan(quantity('32Mi')))",message="the autoscaler does not run with so little; give cpu above 0 and memory of 32Mi or more"
	// +optional
	Size corev1.ResourceList `json:"size,omitempty"`

	// Image of the autoscaler's container, such as the operator's image in a registry of yours: it must hold the operator's program /autoscaler. Default: the operator's own image.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Image string `json:"image,omitempty"`

	// Env of the autoscaler's container, such as GODEBUG. Default: none.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.all(e, e.name != 'POD_UID' && !has(e.valueFrom))",message="a variable of the autoscaler has a plain value and is not POD_UID; correct it"
	// +listType=map
	// +listMapKey=name
	// +optional
	Env []corev1.EnvVar `json:"env,omitempty"`

	// SecurityContext of the autoscaler's container, within pod security "restricted". Default: what that level asks for, and a root file system that cannot be written.
	// +kubebuilder:validation:XValidation:rule="self.?runAsNonRoot.orValue(true) && self.?runAsUser.orValue(1) != 0 && !self.?privileged.orValue(false) && !self.?allowPrivilegeEscalation.orValue(false)",message="the autoscaler runs within pod security restricted, not as root and without privileges; take them out"
	// +kubebuilder:validation:XValidation:rule="!has(self.procMount) && !has(self.seLinuxOptions) && !has(self.windowsOptions) && self.?seccompProfile.?type.orValue('') != 'Unconfined' && self.?appArmorProfile.?type.orValue('') != 'Unconfined'",message="the autoscaler runs within pod security restricted, under the profiles of its runtime; take procMount, seLinuxOptions, windowsOptions and Unconfined out"
	// +kubebuilder:validation:XValidation:rule="!has(self.capabilities) || size(self.capabilities.?add.orValue([])) == 0 && size(self.capabilities.?drop.orValue([])) == 1 && self.capabilities.drop[0] == 'ALL'",message="the autoscaler runs without capabilities; leave capabilities out, or give drop: [ALL]"
	// +optional
	SecurityContext *corev1.SecurityContext `json:"securityContext,omitempty"`
}

// AutoscalingStatus is what the autoscaler of the live head decided last.
type AutoscalingStatus struct {
	// Groups are what is wanted of each group, and why.
	// +listType=map
	// +listMapKey=name
	// +optional
	Groups []GroupTarget `json:"groups,omitempty"`
	// Retiring are workers that are to go, 20 at most.
	// +listType=atomic
	// +optional
	Retiring []RetiringWorker `json:"retiring,omitempty"`
	// RetiringTotal is how many workers are to go.
	// +optional
	RetiringTotal int32 `json:"retiringTotal,omitempty"`
	// Infeasible is what waits and can never fit, whatever the number of workers: 20 shapes at most. What changes of it is told every 30 seconds.
	// +listType=atomic
	// +optional
	Infeasible []InfeasibleShape `json:"infeasible,omitempty"`
	// InfeasibleTotal is how many such shapes wait.
	// +optional
	InfeasibleTotal int32 `json:"infeasibleTotal,omitempty"`
	// HeadUID is the UID of the head's pod whose autoscaler decided this.
	// +optional
	HeadUID string `json:"headUID,omitempty"`
}

// GroupTarget is how many replicas of a group are wanted.
type GroupTarget struct {
	// Name of the group.
	Name string `json:"name"`
	// Target is the number of replicas.
	Target int32 `json:"target"`
	// Replicas is what the spec's replicas was then, below zero where it gave none: once autoscaling is off, the target counts until replicas is another.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
	// Reason says what for, such as "3 × {GPU: 1}".
	// +optional
	Reason string `json:"reason,omitempty"`
	// Rolled reports that the group keeps this target while its workers are replaced.
	// +optional
	Rolled bool `json:"rolled,omitempty"`
}

// Why a worker retires, and how far it has come.
const (
	// RetireIdle: nothing has run on it for the idle time. RetireUnneeded: it was on its way
	// and nothing waits for it any more. RetireNoCapacity: its group is passed over.
	// RetireLate: it has not joined for so long that another is made in its place.
	RetireIdle       = "Idle"
	RetireUnneeded   = "Unneeded"
	RetireNoCapacity = "NoCapacity"
	RetireLate       = "Late"

	// RetiringDraining: Ray is to let what runs there end. RetiringDrained: nothing runs there
	// and nothing will.
	RetiringDraining = "Draining"
	RetiringDrained  = "Drained"
)

// RetiringWorker is a worker that is to go.
type RetiringWorker struct {
	// Pod is the name of its pod.
	Pod string `json:"pod"`
	// UID of the pod.
	// +optional
	UID string `json:"uid,omitempty"`
	// Node is the id of Ray's node in hexadecimal; empty where it never was one.
	// +optional
	Node string `json:"node,omitempty"`
	// Reason is Idle, Unneeded, NoCapacity or Late, or why the operator has it leave: Surplus for a lowered maximum, GroupSuspended, GroupRemoved, Rolling, Retired, NodeDraining.
	// +optional
	Reason string `json:"reason,omitempty"`
	// State is Draining or Drained.
	// +optional
	State string `json:"state,omitempty"`
	// Deadline is when the pod goes though Ray has not said that it is drained.
	// +optional
	Deadline *metav1.Time `json:"deadline,omitempty"`
}

// InfeasibleShape is a request that no group can ever hold.
type InfeasibleShape struct {
	// Shape such as "{GPU: 16}".
	Shape string `json:"shape"`
	// Count is how many such requests wait.
	// +optional
	Count int32 `json:"count,omitempty"`
	// Reason such as "the largest group has 8 GPU".
	// +optional
	Reason string `json:"reason,omitempty"`
}
