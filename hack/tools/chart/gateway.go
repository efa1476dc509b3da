package chart

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// HTTPRoute is Gateway API's kind, with the fields that the chart sets and no others.
type HTTPRoute struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              HTTPRouteSpec `json:"spec"`
}

// HTTPRouteSpec says which host names lead where.
type HTTPRouteSpec struct {
	ParentRefs []GatewayRef    `json:"parentRefs"`
	Hostnames  []string        `json:"hostnames"`
	Rules      []HTTPRouteRule `json:"rules"`
}

// GatewayRef names a Gateway.
type GatewayRef struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

// HTTPRouteRule leads all requests.
type HTTPRouteRule struct {
	BackendRefs []BackendRef `json:"backendRefs"`
}

// BackendRef is a port of a Service.
type BackendRef struct {
	Name string `json:"name"`
	Port int32  `json:"port"`
}

// BackendTLSPolicy is Gateway API's kind, with the fields that the chart sets and no others.
type BackendTLSPolicy struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              BackendTLSPolicySpec `json:"spec"`
}

// BackendTLSPolicySpec says how a Gateway reaches a Service, and whom it believes there.
type BackendTLSPolicySpec struct {
	TargetRefs []ObjectRef `json:"targetRefs"`
	Validation Validation  `json:"validation"`
}

// ObjectRef names an object.
type ObjectRef struct {
	Group       string `json:"group"`
	Kind        string `json:"kind"`
	Name        string `json:"name"`
	SectionName string `json:"sectionName"`
}

// Validation says whose certificate is believed, and for which name.
type Validation struct {
	CACertificateRefs       []ObjectRef `json:"caCertificateRefs"`
	WellKnownCACertificates string      `json:"wellKnownCACertificates"`
	Hostname                string      `json:"hostname"`
}

// DeepCopyObject as runtime.Object says; what is read here is not changed.
func (r *HTTPRoute) DeepCopyObject() runtime.Object {
	copied := *r
	return &copied
}

// DeepCopyObject as runtime.Object says; what is read here is not changed.
func (p *BackendTLSPolicy) DeepCopyObject() runtime.Object {
	copied := *p
	return &copied
}

func addGateway(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(schema.GroupVersion{Group: "gateway.networking.k8s.io", Version: "v1"}, &HTTPRoute{}, &BackendTLSPolicy{})
	return nil
}
