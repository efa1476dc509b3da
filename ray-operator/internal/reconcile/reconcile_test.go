package reconcile_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

func TestSoonest_IsNoneOnlyOfNone(t *testing.T) {
	for _, c := range [][3]time.Duration{{0, 0, 0}, {0, 5, 5}, {5, 0, 5}, {5, 3, 3}, {3, 5, 3}, {-1, 5, 5}, {5, -1, 5}, {-1, -1, 0}} {
		if have := reconcile.Soonest(c[0], c[1]); have != c[2] {
			t.Errorf("of %d and %d: %d, want %d", c[0], c[1], have, c[2])
		}
	}
}

func TestIsOurs_ByDefault(t *testing.T) {
	for managedBy, want := range map[string]bool{"": true, v1beta1.ManagedByOperator: true, "kueue.x-k8s.io/multikueue": false} {
		if have := reconcile.IsOurs(managedBy); have != want {
			t.Errorf("%q: %t", managedBy, have)
		}
	}
}

func TestNewWarning(t *testing.T) {
	ready := func(status metav1.ConditionStatus, of reason.Reason) []metav1.Condition {
		return []metav1.Condition{{Type: v1beta1.ConditionReady, Status: status, Reason: of.Code, Message: "because"}}
	}
	quota := ready(metav1.ConditionFalse, reason.QuotaExceeded)
	for name, c := range map[string]struct {
		before, after []metav1.Condition
		isNew         bool
	}{
		"a first warning is new":           {nil, quota, true},
		"another warning is new":           {ready(metav1.ConditionFalse, reason.Unschedulable), quota, true},
		"a warning after progress is new":  {ready(metav1.ConditionFalse, reason.HeadStarting), quota, true},
		"the same warning is not new":      {quota, quota, false},
		"progress is no warning":           {quota, ready(metav1.ConditionFalse, reason.HeadStarting), false},
		"what is ready has no warning":     {quota, ready(metav1.ConditionTrue, reason.AllReady), false},
		"what is suspended has no warning": {quota, nil, false},
	} {
		if warning, isNew := reconcile.NewWarning(c.before, c.after); isNew != c.isNew || isNew && (warning.Code != "QuotaExceeded" || warning.Text != "because") {
			t.Errorf("%s: %+v, %t", name, warning, isNew)
		}
	}
}

func TestNodeReady_MayBeUnknown(t *testing.T) {
	var node corev1.Node
	if reconcile.NodeReady(&node) != nil {
		t.Error("a node without conditions says that it is ready, or not")
	}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeMemoryPressure}, {Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
	if have := reconcile.NodeReady(&node); have == nil || have.Status != corev1.ConditionUnknown {
		t.Errorf("%v", have)
	}
}
