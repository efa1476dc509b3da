package job_test

import (
	"flag"
	"os"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/job"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

// moves are the changes of phase that scenarios have made.
var moves = struct {
	sync.Mutex
	seen map[job.Move]bool
}{seen: map[job.Move]bool{}}

// play tells scenarios and takes note of the changes of phase in them.
func play(t *testing.T, scenarios ...testkit.Scenario) {
	t.Helper()
	for i := range scenarios {
		run := scenarios[i].Run
		scenarios[i].Run = func(w *testkit.World) {
			w.Helper()
			run(w)
			moves.Lock()
			defer moves.Unlock()
			for _, move := range w.History.Moves() {
				moves.seen[move] = true
			}
		}
	}
	testkit.Play(t, scenarios...)
}

// TestMain also asserts, where all tests ran, that scenarios made every move of the table.
func TestMain(m *testing.M) {
	code := m.Run()
	if flag.Lookup("test.run").Value.String() == "" && flag.Lookup("test.list").Value.String() == "" && code == 0 {
		for _, move := range job.Moves() {
			if !moves.seen[job.Move{From: move.From, To: move.To}] {
				println("no scenario makes the move from", move.From, "to", move.To)
				code = 1
			}
		}
	}
	os.Exit(code)
}

// Processes that scenarios have.
var (
	succeeds = testkit.Process{Waits: time.Second, Takes: 5 * time.Second, Lines: []string{"one", "two"}}
	hangs    = testkit.Process{Waits: time.Second, Hangs: true, Lines: []string{"at it"}}
	waits    = testkit.Process{Stays: true}
)

// fails is a process that ends with an exit code.
func fails(code int32) testkit.Process {
	return testkit.Process{Waits: time.Second, Takes: 5 * time.Second, ExitCode: code, Lines: []string{"oh no"}}
}

// programs has each attempt do what it is given, and all later ones what the last is.
func programs(w *testkit.World, each ...testkit.Process) {
	w.Jobs.Program = func(run testkit.Run) testkit.Process { return each[min(int(run.Attempt), len(each))-1] }
}

// shared is a world with a running cluster of no workers, on which jobs do what they are given.
func shared(w *testkit.World, each ...testkit.Process) {
	w.Helper()
	programs(w, each...)
	w.Prepare(func() {
		w.Create(testkit.Cluster("demo"))
		w.Settle()
	})
	w.Expect("demo", "Ready=True")
}

// given makes a job and lets all come to rest.
func given(w *testkit.World, of *v1beta1.ClusterJob, edits ...func(*v1beta1.ClusterJob)) {
	w.Helper()
	for _, edit := range edits {
		edit(of)
	}
	w.Create(of)
	w.Settle()
}

func suspend(w *testkit.World, is bool) {
	w.Helper()
	w.EditJob("train", func(j *v1beta1.ClusterJob) { j.Spec.Suspend = new(is) })
}

func retries(retry v1beta1.Retry) func(*v1beta1.ClusterJob) {
	return func(j *v1beta1.ClusterJob) { j.Spec.Retry = &retry }
}

func number(n int32) *int32 { return &n }

func all(*corev1.Pod) bool { return true }

// one is a world with one job on a shared cluster.
func one(edit func(*v1beta1.ClusterJob), each ...testkit.Process) func(*testkit.World) {
	return func(w *testkit.World) {
		w.Helper()
		shared(w, each...)
		given(w, testkit.Job("train"), edit)
	}
}

func plain(*v1beta1.ClusterJob) {}

// misnamed gives the driver a variable that no rule lets it have.
func misnamed(job *v1beta1.ClusterJob) {
	job.Spec.Env = []corev1.EnvVar{{Name: "HELIOSTAT_X", Value: "1"}}
}
