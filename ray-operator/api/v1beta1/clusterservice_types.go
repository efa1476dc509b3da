package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ClusterService runs Ray Serve applications behind one stable Service, on an existing cluster or on its own.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=csvc,categories=heliostat
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.summary.version`
// +kubebuilder:printcolumn:name="Traffic",type=string,JSONPath=`.status.summary.traffic`
// +kubebuilder:printcolumn:name="Apps",type=string,JSONPath=`.status.summary.applications`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`,priority=1
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.status.active.clusterName`,priority=1
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=`.status.url`,priority=1
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 50 && self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="metadata.name of a service must be a DNS-1035 label of at most 50 characters: lower-case letters, digits and '-', starting with a letter; choose a shorter or simpler name"
// +heliostat:rule=service-name
type ClusterService struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard metadata of objects.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitzero"`

	// spec is the desired state. No controller writes it.
	// +required
	Spec ClusterServiceSpec `json:"spec,omitzero"`
	// status is the observed state, as the operator reported it last.
	// +kubebuilder:default={conditions: {{type: "Ready", status: "Unknown", reason: "Pending", message: "Waiting for the operator; if this stays, check that the Heliostat operator runs", lastTransitionTime: "1970-01-01T00:00:00Z"}}}
	// +optional
	Status ClusterServiceStatus `json:"status,omitzero"`
}

// ClusterServiceList is a list of ClusterServices.
//
// +kubebuilder:object:root=true
type ClusterServiceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []ClusterService `json:"items"`
}

// ClusterServiceSpec describes applications, where they run, and how changes are rolled out.
//
// +kubebuilder:validation:XValidation:rule="has(self.clusterRef) != has(self.clusterTemplate)",message="a service must run either on an existing cluster or on its own; set exactly one of clusterRef and clusterTemplate"
// +heliostat:rule=service-where
// +kubebuilder:validation:XValidation:rule="has(self.clusterRef) == has(oldSelf.clusterRef)",message="a service must not change between clusterRef and clusterTemplate; create a new service"
// +heliostat:rule=service-stays
// +kubebuilder:validation:XValidation:rule="!has(self.upgradeStrategy) || has(self.clusterTemplate)",message="upgradeStrategy must be used with clusterTemplate only; leave upgradeStrategy out, or use clusterTemplate",fieldPath=".upgradeStrategy"
// +heliostat:rule=service-upgrade-where
type ClusterServiceSpec struct {
	// serveConfig is the configuration of Ray Serve in Serve's own format: applications with name, route_prefix and import_path, http_options and so on. Unknown fields are passed on unchanged.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	// +required
	ServeConfig runtime.RawExtension `json:"serveConfig,omitzero"`

	// clusterRef names the ComputeCluster to run on, in the same namespace. Other services may use the same cluster.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="clusterRef is immutable; create a new service"
	// +heliostat:rule=service-cluster-fixed
	// +optional
	ClusterRef *ClusterReference `json:"clusterRef,omitempty"`

	// clusterTemplate describes the service's own ComputeCluster, which is deleted with the service.
	// +optional
	ClusterTemplate *ClusterTemplate `json:"clusterTemplate,omitempty"`

	// service configures the Service <name>, the stable address of the applications for the whole life of this object.
	// +optional
	Service *ServeService `json:"service,omitempty"`

	// healthPath is the HTTP path probed through each worker's Serve proxy before and while it receives traffic. Any status below 500 counts as healthy. It must begin with the route_prefix of an application. Default: Serve's /-/healthz, which reports whether the proxy has a replica to route to.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^/[!-~]*$')",message="the path must begin with '/' and contain visible ASCII characters only; percent-encode all others"
	// +heliostat:rule=health-path
	// +kubebuilder:validation:MinLength=1
	// +optional
	HealthPath string `json:"healthPath,omitempty"`

	// upgradeStrategy is how a change that needs other pods is rolled out. Default: a second cluster of full size, to which the traffic moves in steps.
	// +optional
	UpgradeStrategy *ServiceUpgradeStrategy `json:"upgradeStrategy,omitempty"`

	// suspend removes the applications, and the service's own cluster, while it is true. The Service stays, without endpoints.
	// +optional
	Suspend *bool `json:"suspend,omitempty"`

	// managedBy names the controller that reconciles this object. This operator ignores objects with any other value than the default, as MultiKueue needs. Immutable.
	// +kubebuilder:default="heliostat.dev/operator"
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="managedBy is immutable; create a new service"
	// +heliostat:rule=service-managed-by-fixed
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[a-zA-Z0-9]([-a-zA-Z0-9._]*[a-zA-Z0-9])?$')",message="managedBy must be a domain, '/', and a name; give one such as \"kueue.x-k8s.io/multikueue\""
	// +heliostat:rule=managed-by
	// +kubebuilder:validation:MinLength=1
	// +optional
	ManagedBy string `json:"managedBy,omitempty"`
}

