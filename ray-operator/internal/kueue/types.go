package kueue

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the version of Kueue's API that is read and written.
var GroupVersion = schema.GroupVersion{Group: "kueue.x-k8s.io", Version: "v1beta2"}

// AddToScheme adds the kinds of Kueue that the operator knows.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&Workload{}, &WorkloadList{}, &ResourceFlavor{}, &ResourceFlavorList{}, &WorkloadPriorityClass{}, &WorkloadPriorityClassList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// Workload is what Kueue admits: sets of pods that wait in a LocalQueue. Of its fields these types hold those that the
// operator reads or writes, so it must never write one as a whole.
// +kubebuilder:object:root=true
type Workload struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              WorkloadSpec   `json:"spec,omitempty"`
	Status            WorkloadStatus `json:"status,omitempty"`
}

// WorkloadList is a list of Workloads.
// +kubebuilder:object:root=true
type WorkloadList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Workload `json:"items"`
}

// WorkloadSpec is what a Workload asks for.
type WorkloadSpec struct {
	PodSets          []PodSet  `json:"podSets,omitempty"`
	QueueName        string    `json:"queueName,omitempty"`
	PriorityClassRef *ClassRef `json:"priorityClassRef,omitempty"`
	Priority         *int32    `json:"priority,omitempty"`
}

// PodSet is a number of like pods.
type PodSet struct {
	Name     string                 `json:"name"`
	Template corev1.PodTemplateSpec `json:"template"`
	Count    int32                  `json:"count"`
}

// ClassRef names a class of priority.
type ClassRef struct {
	Group string `json:"group"`
	Kind  string `json:"kind"`
	Name  string `json:"name"`
}

// WorkloadStatus is what Kueue says of a Workload.
type WorkloadStatus struct {
	Conditions      []metav1.Condition `json:"conditions,omitempty"`
	Admission       *Admission         `json:"admission,omitempty"`
	AdmissionChecks []CheckState       `json:"admissionChecks,omitempty"`
}

// Admission is the quota that a Workload has been given.
type Admission struct {
	ClusterQueue      string             `json:"clusterQueue"`
	PodSetAssignments []PodSetAssignment `json:"podSetAssignments,omitempty"`
}

// PodSetAssignment is the quota of one set: for each resource the flavor that it comes from.
type PodSetAssignment struct {
	Name          string                         `json:"name"`
	Flavors       map[corev1.ResourceName]string `json:"flavors,omitempty"`
	ResourceUsage corev1.ResourceList            `json:"resourceUsage,omitempty"`
	Count         *int32                         `json:"count,omitempty"`
}

// CheckState is what an admission check says.
type CheckState struct {
	Name          string         `json:"name"`
	State         string         `json:"state"`
	Message       string         `json:"message,omitempty"`
	PodSetUpdates []PodSetUpdate `json:"podSetUpdates,omitempty"`
}

// PodSetUpdate is what an admission check adds to the pods of one set.
type PodSetUpdate struct {
	Name         string              `json:"name"`
	Labels       map[string]string   `json:"labels,omitempty"`
	Annotations  map[string]string   `json:"annotations,omitempty"`
	NodeSelector map[string]string   `json:"nodeSelector,omitempty"`
	Tolerations  []corev1.Toleration `json:"tolerations,omitempty"`
}

// ResourceFlavor says which nodes a quota is of.
// +kubebuilder:object:root=true
type ResourceFlavor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              ResourceFlavorSpec `json:"spec,omitempty"`
}

// ResourceFlavorSpec holds the labels of a flavor's nodes, and what its pods tolerate.
type ResourceFlavorSpec struct {
	NodeLabels  map[string]string   `json:"nodeLabels,omitempty"`
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
}

// ResourceFlavorList is a list of ResourceFlavors.
// +kubebuilder:object:root=true
type ResourceFlavorList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ResourceFlavor `json:"items"`
}

// WorkloadPriorityClass is a priority by name.
// +kubebuilder:object:root=true
type WorkloadPriorityClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Value             int32 `json:"value"`
}

// WorkloadPriorityClassList is a list of WorkloadPriorityClasses.
// +kubebuilder:object:root=true
type WorkloadPriorityClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []WorkloadPriorityClass `json:"items"`
}
