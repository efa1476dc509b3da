package telemetry

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// born is when the cluster of these tests was created; its head is made a second later.
var born = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// at is a status in the given epoch, with the head made after some seconds and the
// conditions given as name=Status@seconds.
func at(epoch int64, head int, conditions ...string) *v1beta1.ComputeClusterStatus {
	since := metav1.NewTime(born.Add(time.Duration(head) * time.Second))
	status := &v1beta1.ComputeClusterStatus{Epoch: epoch, Head: &v1beta1.HeadStatus{CreationTime: &since}}
	for _, text := range conditions {
		name, rest, _ := strings.Cut(text, "=")
		value, when, _ := strings.Cut(rest, "@")
		var seconds int
		if _, err := fmt.Sscan(when, &seconds); err != nil {
			panic(err)
		}
		status.Conditions = append(status.Conditions, metav1.Condition{
			Type: name, Status: metav1.ConditionStatus(value), LastTransitionTime: metav1.NewTime(born.Add(time.Duration(seconds) * time.Second)),
		})
	}
	return status
}

func TestPhasesEndOncePerEpoch(t *testing.T) {
	for _, c := range []struct {
		what          string
		before, after *v1beta1.ComputeClusterStatus
		want          string
	}{
		{"the head becomes ready", at(1, 1, "HeadReady=False@1"), at(1, 1, "HeadReady=True@60"), "head_ready 1m0s"},
		{"workers become ready", at(1, 1, "HeadReady=True@9", "WorkersReady=False@1"), at(1, 1, "HeadReady=True@9", "WorkersReady=True@60"), "workers_ready 1m0s"},
		{"the cluster becomes ready", at(1, 1, "HeadReady=True@9", "Ready=False@1"), at(1, 1, "HeadReady=True@9", "Ready=True@60"), "ready 1m0s"},
		{"a cluster of a head alone is ready at once", at(1, 1), at(1, 1, "WorkersReady=True@1", "Ready=True@60"), "ready 1m0s"},
		{"a worker was lost", at(1, 1, "Ready=False@30"), at(1, 1, "Ready=True@60"), ""},
		{"both at once", at(1, 1, "HeadReady=False@1", "WorkersReady=False@1"), at(1, 1, "HeadReady=True@60", "WorkersReady=True@60"),
			"head_ready 1m0s, workers_ready 1m0s"},
		{"nothing changes", at(1, 1, "HeadReady=True@9"), at(1, 1, "HeadReady=True@9"), ""},
		{"a head is lost", at(1, 1, "HeadReady=True@9"), at(1, 1, "HeadReady=False@60"), ""},
		{"a head was unready for a while", at(1, 1, "HeadReady=False@30"), at(1, 1, "HeadReady=True@60"), ""},
		{"more workers were wanted", at(1, 1, "WorkersReady=False@30"), at(1, 1, "WorkersReady=True@60"), ""},
		{"a second epoch after a lost head", at(2, 40, "HeadReady=False@38"), at(2, 40, "HeadReady=True@60"), "head_ready 20s"},
		{"the operator came late", at(1, 40, "HeadReady=False@40"), at(1, 40, "HeadReady=True@60"), "head_ready 1m0s"},
		{"created while suspended", at(1, 40, "HeadReady=False@1"), at(1, 40, "HeadReady=True@60", "Suspended=False@39"), "head_ready 21s"},
		{"no workers are wanted from the start", at(1, 1), at(1, 1, "WorkersReady=True@1"), ""},
		{"the first status is that of a ready head", at(1, 1), at(1, 1, "HeadReady=True@60"), "head_ready 1m0s"},
		{"suspended", at(1, 1, "HeadReady=False@1"), &v1beta1.ComputeClusterStatus{Epoch: 1}, ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			cluster := &v1beta1.ComputeCluster{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(born)}, Status: *c.before}
			var got []string
			for _, ended := range phasesEnded(cluster, c.after, born.Add(time.Minute)) {
				got = append(got, ended.phase+" "+ended.took.String())
			}
			if strings.Join(got, ", ") != c.want {
				t.Errorf("ended %q, want %q", strings.Join(got, ", "), c.want)
			}
		})
	}
}

