package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ClusterJob is one run to completion, on a cluster that exists or on one made for it.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=cjob,categories=heliostat
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.status.clusterName`
// +kubebuilder:printcolumn:name="Attempt",type=string,JSONPath=`.status.summary.attempt`
// +kubebuilder:printcolumn:name="Duration",type=string,JSONPath=`.status.summary.duration`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Entrypoint",type=string,JSONPath=`.status.summary.entrypoint`,priority=1
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be a DNS-1035 label of at most 63 characters: lower-case letters, digits and '-', starting with a letter; choose a shorter or simpler name"
type ClusterJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what the user wants. No controller writes it.
	// +required
	Spec ClusterJobSpec `json:"spec"`
	// Status is what the operator saw and did last.
	// +kubebuilder:default={conditions: {{type: "Ready", status: "Unknown", reason: "Pending", message: "Waiting for the operator; if this stays, check that the Heliostat operator runs", lastTransitionTime: "1970-01-01T00:00:00Z"}}}
	// +optional
	Status ClusterJobStatus `json:"status,omitempty"`
}

// ClusterJobList is a list of ClusterJobs.
//
// +kubebuilder:object:root=true
type ClusterJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterJob `json:"items"`
}

// ClusterJobSpec describes a run. What it is made of cannot be changed but while suspend is true.
//
// +kubebuilder:validation:XValidation:rule="has(self.clusterRef) != has(self.clusterTemplate)",message="a job runs either on a cluster that exists or on one of its own; give exactly one of clusterRef and clusterTemplate"
// +kubebuilder:validation:XValidation:rule="has(self.entrypoint) != has(self.command)",message="a job has one thing to run; give exactly one of entrypoint and command"
// +kubebuilder:validation:XValidation:rule="!has(self.cleanup) || has(self.clusterTemplate)",message="a job cleans up only a cluster of its own; leave cleanup out, or use clusterTemplate",fieldPath=".cleanup"
// +kubebuilder:validation:XValidation:rule="!has(self.retry) || !has(self.retry.scope) || self.retry.scope != 'Cluster' || has(self.clusterTemplate)",message="only a cluster of the job's own is recreated for a retry; use scope Driver, or clusterTemplate",fieldPath=".retry"
type ClusterJobSpec struct {
	// ClusterRef names the ComputeCluster to run on, in the same namespace.
	// +optional
	ClusterRef *ClusterReference `json:"clusterRef,omitempty"`

	// ClusterTemplate describes a ComputeCluster of the job's own, which goes when the job is over.
	// +optional
	ClusterTemplate *ClusterTemplate `json:"clusterTemplate,omitempty"`

	// Entrypoint is a shell line, as Ray takes it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32768
	// +kubebuilder:validation:XValidation:rule="self == '' || self.trim() != ''",message="the entrypoint has nothing but blanks; give a shell line, such as python train.py"
	// +optional
	Entrypoint string `json:"entrypoint,omitempty"`

	// Command is a program with its arguments, which reach it byte for byte, past any shell.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1024
	// +kubebuilder:validation:items:MaxLength=32768
	// +kubebuilder:validation:XValidation:rule="self.size() == 0 || self[0] != ''",message="the first element of a command is the program; name one there"
	// +listType=atomic
	// +optional
	Command []string `json:"command,omitempty"`

	// RuntimeEnv is Ray's runtime environment, in Ray's own form.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	// +optional
	RuntimeEnv *runtime.RawExtension `json:"runtimeEnv,omitempty"`

	// Env is the environment of the driver and its tasks. A valueFrom needs clusterTemplate: it becomes environment of the pods, while all of a job on a shared cluster lies open in Ray's store.
	// +kubebuilder:validation:MaxItems=256
	// +listType=map
	// +listMapKey=name
	// +optional
	Env []corev1.EnvVar `json:"env,omitempty"`

	// EntrypointResources are what the driver itself takes of Ray's resources, with the keys of rayResources. Default: none, and the driver runs on the head.
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(name, !(name in ['', 'object_store_memory', 'bundle']) && !name.startsWith('node:'))",message="resources named object_store_memory, bundle, node:... or without a name are Ray's own; choose another name"
	// +kubebuilder:validation:XValidation:rule="self.all(name, sign(quantity(string(self[name]))) >= 0)",message="a driver cannot take less than nothing; give 0 or more"
	// +kubebuilder:validation:XValidation:rule="self.all(name, sign(quantity(string(self[name]))) < 0 || (!quantity(string(self[name])).isGreaterThan(quantity('100T')) && (name != 'memory' || quantity(string(self[name])).isInteger()) && [quantity(string(self[name])).asApproximateFloat() * 10000.0].all(steps, steps - double(int(steps + 0.5)) < 0.01 && double(int(steps + 0.5)) - steps < 0.01)))",message="Ray counts what a driver takes in steps of 0.0001 up to 100T, and memory in whole bytes; round it"
	// +optional
	EntrypointResources map[string]resource.Quantity `json:"entrypointResources,omitempty"`

	// EntrypointLabelSelector says by their labels on which of Ray's nodes the driver may run. It needs Ray 2.54.
	// +kubebuilder:validation:MaxProperties=64
	// +optional
	EntrypointLabelSelector map[string]string `json:"entrypointLabelSelector,omitempty"`

	// Metadata is kept with the job by Ray.
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(key, !key.startsWith('heliostat.dev/') && key != 'job_submission_id')",message="the prefix heliostat.dev is the operator's own, and job_submission_id is Ray's; choose another"
	// +optional
	Metadata map[string]string `json:"metadata,omitempty"`

	// Retry says when and where a failed attempt is followed by another. Default: never.
	// +optional
	Retry *Retry `json:"retry,omitempty"`

	// StartDeadlineSeconds is how long after its creation or resumption the job may take to run first.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=31536000
	// +optional
	StartDeadlineSeconds *int32 `json:"startDeadlineSeconds,omitempty"`

	// ActiveDeadlineSeconds is how long all attempts together may take, from when the job first ran; it begins again when a suspended job resumes.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=31536000
	// +optional
	ActiveDeadlineSeconds *int32 `json:"activeDeadlineSeconds,omitempty"`

	// Cleanup says what goes when of the job's own cluster. Default: the cluster, at once. An outcome that no rule names keeps the cluster as long as the job is there.
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.all(rule, self.exists_one(other, other.outcome == rule.outcome && other.action == rule.action))",message="two rules say when the same goes after the same outcome; keep one of them"
	// +kubebuilder:validation:XValidation:rule="self.all(rule, rule.action != 'DeleteWorkers' || !self.exists(other, other.action == 'DeleteCluster' && other.outcome == rule.outcome && (has(rule.afterSeconds) ? rule.afterSeconds : 0) >= (has(other.afterSeconds) ? other.afterSeconds : 0)))",message="DeleteWorkers comes after DeleteCluster or with it, and so has nothing to do; lower its afterSeconds or take it out"
	// +listType=atomic
	// +optional
	Cleanup []CleanupRule `json:"cleanup,omitempty"`

	// TTLSecondsAfterFinished is how long after its end the ClusterJob is deleted, with its cluster if it has kept one. Default: never.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	// +optional
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`

	// Suspend, if true, stops the run and frees a cluster of the job's own. Resuming starts the next attempt.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// ManagedBy names who manages the job. Any value but the default makes this operator keep its hands off, as MultiKueue needs it. It cannot be changed.
	// +kubebuilder:default="heliostat.dev/operator"
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="managedBy cannot be changed; make a new job"
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[a-zA-Z0-9]([-a-zA-Z0-9._]*[a-zA-Z0-9])?$')",message="managedBy must be a domain, '/', and a name; give one such as \"kueue.x-k8s.io/multikueue\""
	// +optional
	ManagedBy string `json:"managedBy,omitempty"`
}

