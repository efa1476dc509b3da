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

// PrometheusRule is the Prometheus operator's kind, with the fields that the chart sets and no others.
type PrometheusRule struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              PrometheusRuleSpec `json:"spec"`
}

// PrometheusRuleSpec holds the rules in groups.
type PrometheusRuleSpec struct {
	Groups []RuleGroup `json:"groups"`
}

// RuleGroup holds rules that are evaluated together.
type RuleGroup struct {
	Name  string `json:"name"`
	Rules []Rule `json:"rules"`
}

// Rule is an alert.
type Rule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         metav1.Duration   `json:"for,omitzero"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

// DeepCopyObject as runtime.Object says. What is read here is not changed, so that what a
// copy shares with its original does no harm.
func (s *ServiceMonitor) DeepCopyObject() runtime.Object {
	copied := *s
	return &copied
}

// DeepCopyObject as runtime.Object says. What a copy shares is not changed here either.
func (r *PrometheusRule) DeepCopyObject() runtime.Object {
	copied := *r
	return &copied
}

func addMonitoring(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(schema.GroupVersion{Group: "monitoring.coreos.com", Version: "v1"}, &ServiceMonitor{}, &PrometheusRule{})
	return nil
}