func TestPhasesAndWritesAreMeasured(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	cluster := &v1beta1.ComputeCluster{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(born)}, Status: *at(1, 1, "HeadReady=False@1")}
	m.Changed(cluster, at(1, 1, "HeadReady=True@60"), born.Add(time.Hour))
	pods := schema.GroupResource{Resource: "pods"}
	m.Wrote("Pod", "create", nil, 0.1)
	m.Wrote("Pod", "create", fmt.Errorf("create pod: %w", apierrors.NewAlreadyExists(pods, "x")), 0.1)
	m.Wrote("Pod", "delete", errors.New("connection refused"), 3)
	want := `
# HELP heliostat_cluster_writes_total Writes for clusters and jobs, by kind, verb and code of the API server's response.
# TYPE heliostat_cluster_writes_total counter
heliostat_cluster_writes_total{code="200",kind="Pod",verb="create"} 1
heliostat_cluster_writes_total{code="409",kind="Pod",verb="create"} 1
heliostat_cluster_writes_total{code="none",kind="Pod",verb="delete"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "heliostat_cluster_writes_total"); err != nil {
		t.Error(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "heliostat_cluster_phase_duration_seconds" {
			continue
		}
		head := family.GetMetric()[0].GetHistogram()
		buckets := head.GetBucket()
		if last := buckets[len(buckets)-1]; head.GetSampleSum() != 3600 || last.GetUpperBound() != 3600 || last.GetCumulativeCount() != 1 {
			t.Errorf("an hour is not measured: %v", head)
		}
	}
	if _, err := NewMetrics(registry); err == nil {
		t.Error("the same names were registered twice")
	}
}

func TestNoMetricsIsNoHarm(t *testing.T) {
	var none *Metrics
	none.Wrote("Pod", "create", nil, 1)
	none.Phase(PhaseHeadReady, 1)
	none.JobChanged(&v1beta1.ClusterJob{}, &v1beta1.ClusterJobStatus{}, born)
	none.Changed(&v1beta1.ComputeCluster{Status: *at(1, 1, "HeadReady=False@1")}, at(1, 1, "HeadReady=True@2"), born)
	m, err := NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	if n := testutil.CollectAndCount(m.writes); n != 0 {
		t.Errorf("%d series of writes before the first", n)
	}
}

// inPhases are clusters, jobs and services in some phases.
func inPhases() []client.Object {
	var all []client.Object
	for i, phase := range []string{"Ready", "Ready", "Starting", ""} {
		cluster := &v1beta1.ComputeCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: fmt.Sprint("c", i)}}
		cluster.Status.Phase = phase
		cluster.Status.Workers = v1beta1.WorkerCounts{Desired: 3, Created: 2, Ready: 1}
		all = append(all, cluster)
	}
	for i, phase := range []string{"Running", "", "Running"} {
		job := &v1beta1.ClusterJob{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: fmt.Sprint("j", i)}}
		job.Status.Phase = phase
		all = append(all, job)
	}
	for i, phase := range []string{"Ready", "Degraded", ""} {
		service := &v1beta1.ClusterService{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: fmt.Sprint("s", i)}}
		service.Status.Phase = phase
		all = append(all, service)
	}
	return all
}

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	kinds := runtime.NewScheme()
	if err := v1beta1.AddToScheme(kinds); err != nil {
		t.Fatal(err)
	}
	return kinds
}

func TestTheFleetIsCountedByTheLeader(t *testing.T) {
	reader := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(inPhases()...).Build()
	registry := prometheus.NewRegistry()
	leads := false
	if err := NewFleet(registry, reader, func() bool { return leads }, clocktesting.NewFakePassiveClock(born), 0); err != nil {
		t.Fatal(err)
	}
	if n, err := testutil.GatherAndCount(registry); err != nil || n != 0 {
		t.Errorf("a standby tells %d series, %v", n, err)
	}
	leads = true
	want := `
# HELP heliostat_clusters Clusters by the phase in their status.
# TYPE heliostat_clusters gauge
heliostat_clusters{phase="Failed"} 0
heliostat_clusters{phase="Pending"} 1
heliostat_clusters{phase="Ready"} 2
heliostat_clusters{phase="Recovering"} 0
heliostat_clusters{phase="Starting"} 1
heliostat_clusters{phase="Suspended"} 0
heliostat_clusters{phase="Suspending"} 0
heliostat_clusters{phase="Updating"} 0
# HELP heliostat_jobs Jobs by the phase in their status.
# TYPE heliostat_jobs gauge
heliostat_jobs{phase="Failed"} 0
heliostat_jobs{phase="Gathering"} 0
heliostat_jobs{phase="Pending"} 1
heliostat_jobs{phase="Provisioning"} 0
heliostat_jobs{phase="Retrying"} 0
heliostat_jobs{phase="Running"} 2
heliostat_jobs{phase="Stopped"} 0
heliostat_jobs{phase="Submitting"} 0
heliostat_jobs{phase="Succeeded"} 0
heliostat_jobs{phase="Suspended"} 0
heliostat_jobs{phase="Suspending"} 0
# HELP heliostat_services ClusterServices by the phase in their status.
# TYPE heliostat_services gauge
heliostat_services{phase="Degraded"} 1
heliostat_services{phase="Deleting"} 0
heliostat_services{phase="Pending"} 1
heliostat_services{phase="Ready"} 1
heliostat_services{phase="RollingBack"} 0
heliostat_services{phase="Starting"} 0
heliostat_services{phase="Suspended"} 0
heliostat_services{phase="Suspending"} 0
heliostat_services{phase="Upgrading"} 0
# HELP heliostat_workers Workers of all clusters that the specs request (desired), that have a pod (created) and whose pod is ready (ready).
# TYPE heliostat_workers gauge
heliostat_workers{state="created"} 8
heliostat_workers{state="desired"} 12
heliostat_workers{state="ready"} 4
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

