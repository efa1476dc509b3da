package desired

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
)

// HeadPod returns the head's pod of an epoch, with what the installation gives every pod.
func (s Site) HeadPod(cluster *v1alpha1.ComputeCluster, epoch int64) *corev1.Pod {
	return s.complete(pod.Head(pod.Under(cluster, s.PodDefaults), epoch), cluster, "")
}

// WorkerPod returns the pod of a slot of a group in an epoch, with what the installation gives every pod.
func (s Site) WorkerPod(cluster *v1alpha1.ComputeCluster, group *v1alpha1.WorkerGroup, slot int, epoch int64) *corev1.Pod {
	return s.complete(pod.Worker(pod.Under(cluster, s.PodDefaults), group, slot, epoch), cluster, group.Name)
}

// complete adds the operator's containers. The pod is judged later by what the cluster says alone: other defaults of the
// installation make it no pod out of date.
func (s Site) complete(made *corev1.Pod, cluster *v1alpha1.ComputeCluster, group string) *corev1.Pod {
	if s.PodDefaults != nil {
		made.Annotations[v1alpha1.AnnotationIntent] = pod.Intent(cluster, group)
		if group != "" {
			made.Annotations[v1alpha1.AnnotationShape] = pod.Shape(cluster, group)
		}
	}
	return s.Image.Complete(made, cluster)
}
