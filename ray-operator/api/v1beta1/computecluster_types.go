package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ComputeCluster is a Ray cluster: one head and groups of workers.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=cc,categories=heliostat
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.summary.ready`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="CPUs",type=string,JSONPath=`.status.summary.cpus`,priority=1
// +kubebuilder:printcolumn:name="Memory",type=string,JSONPath=`.status.summary.memory`,priority=1
// +kubebuilder:printcolumn:name="GPUs",type=string,JSONPath=`.status.summary.gpus`,priority=1
// +kubebuilder:printcolumn:name="Ray",type=string,JSONPath=`.spec.rayVersion`,priority=1
// +kubebuilder:printcolumn:name="Epoch",type=integer,JSONPath=`.status.epoch`,priority=1
// +kubebuilder:printcolumn:name="Head",type=string,JSONPath=`.status.head.podName`,priority=1
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 50 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be a DNS-1035 label of at most 50 characters: lower-case letters, digits and '-', starting with a letter; choose a shorter or simpler name"
// +heliostat:rule=cluster-name
type ComputeCluster struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of objects.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the desired state. No controller writes it.
	// +required
	Spec ComputeClusterSpec `json:"spec,omitzero"`
	// status is the observed state, as the operator reported it last.
	// +kubebuilder:default={conditions: {{type: "Ready", status: "Unknown", reason: "Pending", message: "Waiting for the operator; if this stays, check that the Heliostat operator runs", lastTransitionTime: "1970-01-01T00:00:00Z"}}}
	// +optional
	Status ComputeClusterStatus `json:"status,omitzero"`
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
// +heliostat:rule=ingress-open
// +kubebuilder:validation:XValidation:rule="has(self.controlStore) == has(oldSelf.controlStore)",message="controlStore must not be added or removed after creation; create a new cluster",fieldPath=".controlStore"
// +heliostat:rule=store-fixed
// +kubebuilder:validation:XValidation:rule="(has(self.network) && has(self.network.encryption) && self.network.encryption == 'Enabled') == (has(oldSelf.network) && has(oldSelf.network.encryption) && oldSelf.network.encryption == 'Enabled')",message="network.encryption is immutable; create a new cluster",fieldPath=".network.encryption"
// +heliostat:rule=encryption-fixed
// +kubebuilder:validation:XValidation:rule="self.?head.?service.?headless.orValue(false) == oldSelf.?head.?service.?headless.orValue(false)",message="head.service.headless is immutable; create a new cluster",fieldPath=".head.service.headless"
// +heliostat:rule=headless-fixed
// +kubebuilder:validation:XValidation:rule="self.?network.?encryption.orValue('Disabled') != 'Enabled' || !self.?head.?service.?headless.orValue(false)",message="head.service.headless must not be set with network.encryption, because a headless Service cannot map the dashboard's port; leave headless out",fieldPath=".head.service.headless"
// +heliostat:rule=encryption-headless
// +kubebuilder:validation:XValidation:rule="!has(self.network) || !has(self.network.encryption) || self.network.encryption != 'Enabled' || !has(self.controlStore) || !has(self.controlStore.redis) || !self.controlStore.redis.address.startsWith('redis:')",message="the address of a Redis must begin with rediss:// with network.encryption; give the address of its TLS port",fieldPath=".controlStore.redis.address"
// +heliostat:rule=encryption-store
// +kubebuilder:validation:XValidation:rule="!self.rayVersion.contains('+') || has(self.image) && size(self.image) > 0",message="image must be set for this rayVersion, because no image tag can contain its '+'; set image",fieldPath=".image"
// +heliostat:rule=ray-version-image
// +kubebuilder:validation:XValidation:rule="!has(self.controlStore) || !has(self.controlStore.embedded) || !self.rayVersion.matches('^2[.]5[2-6][.]')",message="rayVersion must be 2.57 or later for the embedded control store; raise it, or use managedRedis",fieldPath=".controlStore.embedded"
// +heliostat:rule=store-version
// +kubebuilder:validation:XValidation:rule="!has(self.autoscaling) || !has(self.autoscaling.maxNodes) || !has(self.workerGroups) || self.workerGroups.map(g, (has(g.minReplicas) ? g.minReplicas : 0) * (has(g.hostsPerReplica) ? g.hostsPerReplica : 1)).sum() <= self.autoscaling.maxNodes",message="maxNodes must not be below the number of workers that the groups' minReplicas need; raise maxNodes or lower minReplicas",fieldPath=".autoscaling.maxNodes"
// +heliostat:rule=autoscaling-nodes
// +kubebuilder:validation:XValidation:rule="!has(self.workerGroups) || has(self.autoscaling) || self.workerGroups.map(g, (has(g.replicas) ? g.replicas : 1) * (has(g.hostsPerReplica) ? g.hostsPerReplica : 1)).sum() <= 10000",message="the groups must not have more than 10000 workers together; lower replicas or create two clusters",fieldPath=".workerGroups"
// +heliostat:rule=too-many-workers
// +kubebuilder:validation:XValidation:rule="has(self.scheduler) == has(oldSelf.scheduler) && (!has(self.scheduler) || self.scheduler == oldSelf.scheduler)",message="scheduler is immutable; create a new cluster",fieldPath=".scheduler"
// +heliostat:rule=scheduler-fixed
type ComputeClusterSpec struct {
	// rayVersion is the version of Ray in the image, such as "2.60.0". Releases from 2.52 to 2.60 are verified. For later ones, pre-releases, custom builds and nightly, the condition RayUnverified is True.
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^(nightly(-[a-z0-9.]+)*|(2[.](5[2-9]|[6-9][0-9]|[1-9][0-9][0-9]+)|([3-9]|[1-9][0-9]+)[.][0-9]+)[.][0-9]+((a|b|rc)[0-9]+)?([.]post[0-9]+)?([.]dev[0-9]+)?([+][a-zA-Z0-9.]+)?)$')",message="rayVersion must be nightly or a Ray version from 2.52.0 on, such as 2.60.0, 2.61.0rc1 or 2.60.0+own; give one, and put other parts of a tag into image"
	// +heliostat:rule=ray-version
	// +kubebuilder:validation:MinLength=1
	// +required
	RayVersion string `json:"rayVersion,omitempty"`

	// image is the container image of head and workers. Default: rayproject/ray:RAYVERSION.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:MinLength=1
	// +optional
	Image string `json:"image,omitempty"`

	// imagePullPolicy is when the image is pulled. Default: Always for the tag latest, IfNotPresent for others.
	// +kubebuilder:validation:Enum=Always;IfNotPresent;Never
	// +optional
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`

	// suspend deletes all pods and keeps everything else while it is true. Resuming starts a new Ray session; with a control store, it starts with the stored state.
	// +optional
	Suspend *bool `json:"suspend,omitempty"`

	// managedBy names the controller that reconciles this object. This operator ignores objects with any other value than the default, as MultiKueue needs. Immutable.
	// +kubebuilder:default="heliostat.dev/operator"
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="managedBy is immutable; create a new cluster"
	// +heliostat:rule=managed-by-fixed
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[a-zA-Z0-9]([-a-zA-Z0-9._]*[a-zA-Z0-9])?$')",message="managedBy must be a domain, '/', and a name; give one such as \"kueue.x-k8s.io/multikueue\""
	// +heliostat:rule=managed-by
	// +kubebuilder:validation:MinLength=1
	// +optional
	ManagedBy string `json:"managedBy,omitempty"`

	// podDefaults are settings for every pod of the cluster. Templates override them.
	// +optional
	PodDefaults *PodDefaults `json:"podDefaults,omitempty"`

	// head is the pod with the cluster's control plane. If there are worker groups, it runs no tasks unless its rayResources say otherwise.
	// +optional
	Head HeadSpec `json:"head,omitzero"`

	// workerGroups are sets of identical workers. A cluster without groups runs everything on its head.
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=name
	// +optional
	WorkerGroups []WorkerGroup `json:"workerGroups,omitempty"`

	// sharedVolumes are volumes that every pod mounts, head and workers, such as for checkpoints. A change of one makes pods out of date.
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.all(v, self.exists_one(o, o.mountPath == v.mountPath))",message="shared volumes must have different mountPaths; change one of them"
	// +heliostat:rule=shared-volume-path-twice
	// +kubebuilder:validation:XValidation:rule="self.all(v, !has(v.claimName) || self.exists_one(o, has(o.claimName) && o.claimName == v.claimName))",message="shared volumes must have different claimNames, because pods with one claim in two volumes may never start; name each claim once"
	// +heliostat:rule=shared-volume-claim-twice
	// +listType=map
	// +listMapKey=name
	// +optional
	SharedVolumes []SharedVolume `json:"sharedVolumes,omitempty"`

	// autoscaling scales workers by Ray's demand, within minReplicas and maxReplicas of each group. Default: none, and replicas is the number of workers.
	// +optional
	Autoscaling *Autoscaling `json:"autoscaling,omitempty"`

	// controlStore keeps the head's state outside the head: workers, actors and Serve applications survive a restart of the head. It must be set on creation. Default: none, and the state is lost with the head.
	// +optional
	ControlStore *ControlStore `json:"controlStore,omitempty"`

	// history is what is kept of the cluster once its pods, or the cluster itself, are gone. Default: what the installation keeps.
	// +optional
	History *History `json:"history,omitempty"`

	// authentication of all clients of the cluster. Default: a token, in a Secret that the operator creates.
	// +optional
	Authentication *Authentication `json:"authentication,omitempty"`

	// network controls which peers may connect to the cluster's pods. Default: the cluster itself, the operator, and the same namespace on Dashboard, Client and Metrics.
	// +optional
	Network *Network `json:"network,omitempty"`

	// upgradeStrategy is how running pods are replaced after a change of their spec. Default: not at all.
	// +optional
	UpgradeStrategy *ClusterUpgradeStrategy `json:"upgradeStrategy,omitempty"`

	// scheduler schedules the head and the required workers as one gang: all or none. It must be set on creation. Default: none, and Kubernetes schedules each pod by itself.
	// +optional
	Scheduler *Scheduler `json:"scheduler,omitempty"`

	// maxConcurrentJobs is how many ClusterJobs may run on this cluster at once. Others wait in a queue, in order of creation. Default: no limit.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	// +optional
	MaxConcurrentJobs *int32 `json:"maxConcurrentJobs,omitempty"`

	// idlePolicy is what happens to an idle cluster. Default: nothing.
	// +optional
	IdlePolicy *IdlePolicy `json:"idlePolicy,omitempty"`
}

