package cluster

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/diagnose"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/scale"
)

const (
	// firstRetry is the least time between a pod's making and its replacement when it ended as a whole, and
	// longestRetry the longest: it doubles with each pod that ends soon in place of one that did.
	firstRetry, longestRetry = 10 * time.Second, 5 * time.Minute
	// soon is how much longer than that pause a pod lived at most that ended soon.
	soon = time.Minute
)

// retryAfter returns the least time between a pod's making and its replacement after so many failures.
func retryAfter(failures int) time.Duration {
	return min(firstRetry<<min(max(failures, 0), 10), longestRetry)
}

// replaceableIn returns how long a finished pod stays before it is replaced, where so many before it ended soon. One
// that was built from an earlier spec does not wait: the spec may be what was wrong.
func replaceableIn(s situation, of Pod, failures int) time.Duration {
	pause := retryAfter(failures)
	if s.intents.isOld(of) {
		pause = firstRetry
	}
	return max(0, of.CreationTimestamp.Add(pause).Sub(s.now))
}

// countFailures counts a finished pod that ended soon after it got its node with those before it, and is 0 for one that
// lived longer.
func countFailures(s situation, of Pod, before int) int {
	since := of.CreationTimestamp.Time
	if scheduled := of.trueCondition(corev1.PodScheduled); scheduled != nil {
		since = scheduled.LastTransitionTime.Time
	}
	if !of.hasFinished() || s.now.Sub(since) >= retryAfter(before)+soon {
		return 0
	}
	return before + 1
}

// failureCount counts those before a worker that ended soon. Text that is no number counts as none.
func (p Pod) failureCount() int {
	count, err := strconv.Atoi(p.Annotations[v1beta1.AnnotationFailures])
	if err != nil {
		return 0
	}
	return max(0, count)
}

// hasRun reports whether a pod's Ray container ever ran. A kubelet that refuses a pod runs none.
func (p Pod) hasRun() bool {
	container := diagnose.RayStatus(p.Pod)
	return container != nil && (container.State.Running != nil || container.RestartCount > 0 || !p.endedAt().IsZero())
}

// noteFailures notes on workers that are made in place of some that ended soon how many did.
func noteFailures(s situation, m *members, broken []scale.Slot, made []*corev1.Pod) {
	failures := 0
	for _, slot := range broken {
		worker := m.bySlot[slot.Index]
		failures = max(failures, countFailures(s, worker, worker.failureCount()))
	}
	if failures == 0 {
		return
	}
	for _, pod := range made[:min(len(broken), len(made))] {
		pod.Annotations[v1beta1.AnnotationFailures] = strconv.Itoa(failures)
	}
}
