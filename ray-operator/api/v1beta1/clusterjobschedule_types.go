package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ClusterJobSchedule creates a ClusterJob at each time of a schedule.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=cjs,categories=heliostat
// +kubebuilder:printcolumn:name="Schedule",type=string,JSONPath=`.spec.schedule`
// +kubebuilder:printcolumn:name="Zone",type=string,JSONPath=`.spec.timeZone`
// +kubebuilder:printcolumn:name="Suspend",type=boolean,JSONPath=`.spec.suspend`
// +kubebuilder:printcolumn:name="Active",type=integer,JSONPath=`.status.activeJobs`
// +kubebuilder:printcolumn:name="Last",type=date,JSONPath=`.status.lastScheduleTime`
// +kubebuilder:printcolumn:name="Next",type=string,JSONPath=`.status.nextScheduleTime`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 52 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be a DNS-1035 label of at most 52 characters, because the names of its jobs begin with it; choose a shorter or simpler name"
// +heliostat:rule=schedule-name
type ClusterJobSchedule struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of objects.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the desired state. No controller writes it.
	// +required
	Spec ClusterJobScheduleSpec `json:"spec,omitzero"`
	// status is the observed state, as the operator reported it last.
	// +kubebuilder:default={conditions: {{type: "Ready", status: "Unknown", reason: "Pending", message: "Waiting for the operator; if this stays, check that the Heliostat operator runs", lastTransitionTime: "1970-01-01T00:00:00Z"}}}
	// +optional
	Status ClusterJobScheduleStatus `json:"status,omitzero"`
}

// ClusterJobScheduleList is a list of ClusterJobSchedules.
//
// +kubebuilder:object:root=true
type ClusterJobScheduleList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterJobSchedule `json:"items"`
}

// ConcurrencyPolicy is what happens at a time of a schedule while an earlier job has not ended.
type ConcurrencyPolicy string

// Policies of a schedule for jobs that have not ended.
const (
	// ConcurrencyAllow: the next job starts beside the earlier one.
	ConcurrencyAllow ConcurrencyPolicy = "Allow"
	// ConcurrencyForbid: the next job waits for the end of the earlier one, and starts for the latest time alone.
	ConcurrencyForbid ConcurrencyPolicy = "Forbid"
	// ConcurrencyReplace: the earlier job is deleted, and the next one starts when it is gone.
	ConcurrencyReplace ConcurrencyPolicy = "Replace"
)

// ClusterJobScheduleSpec describes when jobs start, and which.
type ClusterJobScheduleSpec struct {
	// schedule is when jobs start, in cron's form: minute, hour, day of the month, month, day of the week; or @hourly, @daily, @weekly, @monthly, @yearly. A time of day that the start of daylight saving skips comes when the clocks have changed, and one that its end repeats comes once. Where each hour is meant, jobs start in each hour that passes.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +required
	Schedule string `json:"schedule,omitempty"`

	// timeZone is the IANA name of the zone whose clocks the schedule means, such as Europe/Berlin. Default: UTC.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self == '' || (self != 'Local' && self.matches('^[A-Z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$'))",message="a time zone must be a name of the IANA database; write it such as Europe/Berlin or Etc/UTC"
	// +heliostat:rule=schedule-zone
	// +kubebuilder:validation:MinLength=1
	// +optional
	TimeZone string `json:"timeZone,omitempty"`

	// concurrencyPolicy is what happens at a time while an earlier job has not ended: Allow starts the next one beside it, Forbid waits for its end and then starts one job for the latest time, Replace deletes it first. Default: Allow.
	// +kubebuilder:validation:Enum=Allow;Forbid;Replace
	// +kubebuilder:default=Allow
	// +optional
	ConcurrencyPolicy ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`

	// startingDeadlineSeconds is how late a job may start. Of all times that were missed, such as while the operator was down, the latest one alone starts, unless it is later than this. Default: no limit.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=31536000
	// +optional
	StartingDeadlineSeconds *int32 `json:"startingDeadlineSeconds,omitempty"`

	// successfulJobsHistoryLimit is how many jobs that succeeded are kept, the latest ones. Default: 3.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +kubebuilder:default=3
	// +optional
	SuccessfulJobsHistoryLimit *int32 `json:"successfulJobsHistoryLimit,omitempty"`

	// failedJobsHistoryLimit is how many jobs that ended in any other way are kept, the latest ones. Default: 1.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +kubebuilder:default=1
	// +optional
	FailedJobsHistoryLimit *int32 `json:"failedJobsHistoryLimit,omitempty"`

	// suspend keeps the schedule from starting jobs while it is true. Jobs that have started go on, and times that pass meanwhile are not made up for.
	// +optional
	Suspend *bool `json:"suspend,omitempty"`

	// jobTemplate describes the jobs. A change of it holds for the jobs that start after it.
	// +required
	JobTemplate JobTemplate `json:"jobTemplate,omitzero"`
}

// JobTemplate describes ClusterJobs to create.
//
// +kubebuilder:validation:XValidation:rule="!has(self.spec.suspend) || !self.spec.suspend",message="suspend must not be set in a jobTemplate; suspend the schedule with its own spec.suspend",fieldPath=".spec.suspend"
// +heliostat:rule=job-template-suspend
type JobTemplate struct {
	// metadata of the ClusterJobs.
	// +kubebuilder:validation:XValidation:rule="!has(self.labels) || self.labels.all(key, !key.startsWith('heliostat.dev/') && !key.contains('.heliostat.dev/'))",message="a key of a jobTemplate's metadata must not have the prefix heliostat.dev, which is reserved for the operator; choose another",fieldPath=".labels"
	// +heliostat:rule=job-template-metadata
	// +kubebuilder:validation:XValidation:rule="!has(self.annotations) || self.annotations.all(key, !key.startsWith('heliostat.dev/') && !key.contains('.heliostat.dev/'))",message="a key of a jobTemplate's metadata must not have the prefix heliostat.dev, which is reserved for the operator; choose another",fieldPath=".annotations"
	// +heliostat:rule=job-template-metadata
	// +optional
	Metadata TemplateMetadata `json:"metadata,omitzero"`
	// spec of the ClusterJobs.
	// +required
	Spec ClusterJobSpec `json:"spec,omitzero"`
}

// ClusterJobScheduleStatus is the observed state of a schedule.
type ClusterJobScheduleStatus struct {
	// observedGeneration is the generation of the spec that this status describes.
	// +kubebuilder:validation:Minimum=1
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions are of the types Ready, Reconciling, Stalled, Suspended.
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// activeJobs is how many jobs of the schedule have not ended.
	// +kubebuilder:validation:Minimum=1
	// +optional
	ActiveJobs int32 `json:"activeJobs,omitempty"`
	// active are the names of those jobs, the latest ten, the oldest first.
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=atomic
	// +optional
	Active []string `json:"active,omitempty"`
	// lastScheduleTime is the latest time for which a job was started.
	// +optional
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`
	// lastSuccessfulTime is when a job of the schedule last succeeded.
	// +optional
	LastSuccessfulTime *metav1.Time `json:"lastSuccessfulTime,omitempty"`
	// nextScheduleTime is the next time. Absent while the schedule is suspended.
	// +optional
	NextScheduleTime *metav1.Time `json:"nextScheduleTime,omitempty"`
}
