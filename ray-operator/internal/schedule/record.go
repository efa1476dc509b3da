package schedule

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/utils/ptr"

	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
)

const (
	// recordVersion is the version of the record's form; recordLimit its largest size in bytes.
	recordVersion = 1
	recordLimit   = 4096
)

// Record holds the facts about a schedule that are neither spec nor observable. It lives in an annotation.
type Record struct {
	Version int `json:"v"`
	// Of is the UID of the schedule that the record is about.
	Of types.UID `json:"of"`
	// Times is what the schedule meant when a pass last looked: another value begins again from then.
	Times string `json:"times"`
	// Through is the time, in Unix seconds, up to which nothing is left to start.
	Through int64 `json:"through"`
}

// String is the annotation's text.
func (r Record) String() string {
	return reconcile.Fit(&r, recordLimit, func() bool { return false })
}

// timesOf is what says at which times jobs start.
func timesOf(spec *v1beta1.ClusterJobScheduleSpec) string {
	words := []string{spec.Schedule, spec.TimeZone}
	if ptr.Deref(spec.Suspend, false) {
		words = append(words, "suspended")
	}
	return strings.Join(words, "|")
}

// writtenRecord is what the annotation says of the schedule, nil where it says nothing, was copied from another one, or
// cannot be read: the jobs and the status say nearly as much.
func writtenRecord(schedule *v1beta1.ClusterJobSchedule) *Record {
	record, err := reconcile.ParseRecord(schedule.Annotations[v1beta1.AnnotationRecord], recordLimit, func(record *Record) error {
		if record.Version != recordVersion || record.Of != schedule.UID {
			return fmt.Errorf("version %d of %s, want version %d of %s", record.Version, record.Of, recordVersion, schedule.UID)
		}
		return nil
	})
	if err != nil {
		return nil
	}
	return &record
}

// recallRecord gives the record as it holds now. Where it is gone, the jobs and the status restore it. Where the times
// have changed, or the schedule was resumed, times that have passed are not made up for.
func recallRecord(schedule *v1beta1.ClusterJobSchedule, jobs []v1beta1.ClusterJob, now time.Time) Record {
	record := Record{Version: recordVersion, Of: schedule.UID, Times: timesOf(&schedule.Spec), Through: schedule.CreationTimestamp.Unix()}
	if last := lastTime(schedule, jobs); last.Unix() > record.Through {
		record.Through = last.Unix()
	}
	switch written := writtenRecord(schedule); {
	case written == nil:
	case written.Times != record.Times:
		record.Through = max(record.Through, now.Unix())
	default:
		record.Through = max(record.Through, written.Through)
	}
	return record
}
