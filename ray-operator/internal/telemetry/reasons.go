package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// Kinds, as values of a label.
const (
	kindCluster = "ComputeCluster"
	kindJob     = "ClusterJob"
	kindService = "ClusterService"
)

// newReasons makes the counter of reasons. The catalogue bounds its series.
func newReasons() *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "heliostat_reasons_total",
		Help: "How often objects that were not ready got this reason in their condition Ready.",
	}, []string{"kind", "reason", "severity"})
}

// countReason counts why an object is not ready, where its conditions did not have that reason before.
func (m *Metrics) countReason(kind string, before, after []metav1.Condition) {
	ready := meta.FindStatusCondition(after, v1beta1.ConditionReady)
	if m == nil || ready == nil || ready.Status == metav1.ConditionTrue {
		return
	}
	former := meta.FindStatusCondition(before, v1beta1.ConditionReady)
	if former == nil || former.Status != ready.Status || former.Reason != ready.Reason {
		m.reasons.WithLabelValues(kind, ready.Reason, reason.Finding{Code: ready.Reason}.Severity().String()).Inc()
	}
}

// failingAfter is for how long a condition must fail to be counted as failing. What starts or recovers as usual takes less.
const failingAfter = 10 * time.Minute

// failure is what objects with a failing condition are counted by.
type failure struct{ kind, condition, reason string }

// failures counts objects with conditions that fail.
type failures map[failure]int

// add counts those of an object's conditions that must be True and have not been for failingAfter. The one that the API
// server fills in is older than the object.
func (f failures) add(kind string, created metav1.Time, conditions []metav1.Condition, now time.Time) {
	if now.Sub(created.Time) < failingAfter {
		return
	}
	for i := range conditions {
		switch condition := &conditions[i]; condition.Type {
		case v1beta1.ConditionReady, v1beta1.ConditionControlStoreReady, v1beta1.ConditionAutoscaling, v1beta1.ConditionGatewayProgrammed:
			if condition.Status != metav1.ConditionTrue && now.Sub(condition.LastTransitionTime.Time) >= failingAfter {
				f[failure{kind, condition.Type, condition.Reason}]++
			}
		}
	}
}
