package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Results of a drain, as values of a label.
const (
	drainFinished = "Finished"
	drainTimedOut = "TimedOut"
)

// newDrains makes the histogram of drains with all its series, so that a rate has its zero.
func newDrains() *prometheus.HistogramVec {
	drains := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "heliostat_worker_drain_duration_seconds",
		Help: "Time from the start of a worker's drain to the deletion of its pod, by result.",
		// From a worker without work to one that a long task keeps.
		Buckets: []float64{1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600},
	}, []string{"result"})
	for _, result := range []string{drainFinished, drainTimedOut} {
		drains.WithLabelValues(result)
	}
	return drains
}

// Drained observes a drain that ended with the deletion of its worker. One that timed out may have ended running work.
func (m *Metrics) Drained(took time.Duration, timedOut bool) {
	if m == nil {
		return
	}
	result := drainFinished
	if timedOut {
		result = drainTimedOut
	}
	m.drains.WithLabelValues(result).Observe(max(0, took.Seconds()))
}
