package service

import (
	"slices"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
)

// hasLostPods reports whether workers of a version went, and others have yet to come in their place: ones that are
// deleted, evicted or on a node that is gone, as when a spot instance is reclaimed. That is no fault of what runs
// there. Where a container has ended by itself since that was asked for it may be, so then it is not that.
func hasLostPods(t traffic, version versionState) bool {
	cluster := version.cluster
	if cluster == nil {
		return false
	}
	there, lost := int32(0), false
	for _, pod := range cluster.Pods {
		switch {
		case pod.Labels[v1beta1.LabelRole] != v1beta1.RoleWorker:
		case hasCrashed(pod, version.At):
			return false
		case pod.DeletionTimestamp != nil, !reconcile.Ready(pod) && (t.hasRequests(pod) || pod.Annotations[v1beta1.AnnotationClosed] != ""):
			lost = true // it had requests, and is none that has yet to start
		default:
			there++
		}
	}
	return lost || there < workersOf(cluster)
}

// workersOf returns how many workers a cluster must have; 0 where its autoscaler decides.
func workersOf(cluster *Cluster) (count int32) {
	if cluster.Spec.Autoscaling != nil {
		return 0
	}
	for i := range cluster.Spec.WorkerGroups {
		if group := &cluster.Spec.WorkerGroups[i]; !ptr.Deref(group.Suspend, false) {
			count += or(group.Replicas, 0) * max(1, group.HostsPerReplica)
		}
	}
	return count
}

// hasCrashed reports whether a container of a pod ended by itself since a moment in Unix seconds, and not because
// somebody took the pod away.
func hasCrashed(pod *corev1.Pod, since int64) bool {
	disrupted := slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue
	})
	if disrupted || pod.DeletionTimestamp != nil {
		return false
	}
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
		return slices.ContainsFunc([]corev1.ContainerState{s.State, s.LastTerminationState}, func(state corev1.ContainerState) bool {
			return state.Terminated != nil && state.Terminated.FinishedAt.Unix() >= since
		})
	})
}
