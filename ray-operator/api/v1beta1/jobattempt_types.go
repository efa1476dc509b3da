package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// LogState is how complete LastLines are.
//
// +kubebuilder:validation:Enum=Complete;Truncated;Lost
type LogState string

// States of an attempt's last lines.
const (
	// LogComplete: all of the last lines, or the whole output.
	LogComplete LogState = "Complete"
	// LogTruncated: lines were cut, or earlier lines are missing.
	LogTruncated LogState = "Truncated"
	// LogLost: they could not be read before the head was deleted.
	LogLost LogState = "Lost"
)

// JobAttempt is one submission to one head.
type JobAttempt struct {
	// number of the attempt, from 1.
	// +kubebuilder:validation:Minimum=1
	// +required
	Number int32 `json:"number,omitempty"`
	// submissionID is its submission ID in Ray, as for "ray job logs".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	SubmissionID string `json:"submissionID,omitempty"`
	// clusterName is the ComputeCluster that it runs on.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:MinLength=1
	// +optional
	ClusterName string `json:"clusterName,omitempty"`
	// clusterUID is that ComputeCluster's UID.
	// +optional
	ClusterUID types.UID `json:"clusterUID,omitempty"`
	// headName is the head pod that it was submitted to.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:MinLength=1
	// +optional
	HeadName string `json:"headName,omitempty"`
	// headUID is that pod's UID. The attempt was submitted to no other pod.
	// +optional
	HeadUID types.UID `json:"headUID,omitempty"`
	// session is Ray's session name of the head that accepted it.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:MinLength=1
	// +optional
	Session string `json:"session,omitempty"`
	// submitTime is when it was bound to that head, just before its submission.
	// +optional
	SubmitTime *metav1.Time `json:"submitTime,omitempty"`
	// startTime is when it started to run.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// endTime is when it ended.
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty"`
	// reason is the code of how it ended, or while it is being stopped, why.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Reason string `json:"reason,omitempty"`
	// message explains the reason.
	// +kubebuilder:validation:MaxLength=32768
	// +kubebuilder:validation:MinLength=1
	// +optional
	Message string `json:"message,omitempty"`
	// exitCode of the driver's process, if it exited by itself.
	// +optional
	ExitCode *int32 `json:"exitCode,omitempty"`
	// lastLines are the last lines of the driver's output.
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MaxLength=2048
	// +listType=atomic
	// +optional
	LastLines []string `json:"lastLines,omitempty"`
	// logState is how complete lastLines are: Complete, Truncated or Lost. It is absent until they are read.
	// +kubebuilder:validation:MinLength=1
	// +optional
	LogState LogState `json:"logState,omitempty"`
}
