package job_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
	"github.com/heliostat-dev/heliostat/ray-operator/launcher"
)

// gang makes a job a gang of two places.
func gang(job *v1beta1.ClusterJob) {
	job.Spec.Gang = &v1beta1.Gang{Framework: v1beta1.FrameworkPyTorch, Roles: []v1beta1.GangRole{{
		Name: v1beta1.GangRoleWorker, Replicas: 2, Resources: map[string]resource.Quantity{"CPU": resource.MustParse("1")},
	}}}
}

// says is what a launcher reports some seconds after its driver began.
func says(seconds int, report launcher.Report) testkit.Report {
	if report.Replicas == 0 {
		report.Replicas = 2
	}
	return testkit.Report{After: time.Duration(seconds) * time.Second, Report: report}
}

var (
	gathers = launcher.Report{State: launcher.Gathering, Ready: 1, Waiting: "1 of 2 × {CPU: 1} missing"}
	runs    = launcher.Report{State: launcher.Running, Round: 1, Ready: 2}
)

// ended is a last report, of how the last round ended.
func ended(kind launcher.Kind, pod, message string, lines ...string) *launcher.Report {
	return &launcher.Report{State: launcher.Ended, Round: 1, Replicas: 2, Last: &launcher.End{
		Kind: kind, Process: "worker/1", Pod: pod, Message: message, Lines: lines,
	}}
}

// launched is a driver that gathers its places in 5 s, and ends in some more.
func launched(takes time.Duration, edits ...func(*testkit.Process)) testkit.Process {
	process := testkit.Process{
		Waits: time.Second, Takes: takes, Lines: []string{"rank 0 says"}, Reports: []testkit.Report{says(1, gathers), says(5, runs)},
	}
	for _, edit := range edits {
		edit(&process)
	}
	return process
}

func forever(p *testkit.Process) { p.Hangs = true }

// withWorkers is a world with a cluster of two workers, on which jobs do what they are given.
func withWorkers(w *testkit.World, each ...testkit.Process) {
	w.Helper()
	programs(w, each...)
	w.Prepare(func() {
		w.Create(testkit.Cluster("demo", testkit.Group("cpu", 2)))
		w.Settle()
	})
	w.Expect("demo", "Ready=True")
}

// oneGang is a world with one gang on a cluster of two workers.
func oneGang(edit func(*v1beta1.ClusterJob), each ...testkit.Process) func(*testkit.World) {
	return func(w *testkit.World) {
		w.Helper()
		withWorkers(w, each...)
		given(w, testkit.Job("train"), gang, edit)
	}
}

func TestGang(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "runs-and-ends", Run: func(w *testkit.World) {
			withWorkers(w, launched(3*time.Minute, func(p *testkit.Process) { p.Reports = []testkit.Report{says(1, gathers), says(50, runs)} }))
			w.Create(edited(testkit.Job("train"), gang))
			w.During(25 * time.Second)
			w.ExpectJob("train", "Gathering", "Ready=False GangGathering", "1")
			w.During(60 * time.Second)
			w.ExpectJob("train", "Running", "Ready=False JobRunning", "1")
			w.Settle()
			w.ExpectJob("train", "Succeeded", "1 JobSucceeded(0) Complete")
			w.ExpectLines("train", 1, "rank 0 says")
		}},
		testkit.Scenario{Name: "restarts-in-place", Run: restartsInPlace},
		testkit.Scenario{Name: "a-process-failed", Run: func(w *testkit.World) {
			oneGang(retries(v1beta1.Retry{Limit: 1}), launched(20*time.Second, func(p *testkit.Process) {
				p.ExitCode, p.Last = 3, ended(launcher.Exit, "demo-cpu-1", "exited with 3", "no space left")
			}), launched(20*time.Second))(w)
			w.ExpectJob("train", "Succeeded", "1 ProcessFailed(3) Complete", "2 JobSucceeded(0) Complete")
			w.ExpectLines("train", 1, "no space left")
		}},
		testkit.Scenario{Name: "without-a-report", Run: func(w *testkit.World) {
			withWorkers(w, hangs)
			w.Create(edited(testkit.Job("train"), gang))
			w.During(30 * time.Second)
			w.ExpectJob("train", "Gathering", "1")
			w.After(time.Minute)
			w.ExpectJob("train", "Running", "Ready=False JobRunning", "1")
		}},
	)
}

// gathering is a driver that never has all its places.
func gathering(edits ...func(*testkit.Process)) testkit.Process {
	return launched(30*time.Second, append(edits, func(p *testkit.Process) { p.Reports = p.Reports[:1] })...)
}

