package cluster

import (
	corev1 "k8s.io/api/core/v1"
)

// isUnstarted reports whether a pod is there to stay and its Ray container never ran, as where its image is misspelt or
// no node has room.
func (p Pod) isUnstarted() bool {
	return p.isStaying() && p.Status.Phase == corev1.PodPending && !p.hasRun()
}

// isCorrected reports whether a pod never started and the spec has changed since it was built. Nothing is lost with it,
// so it is replaced under every upgrade strategy.
func (i intents) isCorrected(p Pod) bool { return p.isUnstarted() && i.isOld(p) }
