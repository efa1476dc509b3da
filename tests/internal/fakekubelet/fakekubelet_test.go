package fakekubelet_test

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/heliostat-dev/heliostat/tests/internal/fakekubelet"
)

func TestRun_AddsNodesWithRoom(t *testing.T) {
	client := fake.NewClientset()
	must(t, fakekubelet.Run(t.Context(), client, fakekubelet.Options{
		Nodes: []string{"a", "b"}, Room: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")},
	}))
	nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	must(t, err)
	for _, node := range nodes.Items {
		if node.Status.Allocatable.Cpu().Value() != 4 || len(node.Status.Conditions) != 1 {
			t.Errorf("the status of node %s is %+v", node.Name, node.Status)
		}
	}
	if len(nodes.Items) != 2 {
		t.Errorf("there are %d nodes, want 2", len(nodes.Items))
	}
}

// TestRun_RunsPodsAndHearsOfTheirEnd follows a pod for which no address is free at first.
func TestRun_RunsPodsAndHearsOfTheirEnd(t *testing.T) {
	client := fake.NewClientset()
	ended, tries := make(chan types.UID, 10), 0
	must(t, fakekubelet.Run(t.Context(), client, fakekubelet.Options{
		Delay: time.Millisecond,
		Address: func(*corev1.Pod) (string, error) {
			if tries++; tries == 1 {
				return "", errors.New("none is free")
			}
			return "10.0.0.1", nil
		},
		End: func(pod *corev1.Pod) { ended <- pod.UID },
	}))
	pods := client.CoreV1().Pods("ns")
	pod, err := pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "uid"}, Status: corev1.PodStatus{Phase: corev1.PodPending},
		Spec: corev1.PodSpec{NodeName: "a", Containers: []corev1.Container{{Name: "ray", Image: "ray"}}},
	}, metav1.CreateOptions{})
	must(t, err)
	isRunning := func(ctx context.Context) (bool, error) {
		pod, err = pods.Get(ctx, "p", metav1.GetOptions{})
		return err == nil && pod.Status.Phase == corev1.PodRunning, err
	}
	must(t, wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, isRunning))
	containers := pod.Status.ContainerStatuses
	if pod.Status.PodIP != "10.0.0.1" || len(pod.Status.Conditions) != 3 || len(containers) != 1 || !containers[0].Ready {
		t.Errorf("the pod's status is %+v", pod.Status)
	}
	if len(ended) > 0 {
		t.Error("a pod that runs has ended")
	}
	must(t, pods.Delete(t.Context(), "p", metav1.DeleteOptions{}))
	if uid := <-ended; uid != "uid" {
		t.Errorf("%s has ended", uid)
	}
}

// TestRun_LetsPodsLinger: a pod with the label ends when its grace is over, and another one at once.
func TestRun_LetsPodsLinger(t *testing.T) {
	client := fake.NewClientset()
	must(t, fakekubelet.Run(t.Context(), client, fakekubelet.Options{}))
	pods := client.CoreV1().Pods("ns")
	for name, ends := range map[string]time.Duration{"at-once": time.Hour, "lingers": time.Hour, "lingers-no-more": -time.Second} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, DeletionTimestamp: new(metav1.NewTime(time.Now().Add(ends)))}}
		if name != "at-once" {
			pod.Labels = map[string]string{fakekubelet.LabelLingers: "true"}
		}
		_, err := pods.Create(t.Context(), pod, metav1.CreateOptions{})
		must(t, err)
	}
	isLast := func(ctx context.Context) (bool, error) {
		left, err := pods.List(ctx, metav1.ListOptions{})
		return err == nil && len(left.Items) == 1 && left.Items[0].Name == "lingers", err
	}
	must(t, wait.PollUntilContextTimeout(t.Context(), time.Millisecond, time.Minute, true, isLast))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
