package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
)

// jobMetrics are those of jobs.
type jobMetrics struct {
	starts prometheus.Histogram
	ends   *prometheus.CounterVec
}

func newJobMetrics() jobMetrics {
	return jobMetrics{
		starts: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "heliostat_job_start_duration_seconds",
			Help: "Time from the creation or resumption of jobs until they first ran.",
			// From a job on a cluster that is there to one that waits in the queue for hours.
			Buckets: []float64{0.5, 1, 2, 5, 10, 15, 20, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400},
		}),
		ends: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "heliostat_job_ends_total",
			Help: "Jobs that ended, by the phase and the reason in their status.",
		}, []string{"phase", "reason"}),
	}
}

// JobChanged observes what a job's change of status means: job holds the former one.
func (m *Metrics) JobChanged(job *v1alpha1.ClusterJob, status *v1alpha1.ClusterJobStatus, now time.Time) {
	if m == nil {
		return
	}
	if job.Status.StartTime == nil && status.StartTime != nil {
		m.jobs.starts.Observe(max(0, now.Sub(waitedSince(job)).Seconds()))
	}
	if job.Status.EndTime == nil && status.EndTime != nil {
		ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
		if ready != nil {
			m.jobs.ends.WithLabelValues(status.Phase, ready.Reason).Inc()
		}
	}
}

// waitedSince is since when someone waits for a job to run.
func waitedSince(job *v1alpha1.ClusterJob) time.Time {
	suspended := meta.FindStatusCondition(job.Status.Conditions, v1alpha1.ConditionSuspended)
	if suspended != nil && suspended.Status == metav1.ConditionFalse {
		return suspended.LastTransitionTime.Time
	}
	return job.CreationTimestamp.Time
}

// tallyJobs counts jobs by phase, each known phase included. A job without a status is
// pending.
func tallyJobs(jobs []v1alpha1.ClusterJob) map[string]int {
	phases := map[string]int{
		v1alpha1.PhasePending: 0, v1alpha1.PhaseProvisioning: 0, v1alpha1.PhaseSubmitting: 0, v1alpha1.PhaseRunning: 0,
		v1alpha1.PhaseRetrying: 0, v1alpha1.PhaseSuspending: 0, v1alpha1.PhaseSuspended: 0, v1alpha1.PhaseSucceeded: 0,
		v1alpha1.PhaseFailed: 0, v1alpha1.PhaseStopped: 0,
	}
	for i := range jobs {
		phase := jobs[i].Status.Phase
		if phase == "" {
			phase = v1alpha1.PhasePending
		}
		phases[phase]++
	}
	return phases
}
