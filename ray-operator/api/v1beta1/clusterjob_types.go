package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ClusterJob runs a program to completion, on an existing cluster or on its own.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=cjob,categories=heliostat
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.status.clusterName`
// +kubebuilder:printcolumn:name="Attempt",type=string,JSONPath=`.status.summary.attempt`
// +kubebuilder:printcolumn:name="Duration",type=string,JSONPath=`.status.summary.duration`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Entrypoint",type=string,JSONPath=`.status.summary.entrypoint`,priority=1
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be a DNS-1035 label of at most 63 characters: lower-case letters, digits and '-', starting with a letter; choose a shorter or simpler name"
// +heliostat:rule=job-name
type ClusterJob struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of objects.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the desired state. No controller writes it.
	// +required
	Spec ClusterJobSpec `json:"spec,omitzero"`
	// status is the observed state, as the operator reported it last.
	// +kubebuilder:default={conditions: {{type: "Ready", status: "Unknown", reason: "Pending", message: "Waiting for the operator; if this stays, check that the Heliostat operator runs", lastTransitionTime: "1970-01-01T00:00:00Z"}}}
	// +optional
	Status ClusterJobStatus `json:"status,omitzero"`
}

// ClusterJobList is a list of ClusterJobs.
//
// +kubebuilder:object:root=true
type ClusterJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterJob `json:"items"`
}

// ClusterJobSpec describes a job. Fields that define what runs can be changed only while suspend is true.
//
// +kubebuilder:validation:XValidation:rule="has(self.clusterRef) != has(self.clusterTemplate)",message="a job must run either on an existing cluster or on its own; set exactly one of clusterRef and clusterTemplate"
// +heliostat:rule=job-where
// +kubebuilder:validation:XValidation:rule="has(self.gang) || has(self.entrypoint) != has(self.command)",message="a job must have one program to run; set exactly one of entrypoint and command"
// +heliostat:rule=job-what
// +kubebuilder:validation:XValidation:rule="!has(self.gang) || !(has(self.entrypoint) && has(self.command)) && (has(self.entrypoint) || has(self.command) || self.gang.roles.all(r, has(r.entrypoint) || has(r.command) || self.gang.framework == 'MPI' && r.name == 'worker' && self.gang.roles.exists(o, o.name == 'launcher') || self.gang.framework == 'Spark' && r.name == 'executor'))",message="each role of a gang must have one program to run; set exactly one of entrypoint and command of the job, or one of the two in each role"
// +heliostat:rule=gang-what
// +kubebuilder:validation:XValidation:rule="!has(self.gang) || self.gang.roles.all(r, r.start == 'PerReplica' || r.processesPerReplica == 1 || !(has(r.command) && r.command[0].matches('^ *([^ ]*/|)torchrun( |$)') || has(r.entrypoint) && r.entrypoint.matches('^ *([^ ]*/|)torchrun( |$)') || !has(r.command) && !has(r.entrypoint) && (has(self.command) && self.command[0].matches('^ *([^ ]*/|)torchrun( |$)') || has(self.entrypoint) && self.entrypoint.matches('^ *([^ ]*/|)torchrun( |$)'))))",message="torchrun starts the processes of a replica itself; set start PerReplica",fieldPath=".gang.roles"
// +heliostat:rule=gang-torchrun
// +kubebuilder:validation:XValidation:rule="!has(self.cleanup) || has(self.clusterTemplate)",message="cleanup must be used with clusterTemplate only; leave cleanup out, or use clusterTemplate",fieldPath=".cleanup"
// +heliostat:rule=cleanup-own
// +kubebuilder:validation:XValidation:rule="!has(self.retry) || !has(self.retry.scope) || self.retry.scope != 'Cluster' || has(self.clusterTemplate)",message="scope Cluster must be used with clusterTemplate only; use scope Driver, or clusterTemplate",fieldPath=".retry.scope"
// +heliostat:rule=retry-scope
// +kubebuilder:validation:XValidation:rule="!has(self.tune) || !has(self.retry) || has(self.tune.storage)",message="with retry, trials must have a storage, because another attempt would run all of them again; set storage, or leave retry out",fieldPath=".tune.storage"
// +heliostat:rule=tune-retry
// +kubebuilder:validation:XValidation:rule="!has(self.tune) || !has(self.gang) || self.gang.roles.all(r, r.name != 'tune')",message="with trials, no role may have the name tune, because $(tune.NAME) is a parameter; rename the role",fieldPath=".gang.roles"
// +heliostat:rule=tune-role
type ClusterJobSpec struct {
	// clusterRef names the ComputeCluster to run on, in the same namespace.
	// +optional
	ClusterRef *ClusterReference `json:"clusterRef,omitempty"`

	// clusterTemplate describes the job's own ComputeCluster, which is deleted after the job ends.
	// +optional
	ClusterTemplate *ClusterTemplate `json:"clusterTemplate,omitempty"`

	// entrypoint is a shell command line, as in Ray's job API.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32768
	// +kubebuilder:validation:XValidation:rule="self == '' || self.trim() != ''",message="entrypoint must not be blank; give a shell line, such as python train.py"
	// +heliostat:rule=entrypoint-blank
	// +optional
	Entrypoint string `json:"entrypoint,omitempty"`

	// command is a program with its arguments, run without a shell. Each argument is passed unchanged.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1024
	// +kubebuilder:validation:items:MaxLength=32768
	// +kubebuilder:validation:XValidation:rule="self.size() == 0 || self[0] != ''",message="the first element of command must be the program; name it there"
	// +heliostat:rule=command-program
	// +listType=atomic
	// +optional
	Command []string `json:"command,omitempty"`

	// gang makes the job a gang: processes that start, end and restart together, and need not know Ray. Default: none, and the command is the driver.
	// +optional
	Gang *Gang `json:"gang,omitempty"`

	// tune makes the job run many trials with different values of parameters, and find the best ones. Each trial is the gang, or without gang one process, which reserves entrypointResources. Default: none, and the command runs once.
	// +optional
	Tune *Tune `json:"tune,omitempty"`

	// runtimeEnv is Ray's runtime environment, in Ray's own form.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	// +optional
	RuntimeEnv *runtime.RawExtension `json:"runtimeEnv,omitempty"`

	// env is the environment of the driver and its tasks. A valueFrom needs clusterTemplate, where it becomes environment of the pods. On a shared cluster, its value would be readable in Ray's store.
	// +kubebuilder:validation:MaxItems=256
	// +listType=map
	// +listMapKey=name
	// +optional
	Env []corev1.EnvVar `json:"env,omitempty"`

	// entrypointResources are Ray resources that the driver itself reserves, with the keys of rayResources. Default: none, and the driver runs on the head.
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(name, !(name in ['', 'object_store_memory', 'bundle']) && !name.startsWith('node:'))",message="a resource must not be named object_store_memory, bundle or node:..., or have an empty name; choose another name"
	// +heliostat:rule=driver-resource-own
	// +kubebuilder:validation:XValidation:rule="self.all(name, !(name in ['cpu', 'gpu', 'tpu', 'google.com/tpu']) && !name.endsWith('/gpu'))",message="a resource of the driver must have Ray's name, not that of Kubernetes; write CPU, GPU or TPU"
	// +heliostat:rule=driver-resource-kubernetes
	// +kubebuilder:validation:XValidation:rule="self.all(name, sign(quantity(string(self[name]))) >= 0)",message="a resource of the driver must not be negative; give 0 or more"
	// +heliostat:rule=driver-resource-negative
	// +kubebuilder:validation:XValidation:rule="self.all(name, sign(quantity(string(self[name]))) < 0 || (!quantity(string(self[name])).isGreaterThan(quantity('100T')) && (name != 'memory' || quantity(string(self[name])).isInteger()) && [quantity(string(self[name])).asApproximateFloat() * 10000.0].all(steps, steps - double(int(steps + 0.5)) < 0.01 && double(int(steps + 0.5)) - steps < 0.01)))",message="a resource of the driver must be a multiple of 0.0001 up to 100T, and memory a whole number of bytes; round it"
	// +heliostat:rule=driver-resource-step
	// +optional
	EntrypointResources map[string]resource.Quantity `json:"entrypointResources,omitempty"`

	// entrypointLabelSelector selects by labels the Ray nodes on which the driver may run. It needs Ray 2.54.
	// +kubebuilder:validation:MaxProperties=64
	// +optional
	EntrypointLabelSelector map[string]string `json:"entrypointLabelSelector,omitempty"`

	// metadata that Ray stores with the job.
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(key, !key.startsWith('heliostat.dev/') && key != 'job_submission_id')",message="a key must not have the prefix heliostat.dev, nor be Ray's job_submission_id; choose another"
	// +heliostat:rule=metadata-own
	// +optional
	Metadata map[string]string `json:"metadata,omitempty"`

	// retry configures when and where a failed attempt is retried. Default: never.
	// +optional
	Retry *Retry `json:"retry,omitempty"`

	// startDeadlineSeconds is the maximum time from creation or resumption until the job first runs.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=31536000
	// +optional
	StartDeadlineSeconds *int32 `json:"startDeadlineSeconds,omitempty"`

	// activeDeadlineSeconds is the maximum duration of all attempts together, from the first run. It restarts when a suspended job resumes.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=31536000
	// +optional
	ActiveDeadlineSeconds *int32 `json:"activeDeadlineSeconds,omitempty"`

	// cleanup configures what is deleted of the job's own cluster, and when. If no rule names the outcome, the cluster stays as long as the job exists. Default: the cluster is deleted immediately.
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.all(rule, self.exists_one(other, other.outcome == rule.outcome && other.action == rule.action))",message="rules must differ in outcome or action; keep one of the two"
	// +heliostat:rule=cleanup-twice
	// +kubebuilder:validation:XValidation:rule="self.all(rule, rule.action != 'DeleteWorkers' || !self.exists(other, other.action == 'DeleteCluster' && other.outcome == rule.outcome && (has(rule.afterSeconds) ? rule.afterSeconds : 0) >= (has(other.afterSeconds) ? other.afterSeconds : 0)))",message="DeleteWorkers must come before DeleteCluster; lower its afterSeconds or remove it"
	// +heliostat:rule=cleanup-order
	// +listType=atomic
	// +optional
	Cleanup []CleanupRule `json:"cleanup,omitempty"`

	// ttlSecondsAfterFinished is how long after its end the ClusterJob is deleted, together with its cluster if that still exists. Default: never.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	// +optional
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`

	// suspend stops the run and deletes the job's own cluster while it is true. Resuming starts the next attempt.
	// +optional
	Suspend *bool `json:"suspend,omitempty"`

	// managedBy names the controller that reconciles this object. This operator ignores objects with any other value than the default, as MultiKueue needs. Immutable.
	// +kubebuilder:default="heliostat.dev/operator"
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="managedBy is immutable; create a new job"
	// +heliostat:rule=job-managed-by-fixed
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[a-zA-Z0-9]([-a-zA-Z0-9._]*[a-zA-Z0-9])?$')",message="managedBy must be a domain, '/', and a name; give one such as \"kueue.x-k8s.io/multikueue\""
	// +heliostat:rule=managed-by
	// +kubebuilder:validation:MinLength=1
	// +optional
	ManagedBy string `json:"managedBy,omitempty"`
}

