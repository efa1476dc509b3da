package job

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// records are those of a job at each point of its life, with the phase that goes with it.
func records() map[string]struct {
	phase  string
	record Record
} {
	code := int32(3)
	failed := past(1, "EntrypointFailed", 30)
	failed.Exit = &code
	type told = struct {
		phase  string
		record Record
	}
	retried := func(r *Record) {
		r.Bound, r.Last, r.Attempt, r.Failures, r.Past, r.Ran = Bound{}, binding(60), 2, 1, []Past{failed}, failed.Start
	}
	return map[string]told{
		"fresh":     {v1alpha1.PhasePending, fresh()},
		"bound":     {v1alpha1.PhaseSubmitting, bound()},
		"retrying":  {v1alpha1.PhaseRetrying, bound(retried)},
		"again":     {v1alpha1.PhaseSubmitting, bound(retried, func(r *Record) { r.Bound = binding(5) })},
		"lost":      {v1alpha1.PhaseRetrying, bound(retried, func(r *Record) { r.Failures, r.Losses, r.Past[0].Reason = 0, 1, "HeadLost" })},
		"another":   {v1alpha1.PhaseProvisioning, bound(retried, func(r *Record) { r.Own = 2 })},
		"ending":    {v1alpha1.PhaseSubmitting, bound(ending(reason.DeadlineExceeded, 60))},
		"suspended": {v1alpha1.PhaseSuspended, bound(retried, func(r *Record) { r.Suspended, r.Failures, r.Past[0].Reason = true, 0, "JobSuspended" })},
		"over":      {v1alpha1.PhaseFailed, bound(retried, func(r *Record) { r.Attempt = 1; r.Outcome = Outcome{"Failed", "EntrypointFailed", "oh no", ago(30)} })},
	}
}

func TestRecordsAreReadAsWritten(t *testing.T) {
	for name, told := range records() {
		if have, err := ParseRecord(told.record.String()); err != nil || have.String() != told.record.String() {
			t.Errorf("%s: %s, %v, want %s", name, have, err, told.record)
		}
	}
}

// TestStatusRestoresRecord: all of a record that decides anything comes back from the status.
func TestStatusRestoresRecord(t *testing.T) {
	for name, told := range records() {
		job := train(own)
		plan := Plan{Phase: told.phase, Finding: reason.Finding{Code: told.record.Outcome.Reason, Text: told.record.Outcome.Text}}
		job.Status = Status(job, Seen{Record: told.record}, plan, nil, now)
		have, err := recall(job)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		// Deadlines count from the last change of the condition Suspended.
		if suspended := meta.FindStatusCondition(job.Status.Conditions, v1alpha1.ConditionSuspended); suspended != nil && have.Began == now.Unix() {
			have.Began = 0
		}
		if have.String() != told.record.String() {
			t.Errorf("%s: restored\n%s, want\n%s", name, have, told.record)
		}
	}
}

// TestRecordComesFirst: what stands in the annotation counts, whatever the status says.
func TestRecordComesFirst(t *testing.T) {
	job := train()
	job.Annotations = map[string]string{v1alpha1.AnnotationRecord: bound().String()}
	job.Status.Attempt, job.Status.Phase = 7, v1alpha1.PhaseFailed
	if have, err := recall(job); err != nil || have.String() != bound().String() {
		t.Errorf("%s, %v", have, err)
	}
	job.Annotations[v1alpha1.AnnotationRecord] = ""
	if have, err := recall(job); err == nil {
		t.Errorf("an empty record is %s", have)
	}
	ours := bound()
	for uid, want := range map[types.UID]Record{job.UID: ours, "another": fresh()} {
		ours.Of, want.Of = uid, ""
		job.Annotations[v1alpha1.AnnotationRecord] = ours.String()
		job.Status = v1alpha1.ClusterJobStatus{}
		have, err := recall(job)
		if have.Of = ""; err != nil || have.String() != want.String() {
			t.Errorf("the record of %s: %s, %v", uid, have, err)
		}
	}
	delete(job.Annotations, v1alpha1.AnnotationRecord)
	job.Status = v1alpha1.ClusterJobStatus{}
	if have, err := recall(job); err != nil || have.String() != fresh().String() {
		t.Errorf("a new job has the record %s, %v", have, err)
	}
}

// TestResumed: the time of the resumption comes back from the condition.
func TestResumed(t *testing.T) {
	job := train()
	job.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSuspended, Status: metav1.ConditionFalse, LastTransitionTime: metav1.Unix(ago(20), 0)}}
	if have, err := recall(job); err != nil || have.Began != ago(20) || have.Suspended {
		t.Errorf("%s, %v", have, err)
	}
}

func TestRecordsThatCannotBe(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":       "",
		"half":          `{"v":1,"attempt":1`,
		"two":           `{"v":1,"attempt":1,"own":1}{}`,
		"another form":  `[]`,
		"null":          `null`,
		"later version": `{"v":2,"attempt":1,"own":1}`,
		"no version":    `{"attempt":1,"own":1}`,
		"no attempt":    `{"v":1,"own":1}`,
		"attempt 0":     `{"v":1,"attempt":0,"own":1}`,
		"no cluster":    `{"v":1,"attempt":1}`,
		"too large":     `{"v":1,"attempt":99999999999,"own":1}`,
		"too long":      `{"v":1,"attempt":1,"own":1,"ending":"` + strings.Repeat("a", recordLimit) + `"}`,
	} {
		if have, err := ParseRecord(text); err == nil || !strings.HasPrefix(err.Error(), "parse record: ") {
			t.Errorf("%s: %s, %v", name, have, err)
		}
	}
}

// TestOnlyTheLastAreKept: the largest record that there can be is one that can be read.
func TestOnlyTheLastAreKept(t *testing.T) {
	record := fresh()
	record.Bound = Bound{
		Cluster: strings.Repeat("c", 50), UID: "00000000-0000-0000-0000-000000000000", Pod: strings.Repeat("p", 63),
		Head: "00000000-0000-0000-0000-000000000000", Session: "session_2026-01-01_00-00-00_000000_4294967295", At: ago(0),
	}
	record.Last = record.Bound
	code := int32(255)
	for n := range int32(1000) {
		record.keep(Past{
			Number: n + 1, Cluster: record.Bound.Cluster, Head: record.Bound.Head, Reason: "AttemptDeadlineExceeded", Exit: &code, Start: ago(0), End: ago(0),
		})
	}
	if len(record.Past) != remembered || record.Past[0].Number != 1001-remembered {
		t.Fatalf("%d are kept, from %d", len(record.Past), record.Past[0].Number)
	}
	if _, err := ParseRecord(record.String()); err != nil {
		t.Errorf("a record of %d bytes: %v", len(record.String()), err)
	}
}

func FuzzParseRecord(f *testing.F) {
	for _, told := range records() {
		f.Add(told.record.String())
	}
	f.Fuzz(func(t *testing.T, text string) {
		record, err := ParseRecord(text)
		if err != nil {
			return
		}
		again, err := ParseRecord(record.String())
		if err != nil && len(record.String()) <= recordLimit || err == nil && again.String() != record.String() {
			t.Errorf("%q is %s, and that is %s, %v", text, record, again, err)
		}
		job := train()
		job.Annotations = map[string]string{v1alpha1.AnnotationRecord: text}
		s := Seen{Record: record}
		Status(job, s, Decide(job, s, now), nil, now) // whatever it says, nothing breaks
	})
}
