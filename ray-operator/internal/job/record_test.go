package job

import (
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
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
		"fresh":     {v1beta1.PhasePending, newRecord()},
		"bound":     {v1beta1.PhaseSubmitting, bound()},
		"retrying":  {v1beta1.PhaseRetrying, bound(retried)},
		"again":     {v1beta1.PhaseSubmitting, bound(retried, func(r *Record) { r.Bound = binding(5) })},
		"lost":      {v1beta1.PhaseRetrying, bound(retried, func(r *Record) { r.Failures, r.Losses, r.Past[0].Reason = 0, 1, "HeadLost" })},
		"another":   {v1beta1.PhaseProvisioning, bound(retried, func(r *Record) { r.Own = 2 })},
		"ending":    {v1beta1.PhaseSubmitting, bound(ending(reason.DeadlineExceeded, 60))},
		"suspended": {v1beta1.PhaseSuspended, bound(retried, func(r *Record) { r.Suspended, r.Failures, r.Past[0].Reason = true, 0, "JobSuspended" })},
		"over":      {v1beta1.PhaseFailed, bound(retried, func(r *Record) { r.Attempt = 1; r.Outcome = Outcome{"Failed", "EntrypointFailed", "oh no", ago(30)} })},
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
		have, err := recallRecord(job)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		// Deadlines count from the last change of the condition Suspended.
		if suspended := meta.FindStatusCondition(job.Status.Conditions, v1beta1.ConditionSuspended); suspended != nil && have.Began == now.Unix() {
			have.Began = 0
		}
		if have.String() != told.record.String() {
			t.Errorf("%s: restored\n%s, want\n%s", name, have, told.record)
		}
	}
}

// TestRecordComesFirst: what stands in the annotation counts, whatever the status says.
func TestRecordComesFirst(t *testing.T) {
	job := train(recorded(bound()))
	job.Status.Attempt, job.Status.Phase = 7, v1beta1.PhaseFailed
	written := bound(func(r *Record) { r.Of = job.UID })
	if have, err := recallRecord(job); err != nil || have.String() != written.String() {
		t.Errorf("%s, %v", have, err)
	}
	job.Annotations[v1beta1.AnnotationRecord] = ""
	if have, err := recallRecord(job); err == nil {
		t.Errorf("an empty record is %s", have)
	}
	ours := bound()
	for uid, want := range map[types.UID]Record{job.UID: ours, "another": newRecord(), "": newRecord()} {
		ours.Of, want.Of = uid, ""
		job.Annotations[v1beta1.AnnotationRecord] = ours.String()
		job.Status = v1beta1.ClusterJobStatus{}
		have, err := recallRecord(job)
		if have.Of = ""; err != nil || have.String() != want.String() {
			t.Errorf("the record of %s: %s, %v", uid, have, err)
		}
	}
	delete(job.Annotations, v1beta1.AnnotationRecord)
	job.Status = v1beta1.ClusterJobStatus{}
	if have, err := recallRecord(job); err != nil || have.String() != newRecord().String() {
		t.Errorf("a new job has the record %s, %v", have, err)
	}
}

// TestResumed: the time of the resumption comes back from the condition.
func TestResumed(t *testing.T) {
	job := train()
	job.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionSuspended, Status: metav1.ConditionFalse, LastTransitionTime: metav1.Unix(ago(20), 0)}}
	if have, err := recallRecord(job); err != nil || have.Began != ago(20) || have.Suspended {
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

func TestKeep_DropsTheOldest(t *testing.T) {
	record := newRecord()
	for n := range int32(1000) {
		record.keepAttempt(Past{Number: n + 1})
	}
	if len(record.Past) != remembered || record.Past[0].Number != 1001-remembered {
		t.Errorf("%d are kept, from %d", len(record.Past), record.Past[0].Number)
	}
}

// TestString_IsReadAgain whatever Ray and users call things and say, and without losing what decides anything.
func TestString_IsReadAgain(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		name, uid := rapid.StringMatching(`[a-z0-9-]{63}`), rapid.StringMatching(`[0-9a-f-]{36}`)
		session := rapid.StringMatching(`[!-~]{253}`)
		words := rapid.StringOfN(rapid.SampledFrom([]rune("a<\"\\é\x01\u2028😀")), mostText/2, -1, 2*mostText)
		binding := func(label string) Bound {
			return Bound{
				Cluster: name.Draw(rt, label), UID: types.UID(uid.Draw(rt, label)), Pod: name.Draw(rt, label), Head: types.UID(uid.Draw(rt, label)),
				Session: session.Draw(rt, label), At: rapid.Int64().Draw(rt, label),
			}
		}
		record := newRecord()
		record.Of, record.Bound, record.Last = types.UID(uid.Draw(rt, "of")), binding("bound"), binding("last")
		record.Attempt, record.Own = rapid.Int32Min(1).Draw(rt, "attempt"), rapid.Int32Min(1).Draw(rt, "own")
		record.Ended, record.Failures, record.Losses = rapid.Int64().Draw(rt, "ended"), rapid.Int32().Draw(rt, "failures"), rapid.Int32().Draw(rt, "losses")
		code := rapid.Int32().Draw(rt, "code")
		for range rapid.SampledFrom([]int{0, 1, remembered}).Draw(rt, "past") {
			record.keepAttempt(Past{
				Number: record.Attempt, Cluster: name.Draw(rt, "cluster"), Head: types.UID(uid.Draw(rt, "head")), Reason: "AttemptDeadlineExceeded", Exit: &code,
				Start: rapid.Int64().Draw(rt, "start"), End: rapid.Int64().Draw(rt, "end"),
			})
		}
		record.Outcome = Outcome{
			Phase: v1beta1.PhaseFailed, Reason: "AttemptDeadlineExceeded", Text: cutText(words.Draw(rt, "text")),
		}
		have, err := ParseRecord(record.String())
		if err != nil || have.String() != record.String() {
			rt.Fatalf("%s, %v", have, err)
		}
		if len(record.Past) > 0 && !reflect.DeepEqual(have.Past[len(have.Past)-1], record.Past[len(record.Past)-1]) {
			rt.Errorf("the last attempt was lost")
		}
		have.Past, have.Outcome.Text, record.Past, record.Outcome.Text = nil, "", nil, ""
		if !reflect.DeepEqual(have, record) {
			rt.Errorf("%+v became %+v", record, have)
		}
	})
}

// TestString_KeepsAllThatFits: ten attempts and the page of an index that could not be reached.
func TestString_KeepsAllThatFits(t *testing.T) {
	record := bound(func(r *Record) { r.Outcome = Outcome{Phase: "Failed", Text: strings.Repeat("<a>", mostText/3)} })
	uid, code := types.UID("00000000-0000-0000-0000-000000000000"), int32(255)
	for n := range int32(remembered) {
		record.keepAttempt(Past{
			Number: n + 1, Cluster: strings.Repeat("c", 50), Head: uid, Reason: "AttemptDeadlineExceeded", Exit: &code, Start: ago(60), End: ago(30),
		})
	}
	if have, err := ParseRecord(record.String()); err != nil || have.Outcome != record.Outcome || len(have.Past) != remembered {
		t.Errorf("%s, %v", have, err)
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
		job.Annotations = map[string]string{v1beta1.AnnotationRecord: text}
		s := Seen{Record: record}
		Status(job, s, Decide(job, s, now), nil, now) // whatever it says, nothing breaks
	})
}
