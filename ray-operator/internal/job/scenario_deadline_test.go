package job_test

import (
	"testing"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

func startsWithin(seconds int32) func(*v1beta1.ClusterJob) {
	return func(j *v1beta1.ClusterJob) { j.Spec.StartDeadlineSeconds = number(seconds) }
}

func runsWithin(seconds int32) func(*v1beta1.ClusterJob) {
	return func(j *v1beta1.ClusterJob) { j.Spec.ActiveDeadlineSeconds = number(seconds) }
}

// silence is a world with one job whose head falls silent once it is bound.
func silence(w *testkit.World, of *v1beta1.ClusterJob, edit func(*v1beta1.ClusterJob), process testkit.Process) {
	w.Helper()
	programs(w, process)
	if of.Spec.ClusterRef != nil {
		w.Create(testkit.Cluster("demo"))
	}
	w.Create(edited(of, edit))
	w.During(12 * time.Second)
	w.Jobs.Silent = all
}

func TestStartDeadline(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "without-a-cluster", Run: func(w *testkit.World) {
			given(w, testkit.Job("train"), startsWithin(60))
			w.ExpectJob("train", "Failed", "Failed=True StartDeadlineExceeded")
			if w.Job("train").Status.Attempt != 0 {
				w.Fatalf("attempt %d", w.Job("train").Status.Attempt)
			}
			w.Create(testkit.Cluster("demo"))
			w.Settle()
			w.Ran("train", 0)
		}},
		testkit.Scenario{Name: "own-cluster-cannot-start", Run: func(w *testkit.World) {
			w.Kubelet.Idle = all
			given(w, testkit.OwnJob("train"), startsWithin(60))
			w.ExpectJob("train", "Failed", "Failed=True StartDeadlineExceeded")
			gone(w, "train")
		}},
		testkit.Scenario{Name: "pending-in-ray", Run: func(w *testkit.World) {
			one(startsWithin(60), waits)(w)
			w.ExpectJob("train", "Failed", "Failed=True StartDeadlineExceeded", "1 StartDeadlineExceeded Complete")
			w.Ran("train", 0)
		}},
		testkit.Scenario{Name: "own-silent-head", Run: func(w *testkit.World) {
			silence(w, testkit.OwnJob("train"), startsWithin(60), waits)
			w.Settle()
			w.ExpectJob("train", "Failed", "Failed=True StartDeadlineExceeded", "1 StartDeadlineExceeded Lost")
			gone(w, "train")
		}},
		testkit.Scenario{Name: "shared-silent-head", Run: func(w *testkit.World) {
			silence(w, testkit.Job("train"), startsWithin(60), waits)
			w.After(5 * time.Minute)
			w.ExpectJob("train", "Failed", "Failed=True StopAbandoned", "1 StopAbandoned Lost")
		}},
		testkit.Scenario{Name: "counts-from-the-resumption", Run: func(w *testkit.World) {
			one(func(j *v1beta1.ClusterJob) { suspended(j); startsWithin(60)(j) }, succeeds)(w)
			w.After(10 * time.Minute)
			w.ExpectJob("train", "Suspended")
			suspend(w, false)
			w.Settle()
			w.ExpectJob("train", "Succeeded", "1 JobSucceeded(0) Complete")
		}},
		testkit.Scenario{Name: "kept", Run: func(w *testkit.World) {
			one(startsWithin(60), hangs)(w)
			w.After(10 * time.Minute)
			w.ExpectJob("train", "Running", "1")
		}},
	)
}

