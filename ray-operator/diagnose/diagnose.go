// Package diagnose finds why a pod is not ready and why a request was refused, for the operator, the server and the command line.
//
// In: a pod, its events where they are needed, the error of a refused request, and the time. Out: a finding of the catalogue
// with the one cause that a person would name first and what helps against it; and of many findings, the one to show.
// EventCache keeps the events of pods, which its caller reads.
//
// It is pure, it never fails, and it trusts nothing that it reads: texts come from registries, webhooks and the logs of users'
// programs. A finding has a bounded length and printable characters only, and does not change while the cause stays.
package diagnose

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// After these times a state that is normal at first is worth a word, or a look at the events.
const (
	// eventsAfter: an image that is on the node and volumes that mount take less.
	eventsAfter = 5 * time.Second
	// schedulerAfter: a scheduler that runs gives its verdict in far less.
	schedulerAfter = 30 * time.Second
	// kubeletAfter: a kubelet that runs takes a pod up within a second; after 40 s
	// Kubernetes itself calls a silent node unreachable.
	kubeletAfter = 40 * time.Second
	// startAfter: Ray starts in 5 to 30 s; the image is there and its container runs.
	startAfter = 2 * time.Minute
	// terminatingAfter the end of the grace period, which the kubelet keeps to the second.
	terminatingAfter = 30 * time.Second
)

// Pod is the one cause for which a pod is not ready, and false when it is ready or leaves
// as it should. The text does not name the pod. Events are those of the pod, in any
// order; none are needed where NeedsEvents says no.
func Pod(pod *corev1.Pod, events []corev1.Event, now time.Time) (reason.Finding, bool) {
	return PodOn("", pod, events, now)
}

// PodOn is Pod where the architecture of the pod's node is known, as Kubernetes writes it.
func PodOn(architecture string, pod *corev1.Pod, events []corev1.Event, now time.Time) (reason.Finding, bool) {
	finding, found := leaving(pod, now)
	switch {
	case found:
		return finding, true
	case pod.DeletionTimestamp != nil:
		return disrupted(pod, events)
	case isFinished(pod):
		return finished(pod, events, architecture), true
	case isTrue(pod, corev1.PodReady):
		return reason.Finding{}, false
	case pod.Spec.NodeName == "":
		return unscheduled(pod, now), true
	}
	finding, found = Worst(containers(pod, architecture, now)...)
	if found && finding.Severity() == reason.Warning {
		return finding, true
	}
	if making(pod) {
		if told, ok := eventful(pod, events); ok {
			return told, true
		}
	}
	if !found {
		finding = unready(pod, now)
	}
	return finding, true
}

// NeedsEvents reports whether Pod can say more when it is given the pod's events: on a node
// for some seconds, and a container is not made yet.
func NeedsEvents(pod *corev1.Pod, now time.Time) bool {
	due, ok := EventsDue(pod)
	return ok && !now.Before(due)
}

// EventsDue is when the events of a pod are worth a look if it stays as it is; ok is
// false where they never are.
func EventsDue(pod *corev1.Pod) (due time.Time, ok bool) {
	if pod.Spec.NodeName == "" || pod.DeletionTimestamp != nil || isFinished(pod) || !making(pod) {
		return time.Time{}, false
	}
	return placed(pod).Add(eventsAfter), true
}

// Since returns since when a pod is as it is, as far as its status says so.
func Since(pod *corev1.Pod, now time.Time) time.Time {
	if isOverdue(pod, now) {
		return toldToGo(pod)
	}
	kind := corev1.PodReady
	if pod.Spec.NodeName == "" {
		kind = corev1.PodScheduled
	}
	if found := condition(pod, kind); found != nil && !found.LastTransitionTime.IsZero() {
		return found.LastTransitionTime.Time
	}
	return pod.CreationTimestamp.Time
}

