package job_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

func TestRetry(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "driver", Run: func(w *testkit.World) {
			shared(w, fails(1), fails(2), succeeds)
			began := w.Clock.Now()
			given(w, testkit.Job("train"), retries(v1beta1.Retry{Limit: 3}))
			w.ExpectJob("train", "Succeeded", "1 EntrypointFailed(1) Complete", "2 EntrypointFailed(2) Complete", "3 JobSucceeded(0) Complete")
			w.Ran("train", 3)
			// Back-offs of 10 s and 20 s, and three runs.
			if took := w.Job("train").Status.EndTime.Sub(began); took < 45*time.Second || took > 80*time.Second {
				w.Fatalf("it took %s", took)
			}
		}},
		testkit.Scenario{Name: "limit", Run: func(w *testkit.World) {
			one(retries(v1beta1.Retry{Limit: 1, BackoffSeconds: number(0)}), fails(1))(w)
			w.ExpectJob("train", "Failed", "Failed=True EntrypointFailed", "1 EntrypointFailed(1) Complete", "2 EntrypointFailed(1) Complete")
			w.Ran("train", 2)
		}},
		testkit.Scenario{Name: "not-on-this-exit-code", Run: func(w *testkit.World) {
			one(retries(v1beta1.Retry{Limit: 5, OnExitCodes: &v1beta1.ExitCodes{In: []int32{75}}}), fails(75), fails(1))(w)
			w.ExpectJob("train", "Failed", "1 EntrypointFailed(75) Complete", "2 EntrypointFailed(1) Complete")
		}},
		testkit.Scenario{Name: "runtime-environment", Run: func(w *testkit.World) {
			one(retries(v1beta1.Retry{Limit: 1}), testkit.Process{ErrorType: "RUNTIME_ENV_SETUP_FAILURE"}, succeeds)(w)
			w.ExpectJob("train", "Succeeded", "1 RuntimeEnvFailed Complete", "2 JobSucceeded(0) Complete")
		}},
		testkit.Scenario{Name: "on-another-cluster", Run: anotherCluster},
		testkit.Scenario{Name: "driver-on-its-own-cluster", Run: func(w *testkit.World) {
			programs(w, fails(1), hangs)
			given(w, testkit.OwnJob("train", testkit.Group("cpu", 1)), retries(v1beta1.Retry{Limit: 1}))
			w.ExpectJob("train", "Running", "1 EntrypointFailed(1) Complete", "2")
			if runs := w.Jobs.Runs(w.Job("train").UID); runs[0].Head != runs[1].Head {
				w.Fatalf("scope Driver went to another head: %+v", runs)
			}
		}},
		testkit.Scenario{Name: "edited-in-the-back-off", Run: func(w *testkit.World) {
			shared(w, fails(1), succeeds)
			w.Create(edited(testkit.Job("train"), retries(v1beta1.Retry{Limit: 1, BackoffSeconds: number(300)})))
			w.During(60 * time.Second)
			w.ExpectJob("train", "Retrying", "Reconciling=True Retrying", "1 EntrypointFailed(1) Complete")
			w.EditJob("train", func(j *v1beta1.ClusterJob) { j.Spec.Retry.BackoffSeconds = number(0) })
			w.Settle()
			w.ExpectJob("train", "Succeeded", "1 EntrypointFailed(1) Complete", "2 JobSucceeded(0) Complete")
		}},
	)
}

func edited(of *v1beta1.ClusterJob, edits ...func(*v1beta1.ClusterJob)) *v1beta1.ClusterJob {
	for _, edit := range edits {
		edit(of)
	}
	return of
}

// anotherCluster retries on a new cluster: the old one and its pods, which take their time, are
// gone before it is made, and the last lines are kept.
func anotherCluster(w *testkit.World) {
	w.Kubelet.StopDelay = 20 * time.Second
	programs(w, fails(1), succeeds)
	given(w, testkit.OwnJob("train", testkit.Group("cpu", 1)), retries(v1beta1.Retry{Limit: 1, Scope: v1beta1.RetryCluster}))
	w.ExpectJob("train", "Succeeded", "1 EntrypointFailed(1) Complete", "2 JobSucceeded(0) Complete")
	attempts := w.Job("train").Status.Attempts
	if attempts[0].ClusterName == attempts[1].ClusterName {
		w.Fatalf("attempts %+v", attempts)
	}
	w.ExpectLines("train", 1, "oh no")
	gone(w, "train")
	w.Ran("train", 2)
}

// lostNode has the node of a worker of the job's first cluster fall silent for good.
func lostNode(w *testkit.World) {
	w.Helper()
	w.Kubelet.Node = func(pod *corev1.Pod) string {
		if pod.Labels[v1beta1.LabelRole] == v1beta1.RoleWorker {
			return "old"
		}
		return "node-1"
	}
	w.Create(edited(testkit.OwnJob("train", testkit.Group("cpu", 1)), retries(v1beta1.Retry{Limit: 1, Scope: v1beta1.RetryCluster})))
	w.During(30 * time.Second)
	w.Kubelet.Node = nil
	w.Silence("old")
	w.During(30 * time.Second)
}

// TestLostNode_BlocksNothing: neither a retry on another cluster nor a suspension waits for its pods.
func TestLostNode_BlocksNothing(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "retry", Run: func(w *testkit.World) {
			programs(w, testkit.Process{Waits: time.Second, Takes: 2 * time.Minute, ExitCode: 1}, succeeds)
			lostNode(w)
			w.After(10 * time.Minute)
			w.ExpectJob("train", "Succeeded", "1 EntrypointFailed(1) Complete", "2 JobSucceeded(0) Complete")
		}},
		testkit.Scenario{Name: "suspension", Run: func(w *testkit.World) {
			programs(w, hangs)
			lostNode(w)
			w.EditJob("train", func(j *v1beta1.ClusterJob) { j.Spec.Suspend = new(true) })
			w.After(10 * time.Minute)
			w.ExpectJob("train", "Suspended")
		}, AnyOutput: true},
	)
}

