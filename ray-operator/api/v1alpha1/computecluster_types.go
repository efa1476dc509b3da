package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ComputeCluster is a Ray cluster: one head and groups of workers, kept at the
// state that its spec declares.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=cc,categories=heliostat
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.summary.ready`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="CPUs",type=string,JSONPath=`.status.summary.cpus`,priority=1
// +kubebuilder:printcolumn:name="Memory",type=string,JSONPath=`.status.summary.memory`,priority=1
// +kubebuilder:printcolumn:name="GPUs",type=string,JSONPath=`.status.summary.gpus`,priority=1
// +kubebuilder:printcolumn:name="Ray",type=string,JSONPath=`.spec.rayVersion`,priority=1
// +kubebuilder:printcolumn:name="Epoch",type=integer,JSONPath=`.status.epoch`,priority=1
// +kubebuilder:printcolumn:name="Head",type=string,JSONPath=`.status.head.podName`,priority=1
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 50 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be a DNS-1035 label of at most 50 characters: lower-case letters, digits and '-', starting with a letter; choose a shorter or simpler name"
type ComputeCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what the user wants. No controller writes it.
	// +required
	Spec ComputeClusterSpec `json:"spec"`
	// Status is what the operator saw and did last.
	// +kubebuilder:default={conditions: {{type: "Ready", status: "Unknown", reason: "Pending", message: "Waiting for the operator; if this stays, check that the Heliostat operator runs", lastTransitionTime: "1970-01-01T00:00:00Z"}}}
	// +optional
	Status ComputeClusterStatus `json:"status,omitempty"`
}

// ComputeClusterList is a list of ComputeClusters.
//
// +kubebuilder:object:root=true
type ComputeClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ComputeCluster `json:"items"`
}

// ComputeClusterSpec describes a Ray cluster.
//
// +kubebuilder:validation:XValidation:rule="!has(self.head) || !has(self.head.ingress) || !has(self.authentication) || self.authentication.mode != 'Disabled'",message="head.ingress must not expose the dashboard without authentication, because anyone who reaches it can run code; set authentication.mode to Token, or leave the ingress out",fieldPath=".head.ingress"
// +kubebuilder:validation:XValidation:rule="has(self.controlStore) == has(oldSelf.controlStore)",message="a control store is given when the cluster is made and stays; make a new cluster",fieldPath=".controlStore"
// +kubebuilder:validation:XValidation:rule="(has(self.network) && has(self.network.encryption) && self.network.encryption == 'Required') == (has(oldSelf.network) && has(oldSelf.network.encryption) && oldSelf.network.encryption == 'Required')",message="network.encryption cannot be changed; make a new cluster",fieldPath=".network"
// +kubebuilder:validation:XValidation:rule="self.?head.?service.?headless.orValue(false) == oldSelf.?head.?service.?headless.orValue(false)",message="head.service.headless cannot be changed; make a new cluster",fieldPath=".head.service"
// +kubebuilder:validation:XValidation:rule="self.?network.?encryption.orValue('Disabled') != 'Required' || !self.?head.?service.?headless.orValue(false)",message="with network.encryption the dashboard is behind another port of the head, which a headless Service cannot lead to; leave headless out",fieldPath=".head.service"
// +kubebuilder:validation:XValidation:rule="!has(self.network) || !has(self.network.encryption) || self.network.encryption != 'Required' || !has(self.controlStore) || !has(self.controlStore.redis) || !self.controlStore.redis.address.startsWith('redis:')",message="with network.encryption the address of a Redis must begin with rediss://; give the address of its TLS port",fieldPath=".controlStore.redis"
// +kubebuilder:validation:XValidation:rule="!self.rayVersion.contains('+') || has(self.image) && size(self.image) > 0",message="no tag of an image holds a '+', so that there is no default image of this rayVersion; give image",fieldPath=".image"
// +kubebuilder:validation:XValidation:rule="!has(self.controlStore) || !has(self.controlStore.embedded) || !self.rayVersion.matches('^2[.]5[2-6][.]')",message="the embedded control store needs Ray 2.57 or later; raise rayVersion, or choose managedRedis",fieldPath=".controlStore.embedded"
// +kubebuilder:validation:XValidation:rule="!has(self.autoscaling) || !has(self.autoscaling.maxNodes) || !has(self.workerGroups) || self.workerGroups.map(g, (has(g.minReplicas) ? g.minReplicas : 0) * (has(g.hostsPerReplica) ? g.hostsPerReplica : 1)).sum() <= self.autoscaling.maxNodes",message="the groups' minReplicas together need more workers than maxNodes; raise maxNodes or lower minReplicas",fieldPath=".autoscaling.maxNodes"
// +kubebuilder:validation:XValidation:rule="!has(self.workerGroups) || has(self.autoscaling) || self.workerGroups.map(g, (has(g.replicas) ? g.replicas : 1) * (has(g.hostsPerReplica) ? g.hostsPerReplica : 1)).sum() <= 10000",message="the workers of all groups together must not be above 10000; lower replicas or make two clusters",fieldPath=".workerGroups"
// +kubebuilder:validation:XValidation:rule="has(self.scheduler) == has(oldSelf.scheduler) && (!has(self.scheduler) || self.scheduler == oldSelf.scheduler)",message="scheduler is given when the cluster is made and stays; make a new cluster",fieldPath=".scheduler"
type ComputeClusterSpec struct {
	// RayVersion is the version of Ray that the image holds, such as "2.60.0". Verified are releases from 2.52 to 2.60. With later ones, pre-releases, builds of your own and nightly the condition RayUnverified says what may not hold.
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^(nightly(-[a-z0-9.]+)*|(2[.](5[2-9]|[6-9][0-9]|[1-9][0-9][0-9]+)|([3-9]|[1-9][0-9]+)[.][0-9]+)[.][0-9]+((a|b|rc)[0-9]+)?([.]post[0-9]+)?([.]dev[0-9]+)?([+][a-zA-Z0-9.]+)?)$')",message="rayVersion must be a version of Ray from 2.52.0 on, such as 2.60.0, 2.61.0rc1 or 2.60.0+own, or nightly; give one, and put what else a tag says into image"
	// +required
	RayVersion string `json:"rayVersion"`

	// Image is the container image of head and workers. Default: rayproject/ray:RAYVERSION.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Image string `json:"image,omitempty"`

	// ImagePullPolicy is when the image is pulled. Default: Kubernetes' own, Always for the tag latest and IfNotPresent for others.
	// +kubebuilder:validation:Enum=Always;IfNotPresent;Never
	// +optional
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`

	// Suspend, if true, takes all pods away and keeps everything else. Resuming begins a new Ray session, with a control store one with what it kept.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// ManagedBy names who manages the cluster. Any value but the default makes this operator keep its hands off, as MultiKueue needs it. It cannot be changed.
	// +kubebuilder:default="heliostat.dev/operator"
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="managedBy cannot be changed; make a new cluster"
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[a-zA-Z0-9]([-a-zA-Z0-9._]*[a-zA-Z0-9])?$')",message="managedBy must be a domain, '/', and a name; give one such as \"kueue.x-k8s.io/multikueue\""
	// +optional
	ManagedBy string `json:"managedBy,omitempty"`

	// PodDefaults is what every pod of the cluster gets. What a template says itself wins.
	// +optional
	PodDefaults *PodDefaults `json:"podDefaults,omitempty"`

	// Head is the pod that holds the cluster's control plane. It takes no tasks when there are worker groups, unless rayResources says otherwise.
	// +optional
	Head HeadSpec `json:"head,omitempty"`

	// WorkerGroups are sets of alike workers. A cluster without any runs everything on its head.
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=name
	// +optional
	WorkerGroups []WorkerGroup `json:"workerGroups,omitempty"`

	// Autoscaling, if present, lets Ray's demand say how many workers there are, within minReplicas and maxReplicas of each group. Default: none, and replicas counts.
	// +optional
	Autoscaling *Autoscaling `json:"autoscaling,omitempty"`

	// ControlStore, if present, keeps the head's memory beyond the head: when the head comes back, workers, actors and Serve applications are still there. It can be given only when the cluster is made. Default: none, and the memory dies with the head.
	// +optional
	ControlStore *ControlStore `json:"controlStore,omitempty"`

	// Authentication of everyone who talks to the cluster. Default: a token, with a Secret that the operator makes.
	// +optional
	Authentication *Authentication `json:"authentication,omitempty"`

	// Network says who reaches the cluster's pods. Default: only the cluster itself, the operator, and the same namespace on Dashboard, Client and Metrics.
	// +optional
	Network *Network `json:"network,omitempty"`

	// UpgradeStrategy says what happens to running pods when the spec of their kind changes. Default: nothing.
	// +optional
	UpgradeStrategy *UpgradeStrategy `json:"upgradeStrategy,omitempty"`

	// Scheduler, if present, places head and workers as one gang: all that the cluster must have, or none. It can be given only when the cluster is made. Default: none, and Kubernetes places pod by pod.
	// +optional
	Scheduler *Scheduler `json:"scheduler,omitempty"`

	// MaxConcurrentJobs is how many ClusterJobs run here at once; the others wait in order of their creation. Default: no bound.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	// +optional
	MaxConcurrentJobs *int32 `json:"maxConcurrentJobs,omitempty"`

	// IdlePolicy says what happens to a cluster that nobody uses. Default: nothing.
	// +optional
	IdlePolicy *IdlePolicy `json:"idlePolicy,omitempty"`
}

