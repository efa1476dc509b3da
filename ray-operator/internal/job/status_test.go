package job

import (
	"errors"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/fault"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// said is what a status says: "R" for Ready, "P" for Reconciling (it goes on), "S" for Stalled,
// "C" for Complete, "F" for Failed, "U" for Suspended, and in lower case that it is not so.
func said(status v1beta1.ClusterJobStatus) string {
	var text strings.Builder
	for _, kind := range []struct{ name, letter string }{
		{v1beta1.ConditionReady, "R"}, {v1beta1.ConditionReconciling, "P"}, {v1beta1.ConditionStalled, "S"},
		{v1beta1.ConditionComplete, "C"}, {v1beta1.ConditionFailed, "F"}, {v1beta1.ConditionFinished, "E"},
		{v1beta1.ConditionSuspended, "U"},
	} {
		switch told := meta.FindStatusCondition(status.Conditions, kind.name); {
		case told == nil:
		case told.Status == metav1.ConditionTrue:
			text.WriteString(kind.letter)
		default:
			text.WriteString(strings.ToLower(kind.letter))
		}
	}
	return text.String()
}

// TestConditions: what each phase says to programs. One of Ready, Reconciling, Stalled and Suspended is true, and what is
// suspended says nothing of Ready, so that tools that wait come to an end.
func TestConditions(t *testing.T) {
	for phase, want := range map[string]string{
		v1beta1.PhasePending: "rPs", v1beta1.PhaseProvisioning: "rPs", v1beta1.PhaseSubmitting: "rPs", v1beta1.PhaseRunning: "rPs",
		v1beta1.PhaseRetrying: "rPs", v1beta1.PhaseSuspending: "rPsu", v1beta1.PhaseSuspended: "psU",
		v1beta1.PhaseSucceeded: "RpsCE", v1beta1.PhaseFailed: "rpSFE", v1beta1.PhaseStopped: "rpSFE",
	} {
		status := Status(train(), seen(newRecord()), Plan{Phase: phase, Finding: reason.JobRunning.Of(1, "demo")}, nil, now)
		if have := said(status); have != want {
			t.Errorf("%s says %s, want %s", phase, have, want)
		}
		for i := range status.Conditions {
			if c := &status.Conditions[i]; c.Reason == "" || c.ObservedGeneration != 1 || c.LastTransitionTime.IsZero() {
				t.Errorf("%s: condition %+v", phase, c)
			}
		}
	}
	if have := said(Status(train(), seen(newRecord()), Plan{Phase: v1beta1.PhasePending, Stalled: true, Finding: reason.InvalidSpec.Of("x")}, nil, now)); have != "rpS" {
		t.Errorf("one that a person has to mend says %s", have)
	}
	resumed := train()
	resumed.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionSuspended, Status: metav1.ConditionTrue, Reason: "JobSuspended"}}
	if have := said(Status(resumed, seen(newRecord()), Plan{Phase: v1beta1.PhasePending, Finding: reason.ClusterMissing.Of("demo")}, nil, now)); have != "rPsu" {
		t.Errorf("one that was suspended says %s", have)
	}
}

// TestRefusals: what the API server would not have stands in the conditions.
func TestRefusals(t *testing.T) {
	quota := apierrors.NewForbidden(schema.GroupResource{Resource: "computeclusters"}, "train", errors.New("exceeded quota"))
	plan := Plan{Phase: v1beta1.PhaseProvisioning, Make: demo(), Finding: reason.ClusterStarting.Of("demo", "it is being made")}
	for name, test := range map[string]struct {
		err  error
		want string // in the message of Ready
		all  string
	}{
		"refused":  {quota, "exceeded quota", "rPs"},
		"in a way": {fault.Conflict("ComputeCluster demo"), "ComputeCluster demo", "rpS"},
		"passing":  {errors.New("connection reset"), "it is being made", "rPs"},
	} {
		status := Status(train(own), seen(newRecord()), plan, test.err, now)
		ready := meta.FindStatusCondition(status.Conditions, v1beta1.ConditionReady)
		if !strings.Contains(ready.Message, test.want) || said(status) != test.all {
			t.Errorf("%s: %s says %q", name, said(status), ready.Message)
		}
		if have := reconcile.Shown(test.err); have != (name != "passing") {
			t.Errorf("%s is shown: %v", name, have)
		}
	}
}