// ServeService is the Service in front of the Serve proxies.
//
// +kubebuilder:validation:XValidation:rule="[self.?type.orValue('ClusterIP')].all(kind, (kind != 'ClusterIP' || (!has(self.ports) || !self.ports.exists(port, has(port.nodePort))) && !has(self.externalTrafficPolicy)) && (kind == 'LoadBalancer' || !has(self.loadBalancerClass) && !has(self.loadBalancerSourceRanges)))",message="nodePort and externalTrafficPolicy need type NodePort or LoadBalancer, and loadBalancerClass and loadBalancerSourceRanges need LoadBalancer; set that type or leave them out"
// +heliostat:rule=service-reach
// +kubebuilder:validation:XValidation:rule="self.?type.orValue('ClusterIP') != 'LoadBalancer' || oldSelf.?type.orValue('ClusterIP') != 'LoadBalancer' || (!has(self.loadBalancerClass) && !has(oldSelf.loadBalancerClass) || has(self.loadBalancerClass) && has(oldSelf.loadBalancerClass) && self.loadBalancerClass == oldSelf.loadBalancerClass)",message="loadBalancerClass must not change while type is LoadBalancer; set type to ClusterIP first",fieldPath=".loadBalancerClass"
// +heliostat:rule=load-balancer-class-fixed
// +kubebuilder:validation:XValidation:rule="!has(self.ipFamilies) || self.ipFamilies.size() < 2 || self.?ipFamilyPolicy.orValue('SingleStack') != 'SingleStack'",message="two ipFamilies need ipFamilyPolicy PreferDualStack or RequireDualStack; set one of the two or leave a family out",fieldPath=".ipFamilies"
// +heliostat:rule=ip-family-policy
// +kubebuilder:validation:XValidation:rule="!oldSelf.?ipFamilies[?0].hasValue() || self.?ipFamilies[?0].orValue(oldSelf.ipFamilies[0]) == oldSelf.ipFamilies[0]",message="the first of ipFamilies must not change; restore it or create a new object",fieldPath=".ipFamilies"
// +heliostat:rule=ip-family-fixed
type ServeService struct {
	// type of the Service. Default: ClusterIP.
	// +kubebuilder:validation:Enum=ClusterIP;NodePort;LoadBalancer
	// +optional
	Type corev1.ServiceType `json:"type,omitempty"`

	ServiceReach `json:",inline"`

	// ports of the Service: http, and grpc if serveConfig has grpc_options with servicer functions. A port of another name leads to whatever listens at its targetPort in the pods that receive requests, such as a sidecar's metrics.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(port, !has(port.port) || self.exists_one(other, has(other.port) && other.port == port.port))",message="port numbers must be unique; give each port its own"
	// +heliostat:rule=service-port-twice
	// +kubebuilder:validation:XValidation:rule="self.all(port, !has(port.nodePort) || self.exists_one(other, has(other.nodePort) && other.nodePort == port.nodePort))",message="node ports must be unique; give each port its own"
	// +heliostat:rule=node-port-twice
	// +listType=map
	// +listMapKey=name
	// +optional
	Ports []ServePort `json:"ports,omitempty"`
	// labels of the Service.
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(key, !key.startsWith('heliostat.dev/') && !key.contains('.heliostat.dev/'))",message="a key of a Service's metadata must not have the prefix heliostat.dev, which is reserved for the operator; choose another"
	// +heliostat:rule=service-metadata
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// annotations of the Service.
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(key, !key.startsWith('heliostat.dev/') && !key.contains('.heliostat.dev/'))",message="a key of a Service's metadata must not have the prefix heliostat.dev, which is reserved for the operator; choose another"
	// +heliostat:rule=service-metadata
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
	// headEndpoints adds the head's proxy to the endpoints. A head that restarts loses requests in flight. Default: only for clusters without worker groups, and while workers are replaced in place.
	// +optional
	HeadEndpoints *bool `json:"headEndpoints,omitempty"`
	// allowFrom are additional peers that may connect to the applications. Pods in the Gateway's namespace always may. Pods in the service's namespace may too, unless the list contains the peer server, which makes it exhaustive. Default: the service's namespace and the server; everybody for type NodePort or LoadBalancer.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +kubebuilder:validation:XValidation:rule="self.all(peer, [has(peer.ipBlock), has(peer.podSelector) || has(peer.namespaceSelector), has(peer.server)].exists_one(is, is))",message="a peer must be one of ipBlock, selectors and server, and must not be empty; split it into two peers, or fill it in"
	// +heliostat:rule=service-peer
	// +optional
	AllowFrom []ServePeer `json:"allowFrom,omitempty"`
}

