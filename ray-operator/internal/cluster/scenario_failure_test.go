package cluster_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

func TestFailure(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "worker-deleted", Run: workerDeleted},
		testkit.Scenario{Name: "worker-failed-late", Run: workerFailedLate},
		testkit.Scenario{Name: "worker-failed-twice", Run: workerFailedTwice},
		testkit.Scenario{Name: "worker-never-starts", Run: workerNeverStarts},
		testkit.Scenario{Name: "head-deleted", Run: func(w *testkit.World) {
			headLost(w, func(head *corev1.Pod) { w.Delete(head) })
		}},
		testkit.Scenario{Name: "head-gone-without-trace", Run: func(w *testkit.World) {
			headLost(w, func(head *corev1.Pod) { w.Force(head) })
		}},
		testkit.Scenario{Name: "head-failed", Run: func(w *testkit.World) {
			headLost(w, func(head *corev1.Pod) {
				w.Clock.Step(time.Minute)
				w.Must(w.Kubelet.Fail(w.Ctx, head, "Evicted"))
			})
		}},
		testkit.Scenario{Name: "head-failed-at-once", Run: func(w *testkit.World) {
			headLost(w, func(head *corev1.Pod) { w.Must(w.Kubelet.Fail(w.Ctx, head, "Evicted")) })
		}},
		testkit.Scenario{Name: "head-without-labels", Run: func(w *testkit.World) {
			headLost(w, func(head *corev1.Pod) {
				delete(head.Labels, v1beta1.LabelEpoch)
				w.Must(w.Client.Update(w.Ctx, head))
			})
		}},
		testkit.Scenario{Name: "head-container-ended", Run: func(w *testkit.World) {
			headLost(w, func(head *corev1.Pod) {
				w.Clock.Step(time.Minute)
				w.Must(w.Kubelet.Restart(w.Ctx, head))
			})
		}},
		testkit.Scenario{Name: "containers-ended-without-loss", Run: containersEnded},
		testkit.Scenario{Name: "head-hangs", Run: headHangs},
		testkit.Scenario{Name: "head-lost-three-times", Run: func(w *testkit.World) {
			started(w, "demo", testkit.Group("cpu", 1))
			for range 3 {
				w.Force(w.Head("demo"))
				w.Settle()
				w.Expect("demo", ready)
			}
			epochIs(w, 4)
		}},
		testkit.Scenario{Name: "unready", Run: unready},
		testkit.Scenario{Name: "labels-removed", Run: labelsRemoved},
	)
}

func epochIs(w *testkit.World, want int64) {
	w.Helper()
	if have := w.Cluster("demo").Status.Epoch; have != want {
		w.Fatalf("epoch %d, want %d", have, want)
	}
}

func workerDeleted(w *testkit.World) {
	started(w, "demo", testkit.Group("cpu", 2))
	workers := w.Workers("demo", "cpu")
	w.Delete(workers[0])
	w.Settle()
	w.Expect("demo", ready)
	sizes(w, "demo", map[string]int{"cpu": 2})
	epochIs(w, 1)
	if uids := testkit.UIDs(w.Workers("demo", "cpu")); slices.Contains(uids, string(workers[0].UID)) || !slices.Contains(uids, string(workers[1].UID)) {
		w.Fatalf("the workers are %v: %s was deleted, and %s was not", uids, workers[0].UID, workers[1].UID)
	}
}

func workerFailedLate(w *testkit.World) {
	started(w, "demo", testkit.Group("cpu", 2))
	w.Clock.Step(time.Minute)
	failed := w.Workers("demo", "cpu")[1]
	w.Must(w.Kubelet.Fail(w.Ctx, failed, "Evicted"))
	w.Settle()
	w.Expect("demo", ready)
	sizes(w, "demo", map[string]int{"cpu": 2})
	epochIs(w, 1)
	if slices.Contains(testkit.UIDs(w.Workers("demo", "cpu")), string(failed.UID)) {
		w.Fatalf("the failed worker is still there")
	}
}

// workerFailedTwice has a worker that fails as soon as it was made: its successors are
// paced.
func workerFailedTwice(w *testkit.World) {
	started(w, "demo", testkit.Group("cpu", 1))
	w.Clock.Step(time.Minute)
	for range 2 {
		worker := w.Workers("demo", "cpu")[0]
		made := worker.CreationTimestamp.Time
		w.Must(w.Kubelet.Fail(w.Ctx, worker, "Evicted"))
		w.Settle()
		w.Expect("demo", ready)
		if next := w.Workers("demo", "cpu")[0].CreationTimestamp.Time; next.Sub(made) < 10*time.Second {
			w.Fatalf("the successor came %s after the pod that failed", next.Sub(made))
		}
	}
}

func workerNeverStarts(w *testkit.World) {
	w.Kubelet.Idle = func(pod *corev1.Pod) bool { return pod.Labels[v1beta1.LabelGroup] == "cpu" }
	w.Create(testkit.Cluster("demo", testkit.Group("cpu", 2)))
	w.Settle()
	w.Expect("demo", "Ready=False Unschedulable", "HeadReady=True", "WorkersReady=False", "Reconciling=True", "Stalled=False")
	w.Kubelet.Idle = nil
	w.Settle()
	w.Expect("demo", ready)
}

