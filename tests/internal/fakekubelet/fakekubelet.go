// Package fakekubelet stands for the kubelets of nodes that do not exist: of every pod that the scheduler bound to a
// node it says, after a delay, that the pod runs and is ready, and it lets terminating pods go: at once, or when their
// grace is over.
//
// In: a client, and which nodes with how much room. Out: nodes, their Leases, one status for each pod. Callers choose
// the pods' addresses, and hear of pods that end, where they put something behind an address. It must never start
// anything itself.
package fakekubelet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// Delay is from when a pod is bound until it is ready, where nothing else is asked for.
const Delay = 200 * time.Millisecond

// LabelLingers is a label of pods that take all of their grace to end.
const LabelLingers = "fakekubelet.test/lingers"

// Options say what is stood for.
type Options struct {
	// Nodes are the names of the nodes, Room what each of them has.
	Nodes []string
	Room  corev1.ResourceList
	// Delay is from when a pod is bound until it is ready.
	Delay time.Duration
	// Address gives the address of a pod that starts. Where it is nil or gives none, the pod gets one that no other pod
	// has, at which nobody listens.
	Address func(*corev1.Pod) (string, error)
	// End hears of each pod that ends, once or more often; nil for nothing.
	End func(*corev1.Pod)
}

type kubelet struct {
	Options
	ctx       context.Context
	client    kubernetes.Interface
	addresses atomic.Int32
	// starting holds the UIDs of pods that were told to start.
	starting sync.Map
}

// Run adds the nodes, and returns when it serves their pods, which it does until the context ends.
func Run(ctx context.Context, client kubernetes.Interface, options Options) error {
	k := &kubelet{Options: options, ctx: ctx, client: client}
	for _, name := range k.Nodes {
		if err := k.join(name); err != nil {
			return fmt.Errorf("add node %s: %w", name, err)
		}
		go k.beat(name)
	}
	return k.watch()
}

// address finds the address of a pod that starts.
func (k *kubelet) address(pod *corev1.Pod) (address string, err error) {
	if k.Address != nil {
		address, err = k.Address(pod)
	}
	if address == "" && err == nil {
		number := k.addresses.Add(1)
		address = fmt.Sprintf("10.%d.%d.%d", 200+number/62500, number/250%250, number%250+1)
	}
	return address, err
}

// watch follows all pods that are bound to a node.
func (k *kubelet) watch() error {
	factory := informers.NewSharedInformerFactoryWithOptions(k.client, 0, informers.WithTransform(slim),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermNotEqualSelector("spec.nodeName", "").String()
		}))
	pods := factory.Core().V1().Pods().Informer()
	look := func(obj any) {
		if pod, ok := obj.(*corev1.Pod); ok {
			k.look(pod)
		}
	}
	gone := func(obj any) {
		if pod, ok := obj.(*corev1.Pod); ok { // else only its name is known, and its caller ends with what is behind it
			k.ended(pod)
		}
	}
	handler := cache.ResourceEventHandlerFuncs{AddFunc: look, UpdateFunc: func(_, obj any) { look(obj) }, DeleteFunc: gone}
	if _, err := pods.AddEventHandler(handler); err != nil {
		return fmt.Errorf("watch the pods: %w", err)
	}
	factory.Start(k.ctx.Done())
	if !cache.WaitForCacheSync(k.ctx.Done(), pods.HasSynced) {
		return errors.New("watch the pods: they were never listed")
	}
	return nil
}

// slim keeps of a pod what is needed here and by those who choose addresses.
func slim(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	small := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID, Labels: pod.Labels,
		DeletionTimestamp: pod.DeletionTimestamp, ResourceVersion: pod.ResourceVersion,
	}}
	small.Status.Phase = pod.Status.Phase
	small.Spec.Volumes = pod.Spec.Volumes
	for _, c := range pod.Spec.InitContainers {
		small.Spec.InitContainers = append(small.Spec.InitContainers, corev1.Container{Name: c.Name, Image: c.Image})
	}
	for _, c := range pod.Spec.Containers {
		small.Spec.Containers = append(small.Spec.Containers, corev1.Container{Name: c.Name, Image: c.Image})
	}
	return small, nil
}

// look does what is due with a pod. A deletion that fails is due again with the pod's next change.
func (k *kubelet) look(pod *corev1.Pod) {
	switch {
	case pod.DeletionTimestamp != nil:
		k.ended(pod)
		grace := time.Duration(0)
		if _, lingers := pod.Labels[LabelLingers]; lingers {
			grace = time.Until(pod.DeletionTimestamp.Time)
		}
		now, uid := int64(0), pod.UID
		time.AfterFunc(grace, func() {
			_ = k.client.CoreV1().Pods(pod.Namespace).Delete(k.ctx, pod.Name,
				metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &uid}})
		})
	case pod.Status.Phase == corev1.PodPending:
		if _, told := k.starting.LoadOrStore(pod.UID, true); !told {
			time.AfterFunc(k.Delay, func() { k.start(pod) })
		}
	}
}

// ended forgets a pod, and tells of its end.
func (k *kubelet) ended(pod *corev1.Pod) {
	k.starting.Delete(pod.UID)
	if k.End != nil {
		k.End(pod)
	}
}

// start says that a pod's containers run and are ready, until the API server has heard it.
func (k *kubelet) start(pod *corev1.Pod) {
	err := k.report(pod)
	switch {
	case err == nil || k.ctx.Err() != nil:
	case apierrors.IsNotFound(err), apierrors.IsConflict(err): // another has its name
		k.ended(pod)
	default:
		fmt.Fprintf(os.Stderr, "start pod %s/%s: %v\n", pod.Namespace, pod.Name, err)
		time.AfterFunc(max(k.Delay, Delay), func() { k.start(pod) })
	}
}

// report writes the status of a pod that runs.
func (k *kubelet) report(pod *corev1.Pod) error {
	address, err := k.address(pod)
	if err != nil {
		return fmt.Errorf("find an address: %w", err)
	}
	now := metav1.Now()
	status := corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: address, PodIPs: []corev1.PodIP{{IP: address}}, StartTime: &now,
		InitContainerStatuses: running(pod.Spec.InitContainers, now), ContainerStatuses: running(pod.Spec.Containers, now),
		Conditions: ready(),
	}
	return k.patch(k.ctx, pod, status)
}

// ready are the conditions of a pod that is ready.
func ready() []corev1.PodCondition {
	var all []corev1.PodCondition
	for _, kind := range []corev1.PodConditionType{corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		all = append(all, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()})
	}
	return all
}

// patch writes what a pod's status says from now on.
func (k *kubelet) patch(ctx context.Context, pod *corev1.Pod, status corev1.PodStatus) error {
	text, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status})
	if err != nil {
		return fmt.Errorf("print a status: %w", err)
	}
	pods := k.client.CoreV1().Pods(pod.Namespace)
	_, err = pods.Patch(ctx, pod.Name, types.StrategicMergePatchType, text, metav1.PatchOptions{}, "status")
	return err
}

func running(containers []corev1.Container, since metav1.Time) []corev1.ContainerStatus {
	var all []corev1.ContainerStatus
	for _, container := range containers {
		all = append(all, corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, Ready: true, Started: new(true),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: since}},
		})
	}
	return all
}
