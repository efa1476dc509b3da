package telemetry

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// in is a status whose memory began with an epoch.
func in(session int64, status *v1beta1.ComputeClusterStatus) *v1beta1.ComputeClusterStatus {
	status.ControlStore = &v1beta1.ControlStoreStatus{Session: session}
	return status
}

// TestRecoveriesOfHeads: times are seconds after the cluster was created; it is looked at
// after a minute.
func TestRecoveriesOfHeads(t *testing.T) {
	for _, c := range []struct {
		what          string
		before, after *v1beta1.ComputeClusterStatus
		want          time.Duration // -1 for none
	}{
		{"started again in its pod", in(1, at(1, 1, "HeadReady=False@50")), in(1, at(1, 1, "HeadReady=True@60")), 10 * time.Second},
		{"a new pod", in(1, at(2, 52, "HeadReady=False@50")), in(1, at(2, 52, "HeadReady=True@60")), 10 * time.Second},
		{"a later session's", in(3, at(4, 52, "HeadReady=False@50")), in(3, at(4, 52, "HeadReady=True@60")), 10 * time.Second},
		{"after a resumption long ago", in(1, at(2, 20, "HeadReady=False@50")), in(1, at(2, 20, "HeadReady=True@60", "Suspended=False@19")), 10 * time.Second},
		{"the first start", in(1, at(1, 2, "HeadReady=False@1")), in(1, at(1, 2, "HeadReady=True@60")), -1},
		{"a head that was never ready, and the next", in(1, at(2, 40, "HeadReady=False@1")), in(1, at(2, 40, "HeadReady=True@60")), -1},
		{"the memory was lost", in(1, at(2, 52, "HeadReady=False@50")), in(2, at(2, 52, "HeadReady=True@60")), -1},
		{"the first start of a new session", in(2, at(2, 52, "HeadReady=False@50")), in(2, at(2, 52, "HeadReady=True@60")), -1},
		{"resumed", in(1, at(2, 52, "HeadReady=False@20")), in(1, at(2, 52, "HeadReady=True@60", "Suspended=False@50")), -1},
		{"still not ready", in(1, at(2, 52, "HeadReady=False@50")), in(1, at(2, 52, "HeadReady=False@50")), -1},
		{"ready all along", in(1, at(1, 1, "HeadReady=True@9")), in(1, at(1, 1, "HeadReady=True@9")), -1},
		{"not known before", in(1, at(2, 52, "HeadReady=Unknown@50")), in(1, at(2, 52, "HeadReady=True@60")), -1},
		{"nothing known before", in(1, at(2, 52)), in(1, at(2, 52, "HeadReady=True@60")), -1},
		{"no store", at(2, 52, "HeadReady=False@50"), at(2, 52, "HeadReady=True@60"), -1},
		{"no head", in(1, at(1, 1, "HeadReady=False@50")), in(1, &v1beta1.ComputeClusterStatus{Conditions: at(1, 1, "HeadReady=True@60").Conditions}), -1},
	} {
		t.Run(c.what, func(t *testing.T) {
			cluster := &v1beta1.ComputeCluster{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(born)}, Status: *c.before}
			took, ok := recovery(cluster, c.after, born.Add(time.Minute))
			if !ok {
				took = -1
			}
			if took != c.want {
				t.Errorf("recovered in %v, want %v", took, c.want)
			}
		})
	}
}

func TestStoresAreMeasured(t *testing.T) {
	registry := prometheus.NewRegistry()
	m, err := NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, store := range []v1beta1.ControlStore{
		{Redis: &v1beta1.GivenRedis{}}, {ManagedRedis: &v1beta1.ManagedRedis{}}, {Embedded: &v1beta1.EmbeddedStore{}}, {Embedded: &v1beta1.EmbeddedStore{}},
	} {
		cluster := &v1beta1.ComputeCluster{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(born)}}
		cluster.Spec.ControlStore = &store
		cluster.Status = *in(1, at(1, 1, "HeadReady=False@50"))
		m.Changed(cluster, in(1, at(1, 1, "HeadReady=True@60")), born.Add(time.Minute))
	}
	m.Unswept("stuck", 3)
	m.Unswept("failing", 2)
	m.Unswept("failing", 0)
	m.Swept()
	want := `
# HELP heliostat_stores_swept_total Deleted clusters whose keys were removed from a Redis of a user.
# TYPE heliostat_stores_swept_total counter
heliostat_stores_swept_total 1
# HELP heliostat_stores_unswept Deleted clusters whose keys are still in a Redis of a user, by the state of the removal.
# TYPE heliostat_stores_unswept gauge
heliostat_stores_unswept{state="failing"} 0
heliostat_stores_unswept{state="stuck"} 3
heliostat_stores_unswept{state="waiting"} 0
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), "heliostat_stores_unswept", "heliostat_stores_swept_total"); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(map[string]float64{StoreRedis: 10, StoreManagedRedis: 10, StoreEmbedded: 20}, recoveries(t, registry)); diff != "" {
		t.Errorf("seconds of recoveries: %s", diff)
	}
	var none *Metrics
	none.Unswept("stuck", 1)
	none.Swept()
	none.Recovered(StoreRedis, 1)
}

// recoveries are the seconds that all recoveries have taken, by store. Each took ten.
func recoveries(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	seconds := map[string]float64{}
	for _, family := range families {
		if family.GetName() != "heliostat_head_recovery_duration_seconds" {
			continue
		}
		for _, metric := range family.GetMetric() {
			seen := metric.GetHistogram()
			seconds[metric.GetLabel()[0].GetValue()] = seen.GetSampleSum()
			if seen.GetSampleSum() != 10*float64(seen.GetSampleCount()) {
				t.Errorf("%d recoveries took %v s", seen.GetSampleCount(), seen.GetSampleSum())
			}
		}
	}
	return seconds
}
