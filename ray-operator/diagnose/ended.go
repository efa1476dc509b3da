package diagnose

import (
	"cmp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// leaving finds a pod that was told to go and has not gone.
func leaving(pod *corev1.Pod, now time.Time) (reason.Finding, bool) {
	if !isOverdue(pod, now) {
		return reason.Finding{}, false
	}
	return reason.Terminating.Of(toldToGo(pod).UTC().Format(time.RFC3339), nodeOf(pod)), true
}

// isOverdue reports whether a pod was told to go and should have gone. Its timestamp lies at the end of the grace period.
func isOverdue(pod *corev1.Pod, now time.Time) bool {
	return pod.DeletionTimestamp != nil && now.Sub(pod.DeletionTimestamp.Time) >= terminatingAfter
}

// toldToGo returns when a pod that leaves was told to go.
func toldToGo(pod *corev1.Pod) time.Time {
	grace := time.Duration(0)
	if pod.DeletionGracePeriodSeconds != nil {
		grace = time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second
	}
	return pod.DeletionTimestamp.Add(-grace)
}

// disrupted is who sends a pod away, where Kubernetes says so.
func disrupted(pod *corev1.Pod, events []corev1.Event) (reason.Finding, bool) {
	target := condition(pod, corev1.DisruptionTarget)
	if target == nil || target.Status != corev1.ConditionTrue {
		return reason.Finding{}, false
	}
	node, words := nodeOf(pod), clean(target.Message, wordLength)
	switch target.Reason {
	case corev1.PodReasonPreemptionByScheduler:
		return reason.Preempted.Of(node, preemptor(events)), true
	case "DeletionByTaintManager":
		return reason.NodeLost.Of(node, "it has a NoExecute taint, as nodes get that do not answer"), true
	case "DeletionByPodGC":
		return reason.NodeLost.Of(node, "there is no such Node any more"), true
	case "EvictionByEvictionAPI":
		return reason.Evicted.Of(node, "by the eviction API, as kubectl drain and autoscalers do"), true
	default:
		return reason.Evicted.Of(node, words), true
	}
}

// preemptor is what took the place of a pod.
func preemptor(events []corev1.Event) string {
	for _, event := range byTime(events) {
		if by, ok := strings.CutPrefix(event.Message, "Preempted by "); ok && event.Reason == "Preempted" {
			by, _, _ = strings.Cut(by, " on node ")
			return "by " + clean(by, nameLength)
		}
	}
	return "by a pod of higher priority"
}

// finished is why a pod ended as a whole.
func finished(p *corev1.Pod, events []corev1.Event, architecture string) reason.Finding {
	node, words := nodeOf(p), clean(p.Status.Message, wordLength)
	switch why := p.Status.Reason; why {
	case "Evicted":
		return reason.Evicted.In(evictedFor(p.Status.Message)).Of(node, words)
	case "Preempting":
		return reason.Preempted.Of(node, "by the kubelet, for a critical pod")
	case "NodeLost":
		return reason.NodeLost.Of(node, cmp.Or(words, "it does not answer"))
	case "Terminated", "NodeShutdown":
		return reason.NodeLost.Of(node, "it shuts down")
	case "":
	default:
		if len(p.Status.ContainerStatuses) == 0 || strings.HasPrefix(why, "OutOf") || why == "UnexpectedAdmissionError" {
			return reason.NodeRefused.Of(node, clean(why, nameLength), words)
		}
	}
	if finding, ok := disrupted(p, events); ok {
		return finding
	}
	if finding, ok := Worst(containers(p, architecture, time.Time{})...); ok {
		return finding
	}
	return reason.PodFailed.Of(clean(cmp.Or(p.Status.Reason, string(p.Status.Phase)), nameLength) + after(": ", words))
}

// evictedFor is the kind of shortage for which the kubelet evicted a pod.
func evictedFor(message string) string {
	switch {
	case strings.Contains(message, `EmptyDir volume "`+naming.VolumeShared+`"`):
		return "shm"
	case strings.Contains(message, "ephemeral"), strings.Contains(message, "EmptyDir"), strings.Contains(message, "inodes"), strings.Contains(message, "DiskPressure"):
		return "storage"
	case strings.Contains(message, "memory"), strings.Contains(message, "MemoryPressure"):
		return "memory"
	default:
		return ""
	}
}

// unready is why a pod is not ready whose containers all are as they should be.
func unready(pod *corev1.Pod, now time.Time) reason.Finding {
	statuses := pod.Status.ContainerStatuses
	if len(statuses) == 0 && now.Sub(placed(pod)) >= kubeletAfter {
		return reason.NodeLost.Of(nodeOf(pod), "its kubelet has not taken the pod up")
	}
	for _, status := range statuses {
		if !status.Ready {
			return reason.ContainerCreating.Of(nodeOf(pod))
		}
	}
	if len(statuses) == 0 {
		return reason.ContainerCreating.Of(nodeOf(pod))
	}
	for _, gate := range pod.Spec.ReadinessGates {
		if !isTrue(pod, gate.ConditionType) {
			return reason.ReadinessGated.Of(clean(string(gate.ConditionType), nameLength))
		}
	}
	// Kubernetes changes only the pod's readiness when a node does not answer; what
	// the kubelet said of the containers last stays.
	return reason.NodeLost.Of(nodeOf(pod), "it does not answer, and Kubernetes calls its pods not ready")
}

func nodeOf(pod *corev1.Pod) string { return cmp.Or(pod.Spec.NodeName, "unknown") }
