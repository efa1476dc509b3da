package explain

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// terminatingAfter is for how long after its grace period a pod may still be there before that is worth a word.
const terminatingAfter = 30 * time.Second

// waiting is why a pod is not ready, as far as the pod says so itself; found is false when it is ready, or leaves as it
// should. It names fewer causes than the operator, who reads the pod's events: better prefers what the status says.
func waiting(pod *corev1.Pod, now time.Time) (finding reason.Finding, found bool) {
	switch {
	case pod.DeletionTimestamp != nil:
		if now.Sub(pod.DeletionTimestamp.Time) < terminatingAfter {
			return reason.Finding{}, false
		}
		return reason.Terminating.Of(toldToGo(pod).UTC().Format(time.RFC3339), nodeOf(pod)), true
	case pod.Status.Phase == corev1.PodFailed, pod.Status.Phase == corev1.PodSucceeded:
		return ended(pod), true
	case isTrue(pod, corev1.PodReady):
		return reason.Finding{}, false
	case pod.Spec.NodeName == "":
		return unscheduled(pod), true
	}
	if finding, found = worst(containersOf(pod, now)); found {
		return finding, true
	}
	return unready(pod), true
}

// toldToGo is when a pod was told to go. Its timestamp lies at the end of the grace period.
func toldToGo(pod *corev1.Pod) time.Time {
	grace := time.Duration(0)
	if pod.DeletionGracePeriodSeconds != nil {
		grace = time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second
	}
	return pod.DeletionTimestamp.Add(-grace)
}

// sinceOf is since when a pod is as it is.
func sinceOf(pod *corev1.Pod, now time.Time) time.Time {
	if pod.DeletionTimestamp != nil && now.Sub(pod.DeletionTimestamp.Time) >= terminatingAfter {
		return toldToGo(pod)
	}
	kind := corev1.PodReady
	if pod.Spec.NodeName == "" {
		kind = corev1.PodScheduled
	}
	if found := conditionOf(pod, kind); found != nil && !found.LastTransitionTime.IsZero() {
		return found.LastTransitionTime.Time
	}
	return pod.CreationTimestamp.Time
}

// ended is why a pod ended as a whole.
func ended(pod *corev1.Pod) reason.Finding {
	node := nodeOf(pod)
	switch why := pod.Status.Reason; why {
	case "Evicted":
		return reason.Evicted.Of(node, pod.Status.Message)
	case "Preempting":
		return reason.Preempted.Of(node, "by the kubelet, for a critical pod")
	case "NodeLost", "Terminated", "NodeShutdown":
		return reason.NodeLost.Of(node, cmp.Or(pod.Status.Message, why))
	case "UnexpectedAdmissionError":
		return reason.NodeRefused.Of(node, why, pod.Status.Message)
	default:
		if strings.HasPrefix(why, "OutOf") {
			return reason.NodeRefused.Of(node, why, pod.Status.Message)
		}
	}
	if finding, found := worst(containersOf(pod, time.Time{})); found {
		return finding
	}
	return reason.PodFailed.Of(cmp.Or(pod.Status.Message, pod.Status.Reason, string(pod.Status.Phase)))
}

// unscheduled is why a pod has no node.
func unscheduled(pod *corev1.Pod) reason.Finding {
	verdict := conditionOf(pod, corev1.PodScheduled)
	switch {
	case len(pod.Spec.SchedulingGates) > 0:
		return reason.SchedulingGated.Of(pod.Spec.SchedulingGates[0].Name)
	case verdict == nil || verdict.Status != corev1.ConditionFalse:
		return reason.Scheduling.Of()
	case pod.Status.NominatedNodeName != "":
		return reason.Preempting.Of(pod.Status.NominatedNodeName)
	default:
		words, _, _ := strings.Cut(verdict.Message, " preemption: ")
		return reason.Unschedulable.Of(strings.TrimSuffix(words, "."))
	}
}

// unready is why a pod is not ready whose containers are all as they should be.
func unready(pod *corev1.Pod) reason.Finding {
	statuses := pod.Status.ContainerStatuses
	if len(statuses) == 0 || slices.ContainsFunc(statuses, func(s corev1.ContainerStatus) bool { return !s.Ready }) {
		return reason.ContainerCreating.Of(nodeOf(pod))
	}
	for _, gate := range pod.Spec.ReadinessGates {
		if !isTrue(pod, gate.ConditionType) {
			return reason.ReadinessGated.Of(string(gate.ConditionType))
		}
	}
	// Kubernetes changes only the pod's readiness when a node does not answer.
	return reason.NodeLost.Of(nodeOf(pod), "it does not answer, and Kubernetes calls its pods not ready")
}

func nodeOf(pod *corev1.Pod) string { return cmp.Or(pod.Spec.NodeName, "unknown") }

func conditionOf(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

func isTrue(pod *corev1.Pod, kind corev1.PodConditionType) bool {
	found := conditionOf(pod, kind)
	return found != nil && found.Status == corev1.ConditionTrue
}

// worst is the finding that a person should be told of first, as the operator chooses it.
func worst(all []reason.Finding) (reason.Finding, bool) {
	if len(all) == 0 {
		return reason.Finding{}, false
	}
	return slices.MinFunc(all, func(a, b reason.Finding) int {
		return cmp.Or(-cmp.Compare(a.Severity(), b.Severity()), cmp.Compare(a.Rank(), b.Rank()), cmp.Compare(a.Text, b.Text))
	}), true
}
