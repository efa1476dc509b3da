package job

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// TestARemovedRecordIsWrittenAgain: with the status alone to tell of it, an attempt would run
// again as soon as that is lost too.
func TestARemovedRecordIsWrittenAgain(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	job := &v1beta1.ClusterJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "train", UID: "1"},
		Spec:       v1beta1.ClusterJobSpec{ClusterRef: &v1beta1.ClusterReference{Name: "demo"}, Entrypoint: "true"},
	}
	plan := func() Plan {
		record, err := recallRecord(job)
		return Decide(job, Seen{Record: record, RecordError: err}, now)
	}
	if p := plan(); p.Record != nil {
		t.Errorf("a job that has not begun got the record %s", p.Record)
	}
	end := metav1.NewTime(now)
	job.Status = v1beta1.ClusterJobStatus{
		Phase: v1beta1.PhaseSucceeded, Attempt: 1, EndTime: &end,
		Conditions: []metav1.Condition{{Type: v1beta1.ConditionReady, Status: metav1.ConditionTrue, Reason: reason.JobSucceeded.Code}},
		Attempts:   []v1beta1.JobAttempt{{Number: 1, HeadUID: "2", EndTime: &end, Reason: reason.JobSucceeded.Code, LogState: v1beta1.LogComplete}},
	}
	p := plan()
	if p.Record == nil || p.Record.Outcome.Phase != v1beta1.PhaseSucceeded || len(p.Record.Past) != 1 {
		t.Fatalf("the record is not written again: %v", p.Record)
	}
	recorded(*p.Record)(job)
	job.Status = v1beta1.ClusterJobStatus{}
	if p := plan(); p.Record != nil || p.Phase != v1beta1.PhaseSucceeded {
		t.Errorf("with the record alone it is %s, and %v is written", p.Phase, p.Record)
	}
}
