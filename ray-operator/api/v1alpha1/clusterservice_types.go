package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ClusterService is Ray Serve applications behind one stable Service, on a cluster that exists or on one made for them.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=csvc,categories=heliostat
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.summary.version`
// +kubebuilder:printcolumn:name="Traffic",type=string,JSONPath=`.status.summary.traffic`
// +kubebuilder:printcolumn:name="Apps",type=string,JSONPath=`.status.summary.applications`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`,priority=1
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.status.active.clusterName`,priority=1
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=`.status.url`,priority=1
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 50 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name must be a DNS-1035 label of at most 50 characters: lower-case letters, digits and '-', starting with a letter; choose a shorter or simpler name"
type ClusterService struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is what the user wants. No controller writes it.
	// +required
	Spec ClusterServiceSpec `json:"spec"`
	// Status is what the operator saw and did last.
	// +kubebuilder:default={conditions: {{type: "Ready", status: "Unknown", reason: "Pending", message: "Waiting for the operator; if this stays, check that the Heliostat operator runs", lastTransitionTime: "1970-01-01T00:00:00Z"}}}
	// +optional
	Status ClusterServiceStatus `json:"status,omitempty"`
}

// ClusterServiceList is a list of ClusterServices.
//
// +kubebuilder:object:root=true
type ClusterServiceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterService `json:"items"`
}

// ClusterServiceSpec describes applications, where they run and how a change of them reaches those who use them.
//
// +kubebuilder:validation:XValidation:rule="has(self.clusterRef) != has(self.clusterTemplate)",message="a service runs either on a cluster that exists or on one of its own; give exactly one of clusterRef and clusterTemplate"
// +kubebuilder:validation:XValidation:rule="has(self.clusterRef) == has(oldSelf.clusterRef)",message="a service stays on a cluster that exists or on clusters of its own; make a new service"
// +kubebuilder:validation:XValidation:rule="!has(self.upgrade) || has(self.clusterTemplate)",message="only a service with a cluster of its own makes a second one to upgrade to; leave upgrade out, or use clusterTemplate",fieldPath=".upgrade"
type ClusterServiceSpec struct {
	// ServeConfig is what Ray Serve is asked to run, in Serve's own form: applications with their name, route_prefix and import_path, http_options and the rest. What Heliostat does not know is passed on as it is.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	// +required
	ServeConfig runtime.RawExtension `json:"serveConfig"`

	// ClusterRef names the ComputeCluster to run on, in the same namespace. Other services may use it too.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="clusterRef cannot be changed; make a new service"
	// +optional
	ClusterRef *ClusterReference `json:"clusterRef,omitempty"`

	// ClusterTemplate describes a ComputeCluster of the service's own, which goes when the service goes.
	// +optional
	ClusterTemplate *ClusterTemplate `json:"clusterTemplate,omitempty"`

	// Service is the one address of the applications, <name>, from the first minute to the end.
	// +optional
	Service *ServeService `json:"service,omitempty"`

	// HealthPath is asked through the proxies of the workers before they get requests, and while they have them: any answer below 500 is one. It begins with the route_prefix of an application. Default: Serve's own /-/healthz, which tells that there is a replica to pass a request on to.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^/[!-~]*$')",message="a path begins with '/' and has visible ASCII characters only; encode what is not"
	// +optional
	HealthPath string `json:"healthPath,omitempty"`

	// Upgrade says how a change that needs other pods reaches those who use the service. Default: a whole second cluster, which takes the requests over in steps.
	// +optional
	Upgrade *Upgrade `json:"upgrade,omitempty"`

	// Suspend, if true, takes the applications away, and a cluster of the service's own with them; the Service stays, and answers nobody.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// ManagedBy names who manages the service. Any value but the default makes this operator keep its hands off, as MultiKueue needs it. It cannot be changed.
	// +kubebuilder:default="heliostat.dev/operator"
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="managedBy cannot be changed; make a new service"
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[a-zA-Z0-9]([-a-zA-Z0-9._]*[a-zA-Z0-9])?$')",message="managedBy must be a domain, '/', and a name; give one such as \"kueue.x-k8s.io/multikueue\""
	// +optional
	ManagedBy string `json:"managedBy,omitempty"`
}

// ServeService is the Service in front of the proxies that serve.
//
// +kubebuilder:validation:XValidation:rule="[self.?type.orValue('ClusterIP')].all(kind, (kind != 'ClusterIP' || !has(self.nodePorts) && !has(self.externalTrafficPolicy)) && (kind == 'LoadBalancer' || !has(self.loadBalancerClass) && !has(self.loadBalancerSourceRanges)))",message="nodePorts and externalTrafficPolicy belong to type NodePort or LoadBalancer, loadBalancerClass and loadBalancerSourceRanges to LoadBalancer; set that type or leave them out"
// +kubebuilder:validation:XValidation:rule="self.?type.orValue('ClusterIP') != 'LoadBalancer' || oldSelf.?type.orValue('ClusterIP') != 'LoadBalancer' || (!has(self.loadBalancerClass) && !has(oldSelf.loadBalancerClass) || has(self.loadBalancerClass) && has(oldSelf.loadBalancerClass) && self.loadBalancerClass == oldSelf.loadBalancerClass)",message="Kubernetes changes no loadBalancerClass of a load balancer; set type to ClusterIP first"
// +kubebuilder:validation:XValidation:rule="!has(self.nodePorts) || self.nodePorts.all(name, name in ['http', 'grpc'])",message="nodePorts names a port that the Service does not have; use the names of its ports",fieldPath=".nodePorts"
type ServeService struct {
	// Type of the Service. Default: ClusterIP.
	// +kubebuilder:validation:Enum=ClusterIP;NodePort;LoadBalancer
	// +optional
	Type corev1.ServiceType `json:"type,omitempty"`

	ServiceReach `json:",inline"`

	// Ports of the Service: http, and grpc where the serveConfig has grpc_options with servicer functions. Default: 8000, and 9000 for grpc.
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:XValidation:rule="self.all(port, self.exists_one(other, other.port == port.port))",message="two ports have one number; give each its own"
	// +listType=map
	// +listMapKey=name
	// +optional
	Ports []ServePort `json:"ports,omitempty"`
	// Labels of the Service.
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(key, !key.startsWith('heliostat.dev/'))",message="the prefix heliostat.dev is the operator's own; choose another"
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations of the Service.
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(key, !key.startsWith('heliostat.dev/'))",message="the prefix heliostat.dev is the operator's own; choose another"
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
	// HeadEndpoints reports whether the head's proxy takes requests too. Default: only where the cluster has no worker groups, because a head that comes back loses what it was asked meanwhile, and while workers are replaced in place.
	// +optional
	HeadEndpoints *bool `json:"headEndpoints,omitempty"`
	// AllowFrom lets further peers reach the applications. Pods of its Gateway's namespace always do. Those of the service's own namespace do unless the list has the peer server, which makes it complete. Default: the server, beside the own namespace; of a Service of type NodePort or LoadBalancer everybody.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +kubebuilder:validation:XValidation:rule="self.all(peer, [has(peer.ipBlock), has(peer.podSelector) || has(peer.namespaceSelector), has(peer.server)].exists_one(is, is))",message="a peer is one of an ipBlock, selectors or server, and not empty; make two peers of it, or fill it in"
	// +optional
	AllowFrom []ServePeer `json:"allowFrom,omitempty"`
}

// ServePeer is who reaches the applications of a service: the server, or a peer as NetworkPolicies have it.
type ServePeer struct {
	networkingv1.NetworkPolicyPeer `json:",inline"`
	// Server is that of this installation, which lets in callers that have clusterservices/proxy. Write {}.
	// +optional
	Server *ServerPeer `json:"server,omitempty"`
}

// ServerPeer stands for the pods of the server.
type ServerPeer struct{}

// ServePort is a port of the Service in front of the proxies.
type ServePort struct {
	// Name is http or grpc.
	// +kubebuilder:validation:Enum=http;grpc
	// +required
	Name string `json:"name"`
	// Port of the Service. Which port of the pods it leads to is what the serveConfig says.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +required
	Port int32 `json:"port"`
}

// UpgradeMode is how a change that needs other pods comes about.
type UpgradeMode string

// Modes of an upgrade.
const (
	// UpgradeSurge: on a second cluster, which takes the requests over in steps.
	UpgradeSurge UpgradeMode = "Surge"
	// UpgradeInPlace: on the cluster that runs, whose pods are replaced where they are.
	UpgradeInPlace UpgradeMode = "InPlace"
	// UpgradeNone: not at all, until the strategy is another.
	UpgradeNone UpgradeMode = "None"
)

// Upgrade says how a change that needs other pods reaches those who use the service.
//
// +kubebuilder:validation:XValidation:rule="!has(self.stepPercent) || !has(self.maxSurgePercent) || self.stepPercent <= self.maxSurgePercent",message="stepPercent, 20 where it is not given, must not be above maxSurgePercent, 100 where it is not given; lower it or raise the other"
type Upgrade struct {
	// Strategy: Surge, on a second cluster, which takes the requests over in steps; InPlace, on the cluster that runs, whose workers are replaced one at a time, or all pods at once where the head changes too, during which nothing answers; None, not at all until the strategy is another. An upgrade that has begun ends the way it began. Default: Surge.
	// +kubebuilder:validation:Enum=Surge;InPlace;None
	// +kubebuilder:default=Surge
	// +optional
	Strategy UpgradeMode `json:"strategy,omitempty"`
	// MaxSurgePercent is how much of the service's capacity may be there beyond what it has: 100 is a whole second cluster; with less the new one grows as the old one shrinks. For Surge only. Default: 100.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:default=100
	// +optional
	MaxSurgePercent *int32 `json:"maxSurgePercent,omitempty"`
	// StepPercent is how much of the requests goes over at a time. A step is a number of endpoints, the least that makes that share; with a gateway it is the exact percentage. For Surge only. Default: 20.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:default=20
	// +optional
	StepPercent *int32 `json:"stepPercent,omitempty"`
	// IntervalSeconds is the time between two steps. For Surge only. Default: 10.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	// +kubebuilder:default=10
	// +optional
	IntervalSeconds *int32 `json:"intervalSeconds,omitempty"`
	// HealthyDeadlineSeconds is how long the new version may take to become healthy; one that does not is taken back. Default: 1800.
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=86400
	// +kubebuilder:default=1800
	// +optional
	HealthyDeadlineSeconds *int32 `json:"healthyDeadlineSeconds,omitempty"`
	// DrainSeconds is how long the requests that a cluster has when it gets no more may take; it goes after that. Default: 60.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	// +kubebuilder:default=60
	// +optional
	DrainSeconds *int32 `json:"drainSeconds,omitempty"`
	// RetireAfterSeconds is how long the old cluster is kept once the new one has all requests, to go back to at once; it drains meanwhile. Of what came about in place it is how long it has to be healthy before it counts. Default: 60.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	// +kubebuilder:default=60
	// +optional
	RetireAfterSeconds *int32 `json:"retireAfterSeconds,omitempty"`
	// AutoRollback reports whether a version that fails, or does not become healthy in time, is taken back without anybody's help. Default: true.
	// +kubebuilder:default=true
	// +optional
	AutoRollback *bool `json:"autoRollback,omitempty"`
	// Gateway has a Gateway of Gateway API divide HTTP requests between two versions in exact percentages. In-cluster users of the Service go by endpoints as without it.
	// +optional
	Gateway *ServiceGateway `json:"gateway,omitempty"`
}

// ServiceGateway attaches a service to a Gateway of Gateway API, by an HTTPRoute of the service's name.
type ServiceGateway struct {
	// ParentRef names the Gateway.
	// +required
	ParentRef GatewayReference `json:"parentRef"`
	// Hostnames of the requests that are meant for the service, a wildcard label in front allowed. Default: those of the Gateway's listener.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.all(name, name.matches('^([*][.])?[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$'))",message="a hostname is DNS labels in lower case with dots between them, the first of which may be '*'; correct it"
	// +listType=set
	// +optional
	Hostnames []string `json:"hostnames,omitempty"`
}

// GatewayReference names a Gateway, and what of it.
type GatewayReference struct {
	// Name of the Gateway.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="a Gateway's name is DNS labels in lower case with dots between them; correct it"
	// +required
	Name string `json:"name"`
	// Namespace of the Gateway, whose listeners must allow routes of the service's. Default: the service's own.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="a namespace is a DNS label in lower case; correct it"
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// SectionName is the one listener to use. Default: all that fit.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="a listener's name is DNS labels in lower case with dots between them; correct it"
	// +optional
	SectionName string `json:"sectionName,omitempty"`
}

// ClusterServiceStatus is what the operator saw and did last.
type ClusterServiceStatus struct {
	// ObservedGeneration is the generation of the spec that this status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Phase is one word for people; programs read conditions.
	// +optional
	Phase string `json:"phase,omitempty"`
	// Summary holds strings for columns.
	// +optional
	Summary ServiceSummary `json:"summary,omitempty"`
	// Conditions: Ready, Reconciling, Stalled, Upgrading, RolledBack, Suspended, NameConflict, GatewayProgrammed.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// URL of the applications, inside the Kubernetes cluster.
	// +optional
	URL string `json:"url,omitempty"`
	// Active is the version that has the requests, or had them before an upgrade began.
	// +optional
	Active *ServiceVersion `json:"active,omitempty"`
	// Candidate is the version that is to have them.
	// +optional
	Candidate *ServiceVersion `json:"candidate,omitempty"`
	// Retiring are clusters of versions that have no requests any more and have yet to go.
	// +listType=set
	// +optional
	Retiring []string `json:"retiring,omitempty"`
	// LastUpgrade is the last change that ended.
	// +optional
	LastUpgrade *UpgradeOutcome `json:"lastUpgrade,omitempty"`
}

// ServiceSummary holds strings that kubectl shows in columns.
type ServiceSummary struct {
	// Version is the revision that serves, with the one that is to: "1" or "1 → 2".
	// +optional
	Version string `json:"version,omitempty"`
	// Traffic is the share of the requests that each gets: "100%" or "60% → 40%".
	// +optional
	Traffic string `json:"traffic,omitempty"`
	// Applications is "running/asked for".
	// +optional
	Applications string `json:"applications,omitempty"`
}

// ServiceVersion is one version of the service on its cluster.
type ServiceVersion struct {
	// ClusterName is the ComputeCluster that it runs on.
	// +optional
	ClusterName string `json:"clusterName,omitempty"`
	// Revision is its number, counted from 1; its ControllerRevision has it too.
	// +optional
	Revision string `json:"revision,omitempty"`
	// GoodRevision is the one that was healthy last on this cluster, which a revision that fails is taken back to.
	// +optional
	GoodRevision string `json:"goodRevision,omitempty"`
	// TrafficPercent is the share of the requests that it gets: with a gateway that takes the route, what the route says; else as its share of the endpoints has it.
	// +optional
	TrafficPercent int32 `json:"trafficPercent"`
	// CapacityPercent is how much of the whole capacity it was given.
	// +optional
	CapacityPercent int32 `json:"capacityPercent"`
	// ReadyEndpoints is how many pods take requests for it.
	// +optional
	ReadyEndpoints int32 `json:"readyEndpoints"`
	// Healthy reports whether its applications run and answer.
	// +optional
	Healthy bool `json:"healthy"`
	// Applications as Ray Serve tells of them.
	// +listType=map
	// +listMapKey=name
	// +optional
	Applications []ApplicationStatus `json:"applications,omitempty"`
}

// ApplicationStatus is one application as Ray Serve tells of it.
type ApplicationStatus struct {
	// Name of the application.
	Name string `json:"name"`
	// State in Serve's own words: NOT_STARTED, DEPLOYING, DEPLOY_FAILED, RUNNING, UNHEALTHY, DELETING; MISSING where Serve does not know it.
	// +optional
	State string `json:"state,omitempty"`
	// RoutePrefix is where it answers.
	// +optional
	RoutePrefix string `json:"routePrefix,omitempty"`
	// Replicas is "running/wanted" of all its deployments.
	// +optional
	Replicas string `json:"replicas,omitempty"`
	// Message is what Serve says of it, cut to its end.
	// +optional
	Message string `json:"message,omitempty"`
}

// UpgradeResult is how an upgrade ended.
type UpgradeResult string

// Results of an upgrade.
const (
	// UpgradeSucceeded: the new version has all requests.
	UpgradeSucceeded UpgradeResult = "Succeeded"
	// UpgradeRolledBack: the former version has them again.
	UpgradeRolledBack UpgradeResult = "RolledBack"
	// UpgradeSuperseded: the spec was changed again before it ended.
	UpgradeSuperseded UpgradeResult = "Superseded"
)

// UpgradeOutcome is a change that ended.
type UpgradeOutcome struct {
	// From is the revision that served before.
	// +optional
	From string `json:"from,omitempty"`
	// To is the one that was to.
	// +optional
	To string `json:"to,omitempty"`
	// Result: Succeeded, RolledBack or Superseded.
	// +optional
	Result UpgradeResult `json:"result,omitempty"`
	// Reason is the code of why it was taken back.
	// +optional
	Reason string `json:"reason,omitempty"`
	// Message says it in words.
	// +optional
	Message string `json:"message,omitempty"`
	// StartTime is when it began.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// EndTime is when it ended.
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty"`
}
