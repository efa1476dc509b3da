package v1beta1

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

// Autoscaling adds workers when tasks, actors or placement groups do not fit, and removes idle ones. Each group needs maxReplicas.
type Autoscaling struct {
	// idleTimeoutSeconds is how long a worker must be idle before it is removed.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=31536000
	// +kubebuilder:default=60
	// +optional
	IdleTimeoutSeconds *int32 `json:"idleTimeoutSeconds,omitempty"`

	// pace is how many workers may be starting at once. Conservative allows as many as have joined, at least one. Default allows 100, or as many as have joined if that is more. Aggressive has no limit.
	// +kubebuilder:validation:Enum=Default;Conservative;Aggressive
	// +kubebuilder:default=Default
	// +optional
	Pace string `json:"pace,omitempty"`

	// maxNodes is the maximum number of worker pods of all groups together. Default: the sum that the groups' maxReplicas allow.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	// +optional
	MaxNodes *int32 `json:"maxNodes,omitempty"`

	// size of the autoscaler's container in the head pod: cpu is a request, limits.cpu its limit, memory and ephemeral-storage are request and limit. Default: cpu 50m, memory 64Mi.
	// +kubebuilder:validation:MaxProperties=4
	// +kubebuilder:validation:XValidation:rule="self.all(name, name in ['cpu', 'limits.cpu', 'memory', 'ephemeral-storage'])",message="the autoscaler's size must contain only cpu, limits.cpu, memory and ephemeral-storage; remove the rest"
	// +kubebuilder:validation:XValidation:rule="!self.exists(name, name != 'memory' && sign(quantity(string(self[name]))) <= 0) && !self.exists(name, name == 'memory' && quantity(string(self[name])).isLessThan(quantity('32Mi')))",message="the autoscaler's size must have amounts above 0 and memory of at least 32Mi; raise it"
	// +kubebuilder:validation:XValidation:rule="!('cpu' in self && 'limits.cpu' in self) || !quantity(string(self['cpu'])).isGreaterThan(quantity(string(self['limits.cpu'])))",message="limits.cpu must not be below cpu; raise limits.cpu, or lower cpu"
	// +optional
	Size corev1.ResourceList `json:"size,omitempty"`

	// image of the autoscaler's container, such as the operator's image in your own registry. It must contain the operator's program /autoscaler. Default: the operator's image.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Image string `json:"image,omitempty"`

	// env of the autoscaler's container, such as GODEBUG. Default: none.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="self.all(e, e.name != 'POD_UID' && !has(e.valueFrom))",message="a variable of the autoscaler must have a plain value, and must not be POD_UID; correct it"
	// +listType=map
	// +listMapKey=name
	// +optional
	Env []corev1.EnvVar `json:"env,omitempty"`

	// securityContext of the autoscaler's container, within pod security "restricted". Default: what that level requires, and a read-only root file system.
	// +kubebuilder:validation:XValidation:rule="self.?runAsNonRoot.orValue(true) && self.?runAsUser.orValue(1) != 0 && !self.?privileged.orValue(false) && !self.?allowPrivilegeEscalation.orValue(false)",message="the autoscaler must run within pod security restricted, without root and privileges; remove them"
	// +kubebuilder:validation:XValidation:rule="!has(self.procMount) && !has(self.seLinuxOptions) && !has(self.windowsOptions) && self.?seccompProfile.?type.orValue('') != 'Unconfined' && self.?appArmorProfile.?type.orValue('') != 'Unconfined'",message="the autoscaler must run within pod security restricted, under the profiles of its runtime; remove procMount, seLinuxOptions, windowsOptions and Unconfined"
	// +kubebuilder:validation:XValidation:rule="!has(self.capabilities) || size(self.capabilities.?add.orValue([])) == 0 && size(self.capabilities.?drop.orValue([])) == 1 && self.capabilities.drop[0] == 'ALL'",message="the autoscaler must have no capabilities; leave capabilities out, or set drop: [ALL]"
	// +optional
	SecurityContext *corev1.SecurityContext `json:"securityContext,omitempty"`
}

