package v1beta1

import corev1 "k8s.io/api/core/v1"

// ServiceReach holds fields of a Service under their own names, except its type.
type ServiceReach struct {
	// loadBalancerClass names the implementation of the load balancer. For type LoadBalancer only. It cannot be changed while type is LoadBalancer. Default: the cloud's own.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="!format.qualifiedName().validate(self).hasValue()",message="loadBalancerClass must be a name with an optional DNS prefix and '/'; give one such as service.k8s.aws/nlb"
	// +heliostat:rule=load-balancer-class
	// +kubebuilder:validation:MinLength=1
	// +optional
	LoadBalancerClass string `json:"loadBalancerClass,omitempty"`
	// loadBalancerSourceRanges are the client addresses that the load balancer accepts. For type LoadBalancer only. Default: all.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.all(range, isCIDR(range) && string(cidr(range).masked()) == range)",message="a source range must be a block of addresses in canonical form; give one such as 203.0.113.0/24 or 2001:db8::/32"
	// +heliostat:rule=source-range
	// +listType=set
	// +optional
	LoadBalancerSourceRanges []string `json:"loadBalancerSourceRanges,omitempty"`
	// externalTrafficPolicy Local preserves the client's address, and routes only to pods on the node that receives the request. For types NodePort and LoadBalancer only. Default: Cluster.
	// +kubebuilder:validation:Enum=Cluster;Local
	// +optional
	ExternalTrafficPolicy corev1.ServiceExternalTrafficPolicy `json:"externalTrafficPolicy,omitempty"`
	// sessionAffinity ClientIP routes requests from one client address to the same pod. Default: None.
	// +kubebuilder:validation:Enum=None;ClientIP
	// +optional
	SessionAffinity corev1.ServiceAffinity `json:"sessionAffinity,omitempty"`
	// ipFamilies are the IP families of the Service's addresses. The first cannot be changed unless the Service is headless. Default: the Kubernetes cluster's own.
	// +kubebuilder:validation:MaxItems=2
	// +kubebuilder:validation:items:Enum=IPv4;IPv6
	// +kubebuilder:validation:XValidation:rule="self.size() < 2 || self[0] != self[1]",message="ipFamilies must not name a family twice; leave one out"
	// +heliostat:rule=ip-family-twice
	// +listType=atomic
	// +optional
	IPFamilies []corev1.IPFamily `json:"ipFamilies,omitempty"`
	// ipFamilyPolicy says how many families the Service has. RequireDualStack needs a Kubernetes cluster with both. Default: SingleStack; a Service keeps its policy while this field is absent.
	// +kubebuilder:validation:Enum=SingleStack;PreferDualStack;RequireDualStack
	// +optional
	IPFamilyPolicy corev1.IPFamilyPolicy `json:"ipFamilyPolicy,omitempty"`
}
