package cluster_test

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

const ready = "Ready=True AllReady"

// started brings a cluster to Ready.
func started(w *testkit.World, name string, groups ...v1beta1.WorkerGroup) {
	w.Helper()
	w.Create(testkit.Cluster(name, groups...))
	w.Settle()
	w.Expect(name, ready)
}

func play(t *testing.T, scenarios ...testkit.Scenario) {
	t.Helper()
	testkit.Play(t, scenarios...)
}

func sizes(w *testkit.World, name string, want map[string]int) {
	w.Helper()
	for group, count := range want {
		if have := len(w.Workers(name, group)); have != count {
			w.Fatalf("group %q has %d pods, want %d", group, have, count)
		}
	}
}

func TestSize(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "create", Run: func(w *testkit.World) {
			started(w, "demo", testkit.Group("cpu", 2), testkit.Group("gpu", 1))
			sizes(w, "demo", map[string]int{"": 1, "cpu": 2, "gpu": 1})
			w.Expect("demo", "Reconciling=False", "Stalled=False", "HeadReady=True", "WorkersReady=True", "UpToDate=True", "NameConflict=absent")
		}},
		testkit.Scenario{Name: "no-groups", Run: func(w *testkit.World) {
			started(w, "demo")
			sizes(w, "demo", map[string]int{"": 1})
		}},
		testkit.Scenario{Name: "scale-1-4-2", Run: scale142},
		testkit.Scenario{Name: "groups", Run: regroup},
		testkit.Scenario{Name: "groups-to-and-fro", Run: func(w *testkit.World) {
			started(w, "demo", testkit.Group("cpu", 2), testkit.Group("gpu", 1))
			kept := testkit.UIDs(append(w.Workers("demo", "cpu"), w.Head("demo")))
			for range 2 {
				for _, groups := range [][]v1beta1.WorkerGroup{{testkit.Group("cpu", 2)}, {testkit.Group("gpu", 1), testkit.Group("cpu", 2)}} {
					w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Spec.WorkerGroups = groups })
				}
				w.Settle()
			}
			w.Expect("demo", ready, "UpToDate=True")
			sizes(w, "demo", map[string]int{"": 1, "cpu": 2, "gpu": 1})
			untouched(w, kept, append(w.Workers("demo", "cpu"), w.Head("demo")))
		}},
		testkit.Scenario{Name: "scale-in-one-go", Run: func(w *testkit.World) {
			w.Create(testkit.Cluster("demo", testkit.Group("cpu", 4)))
			w.Scale("demo", 1)
			w.Settle()
			sizes(w, "demo", map[string]int{"cpu": 1})
		}},
		testkit.Scenario{Name: "hanging-pod", Run: hangingPod},
		testkit.Scenario{Name: "template-edited", Run: templateEdited},
		testkit.Scenario{Name: "prefix-names", Run: prefixNames},
	)
}

func scale142(w *testkit.World) {
	started(w, "demo", testkit.Group("cpu", 1))
	first := testkit.UIDs(w.Workers("demo", "cpu"))
	w.Scale("demo", 4)
	w.Settle()
	w.Expect("demo", ready)
	sizes(w, "demo", map[string]int{"cpu": 4})
	w.Scale("demo", 2)
	w.Settle()
	w.Expect("demo", ready)
	sizes(w, "demo", map[string]int{"cpu": 2})
	if last := testkit.UIDs(w.Workers("demo", "cpu")); last[0] != first[0] {
		w.Fatalf("the first worker was replaced: %v, then %v", first, last)
	}
	if epoch := w.Cluster("demo").Status.Epoch; epoch != 1 {
		w.Fatalf("scaling began epoch %d", epoch)
	}
}

func regroup(w *testkit.World) {
	started(w, "demo", testkit.Group("a", 1), testkit.Group("b", 2))
	kept := testkit.UIDs(w.Workers("demo", "b"))
	head := w.Head("demo").UID
	w.Edit("demo", func(c *v1beta1.ComputeCluster) {
		c.Spec.WorkerGroups = []v1beta1.WorkerGroup{testkit.Group("c", 1), testkit.Group("b", 2)}
	})
	w.Settle()
	w.Expect("demo", ready, "UpToDate=True")
	sizes(w, "demo", map[string]int{"a": 0, "b": 2, "c": 1})
	w.Edit("demo", func(c *v1beta1.ComputeCluster) { slices.Reverse(c.Spec.WorkerGroups) })
	w.Settle()
	w.Expect("demo", ready, "UpToDate=True")
	if !slices.Equal(kept, testkit.UIDs(w.Workers("demo", "b"))) || w.Head("demo").UID != head {
		w.Fatalf("pods of a group that stayed were touched")
	}
}