// ServePeer may connect to the applications of a service: the server, or a peer as in a NetworkPolicy.
type ServePeer struct {
	networkingv1.NetworkPolicyPeer `json:",inline"`
	// server is the server of this installation, which admits callers with the right clusterservices/proxy. Write {}.
	// +optional
	Server *ServerPeer `json:"server,omitempty"`
}

// ServerPeer stands for the pods of the server.
type ServerPeer struct{}

// ServePort is a port of the Service in front of the proxies.
//
// +kubebuilder:validation:XValidation:rule="!has(self.targetPort) || !(self.name in ['http', 'grpc'])",message="targetPort must not be set for http and grpc, whose proxies listen where serveConfig says; set http_options.port or grpc_options.port there"
// +heliostat:rule=service-port-proxy
// +kubebuilder:validation:XValidation:rule="has(self.port) || self.name in ['http', 'grpc']",message="port must be set for ports other than http and grpc; set it"
// +heliostat:rule=service-port-number
// +kubebuilder:validation:XValidation:rule="self.name in ['http', 'grpc'] || !(self.?targetPort.orValue(self.?port.orValue(0)) in [6379, 8265, 8266, 10001, 8080, 52365, 6380, 44217])",message="targetPort (default: port) must not be 6379, 8265, 8266, 10001, 8080, 52365, 6380 or 44217, which are Ray's own ports in a pod; choose another"
// +heliostat:rule=service-port-ray
type ServePort struct {
	// name is http, grpc, or a DNS label for an additional port.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MinLength=1
	// +required
	Name string `json:"name,omitempty"`
	// port of the Service. Default: 8000 for http and 9000 for grpc. Other ports need it.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	Port int32 `json:"port,omitempty"`
	// targetPort in the pods, for an additional port only. The NetworkPolicy admits the service's clients to it. Default: the same as port.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	TargetPort int32 `json:"targetPort,omitempty"`
	// nodePort is the port on every node, for types NodePort and LoadBalancer only. Default: Kubernetes chooses it.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	NodePort int32 `json:"nodePort,omitempty"`
}

// ServiceUpgradeType is how a change that needs other pods is rolled out.
//
// +kubebuilder:validation:Enum=Surge;InPlace;None
type ServiceUpgradeType string

// Types of a service's upgrade.
const (
	// ServiceUpgradeSurge: on a second cluster, to which the traffic moves in steps.
	ServiceUpgradeSurge ServiceUpgradeType = "Surge"
	// ServiceUpgradeInPlace: on the same cluster, by replacing its pods.
	ServiceUpgradeInPlace ServiceUpgradeType = "InPlace"
	// ServiceUpgradeNone: not at all, until the type changes.
	ServiceUpgradeNone ServiceUpgradeType = "None"
)

// ServiceUpgradeStrategy is how a change that needs other pods is rolled out.
//
// +kubebuilder:validation:XValidation:rule="!has(self.surge) || self.type != 'InPlace'",message="surge has no effect with type InPlace; leave surge out, or use type Surge",fieldPath=".surge"
// +heliostat:rule=service-upgrade-in-place
// +union
type ServiceUpgradeStrategy struct {
	// type Surge creates a second cluster, to which the traffic moves in steps. InPlace replaces the workers of the same cluster one at a time; if the head changes too, it replaces all pods at once, and the service is down meanwhile. None blocks the change until the type changes. An upgrade in progress keeps its type. Default: Surge.
	// +kubebuilder:default=Surge
	// +unionDiscriminator
	// +optional
	Type ServiceUpgradeType `json:"type,omitempty"`
	// surge sets the steps of Surge. With type None it holds for an upgrade in progress and for the next one.
	// +optional
	Surge *Surge `json:"surge,omitempty"`
	// healthyDeadlineSeconds is the maximum time for a new version to become healthy, after which it is rolled back. Default: 1800.
	// +kubebuilder:validation:Minimum=10
	// +kubebuilder:validation:Maximum=86400
	// +kubebuilder:default=1800
	// +optional
	HealthyDeadlineSeconds *int32 `json:"healthyDeadlineSeconds,omitempty"`
	// drainSeconds is how long requests in flight may take after a cluster stops receiving traffic. The cluster is deleted after that. Default: 60.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	// +kubebuilder:default=60
	// +optional
	DrainSeconds *int32 `json:"drainSeconds,omitempty"`
	// retireAfterSeconds is how long the old cluster is kept, for an immediate rollback, after the new one receives all traffic. It drains meanwhile. After an upgrade in place, it is how long the new version must be healthy before the upgrade counts as successful. Default: 60.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	// +kubebuilder:default=60
	// +optional
	RetireAfterSeconds *int32 `json:"retireAfterSeconds,omitempty"`
	// autoRollback rolls a version back that fails or does not become healthy in time. Default: true.
	// +kubebuilder:default=true
	// +optional
	AutoRollback *bool `json:"autoRollback,omitempty"`
	// gateway splits HTTP requests between two versions in exact percentages, by a Gateway of Gateway API. In-cluster clients of the Service are still split by endpoints.
	// +optional
	Gateway *ServiceGateway `json:"gateway,omitempty"`
}

