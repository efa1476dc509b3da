package job_test

import (
	"strings"
	"testing"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

func cleans(rules ...v1beta1.CleanupRule) func(*v1beta1.ClusterJob) {
	return func(j *v1beta1.ClusterJob) { j.Spec.Cleanup = rules }
}

var (
	workersAtOnce = v1beta1.CleanupRule{Outcome: v1beta1.OutcomeFailure, Action: v1beta1.CleanupDeleteWorkers}
	clusterLater  = v1beta1.CleanupRule{Outcome: v1beta1.OutcomeFailure, Action: v1beta1.CleanupDeleteCluster, AfterSeconds: 600}
	onSuccess     = v1beta1.CleanupRule{Outcome: v1beta1.OutcomeSuccess, Action: v1beta1.CleanupDeleteCluster}
)

// kept asserts that a job's one cluster is there with so many workers, and says who keeps it.
func kept(w *testkit.World, workers int, until string) {
	w.Helper()
	clusters := w.OwnClusters("train")
	if len(clusters) != 1 {
		w.Fatalf("%d clusters are left", len(clusters))
	}
	if note := clusters[0].Annotations[v1beta1.AnnotationRetainedBy]; !strings.HasPrefix(note, "ClusterJob train keeps it "+until) {
		w.Fatalf("the cluster says that %q", note)
	}
	if have := len(w.Workers(clusters[0].Name, "cpu")); have != workers {
		w.Fatalf("%d workers, want %d", have, workers)
	}
	w.Head(clusters[0].Name)
}

func TestCleanup(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "workers-at-once-cluster-later", Run: func(w *testkit.World) {
			programs(w, fails(1))
			given(w, testkit.OwnJob("train", testkit.Group("cpu", 1)), cleans(onSuccess, clusterLater, workersAtOnce))
			w.ExpectJob("train", "Failed", "1 EntrypointFailed(1) Complete")
			kept(w, 0, "until 2026-01-01T00:10:")
			w.After(11 * time.Minute)
			w.ExpectJob("train", "Failed")
			gone(w, "train")
		}},
		testkit.Scenario{Name: "kept-without-a-rule", Run: func(w *testkit.World) {
			programs(w, fails(1))
			given(w, testkit.OwnJob("train", testkit.Group("cpu", 1)), cleans(onSuccess))
			kept(w, 1, "as long as the ClusterJob is there")
			w.Delete(w.Job("train"))
			w.Settle()
			noJob(w, "train")
			gone(w, "train")
		}},
		testkit.Scenario{Name: "rules-edited-after-the-end", Run: func(w *testkit.World) {
			programs(w, fails(1))
			given(w, testkit.OwnJob("train"), cleans(clusterLater))
			kept(w, 0, "until ")
			w.EditJob("train", cleans(onSuccess))
			w.Settle()
			kept(w, 0, "as long as the ClusterJob is there")
			w.EditJob("train", cleans())
			w.Settle()
			gone(w, "train")
		}},
		testkit.Scenario{Name: "cluster-deleted-by-someone-after-the-end", Run: func(w *testkit.World) {
			programs(w, fails(1))
			given(w, testkit.OwnJob("train"), cleans(clusterLater))
			w.Delete(w.OwnClusters("train")[0])
			w.After(11 * time.Minute)
			w.ExpectJob("train", "Failed", "1 EntrypointFailed(1) Complete")
			gone(w, "train")
		}},
	)
}