// TestGangGathers: a gang that waits for its places may end as any other.
func TestGangGathers(t *testing.T) {
	begin := func(w *testkit.World, each ...testkit.Process) {
		w.Helper()
		withWorkers(w, each...)
		w.Create(edited(testkit.Job("train"), gang, func(j *v1beta1.ClusterJob) { j.Spec.StartDeadlineSeconds = number(60) }))
		w.During(20 * time.Second)
		w.ExpectJob("train", "Gathering", "Ready=False GangGathering", "1")
	}
	play(t,
		testkit.Scenario{Name: "succeeds", Run: func(w *testkit.World) {
			begin(w, gathering())
			w.Settle()
			w.ExpectJob("train", "Succeeded", "1 JobSucceeded(0) Complete")
		}},
		testkit.Scenario{Name: "its-program-is-not-there", Run: func(w *testkit.World) {
			begin(w, gathering(func(p *testkit.Process) {
				p.ExitCode, p.Last = 2, ended(launcher.NotFound, "demo-cpu-1", "no program trian in the image")
			}))
			w.Settle()
			w.ExpectJob("train", "Failed", "Failed=True ProcessFailed", "1 ProcessFailed(2) Complete")
		}},
		testkit.Scenario{Name: "for-too-long", Run: func(w *testkit.World) {
			begin(w, gathering(forever))
			w.After(time.Minute)
			w.ExpectJob("train", "Failed", "Failed=True StartDeadlineExceeded", "1 StartDeadlineExceeded Complete")
		}},
		testkit.Scenario{Name: "stopped", Run: func(w *testkit.World) {
			begin(w, gathering(forever))
			stop(w)
			w.Settle()
			w.ExpectJob("train", "Stopped", "1 Stopped Complete")
		}},
		testkit.Scenario{Name: "suspended", Run: func(w *testkit.World) {
			begin(w, gathering(forever), launched(20*time.Second))
			suspend(w, true)
			w.Settle()
			w.ExpectJob("train", "Suspended", isSuspended, "1 JobSuspended Complete")
			suspend(w, false)
			w.Settle()
			w.ExpectJob("train", "Succeeded", "1 JobSuspended Complete", "2 JobSucceeded(0) Complete")
		}},
	)
}

// restartsInPlace: the job gathers again, and runs again, within its attempt.
func restartsInPlace(w *testkit.World) {
	again := launcher.Report{State: launcher.Gathering, Round: 1, Ready: 1, Waiting: "1 of 2 missing", Last: ended(launcher.Exit, "demo-cpu-1", "exited with 3").Last}
	second := launcher.Report{State: launcher.Running, Round: 2, Restarts: 1, Ready: 2, Last: again.Last}
	withWorkers(w, launched(3*time.Minute, func(p *testkit.Process) { p.Reports = append(p.Reports, says(40, again), says(80, second)) }))
	w.Create(edited(testkit.Job("train"), gang))
	w.During(30 * time.Second)
	w.ExpectJob("train", "Running", "1")
	w.During(40 * time.Second)
	w.ExpectJob("train", "Gathering", "1")
	w.During(40 * time.Second)
	w.ExpectJob("train", "Running", "1")
	if told := w.Job("train").Status.Gang; told == nil || told.Restarts != 1 || told.LastRestart == nil || told.LastRestart.Replica != "worker/1" {
		w.Fatalf("the status tells of the gang %+v", told)
	}
	w.Settle()
	w.ExpectJob("train", "Succeeded", "1 JobSucceeded(0) Complete")
}

// losesPlace is a driver that ends itself after 30 s, as it lost the place on a worker's pod.
func losesPlace(pod string) testkit.Process {
	return launched(30*time.Second, func(p *testkit.Process) {
		p.ExitCode, p.Last = -12, ended(launcher.Lost, pod, "its place was lost")
		p.Last.Lost = []string{pod}
	})
}

