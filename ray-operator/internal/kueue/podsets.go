package kueue

import (
	"fmt"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// MostPodSets is how many sets Kueue takes in a Workload.
const MostPodSets = 8

// headSet is the name of the set of the head.
const headSet = "head"

// workerSets begins the names of the sets of groups.
const workerSets = "workers-"

// PodSetOf returns the name of the set that the pods of a group are in, or the head's under "".
func PodSetOf(group string) string {
	if group == "" {
		return headSet
	}
	return workerSets + group
}

// For returns the Workload that an object of a kind must have for the pods of a cluster: itself, or the one that it makes.
// installed is what lies under every cluster.
func For(kind string, object metav1.Object, cluster *v1beta1.ComputeCluster, installed *pod.Installed) *Workload {
	own := podSets(cluster)
	laid, sets := installed.Under(cluster), own
	if laid != cluster {
		sets = podSets(laid)
	}
	return &Workload{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: object.GetNamespace(), Name: naming.Workload(kind, object.GetName(), object.GetUID()),
			Labels: map[string]string{LabelOwner: kind}, Annotations: map[string]string{annotationAsks: asksOf(own)},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(object, v1beta1.GroupVersion.WithKind(kind))},
		},
		Spec: WorkloadSpec{QueueName: QueueOf(object), PodSets: sets},
	}
}

// asksOf returns a hash of what a cluster asks for by itself, in its pod sets.
func asksOf(sets []PodSet) string {
	hash, _ := naming.ObjectHash(sets) // pod sets always marshal
	return hash
}

// podSets are those of a cluster, each as large as it can become: the quota then holds whatever is scaled.
func podSets(cluster *v1beta1.ComputeCluster) []PodSet {
	sets := []PodSet{{Name: headSet, Count: 1, Template: template(cluster, pod.Head(cluster, 1), "")}}
	for i := range cluster.Spec.WorkerGroups {
		group := &cluster.Spec.WorkerGroups[i]
		if count := most(cluster, group); count > 0 {
			worker := pod.Worker(cluster, group, 0, 1)
			sets = append(sets, PodSet{Name: PodSetOf(group.Name), Count: count, Template: template(cluster, worker, group.Name)})
		}
	}
	return sets
}

// most is how many pods a group has at most.
func most(cluster *v1beta1.ComputeCluster, group *v1beta1.WorkerGroup) int32 {
	replicas := int32(pod.Replicas(cluster, group))
	switch {
	case ptr.Deref(group.Suspend, false):
		return 0
	case cluster.Spec.Autoscaling != nil && group.MaxReplicas != nil:
		replicas = *group.MaxReplicas
	}
	return replicas * int32(pod.Hosts(group))
}

// Admitted returns how many pods of a set the Workload has quota for, false while it has none.
func (w *Workload) Admitted(set string) (int, bool) {
	if w == nil || w.Status.Admission == nil {
		return 0, false
	}
	for _, asked := range w.Spec.PodSets {
		if asked.Name == set {
			return int(asked.Count), true
		}
	}
	return 0, true
}

// template is what Kueue goes by of a pod: what it asks for as a whole, and which nodes it can be on.
func template(cluster *v1beta1.ComputeCluster, made *corev1.Pod, group string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		Containers:       containers(pod.Requests(cluster, group)),
		NodeSelector:     made.Spec.NodeSelector,
		Affinity:         made.Spec.Affinity,
		Tolerations:      made.Spec.Tolerations,
		RuntimeClassName: made.Spec.RuntimeClassName,
	}}
}

// containers is the one container of a set's template, which asks for all that a pod asks for.
func containers(asks corev1.ResourceList) []corev1.Container {
	return []corev1.Container{{Name: v1beta1.ContainerRay, Resources: corev1.ResourceRequirements{Requests: asks}}}
}

// Refusal is why Kueue would not take a Workload, empty if it would.
func (w *Workload) Refusal() string {
	if sets := len(w.Spec.PodSets); sets > MostPodSets {
		return fmt.Sprintf("Kueue takes at most %d pod sets, and the head and its worker groups are %d", MostPodSets, sets)
	}
	return ""
}