// NodeSpec holds the fields that head and workers share.
type NodeSpec struct {
	// size sets the resources of the Ray container by resource name. Memory and devices become request and limit, cpu only a request, and limits.cpu its limit. It must not be combined with resources of that container in template. Default: cpu 1, and memory 4Gi for the head or 2Gi for a worker.
	// +kubebuilder:validation:MaxProperties=16
	// +optional
	Size corev1.ResourceList `json:"size,omitempty"`

	// objectStoreMemory is the size of Ray's object store. It counts against the container's memory. Default: 30 % of the container's memory, 200 GB at most.
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isInteger() && !quantity(string(self)).isLessThan(quantity('75Mi'))",message="objectStoreMemory must be a whole number of bytes and at least 75Mi; raise it"
	// +heliostat:rule=object-store-least
	// +optional
	ObjectStoreMemory *resource.Quantity `json:"objectStoreMemory,omitempty"`

	// rayResources are Ray's logical resources. They override values computed from the pod. Other keys are custom resources.
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="!('object_store_memory' in self)",message="rayResources must not contain object_store_memory; use objectStoreMemory"
	// +heliostat:rule=resource-store
	// +kubebuilder:validation:XValidation:rule="self.all(name, name != '' && !name.startsWith('node:'))",message="a resource must not be named node:... or have an empty name; choose another name"
	// +heliostat:rule=resource-node
	// +kubebuilder:validation:XValidation:rule="self.all(name, sign(quantity(string(self[name]))) >= 0)",message="a resource must not be negative; give 0 or more"
	// +heliostat:rule=resource-positive
	// +kubebuilder:validation:XValidation:rule="self.all(name, (name == 'memory' || sign(quantity(string(self[name]))) < 0 || quantity(string(self[name])).isInteger()) && !quantity(string(self[name])).isGreaterThan(quantity('100T')))",message="a resource must be a whole number up to 100T; give a smaller or a whole number, such as 1000 for thousandths"
	// +heliostat:rule=resource-whole
	// +optional
	RayResources map[string]resource.Quantity `json:"rayResources,omitempty"`

	// rayStartParams are additional options of "ray start", without the leading dashes. An empty value is a bare flag. Options that the operator sets are refused.
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="!['head', 'block', 'address', 'port', 'dashboard-host', 'dashboard-port', 'dashboard-agent-listen-port', 'metrics-export-port', 'ray-client-server-port', 'no-monitor', 'include-dashboard', 'node-ip-address', 'redis-password', 'redis-username', 'autoscaling-config'].exists(name, name in self)",message="the operator sets head, block, address, port, dashboard-host, dashboard-port, dashboard-agent-listen-port, metrics-export-port, ray-client-server-port, no-monitor, include-dashboard, node-ip-address, redis-password, redis-username, autoscaling-config; leave them out"
	// +heliostat:rule=option-owned
	// +kubebuilder:validation:XValidation:rule="!['num-cpus', 'num-gpus', 'memory', 'resources'].exists(name, name in self)",message="num-cpus, num-gpus, memory and resources must not be set, because they follow the pod; use rayResources to override them"
	// +heliostat:rule=option-resources
	// +kubebuilder:validation:XValidation:rule="!['labels', 'labels-file'].exists(name, name in self)",message="labels and labels-file must not be set, because the operator sets Ray's labels; use the field labels"
	// +heliostat:rule=option-labels
	// +kubebuilder:validation:XValidation:rule="!('object-store-memory' in self)",message="object-store-memory must not be set; use objectStoreMemory"
	// +heliostat:rule=option-store
	// +kubebuilder:validation:XValidation:rule="!('disable-usage-stats' in self)",message="disable-usage-stats must not be set, because usage statistics are off by default; set RAY_USAGE_STATS_ENABLED in the template to change that"
	// +heliostat:rule=option-usage
	// +kubebuilder:validation:XValidation:rule="['no-redirect-output', 'enable-object-reconstruction', 'ray-debugger-external', 'enable-resource-isolation'].all(name, !(name in self) || self[name] == '')",message="no-redirect-output, enable-object-reconstruction, ray-debugger-external, enable-resource-isolation must have no value; leave it empty"
	// +heliostat:rule=option-bare
	// +optional
	RayStartParams map[string]string `json:"rayStartParams,omitempty"`

	// labels are Ray's node labels, for label selectors of tasks and actors. With the prefix ray.io, only accelerator-type, market-type, gpu-domain, availability-* and tpu-* may be set. Well-known node selectors set them too.
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(key, !key.startsWith('ray.io/') || key in ['ray.io/accelerator-type', 'ray.io/market-type', 'ray.io/gpu-domain'] || key.startsWith('ray.io/availability-') || key.startsWith('ray.io/tpu-'))",message="the prefix ray.io is reserved for Ray, except for accelerator-type, market-type, gpu-domain, availability-* and tpu-*; choose another prefix"
	// +heliostat:rule=ray-label-own
	// +optional
	Labels map[string]string `json:"labels,omitempty"`

	// template is a pod template, to which the operator adds what Ray needs. The Ray container is the one named "ray".
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Template *corev1.PodTemplateSpec `json:"template,omitempty"`
}