// NodeSpec is what head and workers have in common.
type NodeSpec struct {
	// Size is the short way to size the Ray container, by real resource names. Memory and devices become request and limit, cpu a request. Default: cpu 1 and memory 4Gi for the head, 2Gi for a worker. Not beside resources of that container in template.
	// +kubebuilder:validation:MaxProperties=16
	// +optional
	Size corev1.ResourceList `json:"size,omitempty"`

	// ObjectStoreMemory is the size of Ray's object store, in memory that counts against the container's. Default: 30 % of the container's memory, 200 GB at most.
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isInteger() && !quantity(string(self)).isLessThan(quantity('75Mi'))",message="Ray's object store is a whole number of bytes, 75Mi or more; give more"
	// +optional
	ObjectStoreMemory *resource.Quantity `json:"objectStoreMemory,omitempty"`

	// RayResources are Ray's logical resources. Keys given here override what is computed from the pod; further keys are custom resources.
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="!('object_store_memory' in self)",message="object_store_memory has a field of its own; use objectStoreMemory"
	// +kubebuilder:validation:XValidation:rule="self.all(name, name != '' && !name.startsWith('node:'))",message="resources named node:... or without a name are Ray's own; choose another name"
	// +kubebuilder:validation:XValidation:rule="self.all(name, sign(quantity(string(self[name]))) >= 0)",message="a resource cannot be negative; give 0 or more"
	// +kubebuilder:validation:XValidation:rule="self.all(name, (name == 'memory' || sign(quantity(string(self[name]))) < 0 || quantity(string(self[name])).isInteger()) && !quantity(string(self[name])).isGreaterThan(quantity('100T')))",message="Ray counts resources of a node in whole numbers up to 100T; give a smaller or a whole number, such as 1000 for thousandths"
	// +optional
	RayResources map[string]resource.Quantity `json:"rayResources,omitempty"`

	// RayStartParams are further options of "ray start", without the leading dashes; an empty value is a bare flag. Options that the operator owns are refused.
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="!['head', 'block', 'address', 'port', 'dashboard-host', 'dashboard-port', 'dashboard-agent-listen-port', 'metrics-export-port', 'ray-client-server-port', 'no-monitor', 'include-dashboard', 'node-ip-address', 'redis-password', 'redis-username', 'autoscaling-config'].exists(name, name in self)",message="the operator sets head, block, address, port, dashboard-host, dashboard-port, dashboard-agent-listen-port, metrics-export-port, ray-client-server-port, no-monitor, include-dashboard, node-ip-address, redis-password, redis-username, autoscaling-config; leave them out"
	// +kubebuilder:validation:XValidation:rule="!['num-cpus', 'num-gpus', 'memory', 'resources'].exists(name, name in self)",message="num-cpus, num-gpus, memory and resources follow the pod; use rayResources to override them"
	// +kubebuilder:validation:XValidation:rule="!['labels', 'labels-file'].exists(name, name in self)",message="the operator sets Ray's labels; use the field labels"
	// +kubebuilder:validation:XValidation:rule="!('object-store-memory' in self)",message="object-store-memory has a field of its own; use objectStoreMemory"
	// +kubebuilder:validation:XValidation:rule="!('disable-usage-stats' in self)",message="usage statistics are off by default; set RAY_USAGE_STATS_ENABLED in the template to change that"
	// +kubebuilder:validation:XValidation:rule="['no-redirect-output', 'enable-object-reconstruction', 'ray-debugger-external', 'enable-resource-isolation'].all(name, !(name in self) || self[name] == '')",message="no-redirect-output, enable-object-reconstruction, ray-debugger-external, enable-resource-isolation take no value; leave it empty"
	// +optional
	RayStartParams map[string]string `json:"rayStartParams,omitempty"`

	// Labels are Ray's node labels, for label selectors of tasks and actors. With the prefix ray.io, accelerator-type,
	// market-type, gpu-domain, availability-* and tpu-* may be given; a well-known node selector gives them, too.
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(key, !key.startsWith('ray.io/') || key in ['ray.io/accelerator-type', 'ray.io/market-type', 'ray.io/gpu-domain'] || key.startsWith('ray.io/availability-') || key.startsWith('ray.io/tpu-'))",message="the prefix ray.io is Ray's own, but for accelerator-type, market-type, gpu-domain, availability-* and tpu-*; choose another prefix"
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// Template is a pod template. The operator adds what Ray needs; the Ray container is the one named "ray".
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Template *corev1.PodTemplateSpec `json:"template,omitempty"`
}