// headLost loses the head in some way: a new epoch begins, with fresh workers.
func headLost(w *testkit.World, lose func(*corev1.Pod)) {
	started(w, "demo", testkit.Group("cpu", 2))
	former := testkit.UIDs(w.Pods("demo"))
	lose(w.Head("demo"))
	w.Settle()
	w.Expect("demo", ready, "UpToDate=True")
	sizes(w, "demo", map[string]int{"": 1, "cpu": 2})
	epochIs(w, 2)
	for _, uid := range testkit.UIDs(w.Pods("demo")) {
		if slices.Contains(former, uid) {
			w.Fatalf("a pod of the former epoch is still there")
		}
	}
	var service corev1.Service
	key := clientKey("demo-head")
	w.Must(w.Client.Get(w.Ctx, key, &service))
	if have := service.Spec.Selector[v1beta1.LabelEpoch]; have != "2" {
		w.Fatalf("the Service selects epoch %s", have)
	}
}

// containersEnded are ends of containers that cost no session: a worker's, and that of
// a head which nobody has joined.
func containersEnded(w *testkit.World) {
	w.Kubelet.Idle = func(pod *corev1.Pod) bool { return pod.Labels[v1beta1.LabelGroup] != "" }
	w.Create(testkit.Cluster("demo", testkit.Group("cpu", 2)))
	w.Settle()
	before := testkit.UIDs(w.Pods("demo"))
	w.Clock.Step(time.Minute)
	w.Must(w.Kubelet.Restart(w.Ctx, w.Head("demo")))
	w.Settle()
	w.Kubelet.Idle = nil
	w.Clock.Step(time.Minute)
	w.Settle()
	w.Must(w.Kubelet.Restart(w.Ctx, w.Workers("demo", "cpu")[0]))
	w.Settle()
	w.Expect("demo", ready)
	epochIs(w, 1)
	if !slices.Equal(before, testkit.UIDs(w.Pods("demo"))) {
		w.Fatalf("the end of a container replaced pods")
	}
}

// headHangs has a head that never stops; the next epoch does not wait for it.
func headHangs(w *testkit.World) {
	started(w, "demo", testkit.Group("cpu", 1))
	head := w.Head("demo")
	w.Kubelet.Hang = func(pod *corev1.Pod) bool { return pod.UID == head.UID }
	w.Delete(head)
	w.Settle()
	w.Expect("demo", ready)
	epochIs(w, 2)
	w.Kubelet.Hang = nil
	w.Settle()
	w.Expect("demo", ready)
	epochIs(w, 2)
}

// unready is a probe that fails for a while: nobody is replaced for it.
func unready(w *testkit.World) {
	started(w, "demo", testkit.Group("cpu", 1))
	before := testkit.UIDs(w.Pods("demo"))
	head := w.Head("demo")
	w.Must(w.Kubelet.Unready(w.Ctx, head))
	w.Settle()
	w.Expect("demo", "Ready=False ProbeFailing", "Stalled=False", "WorkersReady=True")
	back := w.Head("demo")
	back.Status.Conditions[0].Status = corev1.ConditionTrue
	w.Must(w.Client.Status().Update(w.Ctx, back))
	w.Settle()
	w.Expect("demo", ready)
	if !slices.Equal(before, testkit.UIDs(w.Pods("demo"))) {
		w.Fatalf("a failed probe replaced pods")
	}
}

// labelsRemoved is a pod whose place cannot be read any more: it is replaced.
func labelsRemoved(w *testkit.World) {
	started(w, "demo", testkit.Group("cpu", 2))
	worker := w.Workers("demo", "cpu")[1]
	delete(worker.Labels, v1beta1.LabelSlot)
	w.Must(w.Client.Update(w.Ctx, worker))
	w.Settle()
	w.Expect("demo", ready)
	sizes(w, "demo", map[string]int{"": 1, "cpu": 2})
	epochIs(w, 1)
}

// TestWarnings_AreEventsOnce: what a cluster waits for is told once, however often it is reconciled meanwhile.
func TestWarnings_AreEventsOnce(t *testing.T) {
	w := testkit.NewWorld(t)
	workerNeverStarts(w)
	warnings := slices.DeleteFunc(slices.Clone(w.Told), func(e string) bool { return !strings.HasPrefix(e, "Unschedulable: 2 of 2 workers of cpu") })
	if len(warnings) != 1 {
		t.Errorf("the cluster was told to wait %d times: %q", len(warnings), w.Told)
	}
}

// TestEventsOfLoss holds what people are told when a head is lost: once, in words.
func TestEventsOfLoss(t *testing.T) {
	w := testkit.NewWorld(t)
	started(w, "demo", testkit.Group("cpu", 1))
	if len(w.Told) != 0 {
		t.Errorf("a cluster that started well was worth the events %q", w.Told)
	}
	w.Force(w.Head("demo"))
	w.Settle()
	var codes []string
	for _, told := range w.Told {
		codes = append(codes, told[:strings.Index(told, ":")])
	}
	slices.Sort(codes)
	if want := []string{"HeadLost", "HeadReplaced"}; !slices.Equal(codes, want) {
		t.Errorf("events %q, want %q", w.Told, want)
	}
}

// TestRefusedHead: a kubelet refuses the head twice, and the workers wait for the third one.
func TestRefusedHead(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "head-refused", Run: func(w *testkit.World) {
			w.Kubelet.Idle = func(*corev1.Pod) bool { return true }
			w.Create(testkit.Cluster("demo", testkit.Group("cpu", 2)))
			w.Settle()
			kept := testkit.UIDs(w.Workers("demo", "cpu"))
			for range 2 {
				w.Must(w.Kubelet.Refuse(w.Ctx, w.Head("demo")))
				w.Settle()
			}
			w.Kubelet.Idle = nil
			w.Settle()
			w.Expect("demo", ready)
			epochIs(w, 3)
			untouched(w, kept, w.Workers("demo", "cpu"))
		}},
	)
}
