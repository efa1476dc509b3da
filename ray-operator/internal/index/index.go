// Package index names the indexes of the cache and says what they hold.
//
// In: an object of the cache. Out: the values under which it is found. Packages that list by an
// index and the one that makes the cache keep it read its name here.
//
// It is pure, and it never looks at anything but the object.
package index

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// Owner finds objects by the UID of their controller of our group, Stray pods without one by the name of the cluster that their label
// names, Node pods by the name of their node, Serve pods by the name of a service for which they take requests, Cluster
// ClusterServices by the name of the cluster that they refer to, and Unended ClusterJobs that have not ended by theirs.
// Egress finds under EgressRuled the NetworkPolicies of which RulesEgress is true, and Address EndpointSlices by the name of
// their Service.
const (
	Owner   = "metadata.controller.uid"
	Stray   = "metadata.labels.cluster"
	Node    = "spec.nodeName"
	Serve   = "metadata.labels.serve"
	Cluster = "spec.clusterRef.name"
	Unended = "status.unended.clusterRef.name"
	Egress  = "spec.egress"
	Address = "metadata.labels.service-name"

	EgressRuled = "ruled"
)

// Field is one index of one kind.
type Field struct {
	Kind  client.Object
	Name  string
	Value client.IndexerFunc
}

// Fields are all indexes.
func Fields() []Field {
	return []Field{
		{&corev1.Pod{}, Owner, ownerUID},
		{&corev1.PersistentVolumeClaim{}, Owner, ownerUID},
		{&corev1.Pod{}, Stray, strayOf},
		{&corev1.Pod{}, Node, nodeOf},
		{&corev1.Pod{}, Serve, servedBy},
		{&v1beta1.ComputeCluster{}, Owner, ownerUID},
		{&appsv1.ControllerRevision{}, Owner, ownerUID},
		{&corev1.Service{}, Owner, ownerUID},
		{&v1beta1.ClusterJob{}, Unended, unendedOn},
		{&v1beta1.ClusterJob{}, Owner, ownerUID},
		{&v1beta1.ClusterService{}, Cluster, clusterOf},
		{&networkingv1.NetworkPolicy{}, Egress, egressOf},
		{&discoveryv1.EndpointSlice{}, Address, addressOf},
	}
}

func ownerUID(obj client.Object) []string {
	if owner := naming.Controller(obj); owner != nil {
		return []string{string(owner.UID)}
	}
	return nil
}

func strayOf(obj client.Object) []string {
	if name := obj.GetLabels()[v1beta1.LabelCluster]; name != "" && metav1.GetControllerOfNoCopy(obj) == nil {
		return []string{name}
	}
	return nil
}

func nodeOf(obj client.Object) []string {
	if pod, ok := obj.(*corev1.Pod); ok && pod.Spec.NodeName != "" {
		return []string{pod.Spec.NodeName}
	}
	return nil
}

func servedBy(obj client.Object) (services []string) {
	for key := range obj.GetLabels() {
		if service, serves := strings.CutPrefix(key, v1beta1.LabelServePrefix); serves {
			services = append(services, service)
		}
	}
	return services
}

func clusterOf(obj client.Object) []string {
	if service, ok := obj.(*v1beta1.ClusterService); ok && service.Spec.ClusterRef != nil {
		return []string{service.Spec.ClusterRef.Name}
	}
	return nil
}

func unendedOn(obj client.Object) []string {
	if job, ok := obj.(*v1beta1.ClusterJob); ok && job.Spec.ClusterRef != nil && job.Status.EndTime == nil {
		return []string{job.Spec.ClusterRef.Name}
	}
	return nil
}

func addressOf(obj client.Object) []string {
	if service := obj.GetLabels()[discoveryv1.LabelServiceName]; service != "" {
		return []string{service}
	}
	return nil
}

func egressOf(obj client.Object) []string {
	if policy, ok := obj.(*networkingv1.NetworkPolicy); ok && RulesEgress(policy) {
		return []string{EgressRuled}
	}
	return nil
}

// RulesEgress reports whether a NetworkPolicy is somebody else's and limits what all pods of its namespace reach.
func RulesEgress(policy *networkingv1.NetworkPolicy) bool {
	if naming.Controller(policy) != nil {
		return false
	}
	all := len(policy.Spec.PodSelector.MatchLabels)+len(policy.Spec.PodSelector.MatchExpressions) == 0
	return all && slices.Contains(policy.Spec.PolicyTypes, networkingv1.PolicyTypeEgress)
}
