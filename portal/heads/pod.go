package heads

import (
	"net"
	"net/netip"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// Ports of a head's dashboard. A head with encryption takes HTTPS on the second, and nothing on the first.
const (
	portDashboard    = 8265
	portDashboardTLS = 8266
)

// epoch is the number of a head, from 1; 0 of a pod that has none.
func epoch(pod *corev1.Pod) int64 {
	number, err := strconv.ParseInt(pod.Labels[v1beta1.LabelEpoch], 10, 64)
	if err != nil {
		return 0
	}
	return number
}

// isHead reports whether a pod is a head that the operator made for a cluster. Every author of pods can set labels, so
// the owner counts, the name that follows from cluster and epoch, and that the cluster has come to that epoch.
func isHead(cluster *v1beta1.ComputeCluster, pod *corev1.Pod) bool {
	number := epoch(pod)
	return pod.Namespace == cluster.Namespace && naming.IsOwned(pod, cluster.UID) &&
		pod.Labels[v1beta1.LabelRole] == v1beta1.RoleHead && number > 0 &&
		(cluster.Status.Epoch == 0 || number <= cluster.Status.Epoch) &&
		pod.Name == naming.Pod(cluster.Name, cluster.UID, naming.Place{Epoch: number})
}

// isOver reports whether a pod has ended, or is about to.
func isOver(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// runsRay reports whether the Ray container of a pod runs.
func runsRay(pod *corev1.Pod) bool {
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].Name == v1beta1.ContainerRay {
			return pod.Status.ContainerStatuses[i].State.Running != nil
		}
	}
	return false
}

// IsReady reports whether a pod is ready, as the kubelet says.
func IsReady(pod *corev1.Pod) bool {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == corev1.PodReady {
			return pod.Status.Conditions[i].Status == corev1.ConditionTrue
		}
	}
	return false
}

// isEncrypted reports whether a pod was made with encryption.
func isEncrypted(pod *corev1.Pod) bool {
	return pod.Annotations[v1beta1.AnnotationEncryption] == string(v1beta1.Enabled)
}

// address is the host:port of a head's dashboard; false while it has none, or one that is never a pod's.
func address(pod *corev1.Pod) (string, bool) {
	ip, err := netip.ParseAddr(pod.Status.PodIP)
	if err != nil || ip.Zone() != "" || ip.IsLoopback() || ip.IsUnspecified() || ip.IsMulticast() || ip.IsLinkLocalUnicast() {
		return "", false
	}
	port := portDashboard
	if isEncrypted(pod) {
		port = portDashboardTLS
	}
	return net.JoinHostPort(ip.String(), strconv.Itoa(port)), true
}
