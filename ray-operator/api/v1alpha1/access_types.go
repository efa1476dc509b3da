package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

// PodDefaults is what every pod of a cluster gets.
type PodDefaults struct {
	// ServiceAccountName of the pods. They still get no token of it unless a template asks for one.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="no object can have this name; use lower-case letters, digits, '-' and '.', as the object itself does"
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
	// ImagePullSecrets are Secrets with credentials for registries.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`
	// Labels of the pods.
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(key, !key.startsWith('heliostat.dev/') && !key.contains('.heliostat.dev/') && !(key in ['app.kubernetes.io/name', 'app.kubernetes.io/instance', 'app.kubernetes.io/managed-by']))",message="the prefix heliostat.dev and app.kubernetes.io/name, instance and managed-by are the operator's own; choose another"
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations of the pods.
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(key, !key.startsWith('heliostat.dev/'))",message="the prefix heliostat.dev is the operator's own; choose another"
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
	// Env of the Ray container.
	// +kubebuilder:validation:MaxItems=256
	// +listType=map
	// +listMapKey=name
	// +optional
	Env []corev1.EnvVar `json:"env,omitempty"`
	// EnvFrom of the Ray container.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	EnvFrom []corev1.EnvFromSource `json:"envFrom,omitempty"`
	// NodeSelector of the pods.
	// +kubebuilder:validation:MaxProperties=64
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// Tolerations of the pods, beside those of their templates.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// PriorityClassName of the pods.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="no object can have this name; use lower-case letters, digits, '-' and '.', as the object itself does"
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`
}

// HeadServiceSpec describes the Service in front of the head.
//
// +kubebuilder:validation:XValidation:rule="[self.?type.orValue('ClusterIP')].all(kind, (kind != 'ClusterIP' || !has(self.nodePorts) && !has(self.externalTrafficPolicy)) && (kind == 'LoadBalancer' || !has(self.loadBalancerClass) && !has(self.loadBalancerSourceRanges)))",message="nodePorts and externalTrafficPolicy belong to type NodePort or LoadBalancer, loadBalancerClass and loadBalancerSourceRanges to LoadBalancer; set that type or leave them out"
// +kubebuilder:validation:XValidation:rule="self.?type.orValue('ClusterIP') != 'LoadBalancer' || oldSelf.?type.orValue('ClusterIP') != 'LoadBalancer' || (!has(self.loadBalancerClass) && !has(oldSelf.loadBalancerClass) || has(self.loadBalancerClass) && has(oldSelf.loadBalancerClass) && self.loadBalancerClass == oldSelf.loadBalancerClass)",message="Kubernetes changes no loadBalancerClass of a load balancer; set type to ClusterIP first"
// +kubebuilder:validation:XValidation:rule="!has(self.nodePorts) || self.nodePorts.all(name, name in ['gcs', 'dashboard', 'client', 'metrics', 'serve'] || has(self.ports) && self.ports.exists(port, port.name == name))",message="nodePorts names a port that the Service does not have; use the names of its ports",fieldPath=".nodePorts"
// +kubebuilder:validation:XValidation:rule="!self.?headless.orValue(false) || self.?type.orValue('ClusterIP') == 'ClusterIP' && (!has(self.ports) || self.ports.all(port, !has(port.targetPort) || port.targetPort == port.port))",message="a headless Service leads to pods themselves, so its type is ClusterIP and no port has another targetPort; leave headless out or correct these",fieldPath=".headless"
type HeadServiceSpec struct {
	// Type of the Service. Default: ClusterIP.
	// +kubebuilder:validation:Enum=ClusterIP;NodePort;LoadBalancer
	// +optional
	Type corev1.ServiceType `json:"type,omitempty"`
	// Headless, if true, gives the Service no address of its own: its name leads to the head's pod itself. It cannot be changed. Default: false.
	// +optional
	Headless bool `json:"headless,omitempty"`

	ServiceReach `json:",inline"`

	// Labels of the Service.
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(key, !key.startsWith('heliostat.dev/') && !key.contains('.heliostat.dev/') && !(key in ['app.kubernetes.io/name', 'app.kubernetes.io/instance', 'app.kubernetes.io/managed-by']))",message="the prefix heliostat.dev and app.kubernetes.io/name, instance and managed-by are the operator's own; choose another"
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations of the Service, such as those that load balancers read.
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(key, !key.startsWith('heliostat.dev/'))",message="the prefix heliostat.dev is the operator's own; choose another"
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
	// Ports beside Ray's own, which are always there: gcs, dashboard, client, metrics, serve.
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="self.all(port, !(port.name in ['gcs', 'dashboard', 'client', 'metrics', 'serve']))",message="the names gcs, dashboard, client, metrics and serve are those of Ray's own ports; choose another name"
	// +kubebuilder:validation:XValidation:rule="self.all(port, !(port.port in [6379, 8265, 10001, 8080, 8000]))",message="6379, 8265, 10001, 8080 and 8000 are Ray's own ports and there already; choose another number"
	// +kubebuilder:validation:XValidation:rule="self.all(port, self.exists_one(other, other.port == port.port))",message="two ports have the same number; choose another number for one of them"
	// +listType=map
	// +listMapKey=name
	// +optional
	Ports []ServicePort `json:"ports,omitempty"`
}

// ServicePort is a further port of the head's Service.
type ServicePort struct {
	// Name of the port, a DNS label.
	// +kubebuilder:validation:MaxLength=15
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +required
	Name string `json:"name"`
	// Port of the Service.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +required
	Port int32 `json:"port"`
	// TargetPort on the head pod. Default: the same as port.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	TargetPort int32 `json:"targetPort,omitempty"`
}

// IngressSpec opens the dashboard to the outside. Ray's token stays in force.
type IngressSpec struct {
	// ClassName of the Ingress. Default: the Kubernetes cluster's default class.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="no object can have this name; use lower-case letters, digits, '-' and '.', as the object itself does"
	// +optional
	ClassName string `json:"className,omitempty"`
	// Host under which the dashboard answers.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^([*][.])?[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$') && !self.matches('^[0-9.]+$')",message="host must be a DNS name, not an address; give one such as ray.example.com"
	// +required
	Host string `json:"host"`
	// Path under which the dashboard answers, with what follows it. Default: "/".
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.startsWith('/') && !['//', '/./', '/../', '%2f', '%2F'].exists(part, self.contains(part)) && !self.endsWith('/..') && !self.endsWith('/.')",message="path must begin with '/' and hold no '//', '/./', '/../' or escaped '/'; give a plain path such as /ray"
	// +optional
	Path string `json:"path,omitempty"`
	// AdditionalHosts under which the dashboard answers too.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.all(host, host.matches('^([*][.])?[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$') && !host.matches('^[0-9.]+$'))",message="host must be a DNS name, not an address; give one such as ray.example.com"
	// +listType=set
	// +optional
	AdditionalHosts []string `json:"additionalHosts,omitempty"`
	// PathType is how a request's path is compared with path. Some controllers, such as those of AWS and Google, want ImplementationSpecific and "/*". Default: Prefix.
	// +kubebuilder:validation:Enum=Prefix;Exact;ImplementationSpecific
	// +optional
	PathType networkingv1.PathType `json:"pathType,omitempty"`
	// Annotations of the Ingress, such as those that its controller and cert-manager read.
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(key, !key.startsWith('heliostat.dev/'))",message="the prefix heliostat.dev is the operator's own; choose another"
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
	// TLSSecretName is the Secret with the certificate of all hosts. Default: none, for where the controller has one of its own.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="no object can have this name; use lower-case letters, digits, '-' and '.', as the object itself does"
	// +optional
	TLSSecretName string `json:"tlsSecretName,omitempty"`
}

// Authentication modes.
const (
	AuthenticationToken    = "Token"
	AuthenticationDisabled = "Disabled"
)

// Authentication says how those who talk to the cluster prove that they may.
//
// +kubebuilder:validation:XValidation:rule="self.mode != 'Disabled' || !has(self.secretName)",message="secretName has no meaning with mode Disabled; leave one of the two out"
type Authentication struct {
	// Mode Token asks for a token everywhere. Disabled opens the cluster to anyone who reaches its ports: they can run code in its pods.
	// +kubebuilder:validation:Enum=Token;Disabled
	// +kubebuilder:default=Token
	// +optional
	Mode string `json:"mode,omitempty"`
	// SecretName is a Secret of yours with the token under the key auth_token. Default: one that the operator makes. A pod keeps the one that it was started with: a change takes effect on new pods only.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="no object can have this name; use lower-case letters, digits, '-' and '.', as the object itself does"
	// +optional
	SecretName string `json:"secretName,omitempty"`
}

// Isolation modes.
const (
	IsolationEnabled  = "Enabled"
	IsolationDisabled = "Disabled"
)

// What pods reach of the cloud's metadata.
const (
	CloudMetadataEnabled  = "Enabled"
	CloudMetadataDisabled = "Disabled"
)

// Encryption between the pods of a cluster.
const (
	EncryptionDisabled = "Disabled"
	EncryptionRequired = "Required"
)

// Network says who reaches the cluster's pods, and what they reach.
//
// +kubebuilder:validation:XValidation:rule="self.isolation != 'Disabled' || (!has(self.allowFrom) && !has(self.allowTo) && self.cloudMetadata != 'Enabled')",message="allowFrom, allowTo and cloudMetadata Enabled have no meaning with isolation Disabled; leave one of the two out"
// +kubebuilder:validation:XValidation:rule="self.encryption != 'Required' || self.isolation != 'Disabled'",message="with encryption isolation must be Enabled, because Ray's agents take the token in clear text; leave isolation out"
type Network struct {
	// Isolation Enabled keeps a NetworkPolicy around the cluster's pods. Disabled lets everyone in the Kubernetes cluster reach every port of them.
	// +kubebuilder:validation:Enum=Enabled;Disabled
	// +kubebuilder:default=Enabled
	// +optional
	Isolation string `json:"isolation,omitempty"`
	// AllowFrom lets further peers in.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	AllowFrom []IngressRule `json:"allowFrom,omitempty"`
	// AllowTo, if given, is all that the pods may reach, beside the cluster itself, DNS and its control store. Default: everything but the cloud's metadata addresses.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	AllowTo []EgressRule `json:"allowTo,omitempty"`
	// CloudMetadata Enabled lets the pods reach the cloud's metadata addresses, where code gets the credentials of its node. Disabled does not, unless allowTo names them.
	// +kubebuilder:validation:Enum=Enabled;Disabled
	// +kubebuilder:default=Disabled
	// +optional
	CloudMetadata string `json:"cloudMetadata,omitempty"`
	// Encryption Required has Ray's processes and the operator speak TLS with certificates of this cluster, and nothing else. It cannot be changed.
	// +kubebuilder:validation:Enum=Disabled;Required
	// +kubebuilder:default=Disabled
	// +optional
	Encryption string `json:"encryption,omitempty"`
}

// Port is a port of Ray by name.
//
// +kubebuilder:validation:Enum=Dashboard;Client;Serve;ServeGRPC;GCS;Metrics
type Port string

// Ports of Ray.
const (
	PortDashboard Port = "Dashboard"
	PortClient    Port = "Client"
	PortServe     Port = "Serve"
	PortServeGRPC Port = "ServeGRPC"
	PortGCS       Port = "GCS"
	PortMetrics   Port = "Metrics"
)

// IngressRule lets peers reach ports of the cluster.
type IngressRule struct {
	// From are the peers; an empty list is everybody.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +kubebuilder:validation:XValidation:rule="self.all(peer, has(peer.ipBlock) != (has(peer.podSelector) || has(peer.namespaceSelector)))",message="a peer is either an ipBlock or selectors, and not empty; make two peers of it, or fill it in"
	// +required
	From []networkingv1.NetworkPolicyPeer `json:"from"`
	// Ports that they reach.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=6
	// +listType=set
	// +required
	Ports []Port `json:"ports"`
}

// EgressRule lets the cluster's pods reach peers.
type EgressRule struct {
	// To are the peers; an empty list is everybody.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +kubebuilder:validation:XValidation:rule="self.all(peer, has(peer.ipBlock) != (has(peer.podSelector) || has(peer.namespaceSelector)))",message="a peer is either an ipBlock or selectors, and not empty; make two peers of it, or fill it in"
	// +required
	To []networkingv1.NetworkPolicyPeer `json:"to"`
	// Ports of the peers, by protocol and number; an empty list is all.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	Ports []networkingv1.NetworkPolicyPort `json:"ports,omitempty"`
}
