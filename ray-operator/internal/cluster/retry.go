package cluster

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/diagnose"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/scale"
)

const (
	// firstRetry is the least time between a pod's making and its replacement when it ended as a whole, and
	// longestRetry the longest: it doubles with each pod that ends soon in place of one that did.
	firstRetry, longestRetry = 10 * time.Second, 5 * time.Minute
	// soon is how much longer than that pause a pod lived at most that ended soon.
	soon = time.Minute
)

// retryAfter is the least time between a pod's making and its replacement after so many failures.
func retryAfter(failures int) time.Duration {
	return min(firstRetry<<min(max(failures, 0), 10), longestRetry)
}

// replaceable tells how long a finished pod stays before it is replaced, where so many before it ended soon. One that
// was built from an earlier spec does not wait: the spec may be what was wrong.
func (p *planner) replaceable(of Pod, failures int) time.Duration {
	pause := retryAfter(failures)
	if p.intents.isOld(of) {
		pause = firstRetry
	}
	return max(0, of.CreationTimestamp.Add(pause).Sub(p.now))
}

// failures counts a finished pod that ended soon after it got its node with those before it, and is 0 for one that
// lived longer.
func (p *planner) failures(of Pod, before int) int {
	since := of.CreationTimestamp.Time
	if scheduled := of.condition(corev1.PodScheduled); scheduled != nil {
		since = scheduled.LastTransitionTime.Time
	}
	if !of.finished() || p.now.Sub(since) >= retryAfter(before)+soon {
		return 0
	}
	return before + 1
}

// failures counts those before a worker that ended soon. Text that is no number counts as none.
func (p Pod) failures() int {
	count, err := strconv.Atoi(p.Annotations[v1alpha1.AnnotationFailures])
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

// unjoined reports whether a head never ran, so that no worker has joined it and all may wait for the next one.
func (p *planner) unjoined() bool {
	if p.head == nil || p.head.hasRun() || p.failures(*p.head, p.Failures) == 0 {
		return false
	}
	for _, worker := range p.seen.Pods {
		if worker.At.Group == "" || !p.has(worker) {
			continue
		}
		status := diagnose.RayStatus(worker.Pod)
		if worker.ready() || status != nil && status.Started != nil && *status.Started {
			return false
		}
	}
	return true
}

// count notes on workers that are made in place of some that ended soon how many did.
func (p *planner) count(m *members, broken []scale.Slot, made []*corev1.Pod) {
	failures := 0
	for _, slot := range broken {
		worker := m.bySlot[slot.Index]
		failures = max(failures, p.failures(worker, worker.failures()))
	}
	if failures == 0 {
		return
	}
	for _, pod := range made[:min(len(broken), len(made))] {
		pod.Annotations[v1alpha1.AnnotationFailures] = strconv.Itoa(failures)
	}
}
