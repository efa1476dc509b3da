package phases

import (
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/apiserver/explain"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// wayOfCluster is that of the current epoch.
func wayOfCluster(cluster *v1beta1.ComputeCluster, in explain.Input) way {
	conditions := cluster.Status.Conditions
	w := begin(&cluster.ObjectMeta, conditions, cluster.Status.Phase)
	ready := meta.FindStatusCondition(conditions, v1beta1.ConditionReady)
	readySince, isReady := since(conditions, v1beta1.ConditionReady)
	if cluster.Status.Epoch > 1 {
		w.began = time.Time{} // a later head is made when the one before is lost, or the cluster is resumed
		if ready != nil && ready.Status == metav1.ConditionFalse {
			w.began = ready.LastTransitionTime.Time
		}
	}
	headSince, hasHead := since(conditions, v1beta1.ConditionHeadReady)
	workersSince, hasWorkers := since(conditions, v1beta1.ConditionWorkersReady)
	made, isMade := headMade(cluster, in.Pods)
	scheduled, isScheduled := headScheduled(cluster, in.Pods)
	w.steps = []step{
		{name: Accepted, isDone: isReady || hasHead || isScheduled || isMade, until: made},
		{name: HeadScheduled, isDone: isReady || hasHead || isScheduled, until: scheduled},
		{name: HeadReady, isDone: isReady || hasHead, until: headSince},
	}
	if len(cluster.Spec.WorkerGroups) > 0 {
		w.steps = append(w.steps, step{name: WorkersReady, isDone: isReady || hasWorkers, until: workersSince})
	}
	w.steps = append(w.steps, step{name: Ready, isDone: isReady, since: readySince})
	return w
}

// headOf is the cluster's head pod: the one that the status names, or else the newest.
func headOf(cluster *v1beta1.ComputeCluster, pods []*corev1.Pod) *corev1.Pod {
	var newest *corev1.Pod
	var best int64
	for _, pod := range pods {
		if !isHeadOf(cluster, pod) {
			continue
		}
		if head := cluster.Status.Head; head != nil && head.UID != "" && head.UID == pod.UID {
			return pod
		}
		epoch, _ := strconv.ParseInt(pod.Labels[v1beta1.LabelEpoch], 10, 64) // 0 without one
		if newest == nil || epoch > best || epoch == best && pod.Name < newest.Name {
			newest, best = pod, epoch
		}
	}
	return newest
}

// isHeadOf reports whether a pod is a head of a cluster and stays.
func isHeadOf(cluster *v1beta1.ComputeCluster, pod *corev1.Pod) bool {
	if pod == nil || pod.DeletionTimestamp != nil || cluster.UID == "" {
		return false
	}
	isHead := pod.Namespace == cluster.Namespace && pod.Labels[v1beta1.LabelRole] == v1beta1.RoleHead
	return isHead && slices.ContainsFunc(pod.OwnerReferences, func(owner metav1.OwnerReference) bool {
		return owner.UID == cluster.UID && owner.Controller != nil && *owner.Controller
	})
}

// headMade is when the head pod was made.
func headMade(cluster *v1beta1.ComputeCluster, pods []*corev1.Pod) (at time.Time, ok bool) {
	if pod := headOf(cluster, pods); pod != nil {
		return pod.CreationTimestamp.Time, true
	}
	head := cluster.Status.Head
	if head == nil || head.CreationTime == nil {
		return time.Time{}, head != nil
	}
	return head.CreationTime.Time, true
}

// headScheduled is when the head pod was given its node.
func headScheduled(cluster *v1beta1.ComputeCluster, pods []*corev1.Pod) (at time.Time, ok bool) {
	pod := headOf(cluster, pods)
	if pod == nil {
		return time.Time{}, cluster.Status.Head != nil && cluster.Status.Head.NodeName != ""
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionTrue {
			return condition.LastTransitionTime.Time, true
		}
	}
	return time.Time{}, pod.Spec.NodeName != ""
}
