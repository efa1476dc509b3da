package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Pace is how many workers autoscaling may have starting at once.
//
// +kubebuilder:validation:Enum=Default;Conservative;Aggressive
type Pace string

// Paces of autoscaling.
const (
	PaceDefault      Pace = "Default"
	PaceConservative Pace = "Conservative"
	PaceAggressive   Pace = "Aggressive"
)

// Autoscaling adds workers when tasks, actors or placement groups do not fit, and removes idle ones. Each group needs maxReplicas.
type Autoscaling struct {
	// idleTimeoutSeconds is how long a worker must be idle before it is removed.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=31536000
	// +kubebuilder:default=60
	// +optional
	IdleTimeoutSeconds *int32 `json:"idleTimeoutSeconds,omitempty"`

	// pace is how many workers may be starting at once. Conservative allows as many as have joined, at least one. Default allows 100, or as many as have joined if that is more. Aggressive has no limit.
	// +kubebuilder:default=Default
	// +optional
	Pace Pace `json:"pace,omitempty"`

	// maxNodes is the maximum number of worker pods of all groups together. Default: the sum that the groups' maxReplicas allow.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	// +optional
	MaxNodes *int32 `json:"maxNodes,omitempty"`

	// size of the autoscaler's container in the head pod: cpu is a request, limits.cpu its limit, memory and ephemeral-storage are request and limit. Default: cpu 50m, memory 64Mi.
	// +kubebuilder:validation:MaxProperties=4
	// +kubebuilder:validation:XValidation:rule="self.all(name, name in ['cpu', 'limits.cpu', 'memory', 'ephemeral-storage'])",message="the autoscaler's size must contain only cpu, limits.cpu, memory and ephemeral-storage; remove the rest"
	// +heliostat:rule=autoscaling-size-name
	// +kubebuilder:validation:XValidation:rule="!self.exists(name, name != 'memory' && sign(quantity(string(self[name]))) <= 0) && !self.exists(name, name == 'memory' && quantity(string(self[name])).isLessThan(quantity('32Mi')))",message="the autoscaler's size must have amounts above 0 and memory of at least 32Mi; raise it"
	// +heliostat:rule=autoscaling-size
	// +kubebuilder:validation:XValidation:rule="!('cpu' in self && 'limits.cpu' in self) || !quantity(string(self['cpu'])).isGreaterThan(quantity(string(self['limits.cpu'])))",message="limits.cpu of the autoscaler's size must not be below cpu; raise limits.cpu, or lower cpu"
	// +heliostat:rule=autoscaling-size-limit
	// +optional
	Size corev1.ResourceList `json:"size,omitempty"`

	// image of the autoscaler's container, such as the operator's image in your own registry. It must contain the operator's program /autoscaler. Default: the operator's image.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:MinLength=1
	// +optional
	Image string `json:"image,omitempty"`

	// env of the autoscaler's container, such as GODEBUG. Default: none.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.all(e, e.name != 'POD_UID' && !has(e.valueFrom))",message="a variable of the autoscaler must have a plain value, and must not be POD_UID; correct it"
	// +heliostat:rule=autoscaling-env
	// +listType=map
	// +listMapKey=name
	// +optional
	Env []corev1.EnvVar `json:"env,omitempty"`

	// securityContext of the autoscaler's container, within pod security "restricted". Default: what that level requires, and a read-only root file system.
	// +kubebuilder:validation:XValidation:rule="self.?runAsNonRoot.orValue(true) && self.?runAsUser.orValue(1) != 0 && !self.?privileged.orValue(false) && !self.?allowPrivilegeEscalation.orValue(false)",message="the autoscaler must run within pod security restricted, without root and privileges; remove them"
	// +heliostat:rule=autoscaling-root
	// +kubebuilder:validation:XValidation:rule="!has(self.procMount) && !has(self.seLinuxOptions) && !has(self.windowsOptions) && self.?seccompProfile.?type.orValue('') != 'Unconfined' && self.?appArmorProfile.?type.orValue('') != 'Unconfined'",message="the autoscaler must run within pod security restricted, under the profiles of its runtime; remove procMount, seLinuxOptions, windowsOptions and Unconfined"
	// +heliostat:rule=autoscaling-profile
	// +kubebuilder:validation:XValidation:rule="!has(self.capabilities) || size(self.capabilities.?add.orValue([])) == 0 && size(self.capabilities.?drop.orValue([])) == 1 && self.capabilities.drop[0] == 'ALL'",message="the autoscaler must have no capabilities; leave capabilities out, or set drop: [ALL]",fieldPath=".capabilities"
	// +heliostat:rule=autoscaling-capabilities
	// +optional
	SecurityContext *corev1.SecurityContext `json:"securityContext,omitempty"`
}

