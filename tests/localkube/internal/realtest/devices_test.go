package realtest

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// allocatable is how many devices of a resource the node has, all of which the
// tests expect to be free.
func (in *instance) allocatable(node string, name corev1.ResourceName) int64 {
	in.t.Helper()
	var count int64
	in.eventually(fmt.Sprintf("node %s offers %s (needs localkube up --gpus 1)", node, name), func() (bool, string) {
		n, err := in.client.CoreV1().Nodes().Get(in.ctx, node, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		quantity := n.Status.Allocatable[name]
		count = quantity.Value()
		return count > 0, fmt.Sprint(n.Status.Allocatable)
	})
	return count
}

func asking(name corev1.ResourceName, count int64) func(*corev1.Container) {
	return func(c *corev1.Container) {
		c.Resources.Limits = corev1.ResourceList{name: *resource.NewQuantity(count, resource.DecimalSI)}
	}
}

func TestADeviceIsGivenOnce(t *testing.T) {
	t.Parallel()
	for _, name := range []corev1.ResourceName{"nvidia.com/gpu", "nvidia.com/mig-1g.5gb", "nvidia.com/gpu.shared"} {
		t.Run(string(name), func(t *testing.T) {
			in := newInstance(t)
			node := in.nodes[0]
			count := in.allocatable(node, name)
			in.start("first", node, "first", idle, asking(name, count))
			in.ready("first")
			out, err := in.run("first", "sh", "-c", "echo $NVIDIA_VISIBLE_DEVICES")
			if err != nil {
				t.Fatalf("print the devices of the first pod: %v: %s", err, out)
			}
			if given := strings.Split(strings.TrimSpace(out), ","); int64(len(given)) != count || given[0] == "" {
				t.Errorf("the first pod has devices %q, want %d", out, count)
			}
			in.start("second", node, "second", idle, asking(name, 1))
			in.eventually("the second pod is refused", func() (bool, string) {
				scheduled := condition(in.pod("second"), corev1.PodScheduled)
				return scheduled.Reason == corev1.PodReasonUnschedulable && strings.Contains(scheduled.Message, "Insufficient "+string(name)), fmt.Sprint(scheduled)
			})
			if err := in.client.CoreV1().Pods(in.namespace).Delete(in.ctx, "first", metav1.DeleteOptions{}); err != nil {
				t.Fatalf("delete the first pod: %v", err)
			}
			in.ready("second")
		})
	}
}
