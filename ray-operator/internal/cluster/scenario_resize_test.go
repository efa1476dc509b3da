package cluster_test

import (
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

// size gives the first group a size.
func size(w *testkit.World, pairs ...string) {
	w.Helper()
	w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Spec.WorkerGroups[0].Size = testkit.Resources(pairs...) })
}

// memories asserts how much memory each worker has.
func memories(w *testkit.World, want string) {
	w.Helper()
	for _, pod := range w.Workers("demo", "cpu") {
		if have := pod.Spec.Containers[0].Resources.Limits.Memory().String(); have != want {
			w.Fatalf("pod %s has %s of memory, want %s", pod.Name, have, want)
		}
	}
}

func TestResize(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "larger-in-place", Run: func(w *testkit.World) {
			started(w, "demo", testkit.Sized(testkit.Group("cpu", 2), "cpu", "1", "memory", "4Gi"))
			kept := testkit.UIDs(w.Pods("demo"))
			size(w, "cpu", "2", "memory", "8Gi")
			w.Settle()
			w.Expect("demo", ready, "UpToDate=True")
			memories(w, "8Gi")
			untouched(w, kept, w.Pods("demo"))
		}},
		testkit.Scenario{Name: "smaller-is-out-of-date", Run: func(w *testkit.World) {
			started(w, "demo", testkit.Sized(testkit.Group("cpu", 2), "cpu", "2", "memory", "8Gi"))
			kept := testkit.UIDs(w.Pods("demo"))
			size(w, "cpu", "1", "memory", "4Gi")
			w.Settle()
			w.Expect("demo", ready, "UpToDate=False PodsOutdated")
			memories(w, "8Gi")
			untouched(w, kept, w.Pods("demo"))
		}},
		testkit.Scenario{Name: "too-large-for-its-node", Run: func(w *testkit.World) {
			w.Kubelet.Full = all
			started(w, "demo", testkit.Sized(testkit.Group("cpu", 2), "cpu", "1", "memory", "4Gi"))
			kept := testkit.UIDs(w.Pods("demo"))
			size(w, "cpu", "64", "memory", "400Gi")
			w.Settle()
			w.Expect("demo", ready, "UpToDate=False PodsOutdated")
			untouched(w, kept, w.Pods("demo"))
		}},
		testkit.Scenario{Name: "larger-and-scaled", Run: func(w *testkit.World) {
			started(w, "demo", testkit.Sized(testkit.Group("cpu", 1), "cpu", "1", "memory", "4Gi"))
			size(w, "cpu", "1", "memory", "6Gi")
			w.Scale("demo", 3)
			w.Settle()
			w.Expect("demo", ready, "UpToDate=True")
			memories(w, "6Gi")
			sizes(w, "demo", map[string]int{"cpu": 3})
		}},
	)
}