// HeadSpec describes the head pod.
//
// +kubebuilder:validation:XValidation:rule="!has(self.size) || !('memory' in self.size) || sign(quantity(string(self.size['memory']))) <= 0 || !quantity(string(self.size['memory'])).isLessThan(quantity('768Mi'))",message="Ray does not start with so little memory; give a head 768Mi or more and a worker 512Mi or more",fieldPath=".size"
type HeadSpec struct {
	NodeSpec `json:",inline"`

	// Service in front of the head.
	// +optional
	Service *HeadServiceSpec `json:"service,omitempty"`

	// Ingress opens the dashboard to the outside. Default: none. It needs authentication.
	// +optional
	Ingress *IngressSpec `json:"ingress,omitempty"`
}

// WorkerGroup describes a set of alike workers.
//
// +kubebuilder:validation:XValidation:rule="!has(self.minReplicas) || !has(self.maxReplicas) || self.minReplicas <= self.maxReplicas",message="minReplicas must not be above maxReplicas; raise maxReplicas or lower minReplicas"
// +kubebuilder:validation:XValidation:rule="!has(self.hostsPerReplica) || self.hostsPerReplica == 1 || (has(self.replicas) ? self.replicas : 1) * self.hostsPerReplica <= 10000",message="replicas times hostsPerReplica must not be above 10000 pods; lower one of the two or make two clusters"
// +kubebuilder:validation:XValidation:rule="!has(self.size) || !('memory' in self.size) || sign(quantity(string(self.size['memory']))) <= 0 || !quantity(string(self.size['memory'])).isLessThan(quantity('512Mi'))",message="Ray does not start with so little memory; give a head 768Mi or more and a worker 512Mi or more",fieldPath=".size"
type WorkerGroup struct {
	// Name of the group, unique in the cluster; Ray calls it the node type.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="a group's name must be lower-case letters, digits and '-', starting with a letter and ending with a letter or digit; choose such a name"
	// +kubebuilder:validation:XValidation:rule="!(self in ['head', 'headgroup'])",message="the names head and headgroup stand for the head itself; choose another name for the group"
	// +required
	Name string `json:"name"`

	// Replicas is the number of workers, or with hostsPerReplica of sets of workers. With autoscaling it is what a new group begins with, as far as minReplicas and maxReplicas let it. Default: 1 within minReplicas and maxReplicas, with autoscaling minReplicas.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// MinReplicas is the least that replicas may be; with autoscaling what is kept. Default: 0.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	// +optional
	MinReplicas *int32 `json:"minReplicas,omitempty"`

	// MaxReplicas is the most that replicas may be; with autoscaling the most that are made, and required. Default: no bound.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	// +optional
	MaxReplicas *int32 `json:"maxReplicas,omitempty"`

	// IdleTimeoutSeconds is, with autoscaling, for how long nothing has run on a worker of this group before it goes; of several hosts per replica, on none of them. Default: that of autoscaling.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=31536000
	// +optional
	IdleTimeoutSeconds *int32 `json:"idleTimeoutSeconds,omitempty"`

	// Priority says, with autoscaling, which of the groups that fit grows first: the one with the highest. Default: 0.
	// +kubebuilder:validation:Minimum=-1000
	// +kubebuilder:validation:Maximum=1000
	// +optional
	Priority *int32 `json:"priority,omitempty"`

	// CapacityTimeoutSeconds is, with autoscaling, after how long without one more worker this group is passed over for the next one that fits; it is tried again later. Default: never.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=31536000
	// +optional
	CapacityTimeoutSeconds *int32 `json:"capacityTimeoutSeconds,omitempty"`

	// HostsPerReplica above 1 makes a replica of that many workers that are made, replaced and removed together, as the hosts of a TPU slice or an NVLink domain. Default: 1. It cannot be changed.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	// +kubebuilder:default=1
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="hostsPerReplica cannot be changed; add a group of another name and remove this one"
	// +optional
	HostsPerReplica int32 `json:"hostsPerReplica,omitempty"`

	// Suspend, if true, takes the group's workers away after they have been drained.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// DrainSeconds is how long a planned exit waits for what runs on a worker: scaling down, rolling, suspending the group, a node that is going. The pod's grace period follows. Default: 300.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	// +optional
	DrainSeconds *int32 `json:"drainSeconds,omitempty"`

	// VolumeClaimTemplates are claims for each worker's slot. A claim outlives the pods in its slot, and goes with the slot, the group or the cluster. A volume of the same name is added to the pod; mount it in the template.
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	// +optional
	VolumeClaimTemplates []corev1.PersistentVolumeClaim `json:"volumeClaimTemplates,omitempty"`

	// Image of this group's workers. Default: the cluster's image. It must hold the same versions of Ray and Python as the head's.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Image string `json:"image,omitempty"`

	NodeSpec `json:",inline"`
}

