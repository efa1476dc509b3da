package cluster_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

const isSuspended = "Suspended=True SuspendedBySpec"

func suspend(w *testkit.World, suspend bool) {
	w.Helper()
	w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Spec.Suspend = new(suspend) })
}

// gaveBack asserts that a suspended cluster has given back what it held, and kept the rest.
func gaveBack(w *testkit.World, conditions ...string) {
	w.Helper()
	w.Expect("demo", append(conditions, "Reconciling=False", "Stalled=False")...)
	if pods := w.Pods("demo"); len(pods) > 0 {
		w.Fatalf("a suspended cluster has %d pods", len(pods))
	}
	w.Must(w.Client.Get(w.Ctx, clientKey("demo-head"), &corev1.Service{}))
}

// back asserts that a cluster runs again, in an epoch.
func back(w *testkit.World, epoch int64) {
	w.Helper()
	w.Expect("demo", ready, "Suspended=absent", "UpToDate=True")
	sizes(w, "demo", map[string]int{"": 1, "cpu": 2})
	epochIs(w, epoch)
}

func TestSuspend(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "suspended-and-resumed", Run: func(w *testkit.World) {
			started(w, "demo", testkit.Group("cpu", 2))
			suspend(w, true)
			w.Settle()
			gaveBack(w, isSuspended, "Ready=absent", "Reconciling=False", "Stalled=False")
			suspend(w, false)
			w.Settle()
			back(w, 2)
		}},
		testkit.Scenario{Name: "suspended-from-the-start", Run: func(w *testkit.World) {
			cluster := testkit.Cluster("demo", testkit.Group("cpu", 2))
			cluster.Spec.Suspend = new(true)
			w.Create(cluster)
			w.Settle()
			gaveBack(w, isSuspended)
			suspend(w, false)
			w.Settle()
			back(w, 2)
		}},
		testkit.Scenario{Name: "suspended-while-starting", Run: func(w *testkit.World) {
			w.Kubelet.Idle = func(*corev1.Pod) bool { return true }
			w.Create(testkit.Cluster("demo", testkit.Group("cpu", 2)))
			w.Settle()
			suspend(w, true)
			w.Settle()
			gaveBack(w, isSuspended)
			w.Kubelet.Idle = nil
			suspend(w, false)
			w.Settle()
			back(w, 2)
		}},
		testkit.Scenario{Name: "suspended-while-the-head-is-lost", Run: func(w *testkit.World) {
			started(w, "demo", testkit.Group("cpu", 2))
			w.Force(w.Head("demo"))
			suspend(w, true)
			w.Settle()
			gaveBack(w, isSuspended)
			suspend(w, false)
			w.Settle()
			w.Expect("demo", ready, "Suspended=absent")
			sizes(w, "demo", map[string]int{"": 1, "cpu": 2})
		}, AnyEpoch: true},
		testkit.Scenario{Name: "suspended-while-draining", Run: func(w *testkit.World) {
			w.Ray.Busy, w.Ray.WorkTakes = all, longer
			started(w, "demo", testkit.Group("cpu", 2))
			w.Scale("demo", 1)
			w.Settle()
			suspend(w, true)
			w.Settle()
			gaveBack(w, isSuspended)
			w.Scale("demo", 2)
			suspend(w, false)
			w.Settle()
			back(w, 2)
		}},
	)
}

func TestSuspendUnderway(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "resumed-before-all-are-gone", Run: resumedEarly},
		testkit.Scenario{Name: "suspended-and-deleted", Run: func(w *testkit.World) {
			started(w, "demo", testkit.Group("cpu", 2))
			w.Kubelet.Hang = all
			suspend(w, true)
			w.Settle()
			w.Expect("demo", "Suspended=False Suspending", "Reconciling=True", "Ready=False Suspending")
			w.Delete(w.Cluster("demo"))
			w.Kubelet.Hang = nil
			w.Settle()
			nothingLeft(w)
		}},
		testkit.Scenario{Name: "edited-while-suspended", Run: func(w *testkit.World) {
			started(w, "demo", testkit.Group("cpu", 1))
			suspend(w, true)
			w.Settle()
			w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Spec.Image = "example.com/ray:mine" })
			w.Scale("demo", 2)
			w.Settle()
			gaveBack(w, isSuspended)
			suspend(w, false)
			w.Settle()
			back(w, 2)
		}},
		testkit.Scenario{Name: "suspended-and-resumed-in-one-go", Run: func(w *testkit.World) {
			started(w, "demo", testkit.Group("cpu", 2))
			suspend(w, true)
			suspend(w, false)
			w.Settle()
			w.Expect("demo", ready, "Suspended=absent")
			sizes(w, "demo", map[string]int{"": 1, "cpu": 2})
		}, AnyEpoch: true},
		testkit.Scenario{Name: "group-suspended", Run: groupSuspended},
		testkit.Scenario{Name: "managed-by-others", Run: func(w *testkit.World) {
			cluster := testkit.Cluster("demo", testkit.Group("cpu", 2))
			cluster.Spec.ManagedBy = "kueue.x-k8s.io/multikueue"
			w.Create(cluster)
			w.Settle()
			nothingLeft(w)
			if found := w.Cluster("demo"); meta.IsStatusConditionTrue(found.Status.Conditions, "Ready") || found.Status.Phase != "" {
				w.Fatalf("another's cluster was written to: %+v", found.Status)
			}
		}},
	)
}

// resumedEarly resumes while pods of the former session hang: the new one waits for none.
func resumedEarly(w *testkit.World) {
	started(w, "demo", testkit.Group("cpu", 2))
	w.Kubelet.Hang = all
	suspend(w, true)
	w.Settle()
	w.Expect("demo", "Suspended=False Suspending")
	suspend(w, false)
	w.Settle()
	back(w, 2)
	w.Kubelet.Hang = nil
	w.Settle()
	back(w, 2)
}

// groupSuspended takes one group's workers away, drained, and brings them back.
func groupSuspended(w *testkit.World) {
	started(w, "demo", testkit.Group("cpu", 2), testkit.Group("gpu", 1))
	kept := testkit.UIDs(append(w.Workers("demo", "gpu"), w.Head("demo")))
	w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Spec.WorkerGroups[0].Suspend = new(true) })
	w.Settle()
	w.Expect("demo", ready)
	sizes(w, "demo", map[string]int{"": 1, "cpu": 0, "gpu": 1})
	w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Spec.WorkerGroups[0].Suspend = new(false) })
	w.Settle()
	w.Expect("demo", ready)
	sizes(w, "demo", map[string]int{"": 1, "cpu": 2, "gpu": 1})
	untouched(w, kept, append(w.Workers("demo", "gpu"), w.Head("demo")))
	epochIs(w, 1)
}
