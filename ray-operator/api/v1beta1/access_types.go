package v1beta1

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

// PodDefaults are settings that every pod of a cluster gets.
type PodDefaults struct {
	// serviceAccountName of the pods. Pods mount its token only where a template asks for it.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="the name must be a DNS-1123 subdomain; use lower-case letters, digits, '-' and '.'"
	// +heliostat:rule=object-name
	// +kubebuilder:validation:MinLength=1
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
	// imagePullSecrets are Secrets with credentials for registries.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`
	// labels of the pods.
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(key, !key.startsWith('heliostat.dev/') && !key.contains('.heliostat.dev/') && !(key in ['app.kubernetes.io/name', 'app.kubernetes.io/instance', 'app.kubernetes.io/managed-by']))",message="a key must not have the prefix heliostat.dev, nor be app.kubernetes.io/name, instance or managed-by, which the operator sets; choose another"
	// +heliostat:rule=own-label
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// annotations of the pods.
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(key, !key.startsWith('heliostat.dev/') && !key.contains('.heliostat.dev/'))",message="a key must not have the prefix heliostat.dev, which is reserved for the operator; choose another"
	// +heliostat:rule=own-annotation
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
	// env of the Ray container.
	// +kubebuilder:validation:MaxItems=256
	// +listType=map
	// +listMapKey=name
	// +optional
	Env []corev1.EnvVar `json:"env,omitempty"`
	// envFrom of the Ray container.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	EnvFrom []corev1.EnvFromSource `json:"envFrom,omitempty"`
	// nodeSelector of the pods.
	// +kubebuilder:validation:MaxProperties=64
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// tolerations of the pods, in addition to those of their templates.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// priorityClassName of the pods.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="the name must be a DNS-1123 subdomain; use lower-case letters, digits, '-' and '.'"
	// +heliostat:rule=object-name
	// +kubebuilder:validation:MinLength=1
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`
}

// HeadServiceSpec describes the Service in front of the head.
//
// +kubebuilder:validation:XValidation:rule="[self.?type.orValue('ClusterIP')].all(kind, (kind != 'ClusterIP' || (!has(self.ports) || !self.ports.exists(port, has(port.nodePort))) && !has(self.externalTrafficPolicy)) && (kind == 'LoadBalancer' || !has(self.loadBalancerClass) && !has(self.loadBalancerSourceRanges)))",message="nodePort and externalTrafficPolicy need type NodePort or LoadBalancer, and loadBalancerClass and loadBalancerSourceRanges need LoadBalancer; set that type or leave them out"
// +heliostat:rule=service-reach
// +kubebuilder:validation:XValidation:rule="self.?type.orValue('ClusterIP') != 'LoadBalancer' || oldSelf.?type.orValue('ClusterIP') != 'LoadBalancer' || (!has(self.loadBalancerClass) && !has(oldSelf.loadBalancerClass) || has(self.loadBalancerClass) && has(oldSelf.loadBalancerClass) && self.loadBalancerClass == oldSelf.loadBalancerClass)",message="loadBalancerClass must not change while type is LoadBalancer; set type to ClusterIP first",fieldPath=".loadBalancerClass"
// +heliostat:rule=load-balancer-class-fixed
// +kubebuilder:validation:XValidation:rule="!self.?headless.orValue(false) || self.?type.orValue('ClusterIP') == 'ClusterIP' && (!has(self.ports) || self.ports.all(port, !has(port.targetPort) || !has(port.port) || port.targetPort == port.port))",message="a headless Service must have type ClusterIP and no targetPort that differs from its port, because it resolves to pod addresses; leave headless out or correct these",fieldPath=".headless"
// +heliostat:rule=headless
// +kubebuilder:validation:XValidation:rule="!has(self.ipFamilies) || self.ipFamilies.size() < 2 || self.?ipFamilyPolicy.orValue('SingleStack') != 'SingleStack'",message="two ipFamilies need ipFamilyPolicy PreferDualStack or RequireDualStack; set one of the two or leave a family out",fieldPath=".ipFamilies"
// +heliostat:rule=ip-family-policy
// +kubebuilder:validation:XValidation:rule="self.?headless.orValue(false) || !oldSelf.?ipFamilies[?0].hasValue() || self.?ipFamilies[?0].orValue(oldSelf.ipFamilies[0]) == oldSelf.ipFamilies[0]",message="the first of ipFamilies must not change; restore it or create a new object",fieldPath=".ipFamilies"
// +heliostat:rule=ip-family-fixed
type HeadServiceSpec struct {
	// type of the Service. Default: ClusterIP.
	// +kubebuilder:validation:Enum=ClusterIP;NodePort;LoadBalancer
	// +optional
	Type corev1.ServiceType `json:"type,omitempty"`
	// headless makes the Service headless: its name resolves to the address of the head pod. Immutable. Default: false.
	// +optional
	Headless *bool `json:"headless,omitempty"`

	ServiceReach `json:",inline"`

	// labels of the Service.
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(key, !key.startsWith('heliostat.dev/') && !key.contains('.heliostat.dev/') && !(key in ['app.kubernetes.io/name', 'app.kubernetes.io/instance', 'app.kubernetes.io/managed-by']))",message="a key must not have the prefix heliostat.dev, nor be app.kubernetes.io/name, instance or managed-by, which the operator sets; choose another"
	// +heliostat:rule=own-label
	// +optional
	Labels map[string]string `json:"labels,omitempty"`
	// annotations of the Service, such as those that load balancers read.
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(key, !key.startsWith('heliostat.dev/') && !key.contains('.heliostat.dev/'))",message="a key must not have the prefix heliostat.dev, which is reserved for the operator; choose another"
	// +heliostat:rule=own-annotation
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
	// ports in addition to Ray's own ports, which the Service always has: gcs, dashboard, client, metrics, serve. An entry with such a name sets the nodePort of that port.
	// +kubebuilder:validation:MaxItems=37
	// +kubebuilder:validation:XValidation:rule="self.all(port, !has(port.port) || !(port.port in [6379, 8265, 10001, 8080, 8000]))",message="a port must not be 6379, 8265, 10001, 8080 or 8000, which are Ray's own ports; choose another number"
	// +heliostat:rule=port-number-ray
	// +kubebuilder:validation:XValidation:rule="self.all(port, !has(port.port) || self.exists_one(other, has(other.port) && other.port == port.port))",message="port numbers must be unique; choose another number for one of the ports"
	// +heliostat:rule=port-number-twice
	// +kubebuilder:validation:XValidation:rule="self.all(port, !has(port.nodePort) || self.exists_one(other, has(other.nodePort) && other.nodePort == port.nodePort))",message="node ports must be unique; give each port its own"
	// +heliostat:rule=node-port-twice
	// +listType=map
	// +listMapKey=name
	// +optional
	Ports []ServicePort `json:"ports,omitempty"`
}

// ServicePort is a port of the head's Service.
//
// +kubebuilder:validation:XValidation:rule="self.name in ['gcs', 'dashboard', 'client', 'metrics', 'serve'] ? !has(self.port) && !has(self.targetPort) : has(self.port)",message="a port must have port, but gcs, dashboard, client, metrics and serve, which are Ray's own, nodePort alone; correct it"
// +heliostat:rule=port-name-ray
type ServicePort struct {
	// name of the port, a DNS label.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	// +kubebuilder:validation:MinLength=1
	// +required
	Name string `json:"name,omitempty"`
	// port of the Service. Every port but Ray's own needs it.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	Port int32 `json:"port,omitempty"`
	// targetPort on the head pod. Default: the same as port.
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

// IngressSpec exposes the dashboard outside the Kubernetes cluster. Requests still need Ray's token.
type IngressSpec struct {
	// className of the Ingress. Default: the Kubernetes cluster's default class.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="the name must be a DNS-1123 subdomain; use lower-case letters, digits, '-' and '.'"
	// +heliostat:rule=object-name
	// +kubebuilder:validation:MinLength=1
	// +optional
	ClassName string `json:"className,omitempty"`
	// host of the dashboard.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^([*][.])?[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$') && !self.matches('^[0-9.]+$')",message="host must be a DNS name, not an address; give one such as ray.example.com"
	// +heliostat:rule=ingress-host
	// +kubebuilder:validation:MinLength=1
	// +required
	Host string `json:"host,omitempty"`
	// path of the dashboard, including all paths below it. Default: "/".
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self.startsWith('/') && !['//', '/./', '/../', '%2f', '%2F'].exists(part, self.contains(part)) && !self.endsWith('/..') && !self.endsWith('/.')",message="path must begin with '/' and contain no '//', '/./', '/../' or escaped '/'; give a plain path such as /ray"
	// +heliostat:rule=ingress-path
	// +kubebuilder:validation:MinLength=1
	// +optional
	Path string `json:"path,omitempty"`
	// additionalHosts of the dashboard.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.all(host, host.matches('^([*][.])?[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$') && !host.matches('^[0-9.]+$'))",message="host must be a DNS name, not an address; give one such as ray.example.com"
	// +heliostat:rule=ingress-host
	// +listType=set
	// +optional
	AdditionalHosts []string `json:"additionalHosts,omitempty"`
	// pathType is how a request's path is matched with path. Some controllers, such as those of AWS and Google, need ImplementationSpecific and "/*". Default: Prefix.
	// +kubebuilder:validation:Enum=Prefix;Exact;ImplementationSpecific
	// +optional
	PathType networkingv1.PathType `json:"pathType,omitempty"`
	// annotations of the Ingress, such as those for its controller or cert-manager.
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(key, !key.startsWith('heliostat.dev/') && !key.contains('.heliostat.dev/'))",message="a key must not have the prefix heliostat.dev, which is reserved for the operator; choose another"
	// +heliostat:rule=own-annotation
	// +optional
	Annotations map[string]string `json:"annotations,omitempty"`
	// tlsSecretName is the Secret with the certificate for all hosts. Default: none, so that the Ingress controller uses its own.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="the name must be a DNS-1123 subdomain; use lower-case letters, digits, '-' and '.'"
	// +heliostat:rule=object-name
	// +kubebuilder:validation:MinLength=1
	// +optional
	TLSSecretName string `json:"tlsSecretName,omitempty"`
}

// AuthenticationMode is how clients of a cluster authenticate.
//
// +kubebuilder:validation:Enum=Token;Disabled
type AuthenticationMode string

// Authentication modes.
const (
	AuthenticationToken    AuthenticationMode = "Token"
	AuthenticationDisabled AuthenticationMode = "Disabled"
)

// Authentication is how clients of the cluster authenticate.
//
// +kubebuilder:validation:XValidation:rule="self.mode != 'Disabled' || !has(self.secretName)",message="secretName must not be set with mode Disabled; leave one of the two out",fieldPath=".secretName"
// +heliostat:rule=secret-unused
type Authentication struct {
	// mode Token requires a token on every port. With Disabled, anyone who reaches the ports can run code in the cluster's pods.
	// +kubebuilder:default=Token
	// +optional
	Mode AuthenticationMode `json:"mode,omitempty"`
	// secretName is your own Secret with the token under the key auth_token. A pod keeps the token that it started with: a change affects new pods only. Default: a Secret that the operator creates.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.dns1123Subdomain().validate(self).hasValue()",message="the name must be a DNS-1123 subdomain; use lower-case letters, digits, '-' and '.'"
	// +heliostat:rule=object-name
	// +kubebuilder:validation:MinLength=1
	// +optional
	SecretName string `json:"secretName,omitempty"`
}

// Switch turns a part of a cluster's network on or off.
//
// +kubebuilder:validation:Enum=Enabled;Disabled
type Switch string

// States of a switch.
const (
	Enabled  Switch = "Enabled"
	Disabled Switch = "Disabled"
)

// Network controls the traffic to and from the cluster's pods.
//
// +kubebuilder:validation:XValidation:rule="self.isolation != 'Disabled' || (!has(self.allowFrom) && !has(self.allowTo) && self.cloudMetadata != 'Enabled')",message="allowFrom, allowTo and cloudMetadata Enabled must not be set with isolation Disabled; leave one of the two out"
// +heliostat:rule=network-unused
// +kubebuilder:validation:XValidation:rule="self.encryption != 'Enabled' || self.isolation != 'Disabled'",message="isolation must be Enabled with encryption, because Ray's agents accept the token in clear text; leave isolation out",fieldPath=".isolation"
// +heliostat:rule=encryption-isolation
// +kubebuilder:validation:XValidation:rule="!has(self.encryptionSize) || size(self.encryptionSize) == 0 || self.encryption == 'Enabled'",message="encryptionSize must be used with encryption Enabled; set encryption too, or leave encryptionSize out",fieldPath=".encryptionSize"
// +heliostat:rule=encryption-size-unused
type Network struct {
	// isolation Enabled creates a NetworkPolicy for the cluster's pods. With Disabled, anyone in the Kubernetes cluster can reach all of their ports.
	// +kubebuilder:default=Enabled
	// +optional
	Isolation Switch `json:"isolation,omitempty"`
	// allowFrom are additional peers that may connect to the pods.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	AllowFrom []IngressRule `json:"allowFrom,omitempty"`
	// allowTo restricts the pods to these peers, in addition to the cluster itself, DNS and the control store. Default: all addresses except the cloud's metadata.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	AllowTo []EgressRule `json:"allowTo,omitempty"`
	// cloudMetadata Enabled lets the pods reach the cloud's metadata addresses, where code can get the credentials of its node. Disabled blocks them unless allowTo names them.
	// +kubebuilder:default=Disabled
	// +optional
	CloudMetadata Switch `json:"cloudMetadata,omitempty"`
	// encryption Enabled makes Ray's processes and the operator use TLS only, with certificates of this cluster. Immutable.
	// +kubebuilder:default=Disabled
	// +optional
	Encryption Switch `json:"encryption,omitempty"`
	// encryptionSize is the size of each container that encryption adds to a pod: certificates to all pods, encryption to the head. cpu is a request, limits.cpu its limit, memory and ephemeral-storage are request and limit. Default: cpu 10m and memory 32Mi for certificates, cpu 20m and memory 64Mi for encryption.
	// +kubebuilder:validation:MaxProperties=4
	// +kubebuilder:validation:XValidation:rule="self.all(name, name in ['cpu', 'limits.cpu', 'memory', 'ephemeral-storage'])",message="encryptionSize must contain only cpu, limits.cpu, memory and ephemeral-storage; remove the rest"
	// +heliostat:rule=encryption-size-name
	// +kubebuilder:validation:XValidation:rule="!self.exists(name, name != 'memory' && sign(quantity(string(self[name]))) <= 0) && !self.exists(name, name == 'memory' && quantity(string(self[name])).isLessThan(quantity('32Mi')))",message="encryptionSize must have amounts above 0 and memory of at least 32Mi; raise it"
	// +heliostat:rule=encryption-size
	// +kubebuilder:validation:XValidation:rule="!('cpu' in self && 'limits.cpu' in self) || !quantity(string(self['cpu'])).isGreaterThan(quantity(string(self['limits.cpu'])))",message="limits.cpu of encryptionSize must not be below cpu; raise limits.cpu, or lower cpu"
	// +heliostat:rule=encryption-size-limit
	// +optional
	EncryptionSize corev1.ResourceList `json:"encryptionSize,omitempty"`
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

// IngressRule allows peers to connect to ports of the cluster.
type IngressRule struct {
	// from are the peers. An empty list allows all.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +kubebuilder:validation:XValidation:rule="self.all(peer, has(peer.ipBlock) != (has(peer.podSelector) || has(peer.namespaceSelector)))",message="a peer must be either an ipBlock or selectors, and must not be empty; split it into two peers, or fill it in"
	// +heliostat:rule=network-peer
	// +required
	From []networkingv1.NetworkPolicyPeer `json:"from"`
	// ports that they may connect to.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=6
	// +listType=set
	// +required
	Ports []Port `json:"ports,omitempty"`
}

// EgressRule allows the cluster's pods to connect to peers.
type EgressRule struct {
	// to are the peers. An empty list allows all.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +kubebuilder:validation:XValidation:rule="self.all(peer, has(peer.ipBlock) != (has(peer.podSelector) || has(peer.namespaceSelector)))",message="a peer must be either an ipBlock or selectors, and must not be empty; split it into two peers, or fill it in"
	// +heliostat:rule=network-peer
	// +required
	To []networkingv1.NetworkPolicyPeer `json:"to"`
	// ports of the peers, by protocol and number. An empty list allows all.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	Ports []networkingv1.NetworkPolicyPort `json:"ports,omitempty"`
}