// HeadSpec describes the head pod.
//
// +kubebuilder:validation:XValidation:rule="!has(self.size) || !('memory' in self.size) || sign(quantity(string(self.size['memory']))) <= 0 || !quantity(string(self.size['memory'])).isLessThan(quantity('768Mi'))",message="memory must be at least 768Mi for a head and 512Mi for a worker, or Ray does not start; raise it",fieldPath=".size"
// +heliostat:rule=size-memory
type HeadSpec struct {
	NodeSpec `json:",inline"`

	// service in front of the head.
	// +optional
	Service *HeadServiceSpec `json:"service,omitempty"`

	// ingress exposes the dashboard outside the Kubernetes cluster. It needs authentication. Default: none.
	// +optional
	Ingress *IngressSpec `json:"ingress,omitempty"`
}

// WorkerGroup describes a set of identical workers.
//
// +kubebuilder:validation:XValidation:rule="!has(self.minReplicas) || !has(self.maxReplicas) || self.minReplicas <= self.maxReplicas",message="minReplicas must not be above maxReplicas; raise maxReplicas or lower minReplicas",fieldPath=".minReplicas"
// +heliostat:rule=min-above-max
// +kubebuilder:validation:XValidation:rule="!has(self.hostsPerReplica) || self.hostsPerReplica == 1 || (has(self.replicas) ? self.replicas : 1) * self.hostsPerReplica <= 10000",message="replicas times hostsPerReplica must not be above 10000 pods; lower one of the two or create two clusters",fieldPath=".hostsPerReplica"
// +heliostat:rule=too-many-hosts
// +kubebuilder:validation:XValidation:rule="!has(self.size) || !('memory' in self.size) || sign(quantity(string(self.size['memory']))) <= 0 || !quantity(string(self.size['memory'])).isLessThan(quantity('512Mi'))",message="memory must be at least 768Mi for a head and 512Mi for a worker, or Ray does not start; raise it",fieldPath=".size"
// +heliostat:rule=size-memory
type WorkerGroup struct {
	// name of the group, unique in the cluster. Ray calls it the node type.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="a group's name must be lower-case letters, digits and '-', starting with a letter and ending with a letter or digit; choose such a name"
	// +heliostat:rule=group-name
	// +kubebuilder:validation:XValidation:rule="!(self in ['head', 'headgroup'])",message="a group must not be named head or headgroup, which stand for the head; choose another name"
	// +heliostat:rule=group-name-head
	// +required
	Name string `json:"name,omitempty"`

	// replicas is the number of workers, or with hostsPerReplica the number of sets of workers. With autoscaling, it is the initial number of a new group, within minReplicas and maxReplicas. Default: 1 within minReplicas and maxReplicas, with autoscaling minReplicas.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	// +optional
	Replicas *int32 `json:"replicas,omitempty"`

	// minReplicas is the minimum of replicas, also with autoscaling. Default: 0.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	// +optional
	MinReplicas *int32 `json:"minReplicas,omitempty"`

	// maxReplicas is the maximum of replicas. With autoscaling, it is required. Default: no limit.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10000
	// +optional
	MaxReplicas *int32 `json:"maxReplicas,omitempty"`

	// idleTimeoutSeconds is how long a worker of this group must be idle before autoscaling removes it. With several hosts per replica, all of them must be idle. Default: that of autoscaling.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=31536000
	// +optional
	IdleTimeoutSeconds *int32 `json:"idleTimeoutSeconds,omitempty"`

	// priority decides which of the groups that fit autoscaling grows first: the one with the highest value. Default: 0.
	// +kubebuilder:validation:Minimum=-1000
	// +kubebuilder:validation:Maximum=1000
	// +optional
	Priority *int32 `json:"priority,omitempty"`

	// capacityTimeoutSeconds is how long autoscaling waits for a new worker of this group before it tries the next group that fits. It retries this group later. Default: no limit.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=31536000
	// +optional
	CapacityTimeoutSeconds *int32 `json:"capacityTimeoutSeconds,omitempty"`

	// hostsPerReplica is the number of workers in a replica. They are created, replaced and removed together, as for the hosts of a TPU slice or an NVLink domain. Immutable. Default: 1.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1024
	// +kubebuilder:default=1
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="hostsPerReplica is immutable; add a group with another name and remove this one"
	// +heliostat:rule=hosts-fixed
	// +optional
	HostsPerReplica int32 `json:"hostsPerReplica,omitempty"`

	// suspend drains and removes the group's workers while it is true.
	// +optional
	Suspend *bool `json:"suspend,omitempty"`

	// drainSeconds is how long a planned exit waits for work on a worker: scaling down, rolling, suspending the group, draining of its node. The pod's grace period follows. Default: 300.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	// +optional
	DrainSeconds *int32 `json:"drainSeconds,omitempty"`

	// volumeClaimTemplates are PersistentVolumeClaims for each worker's slot. A claim outlives the pods of its slot, and is deleted with the slot, the group or the cluster. The pod gets a volume of the same name; mount it in the template.
	// +kubebuilder:validation:MaxItems=8
	// +listType=atomic
	// +optional
	VolumeClaimTemplates []corev1.PersistentVolumeClaim `json:"volumeClaimTemplates,omitempty"`

	// image of this group's workers. It must have the same versions of Ray and Python as the head's image. Default: the cluster's image.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:MinLength=1
	// +optional
	Image string `json:"image,omitempty"`

	NodeSpec `json:",inline"`
}

