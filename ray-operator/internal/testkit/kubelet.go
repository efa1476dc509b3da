package testkit

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Kubelet stands in for scheduler and kubelets: it gives pods a node and an address,
// makes them ready and lets leaving ones go, each after its delay.
type Kubelet struct {
	Client client.Client
	Clock  clock.PassiveClock
	// StartDelay is from creation to ready; StopDelay from deletion to gone, where the
	// pod's grace is not shorter.
	StartDelay, StopDelay time.Duration
	// Hang tells of pods that never stop; Idle of pods that never start. nil is none.
	Hang, Idle func(*corev1.Pod) bool
	// Node is where a pod is put; nil is node-1 for all.
	Node func(*corev1.Pod) string
	// Full tells of pods that their node cannot hold any larger; nil is none.
	Full func(*corev1.Pod) bool
}

// Step does all that is due and gives whether it wrote anything, and how long it is
// until the next thing is due; 0 is never.
func (k *Kubelet) Step(ctx context.Context) (changed bool, next time.Duration, err error) {
	var pods corev1.PodList
	if err := k.Client.List(ctx, &pods, client.UnsafeDisableDeepCopy); err != nil {
		return false, 0, fmt.Errorf("kubelet: list pods: %w", err)
	}
	for i := range pods.Items {
		act, due := k.due(&pods.Items[i])
		if act == nil {
			continue
		}
		if wait := due.Sub(k.Clock.Now()); wait > 0 {
			if next == 0 || wait < next {
				next = wait
			}
			continue
		}
		changed = true
		if err := act(ctx, &pods.Items[i]); client.IgnoreNotFound(err) != nil {
			return changed, next, fmt.Errorf("kubelet: pod %s: %w", pods.Items[i].Name, err)
		}
	}
	return changed, next, nil
}

// due is what happens to a pod next, and when.
func (k *Kubelet) due(pod *corev1.Pod) (func(context.Context, *corev1.Pod) error, time.Time) {
	switch {
	case pod.DeletionTimestamp != nil:
		return k.ending(pod)
	case pod.Status.Phase == corev1.PodPending && !is(k.Idle, pod):
		return k.start, pod.CreationTimestamp.Add(k.StartDelay)
	case unsized(pod) && !is(k.Full, pod):
		return k.resize, k.Clock.Now()
	case unsized(pod) && len(pod.Status.Conditions) == 1:
		return k.refuse, k.Clock.Now()
	default:
		return nil, time.Time{}
	}
}

// ending is due for a pod that leaves, unless it hangs or has stopped and waits for
// someone's finalizer.
func (k *Kubelet) ending(pod *corev1.Pod) (func(context.Context, *corev1.Pod) error, time.Time) {
	if is(k.Hang, pod) || len(pod.Finalizers) > 0 && *pod.DeletionGracePeriodSeconds == 0 {
		return nil, time.Time{}
	}
	grace := time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second
	return k.finish, pod.DeletionTimestamp.Add(min(k.StopDelay, grace) - grace)
}

func is(chosen func(*corev1.Pod) bool, pod *corev1.Pod) bool { return chosen != nil && chosen(pod) }

func (k *Kubelet) finish(ctx context.Context, pod *corev1.Pod) error {
	return k.Client.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
}

func (k *Kubelet) start(ctx context.Context, pod *corev1.Pod) error {
	if pod.Spec.NodeName == "" {
		node := "node-1"
		if k.Node != nil {
			node = k.Node(pod)
		}
		binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: node}}
		if err := k.Client.SubResource("binding").Create(ctx, pod, binding); err != nil {
			return err
		}
	}
	var bound corev1.Pod
	if err := k.Client.Get(ctx, client.ObjectKeyFromObject(pod), &bound); err != nil {
		return err
	}
	bound.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: "10.0.0.1",
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(k.Clock.Now())}},
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: "ray", Started: new(true), Ready: true, Resources: resourcesOf(&bound),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(k.Clock.Now())}},
		}},
	}
	return k.Client.Status().Update(ctx, &bound)
}

func resourcesOf(pod *corev1.Pod) *corev1.ResourceRequirements {
	if len(pod.Spec.Containers) == 0 {
		return nil
	}
	return &pod.Spec.Containers[0].Resources
}

// unsized reports whether a running pod has other resources than it must have by now.
func unsized(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodRunning && len(pod.Status.ContainerStatuses) == 1 &&
		!equality.Semantic.DeepEqual(pod.Status.ContainerStatuses[0].Resources, resourcesOf(pod))
}

