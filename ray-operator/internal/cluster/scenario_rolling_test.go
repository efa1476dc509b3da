package cluster_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

// rolling is a running cluster of three workers whose group rolls at a pace.
func rolling(w *testkit.World, unavailable, surge int32) {
	w.Helper()
	cluster := testkit.Cluster("demo", testkit.Group("cpu", 3))
	cluster.Spec.UpgradeStrategy = &v1beta1.ClusterUpgradeStrategy{
		Type: v1beta1.ClusterUpgradeRollingWorkers, RollingWorkers: &v1beta1.RollingWorkers{MaxUnavailable: new(intstr.FromInt32(unavailable)), MaxSurge: new(intstr.FromInt32(surge))},
	}
	w.Create(cluster)
	w.Settle()
	w.Expect("demo", ready)
}

// reimage gives the first group another image.
func reimage(w *testkit.World, image string) {
	w.Helper()
	w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Spec.WorkerGroups[0].Image = image })
}

// imaged asserts how many workers have each image.
func imaged(w *testkit.World, want map[string]int) {
	w.Helper()
	for image, count := range want {
		have := 0
		for _, pod := range w.Workers("demo", "cpu") {
			if pod.Spec.Containers[0].Image == image {
				have++
			}
		}
		if have != count {
			w.Fatalf("%d workers have image %s, want %d", have, image, count)
		}
	}
}

func rolled(unavailable, surge int32) func(*testkit.World) {
	return func(w *testkit.World) {
		rolling(w, unavailable, surge)
		head := w.Head("demo").UID
		reimage(w, "new")
		w.Settle()
		w.Expect("demo", ready, "UpToDate=True")
		imaged(w, map[string]int{"new": 3})
		sizes(w, "demo", map[string]int{"": 1, "cpu": 3})
		if w.Head("demo").UID != head {
			w.Fatalf("rolling workers cost the head")
		}
	}
}

func broken(pod *corev1.Pod) bool { return pod.Spec.Containers[0].Image == "broken" }

func TestRolling(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "rolled-one-missing", Run: rolled(1, 0)},
		testkit.Scenario{Name: "rolled-one-more", Run: rolled(0, 1)},
		testkit.Scenario{Name: "rolled-two-and-one", Run: rolled(2, 1)},
		testkit.Scenario{Name: "rolled-to-what-never-starts", Run: func(w *testkit.World) {
			w.Kubelet.Idle = broken
			rolling(w, 1, 0)
			reimage(w, "broken")
			w.Settle()
			imaged(w, map[string]int{"broken": 1, "rayproject/ray:2.60.0": 2})
			w.Expect("demo", "UpToDate=False RollingOut", "Ready=False")
			left := testkit.UIDs(slices.DeleteFunc(w.Workers("demo", "cpu"), broken))
			reimage(w, "")
			w.Settle()
			w.Expect("demo", ready, "UpToDate=True")
			imaged(w, map[string]int{"broken": 0, "rayproject/ray:2.60.0": 3})
			for _, uid := range left {
				if !slices.Contains(testkit.UIDs(w.Workers("demo", "cpu")), uid) {
					w.Fatalf("worker %s was replaced, which never was out of date", uid)
				}
			}
		}},
		testkit.Scenario{Name: "rolled-to-what-never-starts-beside", Run: func(w *testkit.World) {
			w.Kubelet.Idle = broken
			rolling(w, 0, 1)
			kept := testkit.UIDs(w.Workers("demo", "cpu"))
			reimage(w, "broken")
			w.Settle()
			imaged(w, map[string]int{"broken": 1, "rayproject/ray:2.60.0": 3})
			reimage(w, "")
			w.Settle()
			w.Expect("demo", ready, "UpToDate=True")
			untouched(w, kept, w.Workers("demo", "cpu"))
		}},
		testkit.Scenario{Name: "rolled-under-work", Run: func(w *testkit.World) {
			w.Ray.Busy, w.Ray.WorkTakes = all, 40*time.Second
			rolled(1, 1)(w)
		}},
	)
}

func TestRollingUnderway(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "rolled-there-and-back", Run: func(w *testkit.World) {
			w.Ray.Busy, w.Ray.WorkTakes = all, longer
			rolling(w, 1, 1)
			reimage(w, "new")
			reimage(w, "newer")
			reimage(w, "")
			w.Settle()
			w.Expect("demo", ready, "UpToDate=True")
			imaged(w, map[string]int{"new": 0, "newer": 0})
		}},
		testkit.Scenario{Name: "not-rolled-past-the-head", Run: func(w *testkit.World) {
			rolling(w, 1, 0)
			kept := testkit.UIDs(w.Pods("demo"))
			w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Spec.Image = "new" })
			w.Settle()
			w.Expect("demo", ready, "UpToDate=False HeadOutdated")
			untouched(w, kept, w.Pods("demo"))
			w.Delete(w.Head("demo"))
			w.Settle()
			w.Expect("demo", ready, "UpToDate=True")
			epochIs(w, 2)
		}},
		testkit.Scenario{Name: "rolled-with-hosts", Run: rolledHosts},
		testkit.Scenario{Name: "rolled-and-scaled", Run: func(w *testkit.World) {
			rolling(w, 1, 1)
			reimage(w, "new")
			w.Scale("demo", 2)
			w.Settle()
			w.Scale("demo", 4)
			w.Settle()
			w.Expect("demo", ready, "UpToDate=True")
			imaged(w, map[string]int{"new": 4})
		}},
		testkit.Scenario{Name: "recreated", Run: recreatedAll},
		testkit.Scenario{Name: "recreated-there-and-back", Run: func(w *testkit.World) {
			recreating(w)
			for _, image := range []string{"new", "newer", ""} {
				reimage(w, image)
			}
			w.Settle()
			w.Expect("demo", ready, "UpToDate=True")
			sizes(w, "demo", map[string]int{"": 1, "cpu": 2})
		}, AnyEpoch: true},
	)
}

func rolledHosts(w *testkit.World) {
	cluster := testkit.Cluster("demo", sliced(2, 2))
	cluster.Spec.UpgradeStrategy = &v1beta1.ClusterUpgradeStrategy{Type: v1beta1.ClusterUpgradeRollingWorkers}
	w.Create(cluster)
	w.Settle()
	former := testkit.UIDs(w.Workers("demo", "tpu"))
	reimage(w, "new")
	w.Settle()
	w.Expect("demo", ready, "UpToDate=True")
	whole(w, 2, 2)
	for _, uid := range testkit.UIDs(w.Workers("demo", "tpu")) {
		if slices.Contains(former, uid) {
			w.Fatalf("an old host is still there")
		}
	}
}

func recreating(w *testkit.World) {
	w.Helper()
	cluster := testkit.Cluster("demo", testkit.Group("cpu", 2))
	cluster.Spec.UpgradeStrategy = &v1beta1.ClusterUpgradeStrategy{Type: v1beta1.ClusterUpgradeRecreate}
	w.Create(cluster)
	w.Settle()
	w.Expect("demo", ready)
}

// recreatedAll makes all pods again for any change, and never for what is no change of theirs.
func recreatedAll(w *testkit.World) {
	recreating(w)
	kept := testkit.UIDs(w.Pods("demo"))
	w.Scale("demo", 3)
	w.Settle()
	w.Scale("demo", 2)
	w.Settle()
	epochIs(w, 1)
	untouched(w, kept, w.Pods("demo"))
	reimage(w, "new")
	w.Settle()
	w.Expect("demo", ready, "UpToDate=True")
	sizes(w, "demo", map[string]int{"": 1, "cpu": 2})
	epochIs(w, 2)
}
