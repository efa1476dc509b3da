package telemetry_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
)

func TestUpgradesAreCounted(t *testing.T) {
	registry := prometheus.NewRegistry()
	metrics, err := telemetry.NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, result := range []v1alpha1.UpgradeResult{"", v1alpha1.UpgradeSucceeded, v1alpha1.UpgradeSucceeded, v1alpha1.UpgradeRolledBack} {
		metrics.Upgraded(result)
		(*telemetry.Metrics)(nil).Upgraded(result)
	}
	if n, err := testutil.GatherAndCount(registry, "heliostat_service_upgrades_total"); err != nil || n != 3 {
		t.Errorf("%d series, want one for each result: %v", n, err)
	}
}
