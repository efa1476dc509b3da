package integration

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// The node that the kubelet of these tests stands for. Pods are ready startDelay after
// the scheduler bound them; a node that is not heard of for 40 s would be lost.
const (
	nodeName   = "integration"
	startDelay = 200 * time.Millisecond
	heartbeat  = 5 * time.Second
)

// kubelet says of every pod on its node that it runs, and lets leaving ones go. Head pods
// have a fake head where a test wants that.
type kubelet struct {
	ctx context.Context
	*live.Cluster
	heads     *heads
	addresses atomic.Int32
}

// run joins a node to the cluster and looks after its pods until ctx ends.
func (k *kubelet) run() error {
	if err := k.join(); err != nil {
		return err
	}
	go k.beat()
	factory := informers.NewSharedInformerFactoryWithOptions(k.Kubernetes, 0,
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.FieldSelector = "spec.nodeName=" + nodeName }))
	pods := factory.Core().V1().Pods().Informer()
	look := func(obj any) {
		if pod, ok := obj.(*corev1.Pod); ok {
			k.look(pod)
		}
	}
	gone := func(obj any) {
		if pod, ok := obj.(*corev1.Pod); ok { // else it is known by its name alone, and ends with its test
			k.end(pod)
		}
	}
	if _, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: look, UpdateFunc: func(_, obj any) { look(obj) }, DeleteFunc: gone}); err != nil {
		return fmt.Errorf("watch the pods of node %s: %w", nodeName, err)
	}
	factory.Start(k.ctx.Done())
	factory.WaitForCacheSync(k.ctx.Done())
	return nil
}

func (k *kubelet) join() error {
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("10k"), corev1.ResourceMemory: resource.MustParse("100Ti"), corev1.ResourcePods: resource.MustParse("10k"),
		"nvidia.com/gpu": resource.MustParse("1k"),
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName}}
	if err := client.IgnoreAlreadyExists(k.Create(k.ctx, node)); err != nil {
		return fmt.Errorf("create node %s: %w", nodeName, err)
	}
	lease := k.lease()
	if err := client.IgnoreAlreadyExists(k.Create(k.ctx, lease)); err != nil {
		return fmt.Errorf("create the lease of node %s: %w", nodeName, err)
	}
	seen := node.DeepCopy()
	node.Status = corev1.NodeStatus{Capacity: room, Allocatable: room, Conditions: []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Integration", LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
	}}}
	if err := k.Status().Patch(k.ctx, node, client.MergeFrom(seen)); err != nil {
		return fmt.Errorf("report the status of node %s: %w", nodeName, err)
	}
	return nil
}

func (k *kubelet) lease() *coordinationv1.Lease {
	name, now := nodeName, metav1.NowMicro()
	seconds := int32(40)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: nodeName},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: &seconds, RenewTime: &now},
	}
}

func (k *kubelet) beat() {
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	for {
		// A beat that fails is followed by the next one.
		_ = k.Patch(k.ctx, k.lease(), client.Merge)
		select {
		case <-k.ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// look does what is due with a pod. What fails is due again with the pod's next change,
// and a test that depends on it says that the pod never got there.
func (k *kubelet) look(pod *corev1.Pod) {
	switch {
	case pod.DeletionTimestamp != nil:
		k.end(pod)
		_ = k.Delete(k.ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
	case pod.Status.Phase == corev1.PodPending:
		time.AfterFunc(startDelay, func() { k.start(pod) })
	}
}

// end ends what runs in a pod.
func (k *kubelet) end(pod *corev1.Pod) {
	if one := k.heads.find(pod.UID); one != nil {
		go one.end() // which waits for those who are just asking
	}
	if where := k.heads.land(pod.Namespace); where != nil {
		go where.end(pod.UID)
	}
}

// address makes the head of a pod that has one, or what is in a worker of a land, and gives the
// pod's address.
func (k *kubelet) address(pod *corev1.Pod) (string, error) {
	if !k.heads.has(pod) {
		if where := k.heads.land(pod.Namespace); where != nil {
			return where.begin(pod), nil
		}
		number := k.addresses.Add(1)
		return fmt.Sprintf("10.250.%d.%d", number/250, number%250+1), nil
	}
	one, err := k.heads.open(pod, k.token(pod))
	if err != nil {
		return "", err
	}
	return one.address, nil
}

// token is what a pod's containers find where its cluster's token is mounted, or nothing.
func (k *kubelet) token(pod *corev1.Pod) string {
	for _, volume := range pod.Spec.Volumes {
		if volume.Secret == nil {
			continue
		}
		var secret corev1.Secret
		if k.Get(k.ctx, types.NamespacedName{Namespace: pod.Namespace, Name: volume.Secret.SecretName}, &secret) == nil {
			return string(secret.Data[v1alpha1.TokenKey])
		}
	}
	return ""
}

func (k *kubelet) start(seen *corev1.Pod) {
	address, err := k.address(seen)
	if err != nil {
		fmt.Fprintf(os.Stderr, "the kubelet cannot start pod %s: %v\n", seen.Name, err)
		return
	}
	started, now := true, metav1.Now()
	pod := seen.DeepCopy()
	pod.Status.Phase = corev1.PodRunning
	pod.Status.PodIP = address
	pod.Status.PodIPs = []corev1.PodIP{{IP: pod.Status.PodIP}}
	pod.Status.StartTime = &now
	pod.Status.ContainerStatuses = nil
	for _, container := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, Ready: true, Started: &started,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		})
	}
	for _, kind := range []corev1.PodConditionType{corev1.ContainersReady, corev1.PodReady} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	if apierrors.IsNotFound(k.report(k.ctx, pod, seen)) {
		k.end(seen)
	}
}

// report tells a pod's status.
func (k *kubelet) report(ctx context.Context, pod, seen *corev1.Pod) error {
	if err := k.Status().Patch(ctx, pod, client.MergeFrom(seen)); err != nil {
		return fmt.Errorf("report the status of pod %s: %w", pod.Name, err)
	}
	return nil
}
