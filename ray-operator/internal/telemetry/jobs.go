package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// jobMetrics are those of jobs.
type jobMetrics struct {
	starts prometheus.Histogram
	runs   *prometheus.HistogramVec
	ends   *prometheus.CounterVec
	// gathers and restarts are of gangs.
	gathers  prometheus.Histogram
	restarts *prometheus.CounterVec
	trials   *prometheus.CounterVec
}

func newJobMetrics() jobMetrics {
	return jobMetrics{
		starts: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "heliostat_job_start_duration_seconds",
			Help: "Time from the creation or resumption of jobs until they first ran.",
			// From a job on a cluster that is there to one that waits in the queue for hours.
			Buckets: []float64{0.5, 1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400},
		}),
		runs: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "heliostat_job_run_duration_seconds",
			Help: "Time from the first run of jobs to their end, by the phase in their status.",
			// From a job that checks something to one that trains for days.
			Buckets: []float64{5, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400, 43200, 86400, 259200},
		}, []string{"phase"}),
		ends: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "heliostat_job_ends_total",
			Help: "Jobs that ended, by the phase and the reason in their status.",
		}, []string{"phase", "reason"}),
		gathers: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "heliostat_gang_gather_duration_seconds",
			Help: "Time from the start of the drivers of gangs until all their places were there.",
			// From a gang on workers that are there to one that waits for machines.
			Buckets: []float64{1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 7200},
		}),
		restarts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "heliostat_gang_restarts_total",
			Help: "Restarts of gangs within their attempts, by why the round before ended.",
		}, []string{"reason"}),
		trials: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "heliostat_job_trials_total",
			Help: "Trials of jobs that ended, by their state.",
		}, []string{"state"}),
	}
}

// JobChanged observes what a job's change of status means: job holds the former one.
func (m *Metrics) JobChanged(job *v1beta1.ClusterJob, status *v1beta1.ClusterJobStatus, now time.Time) {
	if m == nil {
		return
	}
	m.countReason(kindJob, job.Status.Conditions, status.Conditions)
	m.gangChanged(&job.Status, status, now)
	m.tuneChanged(&job.Status, status)
	if job.Status.StartTime == nil && status.StartTime != nil {
		m.jobs.starts.Observe(max(0, now.Sub(waitedSince(job)).Seconds()))
	}
	if job.Status.EndTime == nil && status.EndTime != nil {
		ready := meta.FindStatusCondition(status.Conditions, v1beta1.ConditionReady)
		if ready != nil {
			m.jobs.ends.WithLabelValues(status.Phase, ready.Reason).Inc()
		}
		if status.StartTime != nil {
			m.jobs.runs.WithLabelValues(status.Phase).Observe(max(0, status.EndTime.Sub(status.StartTime.Time).Seconds()))
		}
	}
}

// gangChanged observes what a change of status means for a job's gang.
func (m *Metrics) gangChanged(former, latter *v1beta1.ClusterJobStatus, now time.Time) {
	if latter.Gang == nil {
		return
	}
	var before int32
	if former.Gang != nil && former.Attempt == latter.Attempt {
		before = former.Gang.Restarts
	}
	if more := latter.Gang.Restarts - before; more > 0 && latter.Gang.LastRestart != nil {
		m.jobs.restarts.WithLabelValues(latter.Gang.LastRestart.Reason).Add(float64(more))
	}
	if latter.Phase != v1beta1.PhaseRunning || former.Phase == latter.Phase && former.Attempt == latter.Attempt || latter.Gang.Restarts > 0 {
		return
	}
	for i := range latter.Attempts {
		if attempt := &latter.Attempts[i]; attempt.Number == latter.Attempt && attempt.StartTime != nil {
			m.jobs.gathers.Observe(max(0, now.Sub(attempt.StartTime.Time).Seconds()))
		}
	}
}

// States of trials that ended.
const (
	trialSucceeded = "Succeeded"
	trialFailed    = "Failed"
	trialPruned    = "Pruned"
)

// tuneChanged observes what a change of status means for a job's trials. Those that the first report has were counted by another job,
// or are counted now: which of the two, no status says.
func (m *Metrics) tuneChanged(former, latter *v1beta1.ClusterJobStatus) {
	if latter.Tune == nil || former.Tune == nil {
		return
	}
	for state, more := range map[string]int32{
		trialSucceeded: latter.Tune.Succeeded - former.Tune.Succeeded,
		trialFailed:    latter.Tune.Failed - former.Tune.Failed,
		trialPruned:    latter.Tune.Pruned - former.Tune.Pruned,
	} {
		if more > 0 {
			m.jobs.trials.WithLabelValues(state).Add(float64(more))
		}
	}
}

// waitedSince is since when someone waits for a job to run.
func waitedSince(job *v1beta1.ClusterJob) time.Time {
	suspended := meta.FindStatusCondition(job.Status.Conditions, v1beta1.ConditionSuspended)
	if suspended != nil && suspended.Status == metav1.ConditionFalse {
		return suspended.LastTransitionTime.Time
	}
	return job.CreationTimestamp.Time
}