func TestGangLosses(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "a-worker-is-gone", Run: func(w *testkit.World) {
			withWorkers(w)
			worker := w.Workers("demo", "cpu")[1]
			programs(w, losesPlace(worker.Name), launched(20*time.Second))
			w.Create(edited(testkit.Job("train"), gang, retries(v1beta1.Retry{InfrastructureLimit: number(1)})))
			w.During(25 * time.Second)
			w.Force(worker)
			w.Settle()
			w.ExpectJob("train", "Succeeded", "1 GangLost Complete", "2 JobSucceeded(0) Complete")
		}},
		testkit.Scenario{Name: "its-node-is-found-silent-later", Run: func(w *testkit.World) {
			w.Kubelet.Node = func(pod *corev1.Pod) string {
				return map[bool]string{true: "old", false: "node-1"}[pod.Labels[v1beta1.LabelRole] == v1beta1.RoleWorker]
			}
			withWorkers(w)
			w.Answer("old")
			w.After(10 * time.Minute)
			programs(w, losesPlace(w.Workers("demo", "cpu")[1].Name), launched(20*time.Second))
			w.Create(edited(testkit.Job("train"), gang, retries(v1beta1.Retry{InfrastructureLimit: number(1)})))
			w.During(50 * time.Second)
			w.ExpectJob("train", "Running", "1")
			w.Kubelet.Node = nil
			w.Silence("old")
			w.After(3 * time.Minute)
			w.ExpectJob("train", "Succeeded", "1 GangLost Complete", "2 JobSucceeded(0) Complete")
		}},
		testkit.Scenario{Name: "a-report-that-lies", Run: func(w *testkit.World) {
			withWorkers(w)
			w.Answer("node-1")
			w.After(10 * time.Minute) // a worker that was created just before a loss may have replaced one
			programs(w, losesPlace(w.Workers("demo", "cpu")[1].Name), launched(20*time.Second))
			given(w, testkit.Job("train"), gang, retries(v1beta1.Retry{InfrastructureLimit: number(1)}))
			w.ExpectJob("train", "Failed", "Failed=True GangLost", "1 GangLost Complete")
		}},
		testkit.Scenario{Name: "two-attempts-are-never-side-by-side", Run: func(w *testkit.World) {
			killed := launched(30*time.Second, func(p *testkit.Process) { p.ErrorType = "JOB_SUPERVISOR_ACTOR_DIED" })
			withWorkers(w, killed, launched(20*time.Second))
			w.Create(edited(testkit.Job("train"), gang, retries(v1beta1.Retry{Limit: 1, BackoffSeconds: number(0)})))
			w.During(70 * time.Second)
			w.ExpectJob("train", "Pending", "Ready=False Stopping", "1 DriverLost Complete")
			w.Settle()
			w.ExpectJob("train", "Succeeded", "1 DriverLost Complete", "2 JobSucceeded(0) Complete")
			attempts := w.Job("train").Status.Attempts
			if wait := attempts[1].SubmitTime.Sub(attempts[0].EndTime.Time); wait < 55*time.Second {
				w.Fatalf("the second attempt followed after %s", wait)
			}
		}},
	)
}

func TestGangPlaces(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "too-large-then-the-cluster-grows", Run: func(w *testkit.World) {
			withWorkers(w, launched(20*time.Second))
			w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Spec.MaxConcurrentJobs = number(1) })
			given(w, testkit.Job("train"), gang, func(j *v1beta1.ClusterJob) { j.Spec.Gang.Roles[0].Replicas = 3 })
			w.ExpectJob("train", "Pending", "Ready=False GangTooLarge")
			given(w, testkit.Job("next"))
			w.ExpectJob("next", "Succeeded")
			w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Spec.WorkerGroups[0].Replicas = number(3) })
			w.Settle()
			w.ExpectJob("train", "Succeeded", "1 JobSucceeded(0) Complete")
		}},
		testkit.Scenario{Name: "too-large-in-its-template", Run: func(w *testkit.World) {
			given(w, testkit.OwnJob("train", testkit.Group("cpu", 1)), gang)
			w.ExpectJob("train", "Pending", "Ready=False GangTooLarge")
			gone(w, "train")
		}},
		testkit.Scenario{Name: "too-large-while-it-gathers", Run: func(w *testkit.World) {
			withWorkers(w, gathering(forever), launched(20*time.Second))
			w.Create(edited(testkit.Job("train"), gang))
			w.During(20 * time.Second)
			w.ExpectJob("train", "Gathering", "1")
			w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Spec.WorkerGroups[0].Replicas = number(1) })
			w.After(2 * time.Minute)
			w.ExpectJob("train", "Pending", "Ready=False GangTooLarge", "1 GangLost Complete")
			w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Spec.WorkerGroups[0].Replicas = number(2) })
			w.Settle()
			w.ExpectJob("train", "Succeeded", "1 GangLost Complete", "2 JobSucceeded(0) Complete")
		}},
		testkit.Scenario{Name: "two-gangs-gather-in-turn", Run: gatherInTurn},
		testkit.Scenario{Name: "two-gangs-gather-where-both-fit", Run: func(w *testkit.World) {
			withWorkers(w, gathering(forever))
			w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Spec.WorkerGroups[0].Replicas = number(4) })
			w.Create(edited(testkit.Job("train"), gang))
			w.Create(edited(testkit.Job("younger"), gang))
			w.During(30 * time.Second)
			w.ExpectJob("train", "Gathering")
			w.ExpectJob("younger", "Gathering")
		}},
	)
}