// ClusterReference names a ComputeCluster in the same namespace.
type ClusterReference struct {
	// name of the ComputeCluster.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=50
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="the name must be valid for a ComputeCluster; give the name of one in the same namespace"
	// +heliostat:rule=home-cluster-name
	// +required
	Name string `json:"name,omitempty"`
}

// ClusterTemplate describes a ComputeCluster to create.
//
// +kubebuilder:validation:XValidation:rule="!has(self.spec.suspend) || !self.spec.suspend",message="suspend must not be set in a clusterTemplate; suspend the job or the service with its own spec.suspend",fieldPath=".spec.suspend"
// +heliostat:rule=own-cluster-suspend
// +kubebuilder:validation:XValidation:rule="!has(self.spec.managedBy) || self.spec.managedBy == 'heliostat.dev/operator'",message="managedBy must not name another controller in a clusterTemplate; set spec.managedBy of the job or the service",fieldPath=".spec.managedBy"
// +heliostat:rule=own-cluster-managed-by
// +kubebuilder:validation:XValidation:rule="!has(self.spec.idlePolicy) || !has(self.spec.idlePolicy.action) || self.spec.idlePolicy.action == 'None'",message="idlePolicy must have action None in a clusterTemplate, because jobs use cleanup and services are never idle; leave idlePolicy out, or use action None",fieldPath=".spec.idlePolicy"
// +heliostat:rule=own-cluster-idle
type ClusterTemplate struct {
	// metadata of the ComputeCluster.
	// +kubebuilder:validation:XValidation:rule="!has(self.labels) || self.labels.all(key, !key.startsWith('heliostat.dev/') && !key.contains('.heliostat.dev/'))",message="a key of a clusterTemplate's metadata must not have the prefix heliostat.dev, which is reserved for the operator; choose another",fieldPath=".labels"
	// +heliostat:rule=own-cluster-metadata
	// +kubebuilder:validation:XValidation:rule="!has(self.annotations) || self.annotations.all(key, !key.startsWith('heliostat.dev/') && !key.contains('.heliostat.dev/'))",message="a key of a clusterTemplate's metadata must not have the prefix heliostat.dev, which is reserved for the operator; choose another",fieldPath=".annotations"
	// +heliostat:rule=own-cluster-metadata
	// +optional
	Metadata TemplateMetadata `json:"metadata,omitzero"`
	// spec of the ComputeCluster.
	// +required
	Spec ComputeClusterSpec `json:"spec,omitzero"`
}