func (k *Kubelet) resize(ctx context.Context, pod *corev1.Pod) error {
	resized := pod.DeepCopy()
	resized.Status.ContainerStatuses[0].Resources = resourcesOf(resized)
	resized.Status.Conditions = resized.Status.Conditions[:1]
	return k.Client.Status().Update(ctx, resized)
}

func (k *Kubelet) refuse(ctx context.Context, pod *corev1.Pod) error {
	refused := pod.DeepCopy()
	refused.Status.Conditions = append(refused.Status.Conditions, corev1.PodCondition{
		Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible, Message: "the node is too small",
	})
	return k.Client.Status().Update(ctx, refused)
}

// Fail ends a pod as a whole, as an eviction does.
func (k *Kubelet) Fail(ctx context.Context, pod *corev1.Pod, reason string) error {
	failed := pod.DeepCopy()
	failed.Status.Phase, failed.Status.Reason, failed.Status.Conditions = corev1.PodFailed, reason, nil
	if err := k.Client.Status().Update(ctx, failed); err != nil {
		return fmt.Errorf("kubelet: fail pod %s: %w", pod.Name, err)
	}
	return nil
}

// Refuse ends a pod that has just got its node without running anything of it.
func (k *Kubelet) Refuse(ctx context.Context, pod *corev1.Pod) error {
	refused := pod.DeepCopy()
	refused.Status = corev1.PodStatus{
		Phase: corev1.PodFailed, Reason: "UnexpectedAdmissionError",
		Conditions: []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(k.Clock.Now()),
		}},
	}
	if err := k.Client.Status().Update(ctx, refused); err != nil {
		return fmt.Errorf("kubelet: refuse pod %s: %w", pod.Name, err)
	}
	return nil
}

// Unready makes a running pod's readiness probe fail.
func (k *Kubelet) Unready(ctx context.Context, pod *corev1.Pod) error {
	unready := pod.DeepCopy()
	for i := range unready.Status.Conditions {
		unready.Status.Conditions[i].Status = corev1.ConditionFalse
	}
	for i := range unready.Status.ContainerStatuses {
		unready.Status.ContainerStatuses[i].Ready = false
	}
	if err := k.Client.Status().Update(ctx, unready); err != nil {
		return fmt.Errorf("kubelet: make pod %s unready: %w", pod.Name, err)
	}
	return nil
}

// Die ends the container of a running pod and starts it again, as Restart does, and then it
// takes its time: the pod is not ready until Ready. With again false it is not started.
func (k *Kubelet) Die(ctx context.Context, pod *corev1.Pod, again bool) error {
	died := pod.DeepCopy()
	for i := range died.Status.ContainerStatuses {
		died.Status.ContainerStatuses[i].Ready, died.Status.ContainerStatuses[i].Started = false, new(false)
		if !again {
			died.Status.ContainerStatuses[i].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
		}
	}
	for i := range died.Status.Conditions {
		died.Status.Conditions[i].Status = corev1.ConditionFalse
	}
	return k.Restart(ctx, died)
}

// Ready makes a running pod's readiness probe succeed again.
func (k *Kubelet) Ready(ctx context.Context, pod *corev1.Pod) error {
	ready := pod.DeepCopy()
	for i := range ready.Status.Conditions {
		ready.Status.Conditions[i].Status = corev1.ConditionTrue
		ready.Status.Conditions[i].LastTransitionTime = metav1.NewTime(k.Clock.Now())
	}
	for i := range ready.Status.ContainerStatuses {
		ready.Status.ContainerStatuses[i].Ready, ready.Status.ContainerStatuses[i].Started = true, new(true)
	}
	if err := k.Client.Status().Update(ctx, ready); err != nil {
		return fmt.Errorf("kubelet: make pod %s ready: %w", pod.Name, err)
	}
	return nil
}

// Restart ends the container of a running pod and starts it again, as the kubelet does
// when it dies; the pod is ready again at once.
func (k *Kubelet) Restart(ctx context.Context, pod *corev1.Pod) error {
	restarted := pod.DeepCopy()
	for i := range restarted.Status.ContainerStatuses {
		status := &restarted.Status.ContainerStatuses[i]
		status.RestartCount++
		status.LastTerminationState.Terminated = &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(k.Clock.Now()), ExitCode: 1}
	}
	if err := k.Client.Status().Update(ctx, restarted); err != nil {
		return fmt.Errorf("kubelet: restart pod %s: %w", pod.Name, err)
	}
	return nil
}
