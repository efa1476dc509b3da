package chart

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ServiceMonitor is the Prometheus operator's kind, with the fields that the chart sets
// and no others.
type ServiceMonitor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              ServiceMonitorSpec `json:"spec"`
}

// ServiceMonitorSpec says which Services are scraped, and how.
type ServiceMonitorSpec struct {
	Selector          metav1.LabelSelector `json:"selector"`
	NamespaceSelector NamespaceSelector    `json:"namespaceSelector"`
	Endpoints         []Endpoint           `json:"endpoints"`
}

// NamespaceSelector names namespaces.
type NamespaceSelector struct {
	MatchNames []string `json:"matchNames"`
}

// Endpoint is a port of a Service, by its name.
type Endpoint struct {
	Port     string `json:"port"`
	Path     string `json:"path"`
	Interval string `json:"interval"`
}

// DeepCopyObject as runtime.Object says. What is read here is not changed, so that what a
// copy shares with its original does no harm.
func (s *ServiceMonitor) DeepCopyObject() runtime.Object {
	copied := *s
	return &copied
}

func addServiceMonitor(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(schema.GroupVersion{Group: "monitoring.coreos.com", Version: "v1"}, &ServiceMonitor{})
	return nil
}
