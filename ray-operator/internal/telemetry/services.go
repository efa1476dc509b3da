package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// serviceMetrics are those of ClusterServices.
type serviceMetrics struct {
	starts    prometheus.Histogram
	upgrades  *prometheus.CounterVec
	durations *prometheus.HistogramVec
}

// newServiceMetrics makes them with all their series, so that a rate has its zero.
func newServiceMetrics() serviceMetrics {
	m := serviceMetrics{
		starts: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "heliostat_service_ready_duration_seconds",
			Help: "Time from the creation or resumption of ClusterServices until they were ready.",
			// From a small model on a node that has its image to a large one that waits for a node.
			Buckets: []float64{5, 10, 20, 30, 60, 90, 120, 180, 300, 600, 900, 1800, 3600},
		}),
		upgrades: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "heliostat_service_upgrades_total",
			Help: "Upgrades of ClusterServices that ended, by result.",
		}, []string{"result"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "heliostat_service_upgrade_duration_seconds",
			Help: "Time that upgrades of ClusterServices took, by result.",
			// From a change in place to one that shifts traffic in steps of hours.
			Buckets: []float64{5, 10, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 43200},
		}, []string{"result"}),
	}
	for _, result := range []v1beta1.UpgradeResult{v1beta1.UpgradeSucceeded, v1beta1.UpgradeRolledBack, v1beta1.UpgradeSuperseded} {
		m.upgrades.WithLabelValues(string(result))
		m.durations.WithLabelValues(string(result))
	}
	return m
}

// ServiceChanged observes what a service's change of status means: service holds the former one.
func (m *Metrics) ServiceChanged(service *v1beta1.ClusterService, status *v1beta1.ClusterServiceStatus, now time.Time) {
	if m == nil {
		return
	}
	m.countReason(kindService, service.Status.Conditions, status.Conditions)
	if begin, ok := becameReady(service, status); ok {
		m.services.starts.Observe(max(0, now.Sub(begin).Seconds()))
	}
	last := status.LastUpgrade
	if last == nil || !isNewUpgrade(&service.Status, last) {
		return
	}
	m.services.upgrades.WithLabelValues(string(last.Result)).Inc()
	if last.StartTime != nil && last.EndTime != nil {
		m.services.durations.WithLabelValues(string(last.Result)).Observe(max(0, last.EndTime.Sub(last.StartTime.Time).Seconds()))
	}
}

// isNewUpgrade reports whether an upgrade ended with this change of status. A status that was wiped has no former ones.
func isNewUpgrade(former *v1beta1.ClusterServiceStatus, last *v1beta1.UpgradeOutcome) bool {
	if former.ObservedGeneration == 0 {
		return false
	}
	return former.LastUpgrade == nil || former.LastUpgrade.To != last.To || !former.LastUpgrade.EndTime.Equal(last.EndTime)
}

// becameReady reports whether a service is ready for the first time since its creation or resumption, and when that was.
func becameReady(service *v1beta1.ClusterService, status *v1beta1.ClusterServiceStatus) (time.Time, bool) {
	begin := service.CreationTimestamp.Time
	suspended := meta.FindStatusCondition(status.Conditions, v1beta1.ConditionSuspended)
	if suspended != nil && suspended.Status == metav1.ConditionFalse && suspended.LastTransitionTime.After(begin) {
		begin = suspended.LastTransitionTime.Time
	}
	before := meta.FindStatusCondition(service.Status.Conditions, v1beta1.ConditionReady)
	waited := before != nil && before.Status != metav1.ConditionTrue && !before.LastTransitionTime.After(begin.Add(sameMoment))
	return begin, waited && meta.IsStatusConditionTrue(status.Conditions, v1beta1.ConditionReady)
}