// AutoscalingStatus is the last decision of the autoscaler of the current head.
type AutoscalingStatus struct {
	// groups are the target of each group, and why.
	// +listType=map
	// +listMapKey=name
	// +optional
	Groups []GroupTarget `json:"groups,omitempty"`
	// retiring are workers that will be removed, 20 at most.
	// +listType=atomic
	// +optional
	Retiring []RetiringWorker `json:"retiring,omitempty"`
	// retiringTotal is how many workers will be removed.
	// +optional
	RetiringTotal int32 `json:"retiringTotal,omitempty"`
	// infeasible is demand that no number of workers can satisfy, 20 shapes at most. It is updated every 30 seconds.
	// +listType=atomic
	// +optional
	Infeasible []InfeasibleShape `json:"infeasible,omitempty"`
	// infeasibleTotal is the number of such shapes.
	// +optional
	InfeasibleTotal int32 `json:"infeasibleTotal,omitempty"`
	// headUID is the UID of the head pod whose autoscaler decided this.
	// +optional
	HeadUID string `json:"headUID,omitempty"`
}

// GroupTarget is the target of a group.
type GroupTarget struct {
	// name of the group.
	Name string `json:"name"`
	// target is the number of replicas.
	Target int32 `json:"target"`
	// replicas was the spec's replicas at that time, or negative if it was not set. After autoscaling is turned off, the target counts until replicas changes.
	// +optional
	Replicas int32 `json:"replicas,omitempty"`
	// reason is the demand behind the target, such as "3 × {GPU: 1}".
	// +optional
	Reason string `json:"reason,omitempty"`
	// rolled reports that the group keeps this target while its workers are replaced.
	// +optional
	Rolled bool `json:"rolled,omitempty"`
}

// Why a worker retires, and how far it has come.
const (
	// RetireIdle: it was idle for the idle timeout. RetireUnneeded: it was starting, and no demand
	// needs it any more. RetireNoCapacity: its group got no capacity, and others are tried.
	// RetireLate: it did not join in time, and another is created in its place.
	RetireIdle       = "Idle"
	RetireUnneeded   = "Unneeded"
	RetireNoCapacity = "NoCapacity"
	RetireLate       = "Late"

	// RetiringDraining: Ray drains it, and running work may end. RetiringDrained: no work runs there
	// or will.
	RetiringDraining = "Draining"
	RetiringDrained  = "Drained"
)

// RetiringWorker is a worker that will be removed.
type RetiringWorker struct {
	// pod is the name of its pod.
	Pod string `json:"pod"`
	// uid of the pod.
	// +optional
	UID string `json:"uid,omitempty"`
	// node is the ID of its Ray node in hexadecimal. Empty if it never joined.
	// +optional
	Node string `json:"node,omitempty"`
	// reason is Idle, Unneeded, NoCapacity or Late, or the operator's reason: Surplus for a lowered maximum, GroupSuspended, GroupRemoved, Rolling, Retired, NodeDraining.
	// +optional
	Reason string `json:"reason,omitempty"`
	// state is Draining or Drained.
	// +optional
	State string `json:"state,omitempty"`
	// deadline is when the pod is deleted even if Ray has not reported it as drained.
	// +optional
	Deadline *metav1.Time `json:"deadline,omitempty"`
}

// InfeasibleShape is a resource request that no group can ever satisfy.
type InfeasibleShape struct {
	// shape is the request, such as "{GPU: 16}".
	Shape string `json:"shape"`
	// count is how many such requests are pending.
	// +optional
	Count int32 `json:"count,omitempty"`
	// reason is why it cannot fit, such as "the largest group has 8 GPU".
	// +optional
	Reason string `json:"reason,omitempty"`
}
