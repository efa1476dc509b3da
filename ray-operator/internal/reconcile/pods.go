package reconcile

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// Epoch is which of its cluster's heads a pod is, 0 where someone changed its labels.
func Epoch(pod *corev1.Pod) int64 {
	number, err := strconv.ParseInt(pod.Labels[v1beta1.LabelEpoch], 10, 64)
	if err != nil {
		return 0
	}
	return number
}

// Ready reports whether a pod is, as the kubelet says.
func Ready(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// NodeReady returns the condition of a node that says whether its kubelet answers, nil where it has none.
func NodeReady(node *corev1.Node) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if condition := &node.Status.Conditions[i]; condition.Type == corev1.NodeReady {
			return condition
		}
	}
	return nil
}
