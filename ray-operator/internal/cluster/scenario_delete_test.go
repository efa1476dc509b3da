package cluster_test

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

func TestDelete(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "deleted", Run: func(w *testkit.World) {
			started(w, "demo", testkit.Group("cpu", 2))
			w.Delete(w.Cluster("demo"))
			w.Settle()
			nothingLeft(w)
		}},
		testkit.Scenario{Name: "deleted-while-starting", Run: func(w *testkit.World) {
			w.Kubelet.Idle = func(*corev1.Pod) bool { return true }
			w.Create(testkit.Cluster("demo", testkit.Group("cpu", 2)))
			w.Settle()
			w.Delete(w.Cluster("demo"))
			w.Settle()
			nothingLeft(w)
		}},
		testkit.Scenario{Name: "recreated-at-once", Run: recreated},
		testkit.Scenario{Name: "recreated-before-gc", Run: func(w *testkit.World) {
			w.HoldGC = true
			started(w, "demo", testkit.Group("cpu", 2))
			w.Delete(w.Cluster("demo"))
			w.Create(testkit.Cluster("demo", testkit.Group("cpu", 2)))
			w.SettleRefused()
			w.HoldGC = false
			w.Settle()
			w.Expect("demo", ready)
			sizes(w, "demo", map[string]int{"": 1, "cpu": 2})
		}},
		testkit.Scenario{Name: "hastened-before-gc", Run: func(w *testkit.World) {
			w.HoldGC = true
			started(w, "demo", testkit.Group("cpu", 2))
			w.Kubelet.Hang = func(*corev1.Pod) bool { return true }
			w.Delete(w.Cluster("demo"))
			w.Settle()
			hastened(w, 3)
			w.Kubelet.Hang, w.HoldGC = nil, false
			w.Settle()
			nothingLeft(w)
		}},
	)
}

// TestDeleteInTheForeground: the pods of a cluster that waits for them end as fast as those of one that is gone.
func TestDeleteInTheForeground(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "hastened-in-the-foreground", Run: func(w *testkit.World) {
			started(w, "demo", testkit.Group("cpu", 2))
			w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Finalizers = []string{"foregroundDeletion"} })
			w.Kubelet.Hang = func(*corev1.Pod) bool { return true }
			w.Delete(w.Cluster("demo"))
			w.Settle()
			hastened(w, 3)
			w.Kubelet.Hang = nil
			w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Finalizers = nil })
			w.Settle()
			nothingLeft(w)
		}},
		testkit.Scenario{Name: "kept-for-another-finalizer", Run: func(w *testkit.World) {
			started(w, "demo", testkit.Group("cpu", 2))
			w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Finalizers = []string{"orphan"} })
			w.Delete(w.Cluster("demo"))
			w.Settle()
			sizes(w, "demo", map[string]int{"": 1, "cpu": 2})
			w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Finalizers = nil })
			w.Settle()
		}},
	)
}

func nothingLeft(w *testkit.World) {
	w.Helper()
	for _, list := range []client.ObjectList{&corev1.PodList{}, &corev1.ServiceList{}, &corev1.SecretList{}} {
		w.Must(w.Client.List(w.Ctx, list))
		if count := meta.LenList(list); count > 0 {
			w.Fatalf("%d objects of %T are left", count, list)
		}
	}
}

func hastened(w *testkit.World, want int) {
	w.Helper()
	count := 0
	for _, pod := range w.Pods("demo") {
		if pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds <= 5 {
			count++
		}
	}
	if count != want {
		w.Fatalf("%d pods were hastened, want %d", count, want)
	}
}

func recreated(w *testkit.World) {
	started(w, "demo", testkit.Group("cpu", 2))
	w.Delete(w.Cluster("demo"))
	w.Create(testkit.Cluster("demo", testkit.Group("cpu", 1)))
	w.Settle()
	w.Expect("demo", ready)
	epochIs(w, 1)
	sizes(w, "demo", map[string]int{"": 1, "cpu": 1})
	for _, pod := range w.Pods("demo") {
		if pod.OwnerReferences[0].UID != w.Cluster("demo").UID {
			w.Fatalf("pod %s belongs to the former cluster", pod.Name)
		}
	}
}

// TestGoneFromTheCacheOnly is a cache that has lost a cluster which still lives: its
// pods are left alone.
func TestGoneFromTheCacheOnly(t *testing.T) {
	w := testkit.NewWorld(t)
	started(w, "demo", testkit.Group("cpu", 2))
	before := testkit.UIDs(w.Pods("demo"))
	w.Forget(w.Cluster("demo"))
	w.Pass("demo")
	if after := testkit.UIDs(w.Pods("demo")); len(after) != len(before) {
		t.Fatalf("pods of a living cluster were deleted: %v, then %v", before, after)
	}
	hastened(w, 0)
	w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Labels = map[string]string{"seen": "again"} })
	w.Settle()
	w.Expect("demo", ready)
}

// TestHeadMissingFromTheCacheOnly is a cache of pods that is late: the head that the
// record names lives, and its epoch goes on.
func TestHeadMissingFromTheCacheOnly(t *testing.T) {
	w := testkit.NewWorld(t)
	started(w, "demo", testkit.Group("cpu", 2))
	before := testkit.UIDs(w.Pods("demo"))
	w.Forget(w.Head("demo"))
	w.Pass("demo")
	epochIs(w, 1)
	if after := testkit.UIDs(w.Pods("demo")); !slices.Equal(before, after) {
		t.Fatalf("a late cache cost pods: %v, then %v", before, after)
	}
}
