package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// Kinds of a control store, as values of a label.
const (
	StoreRedis        = "redis"
	StoreManagedRedis = "managedRedis"
	StoreEmbedded     = "embedded"
)

// storeMetrics are those of control stores.
type storeMetrics struct {
	unswept    *prometheus.GaugeVec
	swept      prometheus.Counter
	recoveries *prometheus.HistogramVec
}

// newStoreMetrics makes them with all their series, so that a rate has its zero, and a
// standby tells that it has none to sweep.
func newStoreMetrics() storeMetrics {
	m := storeMetrics{
		unswept: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "heliostat_stores_unswept",
			Help: "Deleted clusters whose keys are still in a Redis of a user, by the state of the removal.",
		}, []string{"state"}),
		swept: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "heliostat_stores_swept_total",
			Help: "Deleted clusters whose keys were removed from a Redis of a user.",
		}),
		recoveries: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "heliostat_head_recovery_duration_seconds",
			Help: "Time that heads were not ready until they recovered from their control store.",
			// From a container that is started again to a store that was away for a while.
			Buckets: []float64{1, 2, 3, 5, 7.5, 10, 15, 20, 30, 45, 60, 90, 120},
		}, []string{"store"}),
	}
	for _, state := range []string{"waiting", "failing", "stuck"} {
		m.unswept.WithLabelValues(state)
	}
	for _, store := range []string{StoreRedis, StoreManagedRedis, StoreEmbedded} {
		m.recoveries.WithLabelValues(store)
	}
	return m
}

// Unswept tells how many clusters that are gone have left keys, of those in a state.
func (m *Metrics) Unswept(state string, n int) {
	if m != nil {
		m.stores.unswept.WithLabelValues(state).Set(float64(n))
	}
}

// Swept counts a cluster whose keys were removed after it was gone.
func (m *Metrics) Swept() {
	if m != nil {
		m.stores.swept.Inc()
	}
}

// Recovered observes how long a head took to come back.
func (m *Metrics) Recovered(store string, seconds float64) {
	if m != nil {
		m.stores.recoveries.WithLabelValues(store).Observe(seconds)
	}
}

// storeKind is the kind of a cluster's control store, empty if it has none.
func storeKind(store *v1beta1.ControlStore) string {
	switch {
	case store == nil:
		return ""
	case store.Redis != nil:
		return StoreRedis
	case store.ManagedRedis != nil:
		return StoreManagedRedis
	case store.Embedded != nil:
		return StoreEmbedded
	default:
		return ""
	}
}

// recovery reports whether a change of status is the end of a head's recovery: the head was
// ready, was not for a while, and is ready again in the same session of a store; and how
// long it was not.
func recovery(cluster *v1beta1.ComputeCluster, status *v1beta1.ComputeClusterStatus, now time.Time) (time.Duration, bool) {
	before := meta.FindStatusCondition(cluster.Status.Conditions, v1beta1.ConditionHeadReady)
	if before == nil || before.Status != metav1.ConditionFalse || !meta.IsStatusConditionTrue(status.Conditions, v1beta1.ConditionHeadReady) {
		return 0, false
	}
	since := before.LastTransitionTime.Time
	if begun, same := sessionBegun(cluster, status); !same || !since.After(begun.Add(sameMoment)) {
		return 0, false // the session has had no head that was ready
	}
	suspended := meta.FindStatusCondition(status.Conditions, v1beta1.ConditionSuspended)
	if suspended != nil && suspended.Status == metav1.ConditionFalse && suspended.LastTransitionTime.After(since) {
		return 0, false // it was not to be ready
	}
	return now.Sub(since), true
}

// sessionBegun is a time before which the session had no head that was ready. It is false
// where there is no session with a store, or it has changed.
func sessionBegun(cluster *v1beta1.ComputeCluster, status *v1beta1.ComputeClusterStatus) (time.Time, bool) {
	was, is := cluster.Status.ControlStore, status.ControlStore
	if was == nil || is == nil || was.Session != is.Session || status.Head == nil || status.Head.CreationTime == nil {
		return time.Time{}, false
	}
	if status.Epoch == is.Session {
		return status.Head.CreationTime.Time, true
	}
	return cluster.CreationTimestamp.Time, true
}
