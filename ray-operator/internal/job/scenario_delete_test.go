package job_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

// deleted deletes the job and asserts that it goes, with all that it made.
func deleted(w *testkit.World) {
	w.Helper()
	w.Delete(w.Job("train"))
	w.Settle()
	noJob(w, "train")
	gone(w, "train")
}

func TestDelete(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "pending", Run: func(w *testkit.World) {
			given(w, testkit.Job("train"))
			deleted(w)
		}},
		testkit.Scenario{Name: "provisioning", Run: func(w *testkit.World) {
			w.Kubelet.Idle = all
			given(w, testkit.OwnJob("train"))
			w.Kubelet.Idle = nil
			deleted(w)
		}},
		testkit.Scenario{Name: "pending-in-ray", Run: func(w *testkit.World) {
			one(plain, waits)(w)
			id := w.Job("train").Status.SubmissionID
			deleted(w)
			ends(w, id, headclient.JobFailed)
		}},
		testkit.Scenario{Name: "running", Run: func(w *testkit.World) {
			one(plain, hangs)(w)
			id := w.Job("train").Status.SubmissionID
			deleted(w)
			ends(w, id, headclient.JobStopped)
		}},
		testkit.Scenario{Name: "own-running", Run: func(w *testkit.World) {
			programs(w, hangs)
			given(w, testkit.OwnJob("train", testkit.Group("cpu", 1)))
			deleted(w)
		}},
		testkit.Scenario{Name: "suspended", Run: func(w *testkit.World) {
			one(plain, hangs)(w)
			suspend(w, true)
			w.Settle()
			deleted(w)
		}},
		testkit.Scenario{Name: "in-the-back-off", Run: func(w *testkit.World) {
			shared(w, fails(1))
			w.Create(edited(testkit.Job("train"), retries(v1beta1.Retry{Limit: 1, BackoffSeconds: number(300)})))
			w.During(30 * time.Second)
			deleted(w)
			w.After(10 * time.Minute)
		}},
		testkit.Scenario{Name: "ended", Run: func(w *testkit.World) {
			one(plain, succeeds)(w)
			deleted(w)
		}},
	)
}

func TestDeleteWhatIsLost(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "head-lost-meanwhile", Run: func(w *testkit.World) {
			one(plain, hangs)(w)
			w.Force(w.Head("demo"))
			deleted(w)
		}, AnyEpoch: true},
		testkit.Scenario{Name: "silent-head", Run: deletedSilent},
		testkit.Scenario{Name: "with-the-cluster", Run: func(w *testkit.World) {
			one(plain, hangs)(w)
			w.Delete(w.Cluster("demo"))
			deleted(w)
		}},
		testkit.Scenario{Name: "and-made-again", Run: func(w *testkit.World) {
			one(plain, hangs, succeeds)(w)
			former := w.Job("train")
			w.Delete(former)
			w.Settle()
			programs(w, succeeds)
			given(w, testkit.Job("train"))
			w.ExpectJob("train", "Succeeded", "1 JobSucceeded(0) Complete")
			w.Ran("train", 1)
			if runs := w.Jobs.Runs(former.UID); len(runs) != 1 {
				w.Fatalf("the former job ran %d times", len(runs))
			}
		}},
	)
}

// ends asserts what a head says of a submission at last.
func ends(w *testkit.World, id string, want headclient.JobStatus) {
	w.Helper()
	w.Jobs.Change(id, func(job *headclient.Job) bool {
		if job.Status != want {
			w.Fatalf("Ray says %s of %s, want %s", job.Status, id, want)
		}
		return true
	})
}

// deletedSilent: on a shared cluster whose head does not answer, a deletion waits two minutes
// for the stop, says that it gave up, and goes on.
func deletedSilent(w *testkit.World) {
	one(plain, hangs)(w)
	w.Jobs.Silent = all
	w.Delete(w.Job("train"))
	w.During(110 * time.Second)
	if !w.HasJob("train") {
		w.Fatalf("the job went though its run was not stopped")
	}
	w.After(time.Minute)
	noJob(w, "train")
}

// TestAbandonedIsTold: the event is the last that is heard of such a job.
func TestAbandonedIsTold(t *testing.T) {
	w := testkit.NewWorld(t)
	deletedSilent(w)
	if !slices.ContainsFunc(w.Told, func(text string) bool { return strings.HasPrefix(text, "StopAbandoned: ") }) {
		w.Fatalf("nobody was told: %q", w.Told)
	}
}
