package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// HistoryKeep is what of a cluster is kept.
//
// +kubebuilder:validation:Enum=Outputs;Records
type HistoryKeep string

// What is kept of a cluster.
const (
	HistoryOutputs HistoryKeep = "Outputs"
	HistoryRecords HistoryKeep = "Records"
)

// History is what is kept of a cluster once its pods, or the cluster itself, are gone. Heliostat must be installed with history.
type History struct {
	// keep is what is kept. Outputs are records, outputs of jobs and Ray's log files, which a container in each pod sends to the archive. Records are the objects alone. Default: the installation's.
	// +optional
	Keep HistoryKeep `json:"keep,omitempty"`

	// keepFor is how long a file is kept after its last byte, such as 720h; at least 1h, and at most the installation's maximum. Default: the installation's.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1h')",message="keepFor must be at least 1h; raise it"
	// +heliostat:rule=history-keep-for
	// +optional
	KeepFor *metav1.Duration `json:"keepFor,omitempty"`

	// size of the collector's container in each pod: cpu is a request, limits.cpu its limit, memory and ephemeral-storage are request and limit. Default: the installation's, else cpu 10m, memory 32Mi.
	// +kubebuilder:validation:MaxProperties=4
	// +kubebuilder:validation:XValidation:rule="self.all(name, name in ['cpu', 'limits.cpu', 'memory', 'ephemeral-storage'])",message="the collector's size must contain only cpu, limits.cpu, memory and ephemeral-storage; remove the rest"
	// +heliostat:rule=history-size-name
	// +kubebuilder:validation:XValidation:rule="!self.exists(name, name != 'memory' && sign(quantity(string(self[name]))) <= 0) && !self.exists(name, name == 'memory' && quantity(string(self[name])).isLessThan(quantity('32Mi')))",message="the collector's size must have amounts above 0 and memory of at least 32Mi; raise it"
	// +heliostat:rule=history-size
	// +kubebuilder:validation:XValidation:rule="!('cpu' in self && 'limits.cpu' in self) || !quantity(string(self['cpu'])).isGreaterThan(quantity(string(self['limits.cpu'])))",message="limits.cpu of the collector's size must not be below cpu; raise limits.cpu, or lower cpu"
	// +heliostat:rule=history-size-limit
	// +optional
	Size corev1.ResourceList `json:"size,omitempty"`
}