// lose takes the head's pod of demo without a trace.
func lose(w *testkit.World) {
	w.Helper()
	w.Force(w.Head("demo"))
	w.Settle()
}

func TestLosses(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "head-lost", Run: func(w *testkit.World) {
			one(plain, hangs)(w)
			lose(w)
			w.ExpectJob("train", "Failed", "Failed=True HeadLost", "1 HeadLost Lost")
			w.Ran("train", 1)
		}, AnyEpoch: true},
		testkit.Scenario{Name: "head-lost-and-again", Run: func(w *testkit.World) {
			one(retries(v1beta1.Retry{Limit: 1}), hangs, succeeds)(w)
			lose(w)
			w.ExpectJob("train", "Succeeded", "1 HeadLost Lost", "2 JobSucceeded(0) Complete")
			w.Ran("train", 2)
		}, AnyEpoch: true},
		testkit.Scenario{Name: "losses-are-counted-apart", Run: countedApart, AnyEpoch: true},
		testkit.Scenario{Name: "losses-without-a-limit-of-their-own", Run: func(w *testkit.World) {
			one(retries(v1beta1.Retry{Limit: 1, BackoffSeconds: number(0)}), fails(1), hangs)(w)
			lose(w)
			w.ExpectJob("train", "Failed", "1 EntrypointFailed(1) Complete", "2 HeadLost Lost")
		}, AnyEpoch: true},
		testkit.Scenario{Name: "own-head-lost", Run: func(w *testkit.World) {
			programs(w, hangs, succeeds)
			given(w, testkit.OwnJob("train"), retries(v1beta1.Retry{InfrastructureLimit: number(1)}))
			w.Force(w.Head(w.Job("train").Status.ClusterName))
			w.Settle()
			w.ExpectJob("train", "Succeeded", "1 HeadLost Lost", "2 JobSucceeded(0) Complete")
			gone(w, "train")
		}, AnyEpoch: true},
		testkit.Scenario{Name: "container-restarts-in-place", Run: func(w *testkit.World) {
			one(retries(v1beta1.Retry{Limit: 1}), hangs, succeeds)(w)
			head := w.Head("demo")
			w.Must(w.Kubelet.Restart(w.Ctx, head))
			w.Settle()
			w.ExpectJob("train", "Succeeded", "1 HeadLost Lost", "2 JobSucceeded(0) Complete")
			runs := w.Jobs.Runs(w.Job("train").UID)
			if len(runs) != 2 || runs[0].Head != head.UID || runs[1].Head != head.UID || runs[0].Session == runs[1].Session {
				w.Fatalf("runs %+v", runs)
			}
		}},
		testkit.Scenario{Name: "head-evicted", Run: func(w *testkit.World) {
			one(plain, hangs)(w)
			w.Must(w.Kubelet.Fail(w.Ctx, w.Head("demo"), "Evicted"))
			w.Settle()
			w.ExpectJob("train", "Failed", "1 HeadLost Lost")
		}, AnyEpoch: true},
		testkit.Scenario{Name: "head-silent", Run: headSilent},
		testkit.Scenario{Name: "lost-before-the-reply", Run: lostBeforeTheReply, AnyEpoch: true},
	)
}

// countedApart: two losses and one failure with a limit of 1 and an infrastructureLimit of 2.
func countedApart(w *testkit.World) {
	one(retries(v1beta1.Retry{Limit: 1, InfrastructureLimit: number(2), BackoffSeconds: number(1)}), hangs, fails(1), hangs, fails(2))(w)
	lose(w)
	w.ExpectJob("train", "Running", "1 HeadLost Lost", "2 EntrypointFailed(1) Complete", "3")
	lose(w)
	w.ExpectJob("train", "Failed", "Failed=True EntrypointFailed",
		"1 HeadLost Lost", "2 EntrypointFailed(1) Complete", "3 HeadLost Lost", "4 EntrypointFailed(2) Complete")
	w.Ran("train", 4)
}

// headSilent: a head that does not answer is waited for, and people are told.
func headSilent(w *testkit.World) {
	one(plain, hangs)(w)
	w.Jobs.Silent = all
	w.After(time.Minute)
	w.ExpectJob("train", "Running", "Ready=False HeadUnreachable", "1")
	w.Jobs.Silent = nil
	w.After(time.Minute)
	w.ExpectJob("train", "Running", "Ready=False JobRunning", "1")
	w.Ran("train", 1)
}

// lostBeforeTheReply: the head takes the submission, and is gone before it says so.
func lostBeforeTheReply(w *testkit.World) {
	shared(w, hangs, succeeds)
	silent := false
	w.Jobs.Silent = func(*corev1.Pod) bool { return silent }
	w.Jobs.LoseReplies(func() { silent = true })
	w.Create(edited(testkit.Job("train"), retries(v1beta1.Retry{Limit: 1})))
	w.During(10 * time.Second)
	w.ExpectJob("train", "Submitting", "1")
	w.Jobs.LoseReplies(nil)
	silent = false
	lose(w)
	w.ExpectJob("train", "Succeeded", "1 HeadLost Lost", "2 JobSucceeded(0) Complete")
	w.Ran("train", 2)
}