// ComputeClusterStatus is what the operator saw and did last.
type ComputeClusterStatus struct {
	// ObservedGeneration is the generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Phase is one word for people; programs read conditions.
	// +optional
	Phase string `json:"phase,omitempty"`
	// Summary holds strings for columns.
	// +optional
	Summary ClusterSummary `json:"summary,omitempty"`
	// Conditions: Ready, Reconciling, Stalled, HeadReady, WorkersReady, UpToDate, ControlStoreReady, Autoscaling, Suspended, InvalidSpec, NameConflict, VersionMismatch, RayUnverified.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Epoch counts the heads that this cluster has had.
	// +optional
	Epoch int64 `json:"epoch,omitempty"`
	// Session is the epoch of the workers where it is an earlier one without a control store: heads since then never started, and the workers still wait for one.
	// +optional
	Session int64 `json:"session,omitempty"`
	// Head is the head pod of the current epoch.
	// +optional
	Head *HeadStatus `json:"head,omitempty"`
	// ServiceName is the Service in front of the head.
	// +optional
	ServiceName string `json:"serviceName,omitempty"`
	// DashboardURL is where Ray's dashboard and job API answer inside the Kubernetes cluster.
	// +optional
	DashboardURL string `json:"dashboardURL,omitempty"`
	// TokenSecretName is the Secret whose key auth_token opens the cluster.
	// +optional
	TokenSecretName string `json:"tokenSecretName,omitempty"`
	// Workers counts the workers of all groups.
	// +optional
	Workers WorkerCounts `json:"workers,omitempty"`
	// Groups counts the workers of each group.
	// +listType=map
	// +listMapKey=name
	// +optional
	Groups []GroupStatus `json:"groups,omitempty"`
	// Resources are the sums of what the wanted pods ask for, by Kubernetes' resource names.
	// +optional
	Resources corev1.ResourceList `json:"resources,omitempty"`
	// ControlStore is about the memory behind the head, where there is a control store.
	// +optional
	ControlStore *ControlStoreStatus `json:"controlStore,omitempty"`
	// Autoscaling is what the autoscaler decided last.
	// +optional
	Autoscaling *AutoscalingStatus `json:"autoscaling,omitempty"`
}

