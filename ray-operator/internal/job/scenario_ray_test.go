package job_test

import (
	"strings"
	"testing"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

func TestWhatRaySays(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "stopped-by-someone", Run: func(w *testkit.World) {
			stopped := hangs
			stopped.Hangs, stopped.Takes, stopped.Stopped = false, 20*time.Second, true
			one(retries(v1beta1.Retry{Limit: 5}), stopped)(w)
			w.ExpectJob("train", "Stopped", "Failed=True StoppedInRay", "Stalled=True", "1 StoppedInRay Complete")
			w.Ran("train", 1)
		}},
		testkit.Scenario{Name: "stopped-before-it-was-seen", Run: func(w *testkit.World) {
			one(plain, testkit.Process{Stopped: true})(w)
			w.ExpectJob("train", "Stopped", "1 StoppedInRay Complete")
		}},
		testkit.Scenario{Name: "refused", Run: func(w *testkit.World) {
			w.Jobs.Refuse = func(testkit.Run) string { return "it does not like it" }
			one(retries(v1beta1.Retry{Limit: 5}), succeeds)(w)
			w.ExpectJob("train", "Failed", "Failed=True SubmissionRefused", "1 SubmissionRefused Complete")
			w.Ran("train", 0)
		}},
		testkit.Scenario{Name: "own-refused", Run: func(w *testkit.World) {
			w.Jobs.Refuse = func(testkit.Run) string { return "it does not like it" }
			given(w, testkit.OwnJob("train"))
			w.ExpectJob("train", "Failed", "Failed=True SubmissionRefused", "1 SubmissionRefused Complete")
			gone(w, "train")
		}},
		testkit.Scenario{Name: "name-is-taken", Run: func(w *testkit.World) {
			shared(w, succeeds)
			w.Jobs.Plant(w.Head("demo"), naming.Submission("train", "job-train-1", 1))
			given(w, testkit.Job("train"), retries(v1beta1.Retry{Limit: 5}))
			w.ExpectJob("train", "Failed", "Failed=True SubmissionForeign", "1 SubmissionForeign Complete")
			w.ExpectLines("train", 1)
			ends(w, naming.Submission("train", "job-train-1", 1), headclient.JobRunning)
			w.EditJob("train", func(j *v1beta1.ClusterJob) { j.Spec.TTLSecondsAfterFinished = number(1) })
			w.Settle()
			noJob(w, "train")
		}},
		testkit.Scenario{Name: "deleted-in-ray", Run: func(w *testkit.World) {
			one(retries(v1beta1.Retry{Limit: 1}), hangs, succeeds)(w)
			w.Jobs.Change(w.Job("train").Status.SubmissionID, func(*headclient.Job) bool { return false })
			w.After(time.Minute)
			w.ExpectJob("train", "Succeeded", "1 RunNotFound Lost", "2 JobSucceeded(0) Complete")
		}},
	)
}

func TestRayChangesItsMind(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "goes-back", Run: func(w *testkit.World) {
			one(plain, succeeds)(w)
			w.ExpectJob("train", "Succeeded")
			w.Jobs.Change(w.Job("train").Status.SubmissionID, func(job *headclient.Job) bool {
				job.Status, job.ExitCode = headclient.JobPending, nil
				return true
			})
			w.After(time.Minute)
			w.ExpectJob("train", "Succeeded", "1 JobSucceeded(0) Complete")
		}},
		testkit.Scenario{Name: "running-and-pending-again", Run: func(w *testkit.World) {
			one(plain, hangs)(w)
			started := w.Job("train").Status.StartTime
			w.Jobs.Change(w.Job("train").Status.SubmissionID, func(job *headclient.Job) bool {
				job.Status = "WAITING_FOR_SOMETHING_NEW"
				return true
			})
			w.After(time.Minute)
			w.ExpectJob("train", "Running", "1")
			if now := w.Job("train").Status.StartTime; !now.Equal(started) {
				w.Fatalf("it started at %s, and then at %s", started, now)
			}
		}},
		testkit.Scenario{Name: "driver-lost", Run: func(w *testkit.World) {
			lost := testkit.Process{Takes: time.Second, ErrorType: "JOB_SUPERVISOR_ACTOR_DIED"}
			one(retries(v1beta1.Retry{InfrastructureLimit: number(1)}), lost, succeeds)(w)
			w.ExpectJob("train", "Succeeded", "1 DriverLost Complete", "2 JobSucceeded(0) Complete")
		}},
	)
}

