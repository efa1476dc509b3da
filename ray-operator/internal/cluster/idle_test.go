package cluster_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// policySince is what the record says of a policy that was seen to change.
func policySince(policy *v1beta1.IdlePolicy, since time.Time) cluster.SeenPolicy {
	hash, _ := naming.ObjectHash(policy)
	return cluster.SeenPolicy{Hash: hash, Since: since.Unix()}
}

// TestIdlePolicy_CountsFromItsChange: a cluster that has long been idle has all the time of a policy that is new to it.
func TestIdlePolicy_CountsFromItsChange(t *testing.T) {
	policy := &v1beta1.IdlePolicy{AfterSeconds: 600, Action: v1beta1.IdleSuspend}
	other := &v1beta1.IdlePolicy{AfterSeconds: 3600, Action: v1beta1.IdleSuspend}
	for name, test := range map[string]struct {
		generation int64
		record     cluster.SeenPolicy
		policy     *v1beta1.IdlePolicy
		acts       bool
		want       cluster.SeenPolicy
		wake       time.Duration
	}{
		"one as old as the cluster acts":    {1, cluster.SeenPolicy{}, policy, true, cluster.SeenPolicy{}, 0},
		"one that was added waits":          {2, cluster.SeenPolicy{}, policy, false, policySince(policy, now), 10 * time.Minute},
		"one that was changed waits":        {3, policySince(other, now.Add(-time.Hour)), policy, false, policySince(policy, now), 10 * time.Minute},
		"one that changed lately waits":     {3, policySince(policy, now.Add(-time.Minute)), policy, false, policySince(policy, now.Add(-time.Minute)), 9 * time.Minute},
		"one that changed long ago acts":    {3, policySince(policy, now.Add(-time.Hour)), policy, true, policySince(policy, now.Add(-time.Hour)), 0},
		"one that was removed is forgotten": {4, policySince(policy, now.Add(-time.Hour)), nil, false, cluster.SeenPolicy{}, 0},
	} {
		of := demo()
		of.Generation, of.Spec.IdlePolicy = test.generation, test.policy
		plan := decide(of, given(1, answered(20*time.Minute, 0), func(s *cluster.Seen) { s.Record.Policy = test.record }))
		if plan.Suspended != test.acts || plan.Policy != test.want || test.wake > 0 && plan.Wake != test.wake {
			t.Errorf("%s: suspended %t, policy %+v, wake %s", name, plan.Suspended, plan.Policy, plan.Wake)
		}
		if isRecorded := plan.Record != nil && plan.Record.Policy == test.want; test.record != test.want && !isRecorded {
			t.Errorf("%s: it is not recorded", name)
		}
	}
}

// TestKeepUntil_HoldsTheIdlePolicy: not for longer than seven days, only where the policy would act before, and the
// condition says until when and for whom.
func TestKeepUntil_HoldsTheIdlePolicy(t *testing.T) {
	at := func(ahead time.Duration) string { return now.Add(ahead).Format(time.RFC3339) }
	const act, soon = "", "IdleSoon"
	for name, test := range map[string]struct {
		value, by string
		action    v1beta1.IdleAction
		idle      time.Duration
		want      string // the reason of the condition, or act
		wake      time.Duration
		words     string
	}{
		"nobody asks":                 {"", "", v1beta1.IdleSuspend, 20 * time.Minute, act, 0, ""},
		"for an hour":                 {at(time.Hour), "ana", v1beta1.IdleSuspend, 20 * time.Minute, "IdleKept", time.Hour, "2026-01-01T13:00:00Z at the request of ana, and suspended then"},
		"by somebody":                 {at(time.Hour), "", v1beta1.IdleDelete, 20 * time.Minute, "IdleKept", time.Hour, "of somebody who is not named, and deleted then"},
		"in another zone":             {"2026-01-01T14:00:00+01:00", "ana", v1beta1.IdleSuspend, 20 * time.Minute, "IdleKept", time.Hour, "2026-01-01T13:00:00Z"},
		"for seven days":              {at(168 * time.Hour), "ana", v1beta1.IdleSuspend, 20 * time.Minute, "IdleKept", 168 * time.Hour, ""},
		"for longer":                  {at(168*time.Hour + time.Second), "ana", v1beta1.IdleSuspend, 20 * time.Minute, act, 0, ""},
		"until before":                {at(-time.Second), "ana", v1beta1.IdleSuspend, 20 * time.Minute, act, 0, ""},
		"for less than the policy":    {at(time.Minute), "ana", v1beta1.IdleSuspend, 5 * time.Minute, soon, 5 * time.Minute, ""},
		"until something":             {"tomorrow", "ana", v1beta1.IdleSuspend, 20 * time.Minute, act, 0, ""},
		"where the policy only tells": {at(time.Hour), "ana", v1beta1.IdleNone, 20 * time.Minute, "IdleLimitReached", 0, ""},
		"by more than a name":         {at(time.Hour), "a\n\x1b[31m" + strings.Repeat("ä", 99), v1beta1.IdleSuspend, 20 * time.Minute, "IdleKept", time.Hour, "of a[31m" + strings.Repeat("ä", 61) + ", and"},
	} {
		of := demo()
		of.Annotations = map[string]string{v1beta1.AnnotationKeepUntil: test.value, v1beta1.AnnotationKeepRequestedBy: test.by}
		of.Spec.IdlePolicy = &v1beta1.IdlePolicy{AfterSeconds: 600, Action: test.action}
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
		condition := meta.FindStatusCondition(status.Conditions, v1beta1.ConditionSuspended)
		if condition == nil || condition.Reason != test.want || !strings.Contains(condition.Message, test.words) {
			t.Errorf("%s: %+v, want %s with %q", name, condition, test.want, test.words)
		}
		if test.wake > 0 && plan.Wake != test.wake {
			t.Errorf("%s: it looks again after %s, want %s", name, plan.Wake, test.wake)
		}
	}
}
