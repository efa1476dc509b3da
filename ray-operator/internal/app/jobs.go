package app

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/index"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/job"
)

// waker finds the jobs to look at when something else has changed.
type waker struct {
	jobs  client.Reader
	clock clock.PassiveClock
	// known says where there are jobs at all.
	known *census
}

// on are the jobs that refer to a cluster.
func (w waker) on(ctx context.Context, cluster types.NamespacedName) []v1alpha1.ClusterJob {
	var list v1alpha1.ClusterJobList
	err := w.jobs.List(ctx, &list, client.InNamespace(cluster.Namespace), client.MatchingFields{index.Cluster: cluster.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		log.FromContext(ctx).Error(err, "cannot tell which jobs refer to a ComputeCluster", "cluster", cluster)
	}
	return list.Items
}

// jobsOfCluster wakes the job that a cluster was made for, and those that refer to it and
// have not ended.
func (w waker) jobsOfCluster() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, cluster client.Object) []reconcile.Request {
		if !w.known.has(cluster.GetNamespace()) {
			return nil
		}
		return w.using(ctx, cluster.GetNamespace(), cluster.GetName(), cluster.GetOwnerReferences())
	})
}

func (w waker) using(ctx context.Context, namespace, cluster string, owners []metav1.OwnerReference) []reconcile.Request {
	var requests []reconcile.Request
	for _, owner := range owners {
		if owner.Kind == "ClusterJob" {
			requests = append(requests, request(namespace, owner.Name))
		}
	}
	jobs := w.on(ctx, types.NamespacedName{Namespace: namespace, Name: cluster})
	for i := range jobs {
		if jobs[i].Status.EndTime == nil {
			requests = append(requests, request(namespace, jobs[i].Name))
		}
	}
	return requests
}

func request(namespace, name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}

// jobsOfHead wakes the jobs that use the cluster of a head pod.
func (w waker) jobsOfHead() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, pod client.Object) []reconcile.Request {
		if !w.known.has(pod.GetNamespace()) {
			return nil
		}
		name := types.NamespacedName{Namespace: pod.GetNamespace(), Name: pod.GetLabels()[v1alpha1.LabelCluster]}
		var cluster v1alpha1.ComputeCluster
		if err := w.jobs.Get(ctx, name, &cluster, client.UnsafeDisableDeepCopy); client.IgnoreNotFound(err) != nil {
			log.FromContext(ctx).Error(err, "cannot tell whose head a pod is", "pod", client.ObjectKeyFromObject(pod))
		}
		return w.using(ctx, name.Namespace, name.Name, cluster.OwnerReferences)
	})
}

// clusterOfJob wakes the cluster that a job refers to: it may be suspended for being idle,
// or about to be. A deletion is such a change too.
func clusterOfJob() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
		if job, ok := obj.(*v1alpha1.ClusterJob); ok && job.Spec.ClusterRef != nil {
			return []reconcile.Request{request(job.Namespace, job.Spec.ClusterRef.Name)}
		}
		return nil
	})
}

// whatHeadsTell lets heads through when they come, go, get an address, or turn ready.
func whatHeadsTell() predicate.Predicate {
	head := predicate.NewPredicateFuncs(func(pod client.Object) bool { return pod.GetLabels()[v1alpha1.LabelRole] == v1alpha1.RoleHead })
	return predicate.And(head, predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, was := e.ObjectOld.(*corev1.Pod)
		now, is := e.ObjectNew.(*corev1.Pod)
		return was && is && (before.Status.PodIP != now.Status.PodIP || before.Status.Phase != now.Status.Phase ||
			ready(before) != ready(now) || (before.DeletionTimestamp == nil) != (now.DeletionTimestamp == nil))
	}})
}

func ready(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == corev1.PodReady {
			return pod.Status.Conditions[i].Status == corev1.ConditionTrue
		}
	}
	return false
}

// nextInLine wakes the first of those that wait for a cluster when one of its jobs took a
// place there or gave one back.
func (w waker) nextInLine() handler.EventHandler {
	wake := func(ctx context.Context, obj client.Object, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
		changed, ok := obj.(*v1alpha1.ClusterJob)
		if !ok || changed.Spec.ClusterRef == nil {
			return
		}
		name := types.NamespacedName{Namespace: changed.Namespace, Name: changed.Spec.ClusterRef.Name}
		var cluster v1alpha1.ComputeCluster
		if err := w.jobs.Get(ctx, name, &cluster); err != nil || cluster.Spec.MaxConcurrentJobs == nil {
			return // none waits in the queue
		}
		jobs := w.on(ctx, name)
		for _, name := range job.Next(jobs, w.clock.Now()) {
			queue.Add(reconcile.Request{NamespacedName: name})
		}
	}
	return handler.Funcs{
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			before, was := e.ObjectOld.(*v1alpha1.ClusterJob)
			now, is := e.ObjectNew.(*v1alpha1.ClusterJob)
			if was && is && job.Holds(before) != job.Holds(now) {
				wake(ctx, now, queue)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			wake(ctx, e.Object, queue)
		},
	}
}
