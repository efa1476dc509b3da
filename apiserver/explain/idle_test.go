package explain_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/apiserver/explain"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

func TestIdleSince_ReadsTheCondition(t *testing.T) {
	const at = "2026-11-26T11:00:00Z"
	soon := reason.IdleSoon.Of(at, "suspended", "2026-11-26T13:00:00Z")
	limit := reason.IdleLimitReached.Of(at)
	for name, c := range map[string]struct {
		code, text string
		isKnown    bool
	}{
		"a cluster that will be suspended":  {soon.Code, soon.Text, true},
		"a policy that only reports":        {limit.Code, limit.Text, true},
		"a suspension by a user":            {"SuspendedByUser", "idle since " + at, false},
		"a record that was lost":            {soon.Code, "idle since some time; will be suspended", false},
		"a condition that says nothing yet": {},
	} {
		t.Run(name, func(t *testing.T) {
			conditions := []metav1.Condition{{Type: v1beta1.ConditionSuspended, Reason: c.code, Message: c.text}}
			since := explain.IdleSince(conditions)
			if want := time.Date(2026, 11, 26, 11, 0, 0, 0, time.UTC); since.Equal(want) != c.isKnown || since.IsZero() == c.isKnown {
				t.Errorf("it is idle since %v", since)
			}
		})
	}
	if since := explain.IdleSince(nil); !since.IsZero() {
		t.Errorf("a cluster without the condition is idle since %v", since)
	}
}