func TestOperatorAway(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "job-ends", Run: func(w *testkit.World) {
			shared(w, testkit.Process{Waits: time.Second, Takes: 60 * time.Second, Lines: []string{"done"}})
			w.Create(testkit.Job("train"))
			w.During(20 * time.Second)
			w.ExpectJob("train", "Running", "1")
			w.Away = true
			w.During(5 * time.Minute)
			w.Return()
			w.Settle()
			w.ExpectJob("train", "Succeeded", "1 JobSucceeded(0) Complete")
			w.Ran("train", 1)
		}},
		testkit.Scenario{Name: "job-ends-and-the-cluster-is-going", Run: func(w *testkit.World) {
			shared(w, testkit.Process{Waits: time.Second, Takes: 60 * time.Second, Lines: []string{"done"}})
			w.Create(testkit.Job("train"))
			w.During(20 * time.Second)
			w.Away = true
			w.During(2 * time.Minute)
			w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Finalizers = []string{"foregroundDeletion"} })
			w.Delete(w.Cluster("demo"))
			w.Kubelet.StopDelay = 25 * time.Second
			w.Delete(w.Head("demo"))
			w.During(time.Second)
			w.Return()
			w.During(20 * time.Second)
			w.ExpectJob("train", "Succeeded", "1 JobSucceeded(0) Complete")
			w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Finalizers = nil })
			w.Settle()
		}},
		testkit.Scenario{Name: "head-goes", Run: func(w *testkit.World) {
			one(retries(v1beta1.Retry{Limit: 1}), hangs, succeeds)(w)
			w.Away = true
			w.Force(w.Head("demo"))
			w.During(time.Minute)
			w.Return()
			w.Settle()
			w.ExpectJob("train", "Succeeded", "1 HeadLost Lost", "2 JobSucceeded(0) Complete")
			w.Ran("train", 2)
		}, AnyEpoch: true},
		testkit.Scenario{Name: "replaced-while-submitting", Run: func(w *testkit.World) {
			shared(w, succeeds)
			w.Create(testkit.Job("train"))
			w.During(500 * time.Millisecond)
			w.Return()
			w.Settle()
			w.ExpectJob("train", "Succeeded", "1 JobSucceeded(0) Complete")
			w.Ran("train", 1)
		}},
	)
}

func TestNotOurs(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "managed-by-others", Run: func(w *testkit.World) {
			one(func(j *v1beta1.ClusterJob) { j.Spec.ManagedBy = "kueue.x-k8s.io/multikueue" }, succeeds)(w)
			if found := w.Job("train"); found.Status.Phase != "" || found.Status.ObservedGeneration != 0 || len(found.Annotations) > 0 || len(found.Finalizers) > 0 {
				w.Fatalf("another's job was written to: %+v", found)
			}
			w.Ran("train", 0)
			w.Delete(w.Job("train"))
			w.Settle()
			noJob(w, "train")
		}},
		testkit.Scenario{Name: "invalid", Run: func(w *testkit.World) {
			one(misnamed, succeeds)(w)
			w.ExpectJob("train", "Pending", "Stalled=True InvalidSpec", "Ready=False InvalidSpec")
			w.Ran("train", 0)
			w.EditJob("train", func(j *v1beta1.ClusterJob) { j.Spec.Env = nil })
			w.Settle()
			w.ExpectJob("train", "Succeeded", "Stalled=False")
		}},
		testkit.Scenario{Name: "own-invalid", Run: func(w *testkit.World) {
			given(w, testkit.OwnJob("train"), misnamed)
			w.ExpectJob("train", "Pending", "Stalled=True InvalidSpec")
			gone(w, "train")
			w.EditJob("train", func(j *v1beta1.ClusterJob) { j.Spec.Env = nil })
			w.Settle()
			w.ExpectJob("train", "Succeeded")
		}},
		testkit.Scenario{Name: "record-damaged", Run: func(w *testkit.World) {
			one(plain, hangs)(w)
			record := w.Job("train").Annotations[v1beta1.AnnotationRecord]
			w.Annotate(w.Job("train"), v1beta1.AnnotationRecord, strings.TrimSuffix(record, "}"))
			w.Settle()
			w.ExpectJob("train", "Running", "Stalled=True RecordDamaged")
			w.Annotate(w.Job("train"), v1beta1.AnnotationRecord, record)
			w.Settle()
			w.ExpectJob("train", "Running", "Stalled=False")
			w.Ran("train", 1)
		}, KeepRecord: true},
		testkit.Scenario{Name: "record-damaged-and-deleted", Run: func(w *testkit.World) {
			one(plain, succeeds)(w)
			w.Annotate(w.Job("train"), v1beta1.AnnotationRecord, "{")
			w.Settle()
			deleted(w)
		}, KeepRecord: true},
	)
}
