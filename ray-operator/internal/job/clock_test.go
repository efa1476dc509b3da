package job

import (
	"testing"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// TestBackoff_IsByOurOwnClock, whatever the head's clock says.
func TestBackoff_IsByOurOwnClock(t *testing.T) {
	retry := func(j *v1beta1.ClusterJob) { j.Spec.Retry = &v1beta1.Retry{Limit: 3, BackoffSeconds: number(60)} }
	for name, ahead := range map[string]time.Duration{"right": 0, "ahead": 2 * time.Hour, "far ahead": 1 << 40 * time.Microsecond, "behind": -2 * time.Hour} {
		s := seen(bound(), says(headclient.JobFailed, exits(1)))
		s.Answer.Job.Start, s.Answer.Job.End = s.Answer.Job.Start.Add(ahead), s.Answer.Job.End.Add(ahead)
		plan := Decide(train(retry), s, now)
		if told := plan.Done.EndTime.Sub(now.Add(ahead)); told.Abs() > time.Second {
			t.Errorf("%s: people are told of another end, by %s", name, told)
		}
		if ran := time.Unix(plan.Record.Ran, 0); ran.After(now) || ran.Before(time.Unix(bound().Bound.At, 0)) {
			t.Errorf("%s: it first ran at %s", name, ran)
		}
		record := *plan.Record
		for after, want := range map[time.Duration]string{59 * time.Second: v1beta1.PhaseRetrying, 60 * time.Second: v1beta1.PhaseSubmitting} {
			if next := Decide(train(retry, toldOf(1)), seen(record), now.Add(after)); next.Phase != want {
				t.Errorf("%s: after %s it is %s: %s", name, after, next.Phase, next.Finding.Text)
			}
			if have := entryOfJob(train(retry, toldOf(1), recorded(record))).isWaiting(now.Add(after)); have != (want == v1beta1.PhaseSubmitting) {
				t.Errorf("%s: after %s it waits for a place: %t", name, after, have)
			}
		}
	}
}

// TestBackoff_HasNoEndThatIsYetToCome: where the record is lost, the status has what the head's clock said.
func TestBackoff_HasNoEndThatIsYetToCome(t *testing.T) {
	record := bound(func(r *Record) { r.Past = []Past{past(1, "EntrypointFailed", -3600)} })
	if end := record.endedAt(now); !end.IsZero() {
		t.Errorf("it ended at %s", end)
	}
}