func TestActiveDeadline(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "shared", Run: func(w *testkit.World) {
			one(runsWithin(60), hangs)(w)
			w.ExpectJob("train", "Failed", "Failed=True DeadlineExceeded", "1 DeadlineExceeded Complete")
			w.ExpectLines("train", 1, "at it")
		}},
		testkit.Scenario{Name: "own", Run: func(w *testkit.World) {
			programs(w, hangs)
			given(w, testkit.OwnJob("train"), runsWithin(60))
			w.ExpectJob("train", "Failed", "Failed=True DeadlineExceeded", "1 DeadlineExceeded Complete")
			gone(w, "train")
		}},
		testkit.Scenario{Name: "own-silent-head", Run: func(w *testkit.World) {
			silence(w, testkit.OwnJob("train"), runsWithin(60), hangs)
			w.Settle()
			w.ExpectJob("train", "Failed", "Failed=True DeadlineExceeded", "1 DeadlineExceeded Lost")
			gone(w, "train")
		}},
		testkit.Scenario{Name: "shared-silent-head", Run: func(w *testkit.World) {
			silence(w, testkit.Job("train"), runsWithin(60), hangs)
			w.After(5 * time.Minute)
			w.ExpectJob("train", "Failed", "Failed=True StopAbandoned", "1 StopAbandoned Lost")
		}},
		testkit.Scenario{Name: "over-all-attempts", Run: func(w *testkit.World) {
			one(func(j *v1beta1.ClusterJob) {
				runsWithin(60)(j)
				retries(v1beta1.Retry{Limit: 9, BackoffSeconds: number(1)})(j)
			}, fails(1), hangs)(w)
			w.ExpectJob("train", "Failed", "Failed=True DeadlineExceeded", "1 EntrypointFailed(1) Complete", "2 DeadlineExceeded Complete")
		}},
		testkit.Scenario{Name: "in-the-back-off", Run: func(w *testkit.World) {
			shared(w, fails(1))
			w.Create(edited(testkit.Job("train"), runsWithin(60), retries(v1beta1.Retry{Limit: 9, BackoffSeconds: number(300)})))
			w.After(3 * time.Minute)
			w.ExpectJob("train", "Failed", "Failed=True DeadlineExceeded", "1 EntrypointFailed(1) Complete")
			w.Ran("train", 1)
		}},
	)
}

func TestActiveDeadlineAnew(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "begins-anew-when-resumed", Run: func(w *testkit.World) {
			shared(w, hangs)
			w.Create(edited(testkit.Job("train"), runsWithin(60)))
			w.During(40 * time.Second)
			w.ExpectJob("train", "Running", "1")
			suspend(w, true)
			w.During(40 * time.Second)
			w.ExpectJob("train", "Suspended", "1 JobSuspended Complete")
			suspend(w, false)
			w.During(40 * time.Second)
			w.ExpectJob("train", "Running", "1 JobSuspended Complete", "2")
			w.Settle()
			w.ExpectJob("train", "Failed", "Failed=True DeadlineExceeded", "1 JobSuspended Complete", "2 DeadlineExceeded Complete")
		}},
		testkit.Scenario{Name: "raised-while-it-runs", Run: func(w *testkit.World) {
			shared(w, hangs)
			w.Create(edited(testkit.Job("train"), runsWithin(60)))
			w.During(30 * time.Second)
			w.EditJob("train", runsWithin(3600))
			w.After(10 * time.Minute)
			w.ExpectJob("train", "Running", "1")
		}},
	)
}

func TestAttemptDeadline(t *testing.T) {
	attempts := retries(v1beta1.Retry{Limit: 1, AttemptDeadlineSeconds: number(30)})
	play(t,
		testkit.Scenario{Name: "is-a-failure", Run: func(w *testkit.World) {
			one(attempts, hangs, succeeds)(w)
			w.ExpectJob("train", "Succeeded", "1 AttemptDeadlineExceeded Complete", "2 JobSucceeded(0) Complete")
			w.Ran("train", 2)
		}},
		testkit.Scenario{Name: "counts", Run: func(w *testkit.World) {
			one(attempts, hangs)(w)
			w.ExpectJob("train", "Failed", "Failed=True AttemptDeadlineExceeded", "1 AttemptDeadlineExceeded Complete", "2 AttemptDeadlineExceeded Complete")
		}},
		testkit.Scenario{Name: "own-silent-head", Run: func(w *testkit.World) {
			silence(w, testkit.OwnJob("train"), attempts, hangs)
			w.Jobs.Program = func(run testkit.Run) testkit.Process { return succeeds }
			w.During(75 * time.Second)
			w.Jobs.Silent = nil
			w.Settle()
			w.ExpectJob("train", "Succeeded", "1 AttemptDeadlineExceeded Lost", "2 JobSucceeded(0) Complete")
			w.Ran("train", 2)
		}},
		testkit.Scenario{Name: "ends-just-before-the-stop", Run: func(w *testkit.World) {
			one(attempts, testkit.Process{Waits: time.Second, Takes: 31 * time.Second})(w)
			w.ExpectJob("train", "Succeeded", "1 JobSucceeded(0) Complete")
		}},
	)
}