// TemplateMetadata is the metadata of an object that is created from a template.
type TemplateMetadata struct {
	// labels of the object.
	// +kubebuilder:validation:MaxProperties=64
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// annotations of the object.
	// +kubebuilder:validation:MaxProperties=64
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
}

// RetryScope is where a failed attempt is retried.
type RetryScope string

// Scopes of a retry.
const (
	// RetryDriver: on the same cluster.
	RetryDriver RetryScope = "Driver"
	// RetryCluster: on a new cluster, after the previous one and its pods are deleted.
	RetryCluster RetryScope = "Cluster"
)

// Retry configures when and where a failed attempt is retried.
//
// +kubebuilder:validation:XValidation:rule="!has(self.backoffSeconds) || !has(self.maxBackoffSeconds) || self.backoffSeconds <= self.maxBackoffSeconds",message="backoffSeconds (default 10) must not be above maxBackoffSeconds (default 360); lower it or raise the other",fieldPath=".backoffSeconds"
// +heliostat:rule=retry-backoff
type Retry struct {
	// limit is the maximum number of retries after failed attempts. Default: 0.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +optional
	Limit int32 `json:"limit,omitempty"`

	// scope is where the next attempt runs: Driver on the same cluster, Cluster on a new one. Default: Driver.
	// +kubebuilder:validation:Enum=Driver;Cluster
	// +kubebuilder:default=Driver
	// +optional
	Scope RetryScope `json:"scope,omitempty"`

	// backoffSeconds is the pause before the first retry. It doubles with each further one. Default: 10.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	// +kubebuilder:default=10
	// +optional
	BackoffSeconds *int32 `json:"backoffSeconds,omitempty"`

	// maxBackoffSeconds is the longest pause. Default: 360.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	// +kubebuilder:default=360
	// +optional
	MaxBackoffSeconds *int32 `json:"maxBackoffSeconds,omitempty"`

	// onExitCodes limits which failures are retried, by exit code. Attempts lost to infrastructure are retried whatever their exit code. Default: all.
	// +optional
	OnExitCodes *ExitCodes `json:"onExitCodes,omitempty"`

	// infrastructureLimit is the maximum number of retries of attempts lost to infrastructure (head, node or cluster), separate from limit. Default: they count towards limit.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +optional
	InfrastructureLimit *int32 `json:"infrastructureLimit,omitempty"`

	// attemptDeadlineSeconds is the maximum duration of one attempt. A longer one is stopped and counts as failed.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=31536000
	// +optional
	AttemptDeadlineSeconds *int32 `json:"attemptDeadlineSeconds,omitempty"`
}