// Worst is the finding that a person should be told of first: by severity, then by its
// place in the catalogue, then by its text.
func Worst(findings ...reason.Finding) (reason.Finding, bool) {
	if len(findings) == 0 {
		return reason.Finding{}, false
	}
	return slices.MinFunc(findings, func(a, b reason.Finding) int {
		return cmp.Or(-cmp.Compare(a.Severity(), b.Severity()), cmp.Compare(a.Rank(), b.Rank()), cmp.Compare(a.Text, b.Text))
	}), true
}

// Group puts the findings of a group's workers into one: how many of the wanted workers
// have the cause that most of them have, of those that matter most. Workers that are
// ready have no finding.
func Group(name string, wanted int, findings []reason.Finding) (reason.Finding, bool) {
	count, same := map[string]int{}, map[string]int{}
	for _, f := range findings {
		count[f.Code]++
		same[f.Text]++
	}
	if len(findings) == 0 {
		return reason.Finding{}, false
	}
	chosen := slices.MinFunc(findings, func(a, b reason.Finding) int {
		return cmp.Or(
			-cmp.Compare(a.Severity(), b.Severity()), -cmp.Compare(count[a.Code], count[b.Code]), cmp.Compare(a.Rank(), b.Rank()),
			-cmp.Compare(same[a.Text], same[b.Text]), cmp.Compare(a.Text, b.Text),
		)
	})
	return chosen.About(fmt.Sprintf("%d of %d workers of %s", count[chosen.Code], max(wanted, count[chosen.Code]), name)), true
}

func isFinished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// placed is when the pod was given its node.
func placed(pod *corev1.Pod) time.Time {
	if scheduled := condition(pod, corev1.PodScheduled); scheduled != nil && !scheduled.LastTransitionTime.IsZero() {
		return scheduled.LastTransitionTime.Time
	}
	return pod.CreationTimestamp.Time
}

// making reports whether a container whose turn it is waits to be made.
func making(pod *corev1.Pod) bool {
	if len(pod.Status.ContainerStatuses) == 0 {
		return true // the kubelet has not spoken yet
	}
	for i := range pod.Spec.InitContainers {
		spec := &pod.Spec.InitContainers[i]
		status := statusOf(pod.Status.InitContainerStatuses, spec.Name)
		switch {
		case status == nil || creating(status.State):
			return true
		case status.State.Waiting != nil, status.State.Running != nil && !isSidecar(spec),
			status.State.Terminated != nil && status.State.Terminated.ExitCode != 0:
			return false // the others wait for this one
		}
	}
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return creating(s.State) })
}

// creating reports whether the kubelet is about to make a container: volumes, network, image.
func creating(state corev1.ContainerState) bool {
	return state.Running == nil && state.Terminated == nil &&
		(state.Waiting == nil || slices.Contains([]string{"", "ContainerCreating", "PodInitializing"}, state.Waiting.Reason))
}

func isSidecar(spec *corev1.Container) bool {
	return spec.RestartPolicy != nil && *spec.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

func statusOf(statuses []corev1.ContainerStatus, name string) *corev1.ContainerStatus {
	for i := range statuses {
		if statuses[i].Name == name {
			return &statuses[i]
		}
	}
	return nil
}

func condition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

func isTrue(pod *corev1.Pod, kind corev1.PodConditionType) bool {
	found := condition(pod, kind)
	return found != nil && found.Status == corev1.ConditionTrue
}

// RayStatus is the status of a pod's Ray container, nil before the kubelet told of it.
func RayStatus(pod *corev1.Pod) *corev1.ContainerStatus {
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].Name == v1beta1.ContainerRay {
			return &pod.Status.ContainerStatuses[i]
		}
	}
	return nil
}

// RayEnded is when a pod's Ray container last ended, by the clock of its node; zero if it
// never did.
func RayEnded(pod *corev1.Pod) time.Time {
	container := RayStatus(pod)
	switch {
	case container == nil:
		return time.Time{}
	case container.State.Terminated != nil:
		return container.State.Terminated.FinishedAt.Time
	case container.LastTerminationState.Terminated != nil:
		return container.LastTerminationState.Terminated.FinishedAt.Time
	default:
		return time.Time{}
	}
}