// ClusterReference names a ComputeCluster beside the object.
type ClusterReference struct {
	// Name of the ComputeCluster.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=50
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="no ComputeCluster can have this name; give the name of one in the same namespace"
	// +required
	Name string `json:"name"`
}

// ClusterTemplate describes a ComputeCluster to be made.
//
// +kubebuilder:validation:XValidation:rule="!has(self.spec.suspend) || !self.spec.suspend",message="a suspended cluster would run nothing; suspend the job or the service with its own spec.suspend, and leave this out",fieldPath=".spec.suspend"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.managedBy) || self.spec.managedBy == 'heliostat.dev/operator'",message="the controller that manages a job or a service manages its cluster too; set spec.managedBy of that, and leave this out",fieldPath=".spec.managedBy"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.idlePolicy) || !has(self.spec.idlePolicy.action) || self.spec.idlePolicy.action == 'None'",message="the cluster of a job goes by the job's cleanup, and a service is never idle; leave idlePolicy out, or use action None",fieldPath=".spec.idlePolicy"
type ClusterTemplate struct {
	// Metadata is put on the ComputeCluster.
	// +optional
	Metadata TemplateMetadata `json:"metadata,omitempty"`
	// Spec of the ComputeCluster.
	// +required
	Spec ComputeClusterSpec `json:"spec"`
}

