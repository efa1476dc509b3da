package cluster

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/diagnose"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// Pod is a pod of the cluster with its place.
type Pod struct {
	*corev1.Pod
	At naming.Place
	// stray: it has lost its owner reference.
	stray bool
}

// Incarnation is a life of the cluster: the epoch is the head's, the session is that of the workers.
// They differ where a control store gave a later head the memory of an earlier one.
type Incarnation struct{ Epoch, Session int64 }

// hasPod reports whether a pod is of the incarnation.
func (t Incarnation) hasPod(p Pod) bool {
	if p.At.Group == "" {
		return p.At.Epoch == t.Epoch
	}
	return p.At.Epoch == t.Session
}

// isHead reports whether the pod was made as a head.
func (p Pod) isHead() bool { return p.Labels[v1beta1.LabelRole] == v1beta1.RoleHead }

// isTerminating reports whether a pod is on its way out.
func (p Pod) isTerminating() bool { return p.DeletionTimestamp != nil }

// hasFinished reports whether a pod has ended as a whole and will not run again.
func (p Pod) hasFinished() bool {
	return p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded
}

// hasAddress reports whether a pod can be reached. The address of one that has ended may be another's by now.
func (p Pod) hasAddress() bool { return p.Status.PodIP != "" && !p.hasFinished() }

// isDraining reports whether a pod is on its planned exit and still at work.
func (p Pod) isDraining() bool {
	return !p.isTerminating() && p.Annotations[v1beta1.AnnotationDrain] != ""
}

// isStaying reports whether a worker is one of those that its group has: it is there to stay.
func (p Pod) isStaying() bool { return !p.isTerminating() && !p.hasFinished() && !p.isDraining() }

// isReady reports whether the kubelet found the pod ready and it is not on its way out.
func (p Pod) isReady() bool {
	return !p.isTerminating() && !p.hasFinished() && p.trueCondition(corev1.PodReady) != nil
}

// readySince returns when the kubelet found the pod ready, zero if it did not or does not say.
func (p Pod) readySince() time.Time {
	if p.isReady() {
		return p.trueCondition(corev1.PodReady).LastTransitionTime.Time
	}
	return time.Time{}
}

// trueCondition returns the pod's condition of a type while it is True, else nil.
func (p Pod) trueCondition(kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range p.Status.Conditions {
		if found := &p.Status.Conditions[i]; found.Type == kind && found.Status == corev1.ConditionTrue {
			return found
		}
	}
	return nil
}

// hasStarted reports whether the pod's Ray container got through its startup probe.
func (p Pod) hasStarted() bool {
	container := diagnose.RayStatus(p.Pod)
	return container != nil && (container.Started != nil && *container.Started || container.RestartCount > 0)
}

// isHalted reports whether the pod's Ray container has ended and does not run now, as while the
// kubelet makes it wait before it starts it again.
func (p Pod) isHalted() bool {
	container := diagnose.RayStatus(p.Pod)
	return container != nil && container.State.Running == nil && !p.endedAt().IsZero()
}

// endedAt returns when the pod's Ray container last ended, zero if it never did.
func (p Pod) endedAt() time.Time { return diagnose.RayEnded(p.Pod) }

// headOf finds the pod that is, or was, the head of an epoch: one that stays, before
// one that has finished, before one that is leaving.
func headOf(pods []Pod, epoch int64) *Pod {
	var found *Pod
	rank := func(p *Pod) int {
		switch {
		case p == nil:
			return 0
		case p.isTerminating():
			return 1
		case p.hasFinished():
			return 2
		default:
			return 3
		}
	}
	for i := range pods {
		p := &pods[i]
		if p.At == (naming.Place{Epoch: epoch}) && p.isHead() && rank(p) > rank(found) {
			found = p
		}
	}
	return found
}
