// Package gang says to schedulers that the pods of a cluster belong together: all that the cluster must have, or none.
//
// In: a cluster, and how many pods of each group it must have. Out: what to write on each pod, and at most one object
// by which its scheduler knows the gang. One table holds all schedulers.
//
// It is pure, and it never asks whether a scheduler, its kinds or its queues are there.
package gang

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// Gang is the pods of a cluster that are placed together.
type Gang struct {
	Cluster *v1beta1.ComputeCluster
	// Members are how many workers of each group there are at least; the head is always a member.
	Members map[string]int
}

// Size is how many pods the gang has.
func (g Gang) Size() int {
	size := 1
	for _, count := range g.Members {
		size += count
	}
	return size
}

// Join writes on a pod of the cluster who places it, and with whom.
func (g Gang) Join(made *corev1.Pod) {
	asked := g.Cluster.Spec.Scheduler
	if asked == nil {
		return
	}
	to, known := schedulers[asked.Name]
	if !known { // such a cluster is refused, and stalls where nothing refused it
		return
	}
	made.Spec.SchedulerName = cmp.Or(asked.SchedulerName, to.runs)
	to.join(g, made)
}

// Kind is the kind of the object by which a cluster's scheduler knows the gang, with the versions that this package
// writes, the best first.
type Kind struct {
	schema.GroupKind
	Versions []string
}

// KindOf returns the kind for a cluster's scheduler, and false where the cluster has none or its scheduler needs no object.
func KindOf(cluster *v1beta1.ComputeCluster) (Kind, bool) {
	asked := cluster.Spec.Scheduler
	if asked == nil {
		return Kind{}, false
	}
	kind := schedulers[asked.Name].kind
	return kind, kind.Kind != ""
}

// CanResize reports whether an object of a version takes another size of its gang. Kubernetes 1.36 has no way to.
func (k Kind) CanResize(version string) bool {
	return k.GroupKind != kubernetes || version != "v1alpha2"
}

// Empty returns an object of the kind to read the cluster's into.
func (k Kind) Empty(version string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(k.WithVersion(version))
	return object
}

// Object returns the object in a version of its kind. It is for clusters whose scheduler has one.
func (g Gang) Object(version string) *unstructured.Unstructured {
	to := schedulers[g.Cluster.Spec.Scheduler.Name]
	object := to.kind.Empty(version)
	object.SetNamespace(g.Cluster.Namespace)
	object.SetName(naming.Gang(g.Cluster.Name))
	object.SetLabels(naming.ClusterLabels(g.Cluster.Name))
	object.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(g.Cluster, v1beta1.GroupVersion.WithKind("ComputeCluster"))})
	object.Object["spec"] = to.spec(g)
	return object
}

// Holds reports whether an object says what is wanted of it. What others added stays.
func Holds(seen, wanted *unstructured.Unstructured) bool {
	return equality.Semantic.DeepDerivative(wanted.Object["spec"], seen.Object["spec"])
}

// requests are what all members ask for together.
func (g Gang) requests() corev1.ResourceList {
	sum := corev1.ResourceList{}
	add := func(group string, count int) {
		for name, quantity := range pod.Requests(g.Cluster, group) {
			quantity.Mul(int64(count))
			total := sum[name]
			total.Add(quantity)
			sum[name] = total
		}
	}
	add("", 1)
	for group, count := range g.Members {
		if count > 0 {
			add(group, count)
		}
	}
	return sum
}

// asText is a list of resources as an object without a type holds it.
func asText(list corev1.ResourceList) map[string]any {
	text := make(map[string]any, len(list))
	for name, quantity := range list {
		text[string(name)] = quantity.String()
	}
	return text
}

// priority is the priority class of the cluster's head, which is the gang's.
func (g Gang) priority() string {
	spec := g.Cluster.Spec
	if template := spec.Head.Template; template != nil && template.Spec.PriorityClassName != "" {
		return template.Spec.PriorityClassName
	}
	if spec.PodDefaults != nil {
		return spec.PodDefaults.PriorityClassName
	}
	return ""
}