// TemplateMetadata is what an object that is made from a template carries.
type TemplateMetadata struct {
	// Labels of the object.
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(key, !key.startsWith('heliostat.dev/'))",message="the prefix heliostat.dev is the operator's own; choose another"
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations of the object.
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(key, !key.startsWith('heliostat.dev/'))",message="the prefix heliostat.dev is the operator's own; choose another"
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// RetryScope is where a failed attempt is followed by another.
type RetryScope string

// Scopes of a retry.
const (
	// RetryDriver: on the same cluster.
	RetryDriver RetryScope = "Driver"
	// RetryCluster: on a new cluster, once the former one and its pods are gone.
	RetryCluster RetryScope = "Cluster"
)

// Retry says when and where a failed attempt is followed by another.
//
// +kubebuilder:validation:XValidation:rule="!has(self.backoffSeconds) || !has(self.maxBackoffSeconds) || self.backoffSeconds <= self.maxBackoffSeconds",message="backoffSeconds, 10 where it is not given, must not be above maxBackoffSeconds, 360 where it is not given; lower it or raise the other"
type Retry struct {
	// Limit is how many failed attempts are followed by another. Default: 0.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +optional
	Limit int32 `json:"limit,omitempty"`

	// Scope is where the next attempt runs: Driver, on the same cluster; Cluster, on a new one. Default: Driver.
	// +kubebuilder:validation:Enum=Driver;Cluster
	// +kubebuilder:default=Driver
	// +optional
	Scope RetryScope `json:"scope,omitempty"`

	// BackoffSeconds is how long to wait before the first retry; each further one waits twice as long. Default: 10.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	// +kubebuilder:default=10
	// +optional
	BackoffSeconds *int32 `json:"backoffSeconds,omitempty"`

	// MaxBackoffSeconds is the longest wait. Default: 360.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	// +kubebuilder:default=360
	// +optional
	MaxBackoffSeconds *int32 `json:"maxBackoffSeconds,omitempty"`

	// OnExitCodes narrows which failures are retried. Default: all. What is lost by no fault of the program is not asked for its exit code.
	// +optional
	OnExitCodes *ExitCodes `json:"onExitCodes,omitempty"`

	// InfrastructureLimit is how many attempts that were lost by no fault of the program (its head, its node, its cluster) are followed by another, apart from limit. Default: they count towards limit.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +optional
	InfrastructureLimit *int32 `json:"infrastructureLimit,omitempty"`

	// AttemptDeadlineSeconds is how long one attempt may run; what takes longer is stopped, and has failed.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=31536000
	// +optional
	AttemptDeadlineSeconds *int32 `json:"attemptDeadlineSeconds,omitempty"`
}

// ExitCodes selects exit codes of the driver's process.
//
// +kubebuilder:validation:XValidation:rule="has(self.__in__) != has(self.notIn)",message="exit codes are either those that are retried or those that are not; give exactly one of in and notIn"
type ExitCodes struct {
	// In are the codes that are retried.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=255
	// +kubebuilder:validation:items:Minimum=1
	// +kubebuilder:validation:items:Maximum=255
	// +listType=set
	// +optional
	In []int32 `json:"in,omitempty"`
	// NotIn are the codes that are not.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=255
	// +kubebuilder:validation:items:Minimum=1
	// +kubebuilder:validation:items:Maximum=255
	// +listType=set
	// +optional
	NotIn []int32 `json:"notIn,omitempty"`
}

// JobOutcome is how a job ended.
type JobOutcome string

// Outcomes of a job.
const (
	OutcomeSuccess JobOutcome = "Success"
	OutcomeFailure JobOutcome = "Failure"
)

// CleanupAction is what goes of a job's own cluster.
type CleanupAction string

// Actions of a cleanup.
const (
	// CleanupDeleteCluster deletes the cluster.
	CleanupDeleteCluster CleanupAction = "DeleteCluster"
	// CleanupDeleteWorkers takes the workers away and keeps the head.
	CleanupDeleteWorkers CleanupAction = "DeleteWorkers"
)

// CleanupRule is one thing that goes of a job's own cluster after an outcome.
type CleanupRule struct {
	// Outcome is how the job ended: Success, or Failure with all that is no success.
	// +kubebuilder:validation:Enum=Success;Failure
	// +required
	Outcome JobOutcome `json:"outcome"`
	// Action is what goes.
	// +kubebuilder:validation:Enum=DeleteCluster;DeleteWorkers
	// +required
	Action CleanupAction `json:"action"`
	// AfterSeconds is how long after the job's end. Default: 0.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	// +optional
	AfterSeconds int32 `json:"afterSeconds,omitempty"`
}

// ClusterJobStatus is what the operator saw and did last.
type ClusterJobStatus struct {
	// ObservedGeneration is the generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Phase is one word for people; programs read conditions.
	// +optional
	Phase string `json:"phase,omitempty"`
	// Summary holds strings for columns.
	// +optional
	Summary JobSummary `json:"summary,omitempty"`
	// Conditions: Ready, Reconciling, Stalled, Complete, Failed, Suspended.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// ClusterName is the ComputeCluster of the current or last attempt.
	// +optional
	ClusterName string `json:"clusterName,omitempty"`
	// SubmissionID is the current or last attempt's name in Ray.
	// +optional
	SubmissionID string `json:"submissionID,omitempty"`
	// OwnCluster is the number of the job's own cluster, from 1; 0 without one.
	// +optional
	OwnCluster int32 `json:"ownCluster,omitempty"`
	// Attempt is the number of the current or last attempt, from 1; 0 before the first.
	// +optional
	Attempt int32 `json:"attempt,omitempty"`
	// Attempts are the last attempts, the oldest first.
	// +listType=map
	// +listMapKey=number
	// +optional
	Attempts []JobAttempt `json:"attempts,omitempty"`
	// StartTime is when the job first ran, since it was last resumed.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// EndTime is when the job came to its end.
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty"`
}

// JobSummary holds strings that kubectl shows in columns.
type JobSummary struct {
	// Attempt is "number/most".
	// +optional
	Attempt string `json:"attempt,omitempty"`
	// Duration from the first run to the end, once there is one.
	// +optional
	Duration string `json:"duration,omitempty"`
	// Entrypoint is the beginning of what runs.
	// +optional
	Entrypoint string `json:"entrypoint,omitempty"`
}

// LogState says what LastLines hold.
type LogState string

// States of an attempt's last lines.
const (
	// LogComplete: all of the last lines, or all there were.
	LogComplete LogState = "Complete"
	// LogTruncated: lines were cut, or some are missing before those that are shown.
	LogTruncated LogState = "Truncated"
	// LogLost: they could not be read before their head was gone.
	LogLost LogState = "Lost"
)

// JobAttempt is one submission to one head.
type JobAttempt struct {
	// Number of the attempt, from 1.
	Number int32 `json:"number"`
	// SubmissionID is its name in Ray, as "ray job logs" takes it.
	// +optional
	SubmissionID string `json:"submissionID,omitempty"`
	// ClusterName is the ComputeCluster that it runs on.
	// +optional
	ClusterName string `json:"clusterName,omitempty"`
	// ClusterUID is that ComputeCluster's UID.
	// +optional
	ClusterUID string `json:"clusterUID,omitempty"`
	// HeadName is the head pod that it was submitted to.
	// +optional
	HeadName string `json:"headName,omitempty"`
	// HeadUID is that pod's UID: it was submitted there, and to no other.
	// +optional
	HeadUID string `json:"headUID,omitempty"`
	// Session is Ray's name of the life of that head that took it.
	// +optional
	Session string `json:"session,omitempty"`
	// SubmitTime is when it was bound to that head, right before it was submitted.
	// +optional
	SubmitTime *metav1.Time `json:"submitTime,omitempty"`
	// StartTime is when it began to run.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// EndTime is when it ended.
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty"`
	// Reason is the code of how it ended, or before that of why it is being stopped.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message says it in words.
	// +optional
	Message string `json:"message,omitempty"`
	// ExitCode of the driver's process, if it ended by itself.
	// +optional
	ExitCode *int32 `json:"exitCode,omitempty"`
	// LastLines are the last lines of the driver's output.
	// +listType=atomic
	// +optional
	LastLines []string `json:"lastLines,omitempty"`
	// LogState says what lastLines hold: Complete, Truncated or Lost. It is absent while they are read.
	// +optional
	LogState LogState `json:"logState,omitempty"`
}
