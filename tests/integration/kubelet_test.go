package integration

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/tests/internal/fakekubelet"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// kubelet stands for that of the only node. Head pods have a fake head where a test wants that.
type kubelet struct {
	*live.Cluster
	heads *heads
}

// runKubelet adds the node, and serves its pods until ctx ends.
func runKubelet(ctx context.Context, on *live.Cluster, heads *heads) (*kubelet, error) {
	k := &kubelet{Cluster: on, heads: heads}
	return k, fakekubelet.Run(ctx, on.Kubernetes, fakekubelet.Options{
		Nodes: []string{"integration"}, Delay: fakekubelet.Delay, End: k.end,
		Address: func(pod *corev1.Pod) (string, error) { return k.address(ctx, pod) },
		Room: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("10k"), corev1.ResourceMemory: resource.MustParse("100Ti"),
			corev1.ResourcePods: resource.MustParse("10k"), "nvidia.com/gpu": resource.MustParse("1k"),
		},
	})
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
// pod's address, if there is something behind it.
func (k *kubelet) address(ctx context.Context, pod *corev1.Pod) (string, error) {
	if raw := k.heads.raw(pod.Namespace); raw != nil {
		return raw(pod)
	}
	if !k.heads.has(pod) {
		if where := k.heads.land(pod.Namespace); where != nil {
			return where.begin(pod), nil
		}
		return "", nil
	}
	one, err := k.heads.open(pod, k.token(ctx, pod))
	if err != nil {
		return "", err
	}
	return one.address, nil
}

// token is what a pod's containers find where its cluster's token is mounted, or nothing.
func (k *kubelet) token(ctx context.Context, pod *corev1.Pod) string {
	for _, volume := range pod.Spec.Volumes {
		if volume.Secret == nil {
			continue
		}
		var secret corev1.Secret
		if k.Get(ctx, types.NamespacedName{Namespace: pod.Namespace, Name: volume.Secret.SecretName}, &secret) == nil {
			return string(secret.Data[v1beta1.TokenKey])
		}
	}
	return ""
}

// restart is what a kubelet does when Ray's container has ended: another one begins in the
// same pod, at the same address.
func (k *kubelet) restart(ctx context.Context, one *head) error {
	one.fake.Restart()
	var pod corev1.Pod
	if err := k.Get(ctx, one.name, &pod); err != nil {
		return fmt.Errorf("read the pod of a head: %w", err)
	}
	seen := pod.DeepCopy()
	for i := range pod.Status.ContainerStatuses {
		status := &pod.Status.ContainerStatuses[i]
		status.RestartCount++
		status.LastTerminationState = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: 1, Reason: "Error", StartedAt: status.State.Running.StartedAt, FinishedAt: metav1.Now(),
		}}
		status.State.Running.StartedAt = metav1.Now()
	}
	if err := k.Status().Patch(ctx, &pod, client.MergeFrom(seen)); err != nil {
		return fmt.Errorf("report the status of pod %s: %w", pod.Name, err)
	}
	return nil
}