func TestJobsAreMeasuredOnce(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	start, end := metav1.NewTime(born.Add(4*time.Second)), metav1.NewTime(born.Add(9*time.Second))
	ended := []metav1.Condition{{Type: v1beta1.ConditionReady, Reason: "JobSucceeded"}}
	job := &v1beta1.ClusterJob{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(born)}}
	for _, status := range []v1beta1.ClusterJobStatus{
		{Phase: "Pending"},
		{Phase: "Running", StartTime: &start},
		{Phase: "Running", StartTime: &start, Attempt: 2},
		{Phase: "Succeeded", StartTime: &start, EndTime: &end, Conditions: ended},
		{Phase: "Succeeded", StartTime: &start, EndTime: &end, Conditions: ended, ObservedGeneration: 2},
	} {
		m.JobChanged(job, &status, start.Time)
		job.Status = status
	}
	want := `
# HELP heliostat_job_ends_total Jobs that ended, by the phase and the reason in their status.
# TYPE heliostat_job_ends_total counter
heliostat_job_ends_total{phase="Succeeded",reason="JobSucceeded"} 1
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "heliostat_job_ends_total"); err != nil {
		t.Error(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		want, measured := map[string]float64{"heliostat_job_start_duration_seconds": 4, "heliostat_job_run_duration_seconds": 5}[family.GetName()]
		if !measured {
			continue
		}
		if got := family.GetMetric()[0].GetHistogram(); got.GetSampleCount() != 1 || got.GetSampleSum() != want {
			t.Errorf("%s: %d in %v s, want 1 in %v", family.GetName(), got.GetSampleCount(), got.GetSampleSum(), want)
		}
	}
}

// TestTrials_AreCountedOnce: those that a first report has may be another job's, and each one that ends after it counts.
func TestTrials_AreCountedOnce(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	job := &v1beta1.ClusterJob{}
	for _, trials := range []*v1beta1.TuneStatus{
		nil, {Succeeded: 5}, {Succeeded: 6, Failed: 1}, {Succeeded: 6, Failed: 1}, nil, {Succeeded: 7}, {Succeeded: 8, Failed: 1, Pruned: 2},
	} {
		status := v1beta1.ClusterJobStatus{Tune: trials}
		m.JobChanged(job, &status, born)
		job.Status = status
	}
	want := `
# HELP heliostat_job_trials_total Trials of jobs that ended, by their state.
# TYPE heliostat_job_trials_total counter
heliostat_job_trials_total{state="Failed"} 2
heliostat_job_trials_total{state="Pruned"} 2
heliostat_job_trials_total{state="Succeeded"} 2
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "heliostat_job_trials_total"); err != nil {
		t.Error(err)
	}
}

// TestGangs_AreMeasuredOnce: each restart counts once by its reason, and the first wait for places of each attempt is measured.
func TestGangs_AreMeasuredOnce(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	began, now := metav1.NewTime(born.Add(4*time.Second)), born.Add(11*time.Second)
	status := func(phase string, attempt, restarts int32, why string) v1beta1.ClusterJobStatus {
		return v1beta1.ClusterJobStatus{
			Phase: phase, Attempt: attempt, Attempts: []v1beta1.JobAttempt{{Number: attempt, StartTime: &began}},
			Gang: &v1beta1.GangStatus{Restarts: restarts, LastRestart: &v1beta1.GangRestart{Reason: why}},
		}
	}
	job := &v1beta1.ClusterJob{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(born)}}
	for _, status := range []v1beta1.ClusterJobStatus{
		status("Gathering", 1, 0, ""), status("Running", 1, 0, ""), status("Running", 1, 0, ""),
		status("Gathering", 1, 1, "Exit"), status("Running", 1, 1, "Exit"), status("Running", 1, 3, "Lost"),
		{Phase: "Retrying", Attempt: 1}, status("Gathering", 2, 0, ""), status("Running", 2, 0, ""), status("Running", 2, 1, "Lost"),
	} {
		m.JobChanged(job, &status, now)
		job.Status = status
	}
	want := `
# HELP heliostat_gang_restarts_total Restarts of gangs within their attempts, by why the round before ended.
# TYPE heliostat_gang_restarts_total counter
heliostat_gang_restarts_total{reason="Drained"} 0
heliostat_gang_restarts_total{reason="Exit"} 1
heliostat_gang_restarts_total{reason="Lost"} 3
heliostat_gang_restarts_total{reason="OutOfMemory"} 0
heliostat_gang_restarts_total{reason="PortTaken"} 0
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "heliostat_gang_restarts_total"); err != nil {
		t.Error(err)
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "heliostat_gang_gather_duration_seconds" {
			continue
		}
		if got := family.GetMetric()[0].GetHistogram(); got.GetSampleCount() != 2 || got.GetSampleSum() != 14 {
			t.Errorf("%d waits of %v s together, want 2 of 14", got.GetSampleCount(), got.GetSampleSum())
		}
	}
}