// ComputeClusterStatus is the observed state of a cluster.
type ComputeClusterStatus struct {
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
	Summary ClusterSummary `json:"summary,omitzero"`
	// conditions are of the types Ready, Reconciling, Stalled, HeadReady, WorkersReady, UpToDate, ControlStoreReady, Autoscaling, Suspended, InvalidSpec, NameConflict, VolumeNotReady, VersionMismatch, RayUnverified.
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// epoch counts the heads of this cluster.
	// +kubebuilder:validation:Minimum=1
	// +optional
	Epoch int64 `json:"epoch,omitempty"`
	// session is the epoch of the workers, if it differs from epoch and there is no control store. Later heads never started, and the workers still wait for one.
	// +kubebuilder:validation:Minimum=1
	// +optional
	Session int64 `json:"session,omitempty"`
	// head is the head pod of the current epoch.
	// +optional
	Head *HeadStatus `json:"head,omitempty"`
	// serviceName is the Service in front of the head.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ServiceName string `json:"serviceName,omitempty"`
	// dashboardURL is the URL of Ray's dashboard and job API inside the Kubernetes cluster.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:MinLength=1
	// +optional
	DashboardURL string `json:"dashboardURL,omitempty"`
	// tokenSecretName is the Secret with the cluster's token under the key auth_token.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	TokenSecretName string `json:"tokenSecretName,omitempty"`
	// workers counts the workers of all groups.
	// +optional
	Workers WorkerCounts `json:"workers"`
	// groups counts the workers of each group.
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=name
	// +optional
	Groups []GroupStatus `json:"groups,omitempty"`
	// resources are the sums of the requests of all desired pods, by resource name.
	// +optional
	Resources corev1.ResourceList `json:"resources,omitempty"`
	// controlStore is the state of the control store, if there is one.
	// +optional
	ControlStore *ControlStoreStatus `json:"controlStore,omitempty"`
	// autoscaling is the last decision of the autoscaler.
	// +optional
	Autoscaling *AutoscalingStatus `json:"autoscaling,omitempty"`
}

