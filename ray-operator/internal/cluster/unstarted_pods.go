package cluster

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// firstLook is within what time of a pod's start the kubelet first says that it is not ready, in whole seconds.
const firstLook = 2 * time.Second

// isUnstarted reports whether a pod is there to stay and its Ray container never ran, as where its image is misspelt or
// no node has room, or ended before it was ever ready, as where the image has no Ray.
func (p Pod) isUnstarted() bool {
	return p.isStaying() && (p.Status.Phase == corev1.PodPending && !p.hasRun() || p.isHalted() && p.wasNeverReady())
}

// wasNeverReady reports whether the kubelet has found a pod unready since it first saw it. It never counts what a pod
// that was ready says, even if it was for a moment only.
func (p Pod) wasNeverReady() bool {
	for i := range p.Status.Conditions {
		if found := &p.Status.Conditions[i]; found.Type == corev1.PodReady && p.Status.StartTime != nil {
			return found.Status != corev1.ConditionTrue && !found.LastTransitionTime.IsZero() &&
				!found.LastTransitionTime.After(p.Status.StartTime.Add(firstLook))
		}
	}
	return false
}

// isCorrected reports whether a pod never started and the spec has changed since it was built. Nothing is lost with it,
// so it is replaced under every upgrade strategy.
func (i intents) isCorrected(p Pod) bool { return p.isUnstarted() && i.isOld(p) }
