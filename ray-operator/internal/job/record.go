package job

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
)

const (
	// recordVersion is the version of the record's form; recordLimit its largest size in
	// bytes.
	recordVersion = 1
	recordLimit   = 4096
	// remembered is how many former attempts record and status keep.
	remembered = 10
)

// Record holds the facts about a job that are neither spec nor observable. It lives in an
// annotation and is written before the act that depends on it. Times are seconds of Unix
// time, 0 where there is none.
type Record struct {
	Version int `json:"v"`
	// Of is the UID of the job that the record is about.
	Of types.UID `json:"of,omitempty"`
	// Attempt is the number of the attempt that is bound, or will be next, from 1.
	Attempt int32 `json:"attempt"`
	// Own is the number of the job's own cluster, from 1.
	Own int32 `json:"own,omitempty"`
	// Bound is what the attempt is bound to, Last what the one before it was.
	Bound Bound `json:"bound,omitzero"`
	Last  Bound `json:"last,omitzero"`
	// Ending is the code of why the bound attempt is being stopped, Since when that began.
	Ending string `json:"ending,omitempty"`
	Since  int64  `json:"since,omitempty"`
	// Began is when the job was resumed last, Ran when it first ran after that.
	Began int64 `json:"began,omitempty"`
	Ran   int64 `json:"ran,omitempty"`
	// Failures counts attempts that the program failed, Losses those that were lost.
	Failures int32 `json:"failures,omitempty"`
	Losses   int32 `json:"losses,omitempty"`
	// Ended is when the operator saw the last attempt end, by its own clock.
	Ended int64 `json:"ended,omitempty"`
	// Hold is until when no further attempt is bound, as processes of the last one may still run.
	Hold int64 `json:"hold,omitempty"`
	// Past are the last attempts that ended, the oldest first, with the times that Ray told.
	Past []Past `json:"past,omitempty"`
	// Suspended: the job is suspended and nothing of it runs.
	Suspended bool `json:"suspended,omitempty"`
	// Outcome is how the job ended, for good.
	Outcome Outcome `json:"outcome,omitzero"`
}

// Bound is what an attempt is bound to: a head, and the session that answers there.
type Bound struct {
	Cluster string    `json:"cluster"`
	UID     types.UID `json:"uid"`
	Pod     string    `json:"pod"`
	Head    types.UID `json:"head"`
	Session string    `json:"session"`
	At      int64     `json:"at"`
	// Grace is how many seconds the processes of a gang have to end, at least 1; 0 for a plain job. The spec may have another
	// number once the job is being suspended.
	Grace int64 `json:"grace,omitempty"`
}

// Past is an attempt that ended.
type Past struct {
	Number  int32     `json:"n"`
	Cluster string    `json:"c"`
	Head    types.UID `json:"h"`
	Reason  string    `json:"r"`
	Exit    *int32    `json:"x,omitempty"`
	Start   int64     `json:"s,omitempty"`
	End     int64     `json:"e"`
}

// Outcome is how a job ended.
type Outcome struct {
	Phase  string `json:"phase"`
	Reason string `json:"reason"`
	Text   string `json:"text"`
	At     int64  `json:"at"`
}

// newRecord is the record of a job that has not begun.
func newRecord() Record { return Record{Version: recordVersion, Attempt: 1, Own: 1} }

// String is the annotation's text, which ParseRecord reads again: where it would be too long, it has fewer words of
// others and fewer former attempts.
func (r Record) String() string { return reconcile.Fit(&r, recordLimit, r.dropLeast) }

// dropLeast takes away what is needed least, and reports whether there was anything.
func (r *Record) dropLeast() bool {
	switch {
	case r.Outcome.Text != "":
		r.Outcome.Text = reconcile.Shorten(r.Outcome.Text)
	case len(r.Past) > 1: // the last one says how long to wait
		r.Past = r.Past[1:]
	default:
		return false
	}
	return true
}

