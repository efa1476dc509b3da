package v1beta1

// SchedulerKind is a kind of gang scheduler.
type SchedulerKind string

// Kinds of schedulers.
const (
	SchedulerVolcano    SchedulerKind = "Volcano"
	SchedulerYuniKorn   SchedulerKind = "YuniKorn"
	SchedulerKAI        SchedulerKind = "KAI"
	SchedulerPlugins    SchedulerKind = "SchedulerPlugins"
	SchedulerKubernetes SchedulerKind = "Kubernetes"
)

// Scheduler is the gang scheduler of the cluster. The gang is the head and the required workers, scheduled all or none.
//
// +kubebuilder:validation:XValidation:rule="!has(self.queue) || !(self.name in ['SchedulerPlugins', 'Kubernetes'])",message="queue must not be set with SchedulerPlugins and Kubernetes, which have no queues; leave queue out",fieldPath=".queue"
// +heliostat:rule=scheduler-no-queue
type Scheduler struct {
	// name is the kind of scheduler: Volcano, YuniKorn, KAI, SchedulerPlugins (coscheduling), or Kubernetes with its own PodGroups.
	// +kubebuilder:validation:Enum=Volcano;YuniKorn;KAI;SchedulerPlugins;Kubernetes
	// +required
	Name SchedulerKind `json:"name,omitempty"`

	// queue of the scheduler for the cluster's pods. Default: the scheduler's default.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9]([-a-zA-Z0-9_.]*[a-zA-Z0-9])?$')",message="queue must be letters, digits, '-', '_' and '.', with a letter or digit first and last; give the name of a queue of that scheduler"
	// +heliostat:rule=scheduler-queue
	// +kubebuilder:validation:MinLength=1
	// +optional
	Queue string `json:"queue,omitempty"`

	// schedulerName is the name of the running scheduler, as in a pod's schedulerName. Default: volcano, yunikorn, kai-scheduler, scheduler-plugins-scheduler or default-scheduler.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="schedulerName must be lower-case letters, digits, '-' and '.', with a letter or digit first and last; give the name that the scheduler was started with"
	// +heliostat:rule=scheduler-name
	// +kubebuilder:validation:MinLength=1
	// +optional
	SchedulerName string `json:"schedulerName,omitempty"`
}
