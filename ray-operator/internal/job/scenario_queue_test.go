package job_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
)

// crowd is a cluster that runs so many jobs at once, and six jobs a second apart.
func crowd(w *testkit.World, most int32, process testkit.Process) {
	w.Helper()
	programs(w, process)
	cluster := testkit.Cluster("demo")
	cluster.Spec.MaxConcurrentJobs = &most
	w.Prepare(func() {
		w.Create(cluster)
		w.Settle()
	})
	for i := range 6 {
		w.Create(testkit.Job(fmt.Sprintf("job-%d", i+1)))
		w.During(time.Second)
	}
}

// phases are those of the six jobs, by their first letters.
func phases(w *testkit.World) string {
	var text strings.Builder
	for i := range 6 {
		text.WriteString(w.Job(fmt.Sprintf("job-%d", i+1)).Status.Phase[:1])
	}
	return text.String()
}

func expectPhases(w *testkit.World, want string) {
	w.Helper()
	if have := phases(w); have != want {
		w.Fatalf("phases %s, want %s", have, want)
	}
}

// orderOf are the jobs in the order in which they began.
func orderOf(w *testkit.World) []string {
	began := map[string]int{}
	var names []string
	for i := range 6 {
		name := fmt.Sprintf("job-%d", i+1)
		names = append(names, name)
		began[name] = w.Jobs.Place(w.Job(name).UID)
	}
	slices.SortFunc(names, func(a, b string) int { return began[a] - began[b] })
	return names
}

func TestLine(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "all-in-order", Run: func(w *testkit.World) {
			crowd(w, 2, succeeds)
			w.Settle()
			expectPhases(w, "SSSSSS")
			if order := orderOf(w); !slices.IsSorted(order) {
				w.Fatalf("they began in the order %q", order)
			}
		}},
		testkit.Scenario{Name: "places-are-told", Run: func(w *testkit.World) {
			crowd(w, 2, hangs)
			w.Settle()
			expectPhases(w, "RRPPPP")
			w.ExpectJob("job-3", "Pending", "Ready=False JobQueued", "Stalled=False")
			for i := 3; i <= 6; i++ {
				if said := w.JobMessage(fmt.Sprintf("job-%d", i)); !strings.Contains(said, fmt.Sprintf("position %d in the queue", i-2)) {
					w.Fatalf("job %d says %q", i, said)
				}
			}
			w.Delete(w.Job("job-1"))
			w.Settle()
			if have := w.Job("job-3").Status.Phase; have != "Running" {
				w.Fatalf("the next in the queue is %s", have)
			}
			w.ExpectJob("job-4", "Pending", "Ready=False JobQueued")
		}},
		testkit.Scenario{Name: "one-is-suspended", Run: func(w *testkit.World) {
			crowd(w, 2, hangs)
			w.EditJob("job-3", suspended)
			w.EditJob("job-1", suspended)
			w.Settle()
			expectPhases(w, "SRSRPP")
			w.EditJob("job-3", func(j *v1beta1.ClusterJob) { j.Spec.Suspend = new(false) })
			w.Settle()
			if said := w.JobMessage("job-3"); !strings.Contains(said, "position 1 in the queue") {
				w.Fatalf("job 3 says %q", said)
			}
		}},
		testkit.Scenario{Name: "the-limit-is-raised", Run: func(w *testkit.World) {
			crowd(w, 2, hangs)
			w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Spec.MaxConcurrentJobs = number(4) })
			w.Settle()
			expectPhases(w, "RRRRPP")
			w.Edit("demo", func(c *v1beta1.ComputeCluster) { c.Spec.MaxConcurrentJobs = nil })
			w.Settle()
			expectPhases(w, "RRRRRR")
		}},
		testkit.Scenario{Name: "one-has-a-deadline", Run: func(w *testkit.World) {
			crowd(w, 5, hangs)
			w.EditJob("job-6", startsWithin(60))
			w.Settle()
			w.ExpectJob("job-6", "Failed", "Failed=True StartDeadlineExceeded")
			if said := w.JobMessage("job-6"); !strings.Contains(said, "position 1 in the queue") {
				w.Fatalf("the job says %q", said)
			}
		}},
	)
}
