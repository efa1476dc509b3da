package reconcile

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// overdue is for how long beyond its grace period a terminating pod is waited for, once its
	// node does not answer: a kubelet that comes back ends it in that time.
	overdue = 30 * time.Second
	// overdueUnseen is the same where nobody may read nodes, and it may be the kubelet that is slow.
	overdueUnseen = 5 * time.Minute
)

// Stranded returns those of some pods that nothing may wait for any more: terminating for longer than they may, on a node
// that does not answer or is gone. The API server keeps such a pod until its node says that it ended, which may be never. It
// also returns after how long another one may be, 0 where none is terminating. The reader of nodes is nil where nodes may
// not be read.
func Stranded(ctx context.Context, nodes client.Reader, pods []*corev1.Pod, now time.Time) ([]*corev1.Pod, time.Duration, error) {
	var stranded []*corev1.Pod
	var wait time.Duration
	for _, pod := range pods {
		if pod.DeletionTimestamp == nil || pod.Spec.NodeName == "" {
			continue
		}
		patience := overdueUnseen
		if nodes != nil {
			patience = overdue
		}
		if left := pod.DeletionTimestamp.Add(patience).Sub(now); left > 0 {
			wait = Soonest(wait, left)
			continue
		}
		lost, err := isLost(ctx, nodes, pod.Spec.NodeName)
		switch {
		case err != nil:
			return nil, 0, err
		case lost:
			stranded = append(stranded, pod)
		default: // its kubelet answers, and may not for long
			wait = Soonest(wait, overdue)
		}
	}
	return stranded, wait, nil
}

// IsOnLostNode reports whether a pod is on a node that is not ready or not there. Where nodes may not be read, none is known to be.
func IsOnLostNode(ctx context.Context, nodes client.Reader, pod *corev1.Pod) (bool, error) {
	if nodes == nil || pod.Spec.NodeName == "" {
		return false, nil
	}
	return isLost(ctx, nodes, pod.Spec.NodeName)
}

// isLost reports whether a node is not ready or not there, or may not be read.
func isLost(ctx context.Context, nodes client.Reader, name string) (bool, error) {
	if nodes == nil {
		return true, nil
	}
	var node corev1.Node
	if err := nodes.Get(ctx, client.ObjectKey{Name: name}, &node); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return true, nil
		}
		return false, fmt.Errorf("read node %s: %w", name, err)
	}
	ready := NodeReady(&node)
	return ready != nil && ready.Status != corev1.ConditionTrue, nil
}

// OffCommand returns the command by which a person says that a node is off for good. Kubernetes then
// lets its pods go, and their volumes.
func OffCommand(node string) string {
	return fmt.Sprintf("kubectl taint node %s %s=nodeshutdown:NoExecute", node, corev1.TaintNodeOutOfService)
}
