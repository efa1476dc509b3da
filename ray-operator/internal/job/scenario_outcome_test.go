package job_test

import (
	"testing"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

func TestOutcomes(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "succeeds", Run: func(w *testkit.World) {
			one(plain, succeeds)(w)
			w.ExpectJob("train", "Succeeded", "Complete=True JobSucceeded", "Ready=True", "Failed=absent", "1 JobSucceeded(0) Complete")
			w.ExpectLines("train", 1, "one", "two")
			w.Ran("train", 1)
			w.Expect("demo", "Ready=True")
		}},
		testkit.Scenario{Name: "fails", Run: func(w *testkit.World) {
			one(plain, fails(3))(w)
			w.ExpectJob("train", "Failed", "Failed=True EntrypointFailed", "Stalled=True", "Complete=absent", "1 EntrypointFailed(3) Complete")
			w.Ran("train", 1)
		}},
		testkit.Scenario{Name: "own-succeeds", Run: func(w *testkit.World) {
			programs(w, succeeds)
			given(w, testkit.OwnJob("train", testkit.Group("cpu", 1)))
			w.ExpectJob("train", "Succeeded", "Complete=True", "1 JobSucceeded(0) Complete")
			gone(w, "train")
			w.Ran("train", 1)
		}},
		testkit.Scenario{Name: "own-fails", Run: func(w *testkit.World) {
			programs(w, fails(3))
			given(w, testkit.OwnJob("train", testkit.Group("cpu", 1)))
			w.ExpectJob("train", "Failed", "Failed=True EntrypointFailed", "1 EntrypointFailed(3) Complete")
			gone(w, "train")
		}},
		testkit.Scenario{Name: "too-short-to-be-seen", Run: func(w *testkit.World) {
			one(plain, testkit.Process{})(w)
			w.ExpectJob("train", "Succeeded", "1 JobSucceeded(0) Complete")
		}},
		testkit.Scenario{Name: "output-unreadable", Run: func(w *testkit.World) {
			w.Jobs.Unreadable = true
			one(plain, succeeds)(w)
			w.ExpectJob("train", "Succeeded", "1 JobSucceeded(0) Lost")
		}},
		testkit.Scenario{Name: "ttl", Run: func(w *testkit.World) {
			one(func(j *v1beta1.ClusterJob) { j.Spec.TTLSecondsAfterFinished = number(60) }, succeeds)(w)
			noJob(w, "train")
		}},
		testkit.Scenario{Name: "ttl-takes-a-kept-cluster", Run: func(w *testkit.World) {
			programs(w, fails(1))
			given(w, testkit.OwnJob("train"), func(j *v1beta1.ClusterJob) {
				j.Spec.TTLSecondsAfterFinished = number(600)
				j.Spec.Cleanup = []v1beta1.CleanupRule{{Outcome: v1beta1.OutcomeSuccess, Action: v1beta1.CleanupDeleteCluster}}
			})
			w.ExpectJob("train", "Failed")
			if len(w.OwnClusters("train")) != 1 {
				w.Fatalf("an outcome without a rule did not keep the cluster")
			}
			w.After(11 * time.Minute)
			noJob(w, "train")
			gone(w, "train")
		}},
	)
}

// gone asserts that nothing is left of a job's own clusters.
func gone(w *testkit.World, name string) {
	w.Helper()
	if left := w.OwnClusters(name); len(left) > 0 {
		w.Fatalf("ComputeCluster %s of job %s is left", left[0].Name, name)
	}
}

// noJob asserts that a job is gone.
func noJob(w *testkit.World, name string) {
	w.Helper()
	if w.HasJob(name) {
		w.Fatalf("job %s is still there", name)
	}
}
