package corpus

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
)

type row = Row[*v1beta1.ComputeCluster]

// Clusters are ComputeClusters, with one row or more for each side of each of their rules.
func Clusters() Kind[*v1beta1.ComputeCluster] {
	return newKind(Kind[*v1beta1.ComputeCluster]{
		Good: Good, Rows: slices.Concat(clusterRows, accessRows, reachRows, groupRows, autoscalingRows, scalerRows, schedulerRows, objectStoreRows, encryptionRows, controlStoreRows, claimRows, sharedVolumeRows, historyRows, nodeRows, templateRows, containerRows),
		kind: "ComputeCluster", pods: podsOf,
	})
}

// Good is a head and two groups with nothing else said.
func Good() *v1beta1.ComputeCluster {
	one := int32(1)
	return &v1beta1.ComputeCluster{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: "ComputeCluster"},
		ObjectMeta: metav1.ObjectMeta{Name: "demo"},
		Spec: v1beta1.ComputeClusterSpec{
			RayVersion: "2.60.0", WorkerGroups: []v1beta1.WorkerGroup{{Name: "cpu", Replicas: &one}, {Name: "gpu", Replicas: &one}},
		},
	}
}

// somePods is of how many groups an input has a worker.
const somePods = 3

// podsOf are the head, and one worker of each of the first groups.
func podsOf(cluster *v1beta1.ComputeCluster) []*corev1.Pod {
	cluster.UID = "11111111-1111-1111-1111-111111111111" // an owner needs one
	pods := []*corev1.Pod{pod.OperatorImage{Image: "operator"}.Complete(pod.Head(cluster, 1), cluster)}
	for i := range cluster.Spec.WorkerGroups[:min(somePods, len(cluster.Spec.WorkerGroups))] {
		pods = append(pods, pod.Worker(cluster, &cluster.Spec.WorkerGroups[i], 0, 1))
	}
	return pods
}
