package job_test

import (
	"testing"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

func TestWakeRules_AreNeeded(t *testing.T) {
	testkit.NeedWakeRules(t, "ClusterJob", map[string]func(*testkit.World){
		"a job wakes the next in the queue":    placeFreed,
		"a cluster wakes the jobs that use it": clusterStartsLate,
		"a head wakes the jobs of its cluster": headOutlivesCluster,
	})
}

func TestWakes(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "head-outlives-its-cluster", Run: headOutlivesCluster, AnyLoss: true},
	)
}

// placeFreed has the first in a queue begin within moments of a place that was given back.
func placeFreed(w *testkit.World) {
	crowd(w, 2, hangs)
	w.Settle()
	expectPhases(w, "RRPPPP")
	w.Delete(w.Job("job-1"))
	for range 60 {
		w.During(time.Second)
		if !w.HasJob("job-1") {
			break
		}
	}
	w.During(2 * time.Second)
	if have := w.Job("job-3").Status.Phase; have == "Pending" {
		w.Fatalf("the next in the queue is %s", have)
	}
}

// clusterStartsLate has a job wait for a cluster whose pods start late.
func clusterStartsLate(w *testkit.World) {
	w.Kubelet.Idle = all
	w.Create(testkit.Cluster("demo"))
	given(w, testkit.Job("train"))
	w.ExpectJob("train", "Pending", "Ready=False Unschedulable")
	w.Kubelet.Idle = nil
	w.Settle()
	w.ExpectJob("train", "Succeeded")
}

// headOutlivesCluster has a job on a head that does not answer, whose cluster goes before it.
func headOutlivesCluster(w *testkit.World) {
	shared(w, hangs)
	w.Create(testkit.Job("train"))
	w.During(10 * time.Second)
	w.ExpectJob("train", "Running")
	w.Jobs.Silent, w.HoldGC = all, true
	w.After(time.Minute)
	w.Delete(w.Cluster("demo"))
	w.Settle()
	w.HoldGC = false
	w.Settle()
	w.ExpectJob("train", "Failed")
}