// Surge is how the traffic moves from one cluster to the next.
//
// +kubebuilder:validation:XValidation:rule="!has(self.stepPercent) || !has(self.maxSurgePercent) || self.stepPercent <= self.maxSurgePercent",message="stepPercent (default 20) must not be above maxSurgePercent (default 100); lower it or raise the other",fieldPath=".stepPercent"
// +heliostat:rule=service-upgrade-step
type Surge struct {
	// maxSurgePercent is the additional capacity during an upgrade: 100 is a second cluster of full size. With less, the new cluster grows as the old one shrinks. Default: 100.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:default=100
	// +optional
	MaxSurgePercent *int32 `json:"maxSurgePercent,omitempty"`
	// stepPercent is the share of the traffic that moves in one step. A step is the smallest number of endpoints with that share; with a gateway it is the exact percentage. Default: 20.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:default=20
	// +optional
	StepPercent *int32 `json:"stepPercent,omitempty"`
	// intervalSeconds is the time between two steps. Default: 10.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=86400
	// +kubebuilder:default=10
	// +optional
	IntervalSeconds *int32 `json:"intervalSeconds,omitempty"`
}

// ServiceGateway attaches a service to a Gateway of Gateway API, by an HTTPRoute of the service's name.
type ServiceGateway struct {
	// parentRef names the Gateway.
	// +required
	ParentRef GatewayReference `json:"parentRef,omitzero"`
	// hostnames of the service, with an optional leading wildcard label. Default: those of the Gateway's listener.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.all(name, name.matches('^([*][.])?[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$'))",message="a hostname must be lower-case DNS labels separated by dots, with an optional '*' as the first; correct it"
	// +heliostat:rule=gateway-hostnames
	// +listType=set
	// +optional
	Hostnames []string `json:"hostnames,omitempty"`
}

// GatewayReference names a Gateway, and optionally one of its listeners.
type GatewayReference struct {
	// name of the Gateway.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="the name of a Gateway must be lower-case DNS labels separated by dots; correct it"
	// +heliostat:rule=gateway-name
	// +kubebuilder:validation:MinLength=1
	// +required
	Name string `json:"name,omitempty"`
	// namespace of the Gateway. Its listeners must allow routes from the service's namespace. Default: the service's namespace.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="a namespace must be a lower-case DNS label; correct it"
	// +heliostat:rule=gateway-namespace
	// +kubebuilder:validation:MinLength=1
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// sectionName is the only listener to use. Default: all that match.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="the name of a listener must be lower-case DNS labels separated by dots; correct it"
	// +heliostat:rule=gateway-listener
	// +kubebuilder:validation:MinLength=1
	// +optional
	SectionName string `json:"sectionName,omitempty"`
}

// ClusterServiceStatus is the observed state of a service.
type ClusterServiceStatus struct {
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
	Summary ServiceSummary `json:"summary,omitzero"`
	// conditions are of the types Ready, Reconciling, Stalled, Upgrading, RolledBack, Suspended, NameConflict, GatewayProgrammed.
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// url of the applications, inside the Kubernetes cluster.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	URL string `json:"url,omitempty"`
	// active is the version that receives the traffic, or received it before the upgrade started.
	// +optional
	Active *ServiceVersion `json:"active,omitempty"`
	// candidate is the version that will receive it.
	// +optional
	Candidate *ServiceVersion `json:"candidate,omitempty"`
	// retiring are clusters of versions that no longer receive traffic and are not deleted yet.
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	// +optional
	Retiring []string `json:"retiring,omitempty"`
	// lastUpgrade is the last upgrade that ended.
	// +optional
	LastUpgrade *UpgradeOutcome `json:"lastUpgrade,omitempty"`
}

