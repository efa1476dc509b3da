package job_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

// stop annotates the job, as a user does.
func stop(w *testkit.World) {
	w.Helper()
	w.Annotate(w.Job("train"), v1beta1.AnnotationStop, v1beta1.StopOn)
}

// expectStopped asserts that the job is Stopped for good, that its attempts ended as given, and
// that so many began to run.
func expectStopped(w *testkit.World, ran int, attempts ...string) {
	w.Helper()
	w.Settle()
	w.ExpectJob("train", "Stopped", append(attempts, "Failed=True Stopped", "Stalled=True Stopped", "Reconciling=False")...)
	w.After(10 * time.Minute)
	w.ExpectJob("train", "Stopped", attempts...)
	w.Ran("train", ran)
	if of := w.Job("train"); len(of.Finalizers) > 0 {
		w.Fatalf("it keeps the finalizers %q", of.Finalizers)
	}
}

// often lets many attempts follow, soon.
var often = retries(v1beta1.Retry{Limit: 9, BackoffSeconds: number(1)})

func TestStop_BeforeItRuns(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "from-creation", Run: func(w *testkit.World) {
			shared(w, hangs)
			w.Create(edited(testkit.Job("train"), func(j *v1beta1.ClusterJob) {
				j.Annotations = map[string]string{v1beta1.AnnotationStop: v1beta1.StopOn}
			}))
			expectStopped(w, 0)
		}},
		testkit.Scenario{Name: "without-a-cluster", Run: func(w *testkit.World) {
			given(w, testkit.Job("train"))
			w.ExpectJob("train", "Pending")
			stop(w)
			w.Settle()
			w.Create(testkit.Cluster("demo"))
			expectStopped(w, 0)
		}},
		testkit.Scenario{Name: "own-cluster-being-made", Run: func(w *testkit.World) {
			w.Kubelet.Idle = all
			given(w, testkit.OwnJob("train"))
			w.ExpectJob("train", "Provisioning")
			stop(w)
			w.Settle()
			gone(w, "train")
			w.Kubelet.Idle = nil
			expectStopped(w, 0)
		}},
		testkit.Scenario{Name: "suspended", Run: func(w *testkit.World) {
			one(suspended, succeeds)(w)
			w.ExpectJob("train", "Suspended")
			stop(w)
			w.Settle()
			suspend(w, false)
			expectStopped(w, 0)
		}},
		testkit.Scenario{Name: "pending-in-ray", Run: func(w *testkit.World) {
			one(often, waits)(w)
			w.ExpectJob("train", "Submitting", "Ready=False JobPending", "1")
			id := w.Job("train").Status.Attempts[0].SubmissionID
			stop(w)
			expectStopped(w, 0, "1 Stopped Complete")
			ends(w, id, headclient.JobFailed)
		}},
		testkit.Scenario{Name: "reply-on-its-way", Run: stoppedSubmitting},
	)
}

func TestStop_AtWork(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "running", Run: func(w *testkit.World) {
			one(often, hangs)(w)
			id := w.Job("train").Status.Attempts[0].SubmissionID
			stop(w)
			expectStopped(w, 1, "1 Stopped Complete")
			w.ExpectLines("train", 1, "at it")
			ends(w, id, headclient.JobStopped)
		}},
		testkit.Scenario{Name: "in-the-back-off", Run: func(w *testkit.World) {
			shared(w, fails(1), hangs)
			w.Create(edited(testkit.Job("train"), retries(v1beta1.Retry{Limit: 1, BackoffSeconds: number(300)})))
			w.During(60 * time.Second)
			w.ExpectJob("train", "Retrying", "1 EntrypointFailed(1) Complete")
			stop(w)
			expectStopped(w, 1, "1 EntrypointFailed(1) Complete")
		}},
		testkit.Scenario{Name: "being-suspended", Run: func(w *testkit.World) {
			silence(w, testkit.Job("train"), plain, hangs)
			suspend(w, true)
			w.During(10 * time.Second)
			w.ExpectJob("train", "Suspending", "1 JobSuspended")
			stop(w)
			w.During(10 * time.Second)
			w.Jobs.Silent = nil
			expectStopped(w, 1, "1 JobSuspended Complete")
		}},
		testkit.Scenario{Name: "succeeds-before-the-stop", Run: func(w *testkit.World) {
			silence(w, testkit.Job("train"), often, testkit.Process{Takes: 30 * time.Second})
			stop(w)
			w.During(60 * time.Second)
			w.ExpectJob("train", "Running", "Ready=False Stopping", "1 Stopped")
			w.Jobs.Silent = nil
			w.Settle()
			w.ExpectJob("train", "Succeeded", "1 JobSucceeded(0) Complete")
		}},
		testkit.Scenario{Name: "taken-back-too-late", Run: func(w *testkit.World) {
			silence(w, testkit.Job("train"), often, hangs)
			stop(w)
			w.During(10 * time.Second)
			w.EditJob("train", func(j *v1beta1.ClusterJob) { delete(j.Annotations, v1beta1.AnnotationStop) })
			w.During(10 * time.Second)
			w.Jobs.Silent = nil
			expectStopped(w, 1, "1 Stopped Complete")
		}},
		testkit.Scenario{Name: "head-lost-meanwhile", Run: func(w *testkit.World) {
			silence(w, testkit.Job("train"), often, hangs)
			stop(w)
			w.During(10 * time.Second)
			w.Force(w.Head("demo"))
			w.Jobs.Silent = nil
			expectStopped(w, 1, "1 HeadLost Lost")
		}, AnyEpoch: true},
	)
}

