// Command kubelet stands for the kubelets of a fleet: of every pod that the scheduler
// bound it says, after a delay, that it runs and is ready, and it lets leaving ones go.
//
// In: flags, a kubeconfig. Out: nodes, their leases, one status for each pod. It is a
// process of its own, so that what it uses is not counted to anybody else. It must never
// start anything.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// A node that is not heard of for 50 s would be lost.
const heartbeat = 10 * time.Second

func main() {
	config := flag.String("kubeconfig", "", "of the API server")
	nodes := flag.Int("nodes", 10, "how many nodes to stand for")
	delay := flag.Duration("delay", 200*time.Millisecond, "from when a pod is bound until it is ready")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *config, *nodes, *delay); err != nil {
		fmt.Fprintln(os.Stderr, "kubelet:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, path string, nodes int, delay time.Duration) error {
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return fmt.Errorf("read the kubeconfig %s: %w", path, err)
	}
	config.QPS, config.UserAgent = -1, "heliostat-bench-kubelet"
	config.ContentType = runtime.ContentTypeProtobuf
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("build a client: %w", err)
	}
	k := &kubelet{ctx: ctx, client: client, delay: delay}
	for i := range nodes {
		name := fmt.Sprintf("node-%d", i)
		if err := k.join(name); err != nil {
			return fmt.Errorf("join %s: %w", name, err)
		}
		go k.beat(name)
	}
	if err := k.watch(); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

type kubelet struct {
	ctx       context.Context
	client    kubernetes.Interface
	delay     time.Duration
	addresses atomic.Int32
}

// join makes a node with room for as many pods as a large cluster has in all.
func (k *kubelet) join(name string) error {
	node, err := k.client.CoreV1().Nodes().Create(k.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("100k"), corev1.ResourceMemory: resource.MustParse("1Pi"), corev1.ResourcePods: resource.MustParse("100k"),
	}
	now := metav1.Now()
	node.Status = corev1.NodeStatus{Capacity: room, Allocatable: room, Conditions: []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Fleet", LastHeartbeatTime: now, LastTransitionTime: now,
	}}}
	_, err = k.client.CoreV1().Nodes().UpdateStatus(k.ctx, node, metav1.UpdateOptions{})
	return err
}

// beat renews a node's lease until the program ends. A beat that fails is followed by
// the next one.
func (k *kubelet) beat(name string) {
	leases := k.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	seconds := int32(50)
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	for {
		now := metav1.NowMicro()
		lease := &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: &seconds, RenewTime: &now},
		}
		_, made := leases.Create(k.ctx, lease, metav1.CreateOptions{})
		if made != nil {
			text, _ := json.Marshal(lease) // a lease always marshals
			_, _ = leases.Patch(k.ctx, name, types.MergePatchType, text, metav1.PatchOptions{})
		}
		select {
		case <-k.ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// watch looks after all pods that are bound to a node.
func (k *kubelet) watch() error {
	factory := informers.NewSharedInformerFactoryWithOptions(k.client, 0,
		informers.WithTransform(slim),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermNotEqualSelector("spec.nodeName", "").String()
		}))
	pods := factory.Core().V1().Pods().Informer()
	look := func(obj any) {
		if pod, ok := obj.(*corev1.Pod); ok {
			k.look(pod)
		}
	}
	handler := cache.ResourceEventHandlerFuncs{AddFunc: look, UpdateFunc: func(_, obj any) { look(obj) }}
	if _, err := pods.AddEventHandler(handler); err != nil {
		return fmt.Errorf("watch the pods: %w", err)
	}
	factory.Start(k.ctx.Done())
	if !cache.WaitForCacheSync(k.ctx.Done(), pods.HasSynced) {
		return errors.New("watch the pods: they were never listed")
	}
	return nil
}

// slim keeps of a pod what is needed here.
func slim(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	small := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID, DeletionTimestamp: pod.DeletionTimestamp, ResourceVersion: pod.ResourceVersion,
	}}
	small.Status.Phase = pod.Status.Phase
	for _, c := range pod.Spec.InitContainers {
		small.Spec.InitContainers = append(small.Spec.InitContainers, corev1.Container{Name: c.Name, Image: c.Image})
	}
	for _, c := range pod.Spec.Containers {
		small.Spec.Containers = append(small.Spec.Containers, corev1.Container{Name: c.Name, Image: c.Image})
	}
	return small, nil
}

// look does what is due with a pod. A deletion that fails is due again with the pod's next
// change.
func (k *kubelet) look(pod *corev1.Pod) {
	switch {
	case pod.DeletionTimestamp != nil:
		now, uid := int64(0), pod.UID
		go func() {
			_ = k.client.CoreV1().Pods(pod.Namespace).Delete(k.ctx, pod.Name,
				metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &uid}})
		}()
	case pod.Status.Phase == corev1.PodPending:
		time.AfterFunc(k.delay, func() { k.start(pod) })
	}
}

// start says that a pod's containers run and are ready, until the API server has heard it.
func (k *kubelet) start(pod *corev1.Pod) {
	number, now := k.addresses.Add(1), metav1.Now()
	address := fmt.Sprintf("10.%d.%d.%d", 200+number/65536, number/256%256, number%256)
	status := corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: address, PodIPs: []corev1.PodIP{{IP: address}}, StartTime: &now,
		InitContainerStatuses: running(pod.Spec.InitContainers, now), ContainerStatuses: running(pod.Spec.Containers, now),
	}
	for _, kind := range []corev1.PodConditionType{corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		status.Conditions = append(status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	text, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status})
	if err == nil {
		_, err = k.client.CoreV1().Pods(pod.Namespace).Patch(k.ctx, pod.Name, types.StrategicMergePatchType, text, metav1.PatchOptions{}, "status")
	}
	if err != nil && !apierrors.IsNotFound(err) && k.ctx.Err() == nil {
		fmt.Fprintf(os.Stderr, "start pod %s/%s: %v\n", pod.Namespace, pod.Name, err)
		time.AfterFunc(k.delay, func() { k.start(pod) })
	}
}

func running(containers []corev1.Container, since metav1.Time) []corev1.ContainerStatus {
	var all []corev1.ContainerStatus
	started := true
	for _, container := range containers {
		all = append(all, corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, Ready: true, Started: &started,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: since}},
		})
	}
	return all
}