// ServiceSummary holds strings that kubectl shows in columns.
type ServiceSummary struct {
	// version is the active revision, and during an upgrade the candidate: "1" or "1 → 2".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Version string `json:"version,omitempty"`
	// traffic is the share of the traffic of each: "100%" or "60% → 40%".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Traffic string `json:"traffic,omitempty"`
	// applications is "running/desired".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Applications string `json:"applications,omitempty"`
}

// ServiceVersion is one version of the service on its cluster.
type ServiceVersion struct {
	// clusterName is the ComputeCluster that it runs on.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ClusterName string `json:"clusterName,omitempty"`
	// revision is its number, counted from 1, as in its ControllerRevision.
	// +kubebuilder:validation:Minimum=1
	// +optional
	Revision int64 `json:"revision,omitempty"`
	// goodRevision is the last healthy revision on this cluster, the target of a rollback.
	// +kubebuilder:validation:Minimum=1
	// +optional
	GoodRevision int64 `json:"goodRevision,omitempty"`
	// trafficPercent is its share of the traffic: the weight in the route if a gateway accepts it, otherwise its share of the endpoints.
	// +optional
	TrafficPercent int32 `json:"trafficPercent"`
	// capacityPercent is its share of the full capacity.
	// +optional
	CapacityPercent int32 `json:"capacityPercent"`
	// readyEndpoints is the number of pods that accept requests for it.
	// +optional
	ReadyEndpoints int32 `json:"readyEndpoints"`
	// healthy reports whether its applications run and answer probes.
	// +optional
	Healthy bool `json:"healthy"`
	// applications as Ray Serve reports them.
	// +listType=map
	// +listMapKey=name
	// +optional
	Applications []ApplicationStatus `json:"applications,omitempty"`
}

// ApplicationStatus is one application as Ray Serve reports it.
type ApplicationStatus struct {
	// name of the application.
	// +kubebuilder:validation:MinLength=1
	// +required
	Name string `json:"name,omitempty"`
	// state as reported by Serve: NOT_STARTED, DEPLOYING, DEPLOY_FAILED, RUNNING, UNHEALTHY or DELETING. MISSING if Serve does not know it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	State string `json:"state,omitempty"`
	// routePrefix is its URL path.
	// +kubebuilder:validation:MinLength=1
	// +optional
	RoutePrefix string `json:"routePrefix,omitempty"`
	// runningReplicas is the number of running replicas of all its deployments.
	// +optional
	RunningReplicas int32 `json:"runningReplicas"`
	// desiredReplicas is the number of replicas that all its deployments should have.
	// +optional
	DesiredReplicas int32 `json:"desiredReplicas"`
	// message is the end of Serve's message about it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32768
	// +optional
	Message string `json:"message,omitempty"`
}

// UpgradeResult is how an upgrade ended.
//
// +kubebuilder:validation:Enum=Succeeded;RolledBack;Superseded
type UpgradeResult string

// Results of an upgrade.
const (
	// UpgradeSucceeded: the new version receives all traffic.
	UpgradeSucceeded UpgradeResult = "Succeeded"
	// UpgradeRolledBack: the previous version receives it again.
	UpgradeRolledBack UpgradeResult = "RolledBack"
	// UpgradeSuperseded: the spec was changed again before it ended.
	UpgradeSuperseded UpgradeResult = "Superseded"
)

// UpgradeOutcome is an upgrade that ended.
type UpgradeOutcome struct {
	// from is the revision that was active before.
	// +kubebuilder:validation:Minimum=1
	// +optional
	From int64 `json:"from,omitempty"`
	// to is the candidate revision.
	// +kubebuilder:validation:Minimum=1
	// +optional
	To int64 `json:"to,omitempty"`
	// result is Succeeded, RolledBack or Superseded.
	// +kubebuilder:validation:MinLength=1
	// +optional
	Result UpgradeResult `json:"result,omitempty"`
	// reason is the code of why it was rolled back.
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:MinLength=1
	// +optional
	Reason string `json:"reason,omitempty"`
	// message explains the reason.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32768
	// +optional
	Message string `json:"message,omitempty"`
	// startTime is when it started.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`
	// endTime is when it ended.
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty"`
}