// AutoscalingStatus is the last decision of the autoscaler of the current head.
type AutoscalingStatus struct {
	// groups are the target of each group, and why.
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=name
	// +optional
	Groups []GroupTarget `json:"groups,omitempty"`
	// retiring are workers that will be removed, 20 at most.
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	Retiring []RetiringWorker `json:"retiring,omitempty"`
	// retiringTotal is how many workers will be removed.
	// +kubebuilder:validation:Minimum=1
	// +optional
	RetiringTotal int32 `json:"retiringTotal,omitempty"`
	// infeasible is demand that no number of workers can satisfy, 20 shapes at most. It is updated every 30 seconds.
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	Infeasible []InfeasibleShape `json:"infeasible,omitempty"`
	// infeasibleTotal is the number of such shapes.
	// +kubebuilder:validation:Minimum=1
	// +optional
	InfeasibleTotal int32 `json:"infeasibleTotal,omitempty"`
	// headUID is the UID of the head pod whose autoscaler decided this.
	// +optional
	HeadUID types.UID `json:"headUID,omitempty"`
}

// GroupTarget is the target of a group.
type GroupTarget struct {
	// name of the group.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:MinLength=1
	// +required
	Name string `json:"name,omitempty"`
	// target is the number of replicas.
	// +required
	Target int32 `json:"target"`
	// replicas was the spec's replicas at that time. Absent if it was not set. After autoscaling is turned off, the target counts until replicas changes.
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`
	// message is the demand behind the target, such as "3 × {GPU: 1}".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32768
	// +optional
	Message string `json:"message,omitempty"`
	// rolled reports that the group keeps this target while its workers are replaced.
	// +optional
	Rolled bool `json:"rolled,omitempty"`
}

// Reasons of the autoscaler for which a worker retires.
const (
	// RetireIdle: it was idle for the idle timeout. RetireUnneeded: it was starting, and no demand
	// needs it any more. RetireNoCapacity: its group got no capacity, and others are tried.
	// RetireLate: it did not join in time, and another is created in its place.
	RetireIdle       = "Idle"
	RetireUnneeded   = "Unneeded"
	RetireNoCapacity = "NoCapacity"
	RetireLate       = "Late"
)

// RetiringState is the progress of a worker that retires.
//
// +kubebuilder:validation:Enum=Draining;Drained
type RetiringState string

// States of a worker that retires.
const (
	// RetiringDraining: Ray drains it, and running work may end.
	RetiringDraining RetiringState = "Draining"
	// RetiringDrained: no work runs there or will.
	RetiringDrained RetiringState = "Drained"
)

// RetiringWorker is a worker that will be removed.
type RetiringWorker struct {
	// pod is the name of its pod.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:MinLength=1
	// +required
	Pod string `json:"pod,omitempty"`
	// uid of the pod.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// node is the ID of its Ray node in hexadecimal. Empty if it never joined.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:MinLength=1
	// +optional
	Node string `json:"node,omitempty"`
	// reason is Idle, Unneeded, NoCapacity or Late, or the operator's reason: Surplus for a lowered maximum, GroupSuspended, GroupRemoved, Rolling, Retired, NodeDraining.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Reason string `json:"reason,omitempty"`
	// state is Draining or Drained.
	// +optional
	State RetiringState `json:"state,omitempty"`
	// deadlineTime is when the pod is deleted even if Ray has not reported it as drained.
	// +optional
	DeadlineTime *metav1.Time `json:"deadlineTime,omitempty"`
}

// InfeasibleShape is a resource request that no group can ever satisfy.
type InfeasibleShape struct {
	// shape is the request, such as "{GPU: 16}".
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:MinLength=1
	// +required
	Shape string `json:"shape,omitempty"`
	// count is how many such requests are pending.
	// +kubebuilder:validation:Minimum=1
	// +optional
	Count int32 `json:"count,omitempty"`
	// message is why it cannot fit, such as "the largest group has 8 GPU".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32768
	// +optional
	Message string `json:"message,omitempty"`
}
