package cluster_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster"
)

// TestKeepUntil_HoldsTheIdlePolicy: not for longer than seven days, only where the policy would act before, and the
// condition says until when and for whom.
func TestKeepUntil_HoldsTheIdlePolicy(t *testing.T) {
	at := func(ahead time.Duration) string { return now.Add(ahead).Format(time.RFC3339) }
	const act, soon = "", "IdleSoon"
	for name, test := range map[string]struct {
		value, by, action string
		idle              time.Duration
		want              string // the reason of the condition, or act
		wake              time.Duration
		words             string
	}{
		"nobody asks":                 {"", "", v1alpha1.IdleSuspend, 20 * time.Minute, act, 0, ""},
		"for an hour":                 {at(time.Hour), "ana", v1alpha1.IdleSuspend, 20 * time.Minute, "IdleKept", time.Hour, "2026-01-01T13:00:00Z at the request of ana, and suspended then"},
		"by somebody":                 {at(time.Hour), "", v1alpha1.IdleDelete, 20 * time.Minute, "IdleKept", time.Hour, "of somebody who is not named, and deleted then"},
		"in another zone":             {"2026-01-01T14:00:00+01:00", "ana", v1alpha1.IdleSuspend, 20 * time.Minute, "IdleKept", time.Hour, "2026-01-01T13:00:00Z"},
		"for seven days":              {at(168 * time.Hour), "ana", v1alpha1.IdleSuspend, 20 * time.Minute, "IdleKept", 168 * time.Hour, ""},
		"for longer":                  {at(168*time.Hour + time.Second), "ana", v1alpha1.IdleSuspend, 20 * time.Minute, act, 0, ""},
		"until before":                {at(-time.Second), "ana", v1alpha1.IdleSuspend, 20 * time.Minute, act, 0, ""},
		"for less than the policy":    {at(time.Minute), "ana", v1alpha1.IdleSuspend, 5 * time.Minute, soon, 5 * time.Minute, ""},
		"until something":             {"tomorrow", "ana", v1alpha1.IdleSuspend, 20 * time.Minute, act, 0, ""},
		"where the policy only tells": {at(time.Hour), "ana", v1alpha1.IdleNone, 20 * time.Minute, "IdleLimitReached", 0, ""},
		"by more than a name":         {at(time.Hour), "a\n\x1b[31m" + strings.Repeat("ä", 99), v1alpha1.IdleSuspend, 20 * time.Minute, "IdleKept", time.Hour, "of a[31m" + strings.Repeat("ä", 61) + ", and"},
	} {
		of := demo()
		of.Annotations = map[string]string{v1alpha1.AnnotationKeepUntil: test.value, v1alpha1.AnnotationKeepRequestedBy: test.by}
		of.Spec.IdlePolicy = &v1alpha1.IdlePolicy{AfterSeconds: 600, Action: test.action}
		seen := given(1, answered(test.idle, 0))
		plan := decide(of, seen)
		if acts := plan.Suspended || plan.End != nil; acts != (test.want == act) {
			t.Errorf("%s: the policy acts: %t", name, acts)
			continue
		}
		if test.want == act {
			continue
		}
		status := cluster.Status(of, seen, plan, cluster.Outcome{}, now)
		condition := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionSuspended)
		if condition == nil || condition.Reason != test.want || !strings.Contains(condition.Message, test.words) {
			t.Errorf("%s: %+v, want %s with %q", name, condition, test.want, test.words)
		}
		if test.wake > 0 && plan.Wake != test.wake {
			t.Errorf("%s: it looks again after %s, want %s", name, plan.Wake, test.wake)
		}
	}
}