// ExitCodes selects exit codes of the driver's process.
//
// +kubebuilder:validation:XValidation:rule="has(self.__in__) != has(self.notIn)",message="exit codes must be either those that are retried or those that are not; set exactly one of in and notIn"
// +heliostat:rule=retry-exit-codes
type ExitCodes struct {
	// in are exit codes that are retried.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=255
	// +kubebuilder:validation:items:Minimum=1
	// +kubebuilder:validation:items:Maximum=255
	// +listType=set
	// +optional
	In []int32 `json:"in,omitempty"`
	// notIn are exit codes that are not retried.
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

// CleanupAction is what is deleted of a job's own cluster.
type CleanupAction string

// Actions of a cleanup.
const (
	// CleanupDeleteCluster deletes the cluster.
	CleanupDeleteCluster CleanupAction = "DeleteCluster"
	// CleanupDeleteWorkers deletes the workers and keeps the head.
	CleanupDeleteWorkers CleanupAction = "DeleteWorkers"
)

// CleanupRule deletes a job's own cluster, or its workers, after an outcome.
type CleanupRule struct {
	// outcome of the job: Success, or Failure for every other end.
	// +kubebuilder:validation:Enum=Success;Failure
	// +required
	Outcome JobOutcome `json:"outcome,omitempty"`
	// action is what is deleted.
	// +kubebuilder:validation:Enum=DeleteCluster;DeleteWorkers
	// +required
	Action CleanupAction `json:"action,omitempty"`
	// afterSeconds is the delay after the job's end. Default: 0.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=31536000
	// +optional
	AfterSeconds int32 `json:"afterSeconds,omitempty"`
}

// ClusterJobStatus is the observed state of a job.
type ClusterJobStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	// +kubebuilder:validation:Minimum=1
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// phase is a one-word summary for people. Programs must use conditions.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Phase string `json:"phase,omitempty"`
	// summary holds what only people read, such as the strings of kubectl's columns. Programs must use the other fields.
	// +optional
	Summary JobSummary `json:"summary,omitzero"`
	// conditions are of the types Ready, Reconciling, Stalled, Complete, Failed, Finished, Suspended, UpToDate.
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// clusterName is the ComputeCluster of the current or last attempt.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ClusterName string `json:"clusterName,omitempty"`
	// submissionID is the submission ID in Ray of the current or last attempt.
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:MinLength=1
	// +optional
	SubmissionID string `json:"submissionID,omitempty"`
	// ownCluster is the number of the job's own cluster, from 1. Absent without one.
	// +kubebuilder:validation:Minimum=1
	// +optional
	OwnCluster int32 `json:"ownCluster,omitempty"`
	// attempt is the number of the current or last attempt, from 1. Absent before the first.
	// +kubebuilder:validation:Minimum=1
	// +optional
	Attempt int32 `json:"attempt,omitempty"`
	// attempts are the last attempts, the oldest first.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=number
	// +optional
	Attempts []JobAttempt `json:"attempts,omitempty"`
	// gang is the state of the gang, if the job is one.
	// +optional
	Gang *GangStatus `json:"gang,omitempty"`
	// tune is the state of the trials, if the job has any.
	// +optional
	Tune *TuneStatus `json:"tune,omitempty"`
	// startTime is when the job first ran after its creation or last resumption.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// endTime is when the job ended.
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty"`
}

// JobSummary holds strings that kubectl shows in columns.
type JobSummary struct {
	// attempt is "number/maximum".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Attempt string `json:"attempt,omitempty"`
	// duration from the first run to the end. Empty until the job ends.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Duration string `json:"duration,omitempty"`
	// entrypoint is the beginning of the entrypoint or command.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Entrypoint string `json:"entrypoint,omitempty"`
}
