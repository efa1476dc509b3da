package overview

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

func TestTopRow_SaysUntilWhenAClusterIsKept(t *testing.T) {
	now := time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)
	kept := reason.IdleKept.Of("2026-11-27T09:18:00Z", "2026-11-27T18:00:00Z", "anna", "suspended")
	soon := reason.IdleSoon.Of("2026-11-27T09:18:00Z", "suspended", "2026-11-27T10:18:00Z")
	ready, starting := reason.AllReady.Of(1, 1), reason.HeadStarting.Of("demo-head-1")
	for name, c := range map[string]struct {
		ready  metav1.ConditionStatus
		first  reason.Finding
		idle   reason.Finding
		wanted reason.Finding
	}{
		"kept":                  {metav1.ConditionTrue, ready, kept, kept},
		"idle and not kept":     {metav1.ConditionTrue, ready, soon, ready},
		"kept, and not ready":   {metav1.ConditionFalse, starting, kept, starting},
		"neither idle nor kept": {metav1.ConditionTrue, ready, reason.Finding{}, ready},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &v1beta1.ComputeCluster{ObjectMeta: metav1.ObjectMeta{Name: "demo"}}
			cluster.Status.Conditions = []metav1.Condition{
				{Type: v1beta1.ConditionReady, Status: c.ready, Reason: c.first.Code, Message: c.first.Text},
				{Type: v1beta1.ConditionSuspended, Status: metav1.ConditionFalse, Reason: c.idle.Code, Message: c.idle.Text},
			}
			row := topRow(cluster, now)
			if got := []string{row[2], row[len(row)-1]}; !slices.Equal(got, []string{c.wanted.Code, c.wanted.Text}) {
				t.Errorf("it says %q, want %q", got, c.wanted)
			}
		})
	}
}
