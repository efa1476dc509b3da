package fakekubelet

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// TestKeep_BringsALostNodeBack follows a node that Kubernetes took for lost, with a pod that ran there.
func TestKeep_BringsALostNodeBack(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}, Spec: corev1.PodSpec{NodeName: "a"}}
	pod.Status.Phase = corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse}}
	client := fake.NewClientset(node, pod)
	k := &kubelet{ctx: t.Context(), client: client}

	lost := false
	for beat, want := range []struct {
		pod  corev1.ConditionStatus
		lost bool
	}{{corev1.ConditionFalse, true}, {corev1.ConditionTrue, false}, {corev1.ConditionTrue, false}} {
		lost = k.keep("a", lost)
		node, err := client.CoreV1().Nodes().Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil || !isNodeReady(node) {
			t.Fatalf("after beat %d the node is %+v, %v", beat, node, err)
		}
		pod, err := client.CoreV1().Pods("ns").Get(t.Context(), "p", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := readiness(pod); got != want.pod || lost != want.lost {
			t.Errorf("after beat %d the pod is ready: %s, more to say: %t; want %+v", beat, got, lost, want)
		}
	}
	lease, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil || lease.Spec.RenewTime == nil {
		t.Errorf("the node's Lease is %+v, %v", lease, err)
	}
}

func readiness(pod *corev1.Pod) corev1.ConditionStatus {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status
		}
	}
	return corev1.ConditionUnknown
}
