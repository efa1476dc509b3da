package testkit

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/index"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/job"
)

// jobsOf are the jobs to look at after an event, as the operator's watches say.
func (w *World) jobsOf(event Event) []types.NamespacedName {
	switch obj := event.Object.(type) {
	case *v1alpha1.ClusterJob:
		return append(w.nextInLine(event, obj), client.ObjectKeyFromObject(obj))
	case *v1alpha1.ComputeCluster:
		return w.using(client.ObjectKeyFromObject(obj), obj.OwnerReferences)
	case *corev1.Pod:
		if !headTells(event, obj) {
			return nil
		}
		name := types.NamespacedName{Namespace: obj.Namespace, Name: obj.Labels[v1alpha1.LabelCluster]}
		var cluster v1alpha1.ComputeCluster
		w.Must(client.IgnoreNotFound(w.view.Get(w.Ctx, name, &cluster)))
		return w.using(name, cluster.OwnerReferences)
	default:
		return nil
	}
}

// using are the job that a cluster was made for, and those that refer to it and have not
// ended.
func (w *World) using(cluster types.NamespacedName, owners []metav1.OwnerReference) []types.NamespacedName {
	var names []types.NamespacedName
	for _, owner := range owners {
		if owner.Kind == jobKind {
			names = append(names, types.NamespacedName{Namespace: cluster.Namespace, Name: owner.Name})
		}
	}
	jobs := w.referring(cluster)
	for i := range jobs {
		if jobs[i].Status.EndTime == nil {
			names = append(names, client.ObjectKeyFromObject(&jobs[i]))
		}
	}
	return names
}

// referring are the jobs that refer to a cluster.
func (w *World) referring(cluster types.NamespacedName) []v1alpha1.ClusterJob {
	var list v1alpha1.ClusterJobList
	w.Must(w.view.List(w.Ctx, &list, client.InNamespace(cluster.Namespace), client.MatchingFields{index.Cluster: cluster.Name}))
	return list.Items
}

// headTells reports whether an event of a pod is one of a head that comes, goes, gets an
// address, or turns ready.
func headTells(event Event, now *corev1.Pod) bool {
	if now.Labels[v1alpha1.LabelRole] != v1alpha1.RoleHead {
		return false
	}
	before, was := event.Was.(*corev1.Pod)
	return !was || event.Type == watch.Deleted || before.Status.PodIP != now.Status.PodIP || before.Status.Phase != now.Status.Phase ||
		isReady(before) != isReady(now) || (before.DeletionTimestamp == nil) != (now.DeletionTimestamp == nil)
}

// nextInLine are the first of those that wait for a cluster when one of its jobs took a place
// there or gave one back.
func (w *World) nextInLine(event Event, changed *v1alpha1.ClusterJob) []types.NamespacedName {
	before, was := event.Was.(*v1alpha1.ClusterJob)
	moved := event.Type == watch.Deleted || was && job.Holds(before) != job.Holds(changed)
	if !moved || changed.Spec.ClusterRef == nil {
		return nil
	}
	name := types.NamespacedName{Namespace: changed.Namespace, Name: changed.Spec.ClusterRef.Name}
	var cluster v1alpha1.ComputeCluster
	if w.view.Get(w.Ctx, name, &cluster) != nil || cluster.Spec.MaxConcurrentJobs == nil {
		return nil
	}
	return job.Next(w.referring(name), w.Clock.Now())
}

// clusterOfJob is the cluster that a job refers to, where the job comes, goes or is edited: it
// may be suspended for being idle, or about to be.
func (w *World) clusterOfJob(event Event) []types.NamespacedName {
	changed, ok := event.Object.(*v1alpha1.ClusterJob)
	if !ok || changed.Spec.ClusterRef == nil {
		return nil
	}
	before, was := event.Was.(*v1alpha1.ClusterJob)
	if was && event.Type != watch.Deleted && before.Generation == changed.Generation && (before.DeletionTimestamp == nil) == (changed.DeletionTimestamp == nil) {
		return nil
	}
	return []types.NamespacedName{{Namespace: changed.Namespace, Name: changed.Spec.ClusterRef.Name}}
}
