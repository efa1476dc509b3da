package job_test

import (
	"testing"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

// keeping is shared on a cluster with a control store.
func keeping(w *testkit.World, each ...testkit.Process) {
	w.Helper()
	programs(w, each...)
	w.Prepare(func() {
		cluster := testkit.Cluster("demo", testkit.Group("cpu", 1))
		cluster.Spec.ControlStore = &v1beta1.ControlStore{Redis: &v1beta1.GivenRedis{Address: "redis://redis:6379"}}
		w.Create(cluster)
		w.Settle()
	})
	w.Expect("demo", "Ready=True")
}

// TestHeadThatComesBack: an attempt outlives its head where the head's memory does.
func TestHeadThatComesBack(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "driver-goes-on", Run: func(w *testkit.World) {
			keeping(w, hangs)
			given(w, testkit.Job("train"), retries(v1beta1.Retry{Limit: 5}))
			w.ExpectJob("train", "Running", "1")
			w.Force(w.Head("demo"))
			w.After(time.Minute)
			w.ExpectJob("train", "Running", "1")
			w.Jobs.Change(w.Job("train").Status.SubmissionID, func(job *headclient.Job) bool {
				job.Status, job.ExitCode = headclient.JobSucceeded, number(0)
				return true
			})
			w.After(time.Minute)
			w.ExpectJob("train", "Succeeded", "1 JobSucceeded(0) Complete")
			w.Ran("train", 1)
		}, AnyOutput: true},
		testkit.Scenario{Name: "driver-was-on-the-head", Run: func(w *testkit.World) {
			keeping(w, hangs, succeeds)
			given(w, testkit.Job("train"), retries(v1beta1.Retry{InfrastructureLimit: number(1)}))
			w.Force(w.Head("demo"))
			w.Jobs.Change(w.Job("train").Status.SubmissionID, func(job *headclient.Job) bool {
				job.Status, job.ErrorType, job.Message = headclient.JobFailed, "JOB_SUPERVISOR_ACTOR_DIED", "its node died"
				return true
			})
			w.After(time.Minute)
			w.ExpectJob("train", "Succeeded", "1 DriverLost Complete", "2 JobSucceeded(0) Complete")
		}},
		testkit.Scenario{Name: "memory-lost-too", Run: func(w *testkit.World) {
			keeping(w, hangs, succeeds)
			given(w, testkit.Job("train"), retries(v1beta1.Retry{InfrastructureLimit: number(1)}))
			w.Stores.Flush()
			w.After(time.Minute)
			w.ExpectJob("train", "Succeeded", "1 HeadLost Lost", "2 JobSucceeded(0) Complete")
		}, AnyLoss: true},
	)
}
