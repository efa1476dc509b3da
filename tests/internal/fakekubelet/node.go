package fakekubelet

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
)

// A node whose Lease is older than leaseSeconds is taken for lost.
const (
	heartbeat    = 10 * time.Second
	leaseSeconds = 50
)

// join adds a node, or takes over the one that a former run has left.
func (k *kubelet) join(name string) error {
	nodes := k.client.CoreV1().Nodes()
	node, err := nodes.Create(k.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		node, err = nodes.Get(k.ctx, name, metav1.GetOptions{})
	}
	if err != nil {
		return err
	}
	return k.reportNode(k.ctx, node)
}

// reportNode says that a node is ready.
func (k *kubelet) reportNode(ctx context.Context, node *corev1.Node) error {
	now := metav1.Now()
	ready := corev1.NodeCondition{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "FakeKubelet",
		LastHeartbeatTime: now, LastTransitionTime: now,
	}
	node.ResourceVersion = "" // a controller may taint it meanwhile, and only its status is written
	node.Status = corev1.NodeStatus{Capacity: k.Room, Allocatable: k.Room, Conditions: []corev1.NodeCondition{ready}}
	_, err := k.client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
	return err
}

// beat keeps a node until the context ends.
func (k *kubelet) beat(name string) {
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	for lost := false; ; {
		lost = k.keep(name, lost)
		select {
		case <-k.ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// keep renews a node's Lease. A node that was taken for lost, as the API server was slow, says that it is ready; its
// pods say so a beat later, when Kubernetes has taken back that they are. What fails is done by the next beat. keep
// reports whether pods have to say so then.
func (k *kubelet) keep(name string, wasLost bool) bool {
	ctx, stop := context.WithTimeout(k.ctx, heartbeat)
	defer stop()
	leases := k.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	seconds, now := int32(leaseSeconds), metav1.NowMicro()
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: &seconds, RenewTime: &now},
	}
	text, _ := json.Marshal(lease) // a Lease always marshals
	if _, err := leases.Patch(ctx, name, types.MergePatchType, text, metav1.PatchOptions{}); apierrors.IsNotFound(err) {
		_, _ = leases.Create(ctx, lease, metav1.CreateOptions{})
	}
	node, err := k.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	switch {
	case err != nil:
		return wasLost
	case !isNodeReady(node):
		_ = k.reportNode(ctx, node)
		return true
	case wasLost:
		return k.reportPods(ctx, name) != nil
	default:
		return false
	}
}

func isNodeReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(condition corev1.NodeCondition) bool {
		return condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue
	})
}

// reportPods says again of a node's pods that they are ready, which Kubernetes takes back with the node.
func (k *kubelet) reportPods(ctx context.Context, node string) error {
	on := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String()}
	pods, err := k.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, on)
	if err != nil {
		return err
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil {
			continue
		}
		err := k.patch(ctx, pod, corev1.PodStatus{Conditions: ready()})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return err
		}
	}
	return nil
}
