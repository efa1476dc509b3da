package job

import (
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/launcher"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// TestDescribeTune: all defaults are written out, and a number stays the text that the user wrote.
func TestDescribeTune(t *testing.T) {
	job := train(tuned)
	want := &launcher.Tune{
		Metric: "val_accuracy", Direction: "Maximize", Value: "Last", Algorithm: "TPE", EarlyStopping: "None", MaxTrials: 20, ParallelTrials: 4,
		MaxFailedTrials: 3, Parameters: []launcher.Parameter{{Name: "learningRate", Type: "Float", Min: "0.1", Max: "1", Scale: "Linear"}},
	}
	if diff := gocmp.Diff(want, describeTune(&job.Spec, nil)); diff != "" {
		t.Error(diff)
	}
	if describeTune(&train(gang).Spec, nil) != nil {
		t.Error("a gang without trials has a description of them")
	}
	for metric, direction := range map[string]string{"loss": "Minimize", "val_Error": "Minimize", "auc": "Maximize", "test/f1": "Maximize"} {
		job.Spec.Tune.Objective.Metric = metric
		if got := describeTune(&job.Spec, nil).Direction; got != direction {
			t.Errorf("the direction of %s is %s", metric, got)
		}
	}
}

// TestGangOf_OneProcess: a trial without a gang is one process, which reserves what the driver would.
func TestGangOf_OneProcess(t *testing.T) {
	for name, c := range map[string]struct {
		given, want map[string]resource.Quantity
	}{
		"nothing given":  {nil, cpus("1")},
		"nothing needed": {cpus("0"), cpus("1")},
		"what is given":  {cpus("2"), cpus("2")},
	} {
		t.Run(name, func(t *testing.T) {
			job := train(tuned, func(j *v1beta1.ClusterJob) {
				j.Spec.EntrypointResources, j.Spec.EntrypointLabelSelector = c.given, text("b")
			})
			role := gangOf(&job.Spec).Roles[0]
			if diff := gocmp.Diff(c.want, role.Resources); diff != "" || role.LabelSelector["a"] != "b" || role.Name != "worker" {
				t.Errorf("role %+v: %s", role, diff)
			}
			asked, launched, err := submission(job, newRecord(), target{})
			if err != nil || launched == nil || asked.CPUs != 0 || len(asked.LabelSelector) != 0 {
				t.Errorf("the driver reserves %v by %v: %v", asked.CPUs, asked.LabelSelector, err)
			}
		})
	}
}

// TestFits: as many trials as the workers and the head hold at their largest.
func TestFits(t *testing.T) {
	job := train(tuned, func(j *v1beta1.ClusterJob) { j.Spec.EntrypointResources = cpus("1") })
	cluster := demo()
	most := roomOf(cluster)
	all := int32(0)
	for _, g := range most.groups {
		all += int32(g.nodes * g.count(&gangOf(&job.Spec).Roles[0]))
	}
	for wanted, want := range map[int32]int32{1: 1, all: all, all + 5: all} {
		if got := most.fits(gangOf(&job.Spec), wanted); got != max(1, want) {
			t.Errorf("of %d fit %d, want %d", wanted, got, want)
		}
	}
}

// TestTuneStatus: what was reported of an attempt is never lowered, and lives on with a storage.
func TestTuneStatus(t *testing.T) {
	values := map[string]string{"x": "1"}
	report := &launcher.TuneReport{Trials: 3, Running: 1, Succeeded: 1, Failed: 1, Best: &launcher.BestTrial{Trial: 1, Value: "0.5", Parameters: values}}
	merged := mergeTrials(&v1beta1.TuneStatus{Trials: 5, Succeeded: 4, Pruned: 1}, report)
	want := &v1beta1.TuneStatus{
		Trials: 5, Running: 1, Succeeded: 4, Failed: 1, Pruned: 1, Best: &v1beta1.BestTrial{Trial: 1, Value: "0.5", Parameters: values},
	}
	if diff := gocmp.Diff(want, merged); diff != "" {
		t.Error(diff)
	}
	again := mergeTrials(merged, &launcher.TuneReport{Trials: 5})
	if diff := gocmp.Diff(want.Best, again.Best); diff != "" {
		t.Errorf("a report without a best trial: %s", diff)
	}
	job := train(tuned)
	job.Status.Tune, job.Status.Attempt = want, 1
	second := newRecord()
	second.Attempt, second.Bound = 2, binding(60)
	if got := tuneStatus(job, &Seen{}, second); got != nil {
		t.Errorf("another attempt without a storage begins with %+v", got)
	}
	job.Spec.Tune.Storage = "/results/x"
	if got := tuneStatus(job, &Seen{}, second); got == nil || got.Trials != 5 {
		t.Errorf("another attempt with a storage begins with %+v", got)
	}
	second.Bound = Bound{}
	if got := tuneStatus(job, &Seen{}, second); got == nil || got.Running != 0 {
		t.Errorf("without a driver %+v", got)
	}
}

// ofTrials is what a report has of trials.
func ofTrials(trials launcher.TuneReport) func(*launcher.Report) {
	return func(r *launcher.Report) { r.Tune = &trials }
}

// TestTrials_AreAGang: a job with trials gathers as a gang does, and names the job that has its storage.
func TestTrials_AreAGang(t *testing.T) {
	running, bound := says(headclient.JobRunning), bound()
	held := ofTrials(launcher.TuneReport{Holder: "job other (attempt 3)"})
	hold(t, map[string]guarded{
		"no report yet":         {train(tuned, runsSince(5)), seen(bound, running), "Gathering GangGathering ask"},
		"waits for places":      {train(tuned, runsSince(5)), seen(bound, running, reports(launcher.Gathering)), "Gathering GangGathering ask"},
		"waits for the storage": {train(tuned, runsSince(5)), seen(bound, running, reports(launcher.Gathering, held)), "Gathering StorageInUse ask"},
		"runs":                  {train(tuned, runsSince(5)), seen(bound, running, reports(launcher.Running)), "Running JobRunning ask"},
	})
}

// TestTrials_ThatWaitForPlacesAreNamed: fewer run at a time than may.
func TestTrials_ThatWaitForPlacesAreNamed(t *testing.T) {
	few := func(r *launcher.Report) {
		r.Waiting, r.Tune = "1 of 1 × {CPU: 4} missing", &launcher.TuneReport{Trials: 2, Running: 2, Waiting: 2}
	}
	lost := func(r *launcher.Report) {
		r.Waiting, r.Tune = "trial 1: 1 of 1 × {CPU: 4} missing", &launcher.TuneReport{Trials: 2, Running: 2}
	}
	for name, c := range map[string]struct {
		report func(*launcher.Report)
		want   string
	}{
		"all run":      {ofTrials(launcher.TuneReport{Trials: 4, Running: 4}), ""},
		"some wait":    {few, " (runs 2 of 4 trials at a time: 1 of 1 × {CPU: 4} missing)"},
		"one waits":    {lost, " (trial 1: 1 of 1 × {CPU: 4} missing)"},
		"a plain gang": {func(*launcher.Report) {}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			at := seen(bound(), says(headclient.JobRunning), reports(launcher.Running, c.report))
			at.Cluster = nil
			v := view{job: train(tuned), seen: at, record: bound(), now: now}
			if have := explainTrials(v); have != c.want {
				t.Errorf("have %q, want %q", have, c.want)
			}
		})
	}
}

