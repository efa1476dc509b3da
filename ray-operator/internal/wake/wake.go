// Package wake says whose reconcile a change of an object wakes.
//
// In: an object before and after a change, as a cache had it and has it. Out: the names of the objects to reconcile. Each
// controller lists its rules in its file wakes.go; the operator's watches and the World of the tests follow the same lists.
//
// A rule reads from the cache alone. It must never wait or write: it holds up the events of all objects.
package wake

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// Change is an object before and after: Old is nil where it was created, New where it was deleted.
type Change struct{ Old, New client.Object }

// Object returns the object as it was seen last.
func (c Change) Object() client.Object {
	if c.New == nil {
		return c.Old
	}
	return c.New
}

// IsUpdate reports whether the object was there before and still is.
func (c Change) IsUpdate() bool { return c.Old != nil && c.New != nil }

// Rule says whom changes of a kind wake.
type Rule struct {
	// Name says in words who is woken by what. It is unique in its list.
	Name string
	Kind client.Object
	// Matters reports whether a change can mean anything. Where it does not, nothing is read.
	Matters func(Change) bool
	// Find returns the names of those to wake. It may return some with an error.
	Find func(context.Context, client.Reader, Change) ([]types.NamespacedName, error)
}

// Wake returns the names of those whom a change of the rule's kind wakes.
func (r Rule) Wake(ctx context.Context, cache client.Reader, c Change) ([]types.NamespacedName, error) {
	if !r.Matters(c) {
		return nil, nil
	}
	return r.Find(ctx, cache, c)
}

// Always reports true.
func Always(Change) bool { return true }

// IsEdit reports whether the object came or went, or somebody edited its spec or deleted it. A cache that missed the
// deletion shows another object of the name as an update.
func IsEdit(c Change) bool {
	return !c.IsUpdate() || c.Old.GetUID() != c.New.GetUID() || c.Old.GetGeneration() != c.New.GetGeneration() ||
		(c.Old.GetDeletionTimestamp() == nil) != (c.New.GetDeletionTimestamp() == nil)
}

// IsBeyondStatus reports whether a change is more than one of a status: an edit, or other labels or annotations.
func IsBeyondStatus(c Change) bool {
	return IsEdit(c) || !equality.Semantic.DeepEqual(c.Old.GetLabels(), c.New.GetLabels()) ||
		!equality.Semantic.DeepEqual(c.Old.GetAnnotations(), c.New.GetAnnotations())
}

// Matters returns what a change of a kind must be for its owner. The status of a budget, a policy or an Ingress is for
// others: no controller here reads it. Of a StatefulSet's the number of ready pods is read.
func Matters(kind client.Object) func(Change) bool {
	switch kind.(type) {
	case *networkingv1.NetworkPolicy, *networkingv1.Ingress, *policyv1.PodDisruptionBudget:
		return IsBeyondStatus
	case *appsv1.StatefulSet:
		return func(c Change) bool { return IsBeyondStatus(c) || changesReady(c) }
	case *corev1.Pod:
		return ChangesPod
	default:
		return func(c Change) bool { return !c.IsUpdate() || c.Old.GetResourceVersion() != c.New.GetResourceVersion() }
	}
}

// ChangesPod reports whether anything changed that the cache keeps of a pod, which is what controllers read. Most changes
// are those that are looked at first: to compare all of two pods costs as much as to decode one.
func ChangesPod(c Change) bool {
	before, was := c.Old.(*corev1.Pod)
	now, is := c.New.(*corev1.Pod)
	if !was || !is || before.Spec.NodeName != now.Spec.NodeName || before.Status.Phase != now.Status.Phase ||
		len(before.Status.Conditions) != len(now.Status.Conditions) {
		return true
	}
	kept, keeps := before.ObjectMeta, now.ObjectMeta
	kept.ResourceVersion, kept.Generation = "", 0
	keeps.ResourceVersion, keeps.Generation = "", 0
	same := equality.Semantic.DeepEqual
	return !same(before.Status, now.Status) || !same(kept, keeps) || !same(before.Spec, now.Spec)
}

// changesReady reports whether another number of a StatefulSet's pods is ready.
func changesReady(c Change) bool {
	before, was := c.Old.(*appsv1.StatefulSet)
	now, is := c.New.(*appsv1.StatefulSet)
	return was && is && before.Status.ReadyReplicas != now.Status.ReadyReplicas
}

// Controllers returns the names of the controllers of a kind that an object had before a change, and has now.
func Controllers(kind string) func(context.Context, client.Reader, Change) ([]types.NamespacedName, error) {
	return func(_ context.Context, _ client.Reader, c Change) ([]types.NamespacedName, error) {
		var names []types.NamespacedName
		for _, object := range []client.Object{c.Old, c.New} {
			if object == nil {
				continue
			}
			if owner := metav1.GetControllerOfNoCopy(object); owner != nil && owner.Kind == kind {
				names = append(names, types.NamespacedName{Namespace: object.GetNamespace(), Name: owner.Name})
			}
		}
		return names, nil
	}
}

// Owners returns the names of an object's owners of a kind.
func Owners(kind string, object client.Object) []types.NamespacedName {
	var names []types.NamespacedName
	for _, owner := range object.GetOwnerReferences() {
		if owner.Kind == kind {
			names = append(names, types.NamespacedName{Namespace: object.GetNamespace(), Name: owner.Name})
		}
	}
	return names
}

// ClusterOf returns the cluster that a pod's label names, with no more than its name where it is gone: jobs and services
// refer to such a one as well. It is the cache's own, and must not be changed.
func ClusterOf(ctx context.Context, cache client.Reader, pod client.Object) (*v1beta1.ComputeCluster, error) {
	cluster := &v1beta1.ComputeCluster{}
	name := types.NamespacedName{Namespace: pod.GetNamespace(), Name: pod.GetLabels()[v1beta1.LabelCluster]}
	if err := cache.Get(ctx, name, cluster, client.UnsafeDisableDeepCopy); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read ComputeCluster %s: %w", name, err)
	}
	cluster.Namespace, cluster.Name = name.Namespace, name.Name
	return cluster, nil
}