// gatherInTurn: the younger gang is not submitted before the older one has its places.
func gatherInTurn(w *testkit.World) {
	withWorkers(w, launched(5*time.Minute, func(p *testkit.Process) { p.Reports = []testkit.Report{says(1, gathers), says(60, runs)} }))
	w.Create(edited(testkit.Job("train"), gang))
	w.During(15 * time.Second)
	w.Create(edited(testkit.Job("younger"), gang))
	w.Create(testkit.Job("plain"))
	w.During(20 * time.Second)
	w.ExpectJob("train", "Gathering")
	w.ExpectJob("younger", "Pending", "Ready=False GangQueued")
	w.Ran("plain", 1)
	w.During(60 * time.Second)
	w.ExpectJob("train", "Running")
	w.ExpectJob("younger", "Gathering")
	w.Settle()
	w.ExpectJob("younger", "Succeeded")
}

// saving is a gang's driver that takes 20 s to end once it is told to.
func saving(p *testkit.Process) { p.Hangs, p.Saves = true, 20*time.Second }

// TestGangGrace: whatever ends a gang, its processes have their grace, and its cluster stays until they have ended.
func TestGangGrace(t *testing.T) {
	own := func(edits ...func(*v1beta1.ClusterJob)) func(*testkit.World) {
		return func(w *testkit.World) {
			w.Helper()
			programs(w, launched(time.Minute, saving), launched(20*time.Second))
			w.Create(edited(testkit.OwnJob("train", testkit.Group("cpu", 2)), append([]func(*v1beta1.ClusterJob){gang}, edits...)...))
			w.During(40 * time.Second)
			w.ExpectJob("train", "Running")
		}
	}
	saved := func(w *testkit.World, job types.UID) {
		w.Helper()
		if s := w.Jobs.Ends(job); len(s) == 0 || s[0] != headclient.JobStopped {
			w.Fatalf("its runs ended as %v, want that it saved and was stopped", s)
		}
	}
	play(t,
		testkit.Scenario{Name: "suspended", Run: func(w *testkit.World) {
			own()(w)
			suspend(w, true)
			w.Settle()
			w.ExpectJob("train", "Suspended", isSuspended, "1 JobSuspended Complete")
			saved(w, w.Job("train").UID)
			suspend(w, false)
			w.Settle()
			w.ExpectJob("train", "Succeeded", "1 JobSuspended Complete", "2 JobSucceeded(0) Complete")
		}},
		testkit.Scenario{Name: "stopped", Run: func(w *testkit.World) {
			own()(w)
			stop(w)
			w.Settle()
			w.ExpectJob("train", "Stopped", "1 Stopped Complete")
			saved(w, w.Job("train").UID)
		}},
		testkit.Scenario{Name: "over-its-deadline", Run: func(w *testkit.World) {
			own(func(j *v1beta1.ClusterJob) { j.Spec.ActiveDeadlineSeconds = number(60) })(w)
			w.After(2 * time.Minute)
			w.ExpectJob("train", "Failed", "1 DeadlineExceeded Complete")
			saved(w, w.Job("train").UID)
		}},
		testkit.Scenario{Name: "deleted", Run: func(w *testkit.World) {
			own()(w)
			job := w.Job("train")
			w.Delete(job)
			w.Settle()
			saved(w, job.UID)
			if w.HasJob("train") {
				w.Fatalf("the job is still there")
			}
		}},
	)
}

// TestRequests_OfOneGang: a gang that gathers, runs and ends costs the API server at most three requests more than a plain job on the
// same cluster.
func TestRequests_OfOneGang(t *testing.T) {
	cost := func(edits ...func(*v1beta1.ClusterJob)) []string {
		w := testkit.NewWorld(t)
		withWorkers(w, launched(3*time.Minute, func(p *testkit.Process) { p.Reports = []testkit.Report{says(1, gathers), says(50, runs)} }))
		before := len(w.Requests())
		w.Create(edited(testkit.Job("train"), edits...))
		w.Settle()
		w.ExpectJob("train", "Succeeded", "1 JobSucceeded(0) Complete")
		return w.Requests()[before:]
	}
	plain, gang := cost(), cost(gang)
	t.Logf("a plain job costs %d requests, a gang %d", len(plain), len(gang))
	if len(gang) > len(plain)+3 {
		t.Errorf("a gang sends %q, a plain job %q", gang, plain)
	}
}