// TestTrials_ThatDoNotFitAreNamed: the cluster at its largest holds fewer than may run at a time.
func TestTrials_ThatDoNotFitAreNamed(t *testing.T) {
	at := seen(bound(), says(headclient.JobRunning), reports(launcher.Running, ofTrials(launcher.TuneReport{Trials: 2, Running: 1})))
	at.Cluster = demo()
	for name, c := range map[string]struct {
		change func(*v1beta1.ClusterJob)
		want   string
	}{
		"all fit": {func(j *v1beta1.ClusterJob) { j.Spec.Tune.ParallelTrials = 1 }, ""},
		"some do": {func(j *v1beta1.ClusterJob) { j.Spec.Tune.ParallelTrials = 256 }, " of 256 trials at a time, as the cluster has no room for more)"},
	} {
		t.Run(name, func(t *testing.T) {
			v := view{job: train(tuned, c.change), seen: at, record: bound(), now: now}
			if have := explainTrials(v); (have == "") != (c.want == "") || !strings.HasSuffix(have, c.want) {
				t.Errorf("have %q, want one that ends with %q", have, c.want)
			}
		})
	}
}

// TestTrials_End: what the launcher reports names why, and the last lines are those of the trial that failed last.
func TestTrials_End(t *testing.T) {
	exit := func(code int32) func(*Seen) { return says(headclient.JobFailed, exits(code)) }
	for name, c := range map[string]struct {
		seen []func(*Seen)
		want reason.Finding
	}{
		"too many failed": {[]func(*Seen){exit(1), reports(launcher.Ended, first(launcher.Trials, "bad"))}, reason.TuningFailed.Of("exited with 3")},
		"no metric":       {[]func(*Seen){exit(1), reports(launcher.Ended, first(launcher.MetricMissing, "bad"))}, reason.MetricMissing.Of("exited with 3")},
		"no study":        {[]func(*Seen){exit(2), reports(launcher.Ended, first(launcher.Study, "bad"))}, reason.TuningFailed.In("Study").Of("exited with 3")},
	} {
		f, is := judgeAttempt(view{job: train(tuned), seen: seen(bound(), c.seen...), record: bound(), now: now})
		if !is || f.Finding != c.want || f.class("") != failure || len(f.lines) != 1 || f.lines[0] != "bad" {
			t.Errorf("%s: %+v of kind %d, want %+v", name, f, f.class(""), c.want)
		}
	}
}

// TestTrials_WarnOfAStorage: one that is on no volume is lost with a pod.
func TestTrials_WarnOfAStorage(t *testing.T) {
	shared, mounted := demo(), demo()
	shared.Spec.SharedVolumes = []v1beta1.SharedVolume{{Name: "a", MountPath: "/results"}}
	mounted.Spec.Head.Template = &corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "ray", VolumeMounts: []corev1.VolumeMount{{Name: "a", MountPath: "/results/"}}}},
	}}
	for name, c := range map[string]struct {
		cluster *v1beta1.ComputeCluster
		storage string
		is      bool
	}{
		"no storage":        {demo(), "", false},
		"no cluster":        {nil, "/results/x", false},
		"no volume":         {demo(), "/results/x", true},
		"a shared one":      {shared, "/results/x", false},
		"its root":          {shared, "/results", false},
		"beside it":         {shared, "/results2", true},
		"one of a template": {mounted, "/results/x", false},
	} {
		job := train(tuned, func(j *v1beta1.ClusterJob) { j.Spec.Tune.Storage = c.storage })
		if have := warnOfStorage(&job.Spec, c.cluster); (have != "") != c.is {
			t.Errorf("%s: %q", name, have)
		}
	}
}