// ParseRecord reads the annotation's text. It fails on text that this version did not write.
func ParseRecord(text string) (Record, error) {
	return reconcile.ParseRecord(text, recordLimit, func(record *Record) error {
		if record.Version != recordVersion || record.Attempt < 1 || record.Own < 1 {
			return fmt.Errorf("version %d, attempt %d, cluster %d, want version %d and numbers from 1",
				record.Version, record.Attempt, record.Own, recordVersion)
		}
		return nil
	})
}

// writtenRecord is what the annotation says of the job, nil where it says nothing, or was copied from another.
func writtenRecord(job *v1beta1.ClusterJob) (*Record, error) {
	text, ok := job.Annotations[v1beta1.AnnotationRecord]
	if !ok {
		return nil, nil //nolint:nilnil // there is none, which is no error
	}
	record, err := ParseRecord(text)
	if err == nil && record.Of != job.UID {
		return nil, nil //nolint:nilnil // as above
	}
	return &record, err
}

// recallRecord gives the job's record: the annotation, else what the status mirrors.
func recallRecord(job *v1beta1.ClusterJob) (Record, error) {
	if record, err := writtenRecord(job); record != nil {
		return *record, err
	}
	record, status := newRecord(), &job.Status
	record.Attempt = max(1, status.Attempt)
	for i := range status.Attempts {
		record.restoreAttempt(&status.Attempts[i])
	}
	record.Own = max(1, status.OwnCluster)
	record.Ran = unixSeconds(status.StartTime)
	if told := meta.FindStatusCondition(status.Conditions, v1beta1.ConditionSuspended); told != nil {
		record.Suspended = told.Status == metav1.ConditionTrue
		record.Began = unixSeconds(&told.LastTransitionTime)
	}
	if last := len(record.Past) - 1; last >= 0 && record.Bound.Head == "" && !isEndPhase(status.Phase) {
		record.Attempt = record.Past[last].Number + 1 // one that has ended is never bound again
	}
	if isEndPhase(status.Phase) {
		ready := meta.FindStatusCondition(status.Conditions, v1beta1.ConditionReady)
		if ready != nil {
			record.Outcome = Outcome{Phase: status.Phase, Reason: ready.Reason, Text: ready.Message, At: unixSeconds(status.EndTime)}
		}
	}
	return record, nil
}

// restoreAttempt takes an attempt over from the status.
func (r *Record) restoreAttempt(told *v1beta1.JobAttempt) {
	bound := Bound{
		Cluster: told.ClusterName, UID: told.ClusterUID, Pod: told.HeadName, Head: told.HeadUID, Session: told.Session,
		At: unixSeconds(told.SubmitTime),
	}
	if told.EndTime == nil {
		r.Bound, r.Ending = bound, told.Reason
		if told.Reason != "" {
			r.Since = bound.At
		}
		return
	}
	r.Last = bound
	r.keepAttempt(Past{
		Number: told.Number, Cluster: told.ClusterName, Head: told.HeadUID, Reason: told.Reason, Exit: told.ExitCode,
		Start: unixSeconds(told.StartTime), End: unixSeconds(told.EndTime),
	})
	r.countEnd(classOf(told.Reason))
}

// keepAttempt puts an attempt among the past ones.
func (r *Record) keepAttempt(past Past) {
	r.Past = append(r.Past[:len(r.Past):len(r.Past)], past)
	r.Past = r.Past[max(0, len(r.Past)-remembered):]
}

// endedAt is when the last attempt ended by the operator's clock, zero if none has. Where only the
// status remembers it, it is the time that Ray told; one that is yet to come was told by a clock
// that is wrong, and nothing waits for it.
func (r *Record) endedAt(now time.Time) time.Time {
	if len(r.Past) == 0 {
		return time.Time{}
	}
	told := time.Unix(r.Past[len(r.Past)-1].End, 0)
	switch {
	case r.Ended > 0:
		return time.Unix(r.Ended, 0)
	case told.After(now):
		return time.Time{}
	default:
		return told
	}
}

func unixSeconds(at *metav1.Time) int64 {
	if at == nil || at.IsZero() {
		return 0
	}
	return at.Unix()
}
