package records

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/history/index"
	"github.com/heliostat-dev/heliostat/history/pack"
	pb "github.com/heliostat-dev/heliostat/proto/gen/heliostat/history/v1"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// containerRay is the container whose exit code a pod's row has.
const containerRay = "ray"

// podRow is what is kept of a pod of a cluster.
type podRow struct {
	Cluster  string `json:"cluster"`
	UID      string `json:"uid"`
	Name     string `json:"name"`
	Group    string `json:"group,omitempty"`
	Node     string `json:"node,omitempty"`
	Created  int64  `json:"created"`
	Ended    int64  `json:"ended,omitempty"`
	Reason   string `json:"reason,omitempty"`
	ExitCode int32  `json:"exitCode,omitempty"`
	// IsNodeLost is that the node went with the pod.
	IsNodeLost bool  `json:"isNodeLost,omitempty"`
	At         int64 `json:"at"`
}

// newPodRow returns the row of a pod of a cluster, and nil of another pod. isDeleted is that the pod is gone.
func newPodRow(pod *corev1.Pod, isDeleted bool, now int64) *podRow {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil || owner.Kind != kindCluster || pod.Labels[v1beta1.LabelCluster] != owner.Name {
		return nil
	}
	one := &podRow{
		Cluster: string(owner.UID), UID: string(pod.UID), Name: pod.Name, Group: shortened(pod.Labels[v1beta1.LabelGroup]), Node: pod.Spec.NodeName,
		Created: pod.CreationTimestamp.UnixMilli(), Reason: shortened(pod.Status.Reason), IsNodeLost: isNodeLost(pod), At: now,
	}
	if isDeleted || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		one.Ended = now
	}
	for i := range pod.Status.ContainerStatuses {
		container := &pod.Status.ContainerStatuses[i]
		if ended := container.State.Terminated; ended != nil && container.Name == containerRay {
			one.ExitCode = ended.ExitCode
			if one.Reason == "" {
				one.Reason = shortened(ended.Reason)
			}
		}
	}
	return one
}

// isNodeLost reports whether a pod went with its node: its kubelet was silent, or the node is gone.
func isNodeLost(pod *corev1.Pod) bool {
	if pod.Status.Reason == "NodeLost" {
		return true
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.DisruptionTarget && condition.Status == corev1.ConditionTrue && condition.Reason == "DeletionByPodGC" {
			return true
		}
		// The taint is that of a node that is not reachable, where no kubelet reported the end of the containers.
		if condition.Type == corev1.DisruptionTarget && condition.Reason == "DeletionByTaintManager" && hasRunning(pod) {
			return true
		}
	}
	return false
}

func hasRunning(pod *corev1.Pod) bool {
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].State.Running != nil {
			return true
		}
	}
	return false
}

// isUnhealthy reports whether a pod has ended, or a container of it has failed: then its events are of use.
func isUnhealthy(pod *corev1.Pod) bool {
	if pod.Status.Phase == corev1.PodFailed {
		return true
	}
	for i := range pod.Status.ContainerStatuses {
		container := &pod.Status.ContainerStatuses[i]
		waiting := container.State.Waiting
		if container.RestartCount > 0 || waiting != nil && (strings.HasSuffix(waiting.Reason, "BackOff") || strings.HasPrefix(waiting.Reason, "Err")) {
			return true
		}
	}
	return false
}

// after returns the row that holds after another one of the same pod.
func (p *podRow) after(before *podRow) *podRow {
	if before == nil {
		return p
	}
	newer, older := p, before
	if p.At < before.At {
		newer, older = before, p
	}
	one := *newer
	if older.Ended != 0 {
		one.Ended = older.Ended // its first end counts
	}
	one.IsNodeLost = one.IsNodeLost || older.IsNodeLost
	if one.Reason == "" {
		one.Reason, one.ExitCode = older.Reason, older.ExitCode
	}
	return &one
}

// ending returns how the pod ended, as archives count it.
func (p *podRow) ending() index.Ending {
	one := index.Ending{At: p.Ended, Reason: pack.Killed}
	if p.IsNodeLost {
		one.Reason = pack.NodeLost
	}
	return one
}

func (p *podRow) message() *pb.Pod {
	return &pb.Pod{
		Name: p.Name, Uid: p.UID, Group: p.Group, Node: p.Node, Created: p.Created, Ended: p.Ended, Reason: p.Reason, ExitCode: p.ExitCode,
	}
}
