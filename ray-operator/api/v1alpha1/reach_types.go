package v1alpha1

import corev1 "k8s.io/api/core/v1"

// ServiceReach is how a Service is reached beside its type: fields of a Service under its own names.
type ServiceReach struct {
	// NodePorts are the ports of the nodes, by the names of the Service's ports. For types NodePort and LoadBalancer only. Default: Kubernetes chooses each.
	// +kubebuilder:validation:MaxProperties=37
	// +kubebuilder:validation:XValidation:rule="self.all(name, self[name] >= 1 && self[name] <= 65535 && self.exists_one(other, self[other] == self[name]))",message="a node port is a number from 1 to 65535 that no other port has; correct the number"
	// +optional
	NodePorts map[string]int32 `json:"nodePorts,omitempty"`
	// LoadBalancerClass names what makes the load balancer, where that is not the cloud's default. For type LoadBalancer only. It cannot be changed while the type stays.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.qualifiedName().validate(self).hasValue()",message="a loadBalancerClass is a name with an optional DNS prefix and '/'; give one such as service.k8s.aws/nlb"
	// +optional
	LoadBalancerClass string `json:"loadBalancerClass,omitempty"`
	// LoadBalancerSourceRanges are the only addresses that the load balancer lets in. For type LoadBalancer only. Default: all.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.all(range, isCIDR(range) && string(cidr(range).masked()) == range)",message="a source range must be a block of addresses in canonical form; give one such as 203.0.113.0/24 or 2001:db8::/32"
	// +listType=set
	// +optional
	LoadBalancerSourceRanges []string `json:"loadBalancerSourceRanges,omitempty"`
	// ExternalTrafficPolicy Local keeps the address of the client, and leads only to pods on the node that a request reaches. For types NodePort and LoadBalancer only. Default: Cluster.
	// +kubebuilder:validation:Enum=Cluster;Local
	// +optional
	ExternalTrafficPolicy corev1.ServiceExternalTrafficPolicy `json:"externalTrafficPolicy,omitempty"`
	// SessionAffinity ClientIP leads requests of one client's address to the same pod. Default: None.
	// +kubebuilder:validation:Enum=None;ClientIP
	// +optional
	SessionAffinity corev1.ServiceAffinity `json:"sessionAffinity,omitempty"`
}