// ClusterSummary holds strings that kubectl shows in columns.
type ClusterSummary struct {
	// Ready is "ready/wanted" workers.
	// +optional
	Ready string `json:"ready,omitempty"`
	// CPUs of all wanted pods.
	// +optional
	CPUs string `json:"cpus,omitempty"`
	// Memory of all wanted pods.
	// +optional
	Memory string `json:"memory,omitempty"`
	// GPUs of all wanted pods.
	// +optional
	GPUs string `json:"gpus,omitempty"`
}

// HeadStatus names the head pod of the current epoch.
type HeadStatus struct {
	// PodName is the pod's name.
	PodName string `json:"podName"`
	// UID of the pod.
	// +optional
	UID string `json:"uid,omitempty"`
	// NodeName is the Kubernetes node it runs on.
	// +optional
	NodeName string `json:"nodeName,omitempty"`
	// IP of the pod.
	// +optional
	IP string `json:"ip,omitempty"`
	// Restarts is how often Ray's container ended in the pod and was started again.
	// +optional
	Restarts int32 `json:"restarts,omitempty"`
	// Since is when the pod was made.
	// +optional
	Since *metav1.Time `json:"since,omitempty"`
	// Failures counts the heads before it that ended soon after they were made, one in place of the other. The pause before the next one doubles with each, up to 5 minutes.
	// +optional
	Failures int32 `json:"failures,omitempty"`
}

// WorkerCounts counts workers.
type WorkerCounts struct {
	// Desired is how many the spec asks for.
	// +optional
	Desired int32 `json:"desired"`
	// Created is how many pods there are that are not on their way out.
	// +optional
	Created int32 `json:"created"`
	// Ready is how many have joined, as their own health endpoint says.
	// +optional
	Ready int32 `json:"ready"`
}

// GroupStatus counts the workers of a group.
type GroupStatus struct {
	// Name of the group.
	Name string `json:"name"`

	WorkerCounts `json:",inline"`

	// Outdated is how many were built from an earlier spec.
	// +optional
	Outdated int32 `json:"outdated,omitempty"`
	// Draining is how many are on a planned exit and still at work.
	// +optional
	Draining int32 `json:"draining,omitempty"`
	// Reason is the code of what the group waits for, empty when it is complete.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message says it in words, with what helps.
	// +optional
	Message string `json:"message,omitempty"`
}
