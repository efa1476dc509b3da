package job_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: testkit.Namespace}
}

// ownName is the name of a job's own cluster of a number.
func ownName(of *v1beta1.ClusterJob, number int32) string {
	return naming.JobCluster(of.Name, of.UID, number)
}

func suspended(j *v1beta1.ClusterJob) { j.Spec.Suspend = new(true) }

const isSuspended = "Suspended=True JobSuspended"

func TestSuspend(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "from-creation", Run: func(w *testkit.World) {
			one(suspended, succeeds)(w)
			w.ExpectJob("train", "Suspended", isSuspended, "Ready=absent", "Reconciling=False", "Stalled=False")
			w.Ran("train", 0)
			suspend(w, false)
			w.Settle()
			w.ExpectJob("train", "Succeeded", "Suspended=False", "1 JobSucceeded(0) Complete")
		}},
		testkit.Scenario{Name: "own-from-creation", Run: func(w *testkit.World) {
			programs(w, succeeds)
			given(w, testkit.OwnJob("train"), suspended)
			w.ExpectJob("train", "Suspended", isSuspended)
			gone(w, "train")
			suspend(w, false)
			w.Settle()
			w.ExpectJob("train", "Succeeded", "1 JobSucceeded(0) Complete")
		}},
		testkit.Scenario{Name: "pending", Run: func(w *testkit.World) {
			given(w, testkit.Job("train"))
			suspend(w, true)
			w.Settle()
			w.ExpectJob("train", "Suspended", isSuspended)
			w.Create(testkit.Cluster("demo"))
			w.Settle()
			w.Ran("train", 0)
			suspend(w, false)
			w.Settle()
			w.ExpectJob("train", "Succeeded")
		}},
		testkit.Scenario{Name: "pending-in-ray", Run: func(w *testkit.World) {
			one(plain, waits, succeeds)(w)
			w.ExpectJob("train", "Submitting", "Ready=False JobPending", "1")
			suspend(w, true)
			w.Settle()
			w.ExpectJob("train", "Suspended", isSuspended, "1 JobSuspended Complete")
			suspend(w, false)
			w.Settle()
			w.ExpectJob("train", "Succeeded", "1 JobSuspended Complete", "2 JobSucceeded(0) Complete")
			w.Ran("train", 1)
		}},
	)
}

func TestSuspendAtWork(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "running-twice", Run: func(w *testkit.World) {
			one(plain, hangs)(w)
			for range 2 {
				suspend(w, true)
				w.Settle()
				w.ExpectJob("train", "Suspended", isSuspended)
				suspend(w, false)
				w.Settle()
			}
			w.ExpectJob("train", "Running", "Suspended=False", "1 JobSuspended Complete", "2 JobSuspended Complete", "3")
			w.ExpectLines("train", 1, "at it")
			w.Ran("train", 3)
		}},
		testkit.Scenario{Name: "in-the-back-off", Run: func(w *testkit.World) {
			shared(w, fails(1), succeeds)
			w.Create(edited(testkit.Job("train"), retries(v1beta1.Retry{Limit: 1, BackoffSeconds: number(300)})))
			w.During(60 * time.Second)
			w.ExpectJob("train", "Retrying", "1 EntrypointFailed(1) Complete")
			suspend(w, true)
			w.Settle()
			w.ExpectJob("train", "Suspended", isSuspended)
			suspend(w, false)
			w.After(6 * time.Minute)
			w.ExpectJob("train", "Succeeded", "1 EntrypointFailed(1) Complete", "2 JobSucceeded(0) Complete")
		}},
		testkit.Scenario{Name: "submitting", Run: suspendedSubmitting},
		testkit.Scenario{Name: "succeeds-before-the-stop", Run: func(w *testkit.World) {
			endsBeforeTheStop(w, testkit.Process{Takes: 30 * time.Second})
			w.ExpectJob("train", "Succeeded", "1 JobSucceeded(0) Complete", "Suspended=False")
		}},
		testkit.Scenario{Name: "fails-before-the-stop", Run: func(w *testkit.World) {
			endsBeforeTheStop(w, testkit.Process{Takes: 30 * time.Second, ExitCode: 3})
			w.ExpectJob("train", "Failed", "1 EntrypointFailed(3) Complete", "Suspended=False")
		}},
	)
}

func TestSuspendedAndEdited(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "edited-while-suspended", Run: func(w *testkit.World) {
			one(plain, hangs, succeeds)(w)
			suspend(w, true)
			w.Settle()
			w.EditJob("train", func(j *v1beta1.ClusterJob) { j.Spec.Entrypoint = "python other.py" })
			suspend(w, false)
			w.Settle()
			w.ExpectJob("train", "Succeeded", "1 JobSuspended Complete", "2 JobSucceeded(0) Complete")
		}},
	)
}

