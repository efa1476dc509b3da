package desired

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
)

// HeadPod returns the head's pod of an epoch, with what the installation gives every pod.
func (s Site) HeadPod(cluster *v1beta1.ComputeCluster, epoch int64) *corev1.Pod {
	laid := s.Under(cluster)
	head := pod.Head(laid, epoch)
	if !s.AssignsUsers {
		pod.GrantStore(laid, head)
	}
	return s.complete(head, cluster, laid, "")
}

// WorkerPod returns the pod of a slot of a group in an epoch, with what the installation gives every pod.
func (s Site) WorkerPod(cluster *v1beta1.ComputeCluster, group *v1beta1.WorkerGroup, slot int, epoch int64) *corev1.Pod {
	laid := s.Under(cluster)
	return s.complete(pod.Worker(laid, group, slot, epoch), cluster, laid, group.Name)
}

// complete adds the operator's containers to a pod of a cluster, which is laid over what the installation gives. The pod is judged later by what the cluster says alone: other defaults of the
// installation make it no pod out of date.
func (s Site) complete(made *corev1.Pod, cluster, laid *v1beta1.ComputeCluster, group string) *corev1.Pod {
	if laid != cluster {
		made.Annotations[v1beta1.AnnotationIntent] = pod.Intent(cluster, group)
		if group != "" {
			made.Annotations[v1beta1.AnnotationShape] = pod.Shape(cluster, group)
		}
	}
	return s.Image.AddCollector(s.Image.Complete(made, laid), laid, s.History)
}

// StoreSet returns what runs a managed Redis, with what the installation gives every pod and control store, and with TLS
// where it is encrypted. It is nil without a managed store.
func (s Site) StoreSet(cluster *v1beta1.ComputeCluster, encrypted bool) *appsv1.StatefulSet {
	laid := s.Sizes.Under(cluster)
	set := StoreSet(laid)
	if set == nil {
		return nil
	}
	set.Annotations[v1beta1.AnnotationIntent] = redisIntent(cluster, managed(cluster))
	pod.Place(&set.Spec.Template.Spec, s.PodDefaults)
	if s.AssignsUsers {
		security := set.Spec.Template.Spec.SecurityContext
		security.RunAsUser, security.RunAsGroup, security.FSGroup = nil, nil, nil
	}
	if encrypted {
		EncryptStore(set, laid, s)
	}
	return set
}
