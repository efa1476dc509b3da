package cluster_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

// longer is longer than any drain.
const longer = 24 * time.Hour

func all(*corev1.Pod) bool { return true }

// untouched asserts that pods are those of before.
func untouched(w *testkit.World, before []string, now []*corev1.Pod) {
	w.Helper()
	if after := testkit.UIDs(now); !slices.Equal(before, after) {
		w.Fatalf("pods were touched: %v, then %v", before, after)
	}
}

func draining(w *testkit.World, group string, want int) []*corev1.Pod {
	w.Helper()
	pods := w.Draining("demo", group)
	if len(pods) != want {
		w.Fatalf("%d workers of %s drain, want %d", len(pods), group, want)
	}
	return pods
}

func TestDrain(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "idle-ones-go-first", Run: idleFirst},
		testkit.Scenario{Name: "work-ends", Run: workEnds},
		testkit.Scenario{Name: "work-does-not-end", Run: func(w *testkit.World) {
			w.Ray.Busy, w.Ray.WorkTakes = all, longer
			started(w, "demo", testkit.Group("cpu", 2))
			w.Scale("demo", 1)
			w.After(200 * time.Second)
			draining(w, "cpu", 1)
			w.After(200 * time.Second)
			sizes(w, "demo", map[string]int{"cpu": 1})
			w.Expect("demo", ready)
		}},
		testkit.Scenario{Name: "no-time-to-drain", Run: func(w *testkit.World) {
			w.Ray.Busy, w.Ray.WorkTakes = all, longer
			group, none := testkit.Group("cpu", 2), int32(0)
			group.DrainSeconds = &none
			started(w, "demo", group)
			w.Scale("demo", 1)
			w.Settle()
			sizes(w, "demo", map[string]int{"cpu": 1})
		}},
		testkit.Scenario{Name: "head-says-nothing", Run: func(w *testkit.World) {
			w.Ray.Silent = all
			started(w, "demo", testkit.Group("cpu", 3))
			w.Scale("demo", 1)
			w.After(400 * time.Second)
			w.Expect("demo", ready)
			sizes(w, "demo", map[string]int{"cpu": 1})
		}},
	)
}

func TestDrainUnderway(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "head-lost-while-draining", Run: func(w *testkit.World) {
			w.Ray.Busy, w.Ray.WorkTakes = all, longer
			started(w, "demo", testkit.Group("cpu", 3))
			w.Scale("demo", 2)
			w.Settle()
			draining(w, "cpu", 1)
			w.Force(w.Head("demo"))
			w.Settle()
			back(w, 2)
		}},
		testkit.Scenario{Name: "scaled-up-while-draining", Run: scaledUpAgain},
		testkit.Scenario{Name: "scaled-to-and-fro", Run: func(w *testkit.World) {
			started(w, "demo", testkit.Group("cpu", 2))
			for _, size := range []int32{4, 1, 3, 0, 2} {
				w.Scale("demo", size)
			}
			w.Settle()
			back(w, 1)
		}},
		testkit.Scenario{Name: "group-removed", Run: func(w *testkit.World) {
			w.Ray.Busy, w.Ray.WorkTakes = all, time.Minute
			started(w, "demo", testkit.Group("cpu", 1), testkit.Group("gpu", 1))
			w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Spec.WorkerGroups = c.Spec.WorkerGroups[:1] })
			w.Settle()
			w.Expect("demo", ready)
			sizes(w, "demo", map[string]int{"cpu": 1, "gpu": 0})
			epochIs(w, 1)
		}},
		testkit.Scenario{Name: "drain-noted-by-nobody-we-know", Run: func(w *testkit.World) {
			started(w, "demo", testkit.Group("cpu", 2))
			w.Annotate(w.Workers("demo", "cpu")[0], v1beta1.AnnotationDrain, "soon")
			w.Settle()
			back(w, 1)
		}},
		testkit.Scenario{Name: "retired", Run: retired},
	)
}

// idleFirst has the highest worker at work: one of the others leaves in its place.
func idleFirst(w *testkit.World) {
	started(w, "demo", testkit.Group("cpu", 3))
	busy := w.Workers("demo", "cpu")[2]
	w.Ray.Busy, w.Ray.WorkTakes = func(pod *corev1.Pod) bool { return pod.UID == busy.UID }, longer
	w.Scale("demo", 1)
	w.Settle()
	w.Expect("demo", ready)
	untouched(w, []string{string(busy.UID)}, w.Workers("demo", "cpu"))
}

// workEnds has work on both workers that lasts for a minute: so long the leaving one stays.
func workEnds(w *testkit.World) {
	w.Ray.Busy, w.Ray.WorkTakes = all, longer
	started(w, "demo", testkit.Group("cpu", 2))
	w.Scale("demo", 1)
	w.Settle()
	leaver := draining(w, "cpu", 1)[0]
	w.Expect("demo", ready)
	w.Ray.WorkTakes = 0
	w.After(10 * time.Second)
	for _, pod := range w.Workers("demo", "cpu") {
		if pod.UID == leaver.UID {
			w.Fatalf("the work has ended and %s is still there", pod.Name)
		}
	}
	sizes(w, "demo", map[string]int{"cpu": 1})
}

// scaledUpAgain wants a worker back while it drains: what was told to leave leaves, and
// another takes a slot of its own at once.
func scaledUpAgain(w *testkit.World) {
	w.Ray.Busy, w.Ray.WorkTakes = all, longer
	started(w, "demo", testkit.Group("cpu", 2))
	w.Scale("demo", 1)
	w.Settle()
	draining(w, "cpu", 1)
	w.Scale("demo", 2)
	w.Settle()
	draining(w, "cpu", 1)
	sizes(w, "demo", map[string]int{"cpu": 3})
	w.Expect("demo", ready)
	w.Ray.WorkTakes = 0
	w.After(10 * time.Second)
	back(w, 1)
}

// retired is a worker that someone wants replaced: its successor comes while it drains.
func retired(w *testkit.World) {
	w.Ray.Busy, w.Ray.WorkTakes = all, longer
	started(w, "demo", testkit.Group("cpu", 2))
	old := w.Workers("demo", "cpu")[0]
	w.Annotate(old, v1beta1.AnnotationRetire, "")
	w.Settle()
	if pod := draining(w, "cpu", 1)[0]; pod.UID != old.UID {
		w.Fatalf("%s drains, want %s", pod.Name, old.Name)
	}
	sizes(w, "demo", map[string]int{"cpu": 3})
	w.Ray.WorkTakes = 0
	w.After(10 * time.Second)
	back(w, 1)
	if slices.Contains(testkit.UIDs(w.Workers("demo", "cpu")), string(old.UID)) {
		w.Fatalf("the retired worker is still there")
	}
}
