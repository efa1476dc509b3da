package job_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/testkit"
	"github.com/heliostat-dev/heliostat/ray-operator/launcher"
)

// tuned makes a job run trials of one process.
func tuned(job *v1beta1.ClusterJob) {
	job.Spec.Tune = &v1beta1.Tune{
		Objective: v1beta1.TuneObjective{Metric: "loss"}, MaxTrials: 4, ParallelTrials: 2, Storage: "/results/x",
		Parameters: []v1beta1.TuneParameter{{Name: "x", Type: v1beta1.ParameterFloat, Min: "0", Max: "1"}},
	}
}

// tries is a report of trials.
func tries(state launcher.State, trials launcher.TuneReport) launcher.Report {
	return launcher.Report{State: state, Round: 1, Replicas: 2, Ready: 2, Tune: &trials}
}

func TestTune(t *testing.T) {
	play(t,
		testkit.Scenario{Name: "waits-for-its-storage-and-ends", Run: func(w *testkit.World) {
			best := &launcher.BestTrial{Trial: 2, Value: "0.25", Parameters: map[string]string{"x": "0.5"}}
			last := tries(launcher.Ended, launcher.TuneReport{Trials: 4, Succeeded: 3, Failed: 1, Best: best})
			withWorkers(w, launched(3*time.Minute, func(p *testkit.Process) {
				p.Reports = []testkit.Report{
					says(1, tries(launcher.Gathering, launcher.TuneReport{Holder: "job other (attempt 3)"})),
					says(50, tries(launcher.Running, launcher.TuneReport{Trials: 2, Running: 2})),
				}
				p.Last = &last
			}))
			w.Create(edited(testkit.Job("train"), tuned))
			w.During(25 * time.Second)
			w.ExpectJob("train", "Gathering", "Ready=False StorageInUse", "1")
			w.During(60 * time.Second)
			w.ExpectJob("train", "Running", "Ready=False JobRunning", "1")
			w.Settle()
			w.ExpectJob("train", "Succeeded", "1 JobSucceeded(0) Complete")
			want := &v1beta1.TuneStatus{Trials: 4, Succeeded: 3, Failed: 1, Best: &v1beta1.BestTrial{Trial: 2, Value: "0.25", Parameters: best.Parameters}}
			if diff := cmp.Diff(want, w.Job("train").Status.Tune); diff != "" {
				w.Fatalf("the trials: %s", diff)
			}
		}},
		testkit.Scenario{Name: "has-no-metric", Run: func(w *testkit.World) {
			last := tries(launcher.Ended, launcher.TuneReport{Trials: 1, Failed: 1})
			last.Last = &launcher.End{Kind: launcher.MetricMissing, Process: "worker/0", Message: "no value of loss", Lines: []string{"epoch 3"}}
			withWorkers(w, launched(20*time.Second, func(p *testkit.Process) { p.ExitCode, p.Last = 1, &last }))
			given(w, testkit.Job("train"), tuned)
			w.ExpectJob("train", "Failed", "Failed=True MetricMissing", "1 MetricMissing(1) Complete")
			w.ExpectLines("train", 1, "epoch 3")
		}},
	)
}