func TestSuspendOwnCluster(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "running", Run: func(w *testkit.World) {
			programs(w, hangs, succeeds)
			given(w, testkit.OwnJob("train", testkit.Group("cpu", 1)))
			w.ExpectJob("train", "Running", "1")
			suspend(w, true)
			w.Settle()
			w.ExpectJob("train", "Suspended", isSuspended, "1 JobSuspended Truncated")
			gone(w, "train")
			suspend(w, false)
			w.Settle()
			w.ExpectJob("train", "Succeeded", "1 JobSuspended Truncated", "2 JobSucceeded(0) Complete")
			w.Ran("train", 2)
		}, AnyOutput: true},
		testkit.Scenario{Name: "provisioning", Run: func(w *testkit.World) {
			w.Kubelet.Idle = all
			given(w, testkit.OwnJob("train"))
			w.ExpectJob("train", "Provisioning")
			suspend(w, true)
			w.Settle()
			w.ExpectJob("train", "Suspended", isSuspended)
			gone(w, "train")
			w.Kubelet.Idle = nil
			suspend(w, false)
			w.Settle()
			w.ExpectJob("train", "Succeeded", "1 JobSucceeded(0) Complete")
		}},
		testkit.Scenario{Name: "cluster-goes-slowly", Run: func(w *testkit.World) {
			w.Kubelet.Idle = all
			given(w, testkit.OwnJob("train"))
			held := w.OwnClusters("train")[0].Name
			w.Edit(held, func(c *v1beta1.ComputeCluster) { c.Finalizers = []string{"example.com/mine"} })
			suspend(w, true)
			w.Settle()
			w.ExpectJob("train", "Suspending", "Suspended=False ClusterEnding", "Reconciling=True")
			w.Edit(held, func(c *v1beta1.ComputeCluster) { c.Finalizers = nil })
			w.Settle()
			w.ExpectJob("train", "Suspended", isSuspended)
		}},
	)
}

func TestSuspendOwnClusterInTrouble(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "silent-head", Run: func(w *testkit.World) {
			programs(w, hangs)
			given(w, testkit.OwnJob("train"))
			w.Jobs.Silent = all
			suspend(w, true)
			w.Settle()
			w.ExpectJob("train", "Suspended", isSuspended, "1 JobSuspended Lost")
			gone(w, "train")
		}},
		testkit.Scenario{Name: "resumed-before-it-is-suspended", Run: func(w *testkit.World) {
			programs(w, hangs)
			given(w, testkit.OwnJob("train"))
			held := w.OwnClusters("train")[0].Name
			w.Edit(held, func(c *v1beta1.ComputeCluster) { c.Finalizers = []string{"example.com/mine"} })
			suspend(w, true)
			w.During(10 * time.Second)
			w.ExpectJob("train", "Suspending")
			suspend(w, false)
			w.Settle()
			w.ExpectJob("train", "Provisioning", "Ready=False ClusterEnding")
			w.Edit(held, func(c *v1beta1.ComputeCluster) { c.Finalizers = nil })
			w.Settle()
			w.ExpectJob("train", "Running", "1 JobSuspended Truncated", "2")
			w.Ran("train", 2)
		}, AnyOutput: true},
	)
}

// endsBeforeTheStop suspends while the head does not answer; the run comes to its end meanwhile.
func endsBeforeTheStop(w *testkit.World, process testkit.Process) {
	silence(w, testkit.Job("train"), plain, process)
	suspend(w, true)
	w.During(60 * time.Second)
	w.ExpectJob("train", "Suspending", "Suspended=False Stopping", "1 JobSuspended")
	w.Jobs.Silent = nil
	w.Settle()
}

// suspendedSubmitting suspends while the reply to a submission is on its way: the run has begun
// by then, and is stopped.
func suspendedSubmitting(w *testkit.World) {
	shared(w, hangs)
	silent := false
	w.Jobs.Silent = func(*corev1.Pod) bool { return silent }
	w.Jobs.LoseReplies(func() { silent = true })
	w.Create(testkit.Job("train"))
	w.During(10 * time.Second)
	suspend(w, true)
	w.During(10 * time.Second)
	w.ExpectJob("train", "Suspending", "1 JobSuspended")
	w.Jobs.LoseReplies(nil)
	silent = false
	w.Settle()
	w.ExpectJob("train", "Suspended", isSuspended, "1 JobSuspended Complete")
	w.Ran("train", 1)
}

// TestFreedInTime: a suspended job gives its cluster back within ten seconds, whether its head
// answers or not.
func TestFreedInTime(t *testing.T) {
	for _, silent := range []bool{false, true} {
		w := testkit.NewWorld(t)
		programs(w, hangs)
		given(w, testkit.OwnJob("train", testkit.Group("cpu", 1)))
		if silent {
			w.Jobs.Silent = all
		}
		suspend(w, true)
		w.During(10 * time.Second)
		w.ExpectJob("train", "Suspended", isSuspended)
		gone(w, "train")
	}
}