func TestSummary(t *testing.T) {
	long := func(j *v1beta1.ClusterJob) {
		j.Spec.Entrypoint = "python\n  train.py \t --words " + strings.Repeat("ü", 100)
	}
	retry := func(r v1beta1.Retry) edit { return func(j *v1beta1.ClusterJob) { j.Spec.Retry = &r } }
	third := func(r *Record) { r.Attempt = 3 }
	for name, test := range map[string]struct {
		job    *v1beta1.ClusterJob
		record Record
		want   v1beta1.JobSummary
	}{
		"new":              {train(), newRecord(), v1beta1.JobSummary{Entrypoint: "python train.py"}},
		"runs":             {train(), bound(), v1beta1.JobSummary{Entrypoint: "python train.py", Attempt: "1"}},
		"retried":          {train(retry(v1beta1.Retry{Limit: 4})), bound(third), v1beta1.JobSummary{Entrypoint: "python train.py", Attempt: "3/5"}},
		"losses apart":     {train(retry(v1beta1.Retry{Limit: 4, InfrastructureLimit: number(2)})), bound(third), v1beta1.JobSummary{Entrypoint: "python train.py", Attempt: "3/7"}},
		"suspended often":  {train(retry(v1beta1.Retry{Limit: 1})), bound(third), v1beta1.JobSummary{Entrypoint: "python train.py", Attempt: "3/3"}},
		"ended":            {train(), bound(outcome, func(r *Record) { r.Ran = ago(100 + 3661) }), v1beta1.JobSummary{Entrypoint: "python train.py", Attempt: "1", Duration: "1h1m1s"}},
		"ended in no time": {train(), bound(outcome, func(r *Record) { r.Ran = ago(90) }), v1beta1.JobSummary{Entrypoint: "python train.py", Attempt: "1", Duration: "0s"}},
		"long":             {train(long), newRecord(), v1beta1.JobSummary{Entrypoint: "python train.py --words " + strings.Repeat("ü", 35) + "…"}},
		"command": {
			train(func(j *v1beta1.ClusterJob) { j.Spec.Entrypoint, j.Spec.Command = "", []string{"python", "a b"} }), newRecord(),
			v1beta1.JobSummary{Entrypoint: "python a b"},
		},
	} {
		if have := Status(test.job, seen(test.record), Plan{}, nil, now).Summary; have != test.want {
			t.Errorf("%s: %+v, want %+v", name, have, test.want)
		}
	}
}

// TestAttempts: what is told of attempts stays, and of the last one what has just been found.
func TestAttempts(t *testing.T) {
	record := bound(func(r *Record) {
		r.Attempt, r.Past, r.Last = 3, []Past{past(1, "HeadLost", 300), past(2, "EntrypointFailed", 100)}, binding(200)
		r.Bound.Session = "session_2"
	})
	former := v1beta1.JobAttempt{Number: 1, Reason: "HeadLost", Message: "words", LogState: v1beta1.LogLost}
	done := &v1beta1.JobAttempt{Number: 2, Reason: "EntrypointFailed", LogState: v1beta1.LogComplete, LastLines: []string{"a"}}
	job := train(func(j *v1beta1.ClusterJob) { j.Status.Attempts = []v1beta1.JobAttempt{former} })
	status := Status(job, Seen{Record: record}, Plan{Done: done}, nil, now)
	submit := metav1.Unix(ago(60), 0)
	former.SubmissionID, done.SubmissionID = "train-1-jor5trgstrgwz", "train-2-udsnkdz6nre4e"
	want := []v1beta1.JobAttempt{former, *done, {
		Number: 3, SubmissionID: status.SubmissionID, ClusterName: "demo", ClusterUID: "demo-uid", HeadName: "demo-head", HeadUID: "head-uid", Session: "session_2", SubmitTime: &submit,
	}}
	if diff := gocmp.Diff(want, status.Attempts); diff != "" {
		t.Errorf("attempts (- wanted, + told):\n%s", diff)
	}
	if status.Attempt != 3 || status.ClusterName != "demo" || !strings.HasPrefix(status.SubmissionID, "train-3-") {
		t.Errorf("status %+v", status)
	}
}

func TestUrgent(t *testing.T) {
	base := func() *v1beta1.ClusterJobStatus {
		return &v1beta1.ClusterJobStatus{
			ObservedGeneration: 1, Phase: v1beta1.PhaseSubmitting,
			Conditions: []metav1.Condition{{Type: v1beta1.ConditionReady, Reason: reason.Submitting.Code}},
		}
	}
	for name, test := range map[string]struct {
		edit func(*v1beta1.ClusterJobStatus)
		want bool
	}{
		"progress": {func(s *v1beta1.ClusterJobStatus) {
			s.Phase, s.Conditions[0].Reason = v1beta1.PhaseRunning, reason.JobRunning.Code
		}, false},
		"a time":     {func(s *v1beta1.ClusterJobStatus) { s.StartTime = &metav1.Time{Time: time.Unix(1, 0)} }, false},
		"the end":    {func(s *v1beta1.ClusterJobStatus) { s.Phase = v1beta1.PhaseSucceeded }, true},
		"suspended":  {func(s *v1beta1.ClusterJobStatus) { s.Phase = v1beta1.PhaseSuspended }, true},
		"an attempt": {func(s *v1beta1.ClusterJobStatus) { s.Attempts = []v1beta1.JobAttempt{{}} }, true},
		"a warning":  {func(s *v1beta1.ClusterJobStatus) { s.Conditions[0].Reason = reason.HeadUnreachable.Code }, true},
		"one more":   {func(s *v1beta1.ClusterJobStatus) { s.Conditions = append(s.Conditions, metav1.Condition{}) }, true},
	} {
		latter := base()
		test.edit(latter)
		if have := isUrgent(base(), latter); have != test.want {
			t.Errorf("%s is urgent: %v", name, have)
		}
	}
	if !isUrgent(&v1beta1.ClusterJobStatus{}, &v1beta1.ClusterJobStatus{}) {
		t.Errorf("the first status waits")
	}
}