// hangingPod has a pod that never stops: its successor takes another slot.
func hangingPod(w *testkit.World) {
	started(w, "demo", testkit.Group("cpu", 3))
	hung := w.Workers("demo", "cpu")[1]
	w.Kubelet.Hang = func(pod *corev1.Pod) bool { return pod.UID == hung.UID }
	w.Delete(hung)
	w.Settle()
	w.Expect("demo", ready)
	w.Scale("demo", 5)
	w.Settle()
	w.Expect("demo", ready)
	sizes(w, "demo", map[string]int{"cpu": 5})
	w.Kubelet.Hang = nil
	w.Settle()
	sizes(w, "demo", map[string]int{"cpu": 5})
	w.Scale("demo", 3)
	w.Settle()
	sizes(w, "demo", map[string]int{"cpu": 3})
}

// templateEdited is an edit that no pod follows until someone deletes it.
func templateEdited(w *testkit.World) {
	started(w, "demo", testkit.Group("cpu", 2))
	before := testkit.UIDs(w.Pods("demo"))
	w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Spec.Image = "example.com/ray:mine" })
	w.Settle()
	w.Expect("demo", ready, "UpToDate=False PodsOutdated")
	if !slices.Equal(before, testkit.UIDs(w.Pods("demo"))) {
		w.Fatalf("an edited image touched running pods")
	}
	w.Delete(w.Workers("demo", "cpu")[0])
	w.Settle()
	w.Expect("demo", ready, "UpToDate=False PodsOutdated")
	images := map[string]int{}
	for _, pod := range w.Workers("demo", "cpu") {
		images[pod.Spec.Containers[0].Image]++
	}
	if want := map[string]int{"example.com/ray:mine": 1, "rayproject/ray:2.60.0": 1}; fmt.Sprint(images) != fmt.Sprint(want) {
		w.Fatalf("images %v, want %v", images, want)
	}
	w.Delete(w.Head("demo"))
	w.Settle()
	w.Expect("demo", ready, "UpToDate=True")
}

// prefixNames are clusters and groups whose names could be taken for each other's.
func prefixNames(w *testkit.World) {
	w.Create(testkit.Cluster("a", testkit.Group("b-c", 1)), testkit.Cluster("a-b", testkit.Group("c", 1)))
	w.Settle()
	w.Expect("a", ready)
	w.Expect("a-b", ready)
	w.Delete(w.Cluster("a"))
	w.Settle()
	w.Expect("a-b", ready)
	if pods := w.Pods("a"); len(pods) != 0 {
		w.Fatalf("%d pods of a deleted cluster are left", len(pods))
	}
	sizes(w, "a-b", map[string]int{"": 1, "c": 1})
}

// TestResync looks at settled clusters again and again: nothing may be written.
func TestResync(t *testing.T) {
	w := testkit.NewWorld(t)
	for i := range 20 {
		w.Create(testkit.Cluster(fmt.Sprintf("c%d", i), testkit.Group("cpu", 2)))
	}
	w.Settle()
	_, count := w.Writes(0)
	for range 3 {
		w.Settle()
	}
	if writes, _ := w.Writes(count); len(writes) > 0 {
		t.Fatalf("three resyncs of 20 clusters wrote: %q", writes)
	}
}

// TestServerLabels_CostOneWritePerCluster: an operator that is told of a server for portals lets it in to the clusters that
// are there, and nothing else of them changes.
func TestServerLabels_CostOneWritePerCluster(t *testing.T) {
	w := testkit.NewWorld(t)
	w.ServerLabels = nil
	w.Return()
	names := []string{"a", "b", "c"}
	for _, name := range names {
		started(w, name, testkit.Group("cpu", 2))
	}
	for _, told := range []map[string]string{{"app": "server"}, nil} {
		_, count := w.Writes(0)
		w.ServerLabels = told
		w.Return()
		w.Settle()
		writes, _ := w.Writes(count)
		slices.Sort(writes)
		want := []string{"apply NetworkPolicy a-network", "apply NetworkPolicy b-network", "apply NetworkPolicy c-network"}
		if !slices.Equal(writes, want) {
			t.Errorf("labels %v cost the writes %q, want %q", told, writes, want)
		}
	}
}

// TestWritesOfOneCluster holds the writes that a cluster costs from nothing to Ready.
func TestWritesOfOneCluster(t *testing.T) {
	w := testkit.NewWorld(t)
	started(w, "demo", testkit.Group("cpu", 3))
	writes, count := w.Writes(0)
	creates := 0
	for _, write := range writes {
		if write[:6] == "create" {
			creates++
		}
	}
	if creates != 8 { // Secret, Service, NetworkPolicy, head, three workers, and after a minute the head's budget
		t.Errorf("%d creates: %q", creates, writes)
	}
	w.Scale("demo", 4)
	w.Settle()
	writes, _ = w.Writes(count)
	if len(writes) > 3 { // the pod; status when it is made and when it is ready
		t.Errorf("one more worker cost %d writes: %q", len(writes), writes)
	}
}
