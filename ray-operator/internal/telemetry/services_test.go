package telemetry

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// upgraded returns a status with an upgrade to a revision that took a minute.
func upgraded(to int64, result v1beta1.UpgradeResult) *v1beta1.ClusterServiceStatus {
	begin, end := metav1.NewTime(born), metav1.NewTime(born.Add(time.Minute))
	return &v1beta1.ClusterServiceStatus{
		ObservedGeneration: 1, LastUpgrade: &v1beta1.UpgradeOutcome{To: to, Result: result, StartTime: &begin, EndTime: &end},
	}
}

func TestServiceChanged_CountsEachUpgradeOnce(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	service := &v1beta1.ClusterService{}
	for _, status := range []*v1beta1.ClusterServiceStatus{
		upgraded(1, v1beta1.UpgradeRolledBack), // it ended before the status was wiped
		upgraded(2, v1beta1.UpgradeSucceeded), upgraded(2, v1beta1.UpgradeSucceeded), upgraded(3, v1beta1.UpgradeSucceeded),
	} {
		m.ServiceChanged(service, status, born)
		(*Metrics)(nil).ServiceChanged(service, status, born)
		service.Status = *status
	}
	want := `# HELP heliostat_service_upgrades_total Upgrades of ClusterServices that ended, by result.
# TYPE heliostat_service_upgrades_total counter
heliostat_service_upgrades_total{result="RolledBack"} 0
heliostat_service_upgrades_total{result="Succeeded"} 2
heliostat_service_upgrades_total{result="Superseded"} 0
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "heliostat_service_upgrades_total"); err != nil {
		t.Error(err)
	}
	if count, sum := measured(t, registry, "heliostat_service_upgrade_duration_seconds"); count != 2 || sum != 120 {
		t.Errorf("%d upgrades in %v s, want 2 in 120", count, sum)
	}
}

// measured returns how often all series of a histogram were observed, and the sum.
func measured(t *testing.T, registry prometheus.Gatherer, name string) (count uint64, sum float64) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() == name {
				count += metric.GetHistogram().GetSampleCount()
				sum += metric.GetHistogram().GetSampleSum()
			}
		}
	}
	return count, sum
}

func TestBecameReady_OncePerLife(t *testing.T) {
	for name, c := range map[string]struct {
		before, after []metav1.Condition
		want          time.Duration
	}{
		"the first time":             {at(0, 0, "Ready=False@1").Conditions, at(0, 0, "Ready=True@60").Conditions, time.Minute},
		"in the first status":        {at(0, 0, "Ready=Unknown@-9999").Conditions, at(0, 0, "Ready=True@60").Conditions, time.Minute},
		"not ready yet":              {at(0, 0, "Ready=False@1").Conditions, at(0, 0, "Ready=False@1").Conditions, -1},
		"ready as before":            {at(0, 0, "Ready=True@1").Conditions, at(0, 0, "Ready=True@1").Conditions, -1},
		"ready again after a fault":  {at(0, 0, "Ready=False@30").Conditions, at(0, 0, "Ready=True@60").Conditions, -1},
		"resumed after a suspension": {at(0, 0, "Ready=False@30").Conditions, at(0, 0, "Ready=True@60", "Suspended=False@30").Conditions, 30 * time.Second},
		"a status that was wiped":    {nil, at(0, 0, "Ready=True@60").Conditions, -1},
	} {
		service := &v1beta1.ClusterService{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(born)}}
		service.Status.Conditions = c.before
		begin, ok := becameReady(service, &v1beta1.ClusterServiceStatus{Conditions: c.after})
		if took := born.Add(time.Minute).Sub(begin); ok != (c.want >= 0) || ok && took != c.want {
			t.Errorf("%s: %v after %v, want %v", name, ok, took, c.want)
		}
	}
}