// ClusterSummary holds what only people read: strings for kubectl's columns, and lines for a shell.
type ClusterSummary struct {
	// ready is "ready/desired" workers.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Ready string `json:"ready,omitempty"`
	// cpus of all desired pods.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	CPUs string `json:"cpus,omitempty"`
	// memory of all desired pods.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Memory string `json:"memory,omitempty"`
	// gpus of all desired pods.
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:MinLength=1
	// +optional
	GPUs string `json:"gpus,omitempty"`
	// connect holds lines to copy into a shell inside the Kubernetes cluster. The addresses in Ray's own messages work in the cluster's pods only.
	// +optional
	Connect *ConnectSummary `json:"connect,omitempty"`
}

// HeadStatus names the head pod of the current epoch.
type HeadStatus struct {
	// podName is the pod's name.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:MinLength=1
	// +required
	PodName string `json:"podName,omitempty"`
	// uid of the pod.
	// +optional
	UID types.UID `json:"uid,omitempty"`
	// nodeName is the Kubernetes node it runs on.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:MinLength=1
	// +optional
	NodeName string `json:"nodeName,omitempty"`
	// ip of the pod.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=45
	// +optional
	IP string `json:"ip,omitempty"`
	// restarts is how often Ray's container restarted in this pod.
	// +kubebuilder:validation:Minimum=1
	// +optional
	Restarts int32 `json:"restarts,omitempty"`
	// creationTime is when the pod was created.
	// +optional
	CreationTime *metav1.Time `json:"creationTime,omitempty"`
	// failures counts consecutive earlier heads that ended soon after their creation. The pause before the next head doubles with each, up to 5 minutes.
	// +kubebuilder:validation:Minimum=1
	// +optional
	Failures int32 `json:"failures,omitempty"`
}

// WorkerCounts counts workers.
type WorkerCounts struct {
	// desired is how many the spec requests.
	// +optional
	Desired int32 `json:"desired"`
	// created is how many pods exist and are not terminating.
	// +optional
	Created int32 `json:"created"`
	// ready is how many have joined, by their own health endpoint.
	// +optional
	Ready int32 `json:"ready"`
}

// GroupStatus counts the workers of a group.
type GroupStatus struct {
	// name of the group.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:MinLength=1
	// +required
	Name string `json:"name,omitempty"`

	WorkerCounts `json:",inline"`

	// outdated is how many were built from an earlier spec.
	// +kubebuilder:validation:Minimum=1
	// +optional
	Outdated int32 `json:"outdated,omitempty"`
	// draining is how many are on a planned exit and still run work.
	// +kubebuilder:validation:Minimum=1
	// +optional
	Draining int32 `json:"draining,omitempty"`
	// reason is the code of what the group waits for. Empty when the group is complete.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Reason string `json:"reason,omitempty"`
	// message explains the reason, with a remedy.
	// +kubebuilder:validation:MaxLength=32768
	// +kubebuilder:validation:MinLength=1
	// +optional
	Message string `json:"message,omitempty"`
}
