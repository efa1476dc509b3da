package v1alpha1

// SchedulerKind is a sort of scheduler that places pods as one gang.
type SchedulerKind string

// Sorts of schedulers.
const (
	SchedulerVolcano    SchedulerKind = "Volcano"
	SchedulerYuniKorn   SchedulerKind = "YuniKorn"
	SchedulerKAI        SchedulerKind = "KAI"
	SchedulerPlugins    SchedulerKind = "SchedulerPlugins"
	SchedulerKubernetes SchedulerKind = "Kubernetes"
)

// Scheduler says who places the cluster's pods, all or none: the head, and the workers that the cluster must have.
//
// +kubebuilder:validation:XValidation:rule="!has(self.queue) || !(self.name in ['SchedulerPlugins', 'Kubernetes'])",message="the schedulers SchedulerPlugins and Kubernetes have no queues; leave queue out",fieldPath=".queue"
type Scheduler struct {
	// Name is the sort of scheduler: Volcano, YuniKorn, KAI, SchedulerPlugins (coscheduling), or Kubernetes, with its own PodGroups.
	// +kubebuilder:validation:Enum=Volcano;YuniKorn;KAI;SchedulerPlugins;Kubernetes
	// +required
	Name SchedulerKind `json:"name"`

	// Queue of the scheduler to which the cluster's pods count. Default: the scheduler's own default.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9]([-a-zA-Z0-9_.]*[a-zA-Z0-9])?$')",message="queue must be letters, digits, '-', '_' and '.', with a letter or digit first and last; give the name of a queue of that scheduler"
	// +optional
	Queue string `json:"queue,omitempty"`

	// SchedulerName is the name under which that scheduler runs, as in a pod's schedulerName. Default: volcano, yunikorn, kai-scheduler, scheduler-plugins-scheduler or default-scheduler.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="schedulerName must be lower-case letters, digits, '-' and '.', with a letter or digit first and last; give the name that the scheduler was started with"
	// +optional
	SchedulerName string `json:"schedulerName,omitempty"`
}