func TestStop_OwnCluster(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "goes", Run: func(w *testkit.World) {
			programs(w, hangs)
			given(w, testkit.OwnJob("train", testkit.Group("cpu", 1)), often)
			stop(w)
			expectStopped(w, 1, "1 Stopped Complete")
			gone(w, "train")
		}},
		testkit.Scenario{Name: "stays-as-cleanup-says", Run: func(w *testkit.World) {
			programs(w, hangs)
			given(w, testkit.OwnJob("train"), func(j *v1beta1.ClusterJob) {
				j.Spec.Cleanup = []v1beta1.CleanupRule{{Outcome: v1beta1.OutcomeSuccess, Action: v1beta1.CleanupDeleteCluster}}
			})
			stop(w)
			expectStopped(w, 1, "1 Stopped Complete")
			if len(w.OwnClusters("train")) != 1 {
				w.Fatalf("its cluster is gone though no rule says so")
			}
		}},
		testkit.Scenario{Name: "silent-head", Run: func(w *testkit.World) {
			silence(w, testkit.OwnJob("train"), often, hangs)
			stop(w)
			expectStopped(w, 1, "1 Stopped Lost")
			gone(w, "train")
		}},
	)
}

func TestStop_SharedCluster(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "makes-room", Run: func(w *testkit.World) {
			shared(w, hangs)
			w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Spec.MaxConcurrentJobs = number(1) })
			given(w, testkit.Job("train"))
			for _, name := range []string{"second", "third"} {
				w.After(time.Second)
				given(w, testkit.Job(name))
			}
			w.ExpectJob("third", "Pending", "Ready=False JobQueued")
			w.Annotate(w.Job("second"), v1beta1.AnnotationStop, v1beta1.StopOn)
			w.Settle()
			w.ExpectJob("second", "Stopped", "Failed=True Stopped")
			w.ExpectJob("third", "Pending", "Ready=False JobQueued")
			stop(w)
			w.Settle()
			w.ExpectJob("third", "Running", "1")
			w.Ran("second", 0)
		}},
		testkit.Scenario{Name: "silent-head", Run: func(w *testkit.World) {
			silence(w, testkit.Job("train"), often, hangs)
			stop(w)
			w.After(5 * time.Minute)
			w.ExpectJob("train", "Failed", "Failed=True StopAbandoned", "1 StopAbandoned Lost")
		}},
		testkit.Scenario{Name: "says-false", Run: func(w *testkit.World) {
			one(plain, hangs)(w)
			w.Annotate(w.Job("train"), v1beta1.AnnotationStop, "false")
			w.After(time.Minute)
			w.ExpectJob("train", "Running", "1")
		}},
		testkit.Scenario{Name: "ended", Run: func(w *testkit.World) {
			one(plain, succeeds)(w)
			stop(w)
			w.After(time.Minute)
			w.ExpectJob("train", "Succeeded", "1 JobSucceeded(0) Complete")
		}},
		testkit.Scenario{Name: "and-deleted", Run: func(w *testkit.World) {
			one(often, hangs)(w)
			id := w.Job("train").Status.SubmissionID
			stop(w)
			deleted(w)
			ends(w, id, headclient.JobStopped)
		}},
	)
}

// stoppedSubmitting stops while the reply to a submission is on its way: the run has begun by
// then, and is stopped.
func stoppedSubmitting(w *testkit.World) {
	shared(w, hangs)
	silent := false
	w.Jobs.Silent = func(*corev1.Pod) bool { return silent }
	w.Jobs.LoseReplies(func() { silent = true })
	w.Create(edited(testkit.Job("train"), often))
	w.During(10 * time.Second)
	stop(w)
	w.During(10 * time.Second)
	w.ExpectJob("train", "Submitting", "Ready=False Stopping", "1 Stopped")
	w.Jobs.LoseReplies(nil)
	silent = false
	expectStopped(w, 1, "1 Stopped Complete")
}
