package telemetry

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
)

// serviceMetrics are those of ClusterServices.
type serviceMetrics struct{ upgrades *prometheus.CounterVec }

// newServiceMetrics makes them with all their series, so that a rate has its zero.
func newServiceMetrics() serviceMetrics {
	m := serviceMetrics{upgrades: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "heliostat_service_upgrades_total",
		Help: "Upgrades of ClusterServices that ended, by result.",
	}, []string{"result"})}
	for _, result := range []v1alpha1.UpgradeResult{v1alpha1.UpgradeSucceeded, v1alpha1.UpgradeRolledBack, v1alpha1.UpgradeSuperseded} {
		m.upgrades.WithLabelValues(string(result))
	}
	return m
}

// Upgraded counts a change of a service that ended; an empty result is none.
func (m *Metrics) Upgraded(result v1alpha1.UpgradeResult) {
	if m == nil || result == "" {
		return
	}
	m.services.upgrades.WithLabelValues(string(result)).Inc()
}
