package logs

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// jobOf has attempts with the numbers, each submitted.
func jobOf(isOver bool, numbers ...int32) *v1beta1.ClusterJob {
	job := &v1beta1.ClusterJob{}
	for _, number := range numbers {
		job.Status.Attempts = append(job.Status.Attempts, v1beta1.JobAttempt{Number: number, SubmissionID: "s"})
	}
	if isOver {
		job.Status.EndTime = &metav1.Time{}
	}
	return job
}

func TestNext_FollowsAttempts(t *testing.T) {
	unsubmitted := jobOf(false, 1)
	unsubmitted.Status.Attempts[0].SubmissionID = ""
	for name, c := range map[string]struct {
		job             *v1beta1.ClusterJob
		printed, wanted int32
		attempt         int32 // 0 is none
		isEnd           bool
	}{
		"a job without an attempt":             {jobOf(false), 0, 0, 0, false},
		"a job that ended without an attempt":  {jobOf(true), 0, 0, 0, true},
		"an attempt that is not submitted yet": {unsubmitted, 0, 0, 0, false},
		"the first attempt":                    {jobOf(false, 1), 0, 0, 1, false},
		"the current attempt comes first":      {jobOf(false, 1, 2), 0, 0, 2, false},
		"a printed attempt, and no other":      {jobOf(false, 1), 1, 0, 0, false},
		"the attempt after the printed one":    {jobOf(false, 1, 2, 3), 1, 0, 2, false},
		"the last one of a job that ended":     {jobOf(true, 1, 2), 2, 0, 0, true},
		"an attempt that is wanted":            {jobOf(false, 1, 2), 0, 1, 1, false},
		"no more than the one that is wanted":  {jobOf(false, 1, 2), 1, 1, 0, true},
		"one that is still to come":            {jobOf(false, 1), 0, 2, 0, false},
		"one that never came":                  {jobOf(true, 1), 0, 2, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			got := next(c.job, c.printed, c.wanted)
			number := int32(0)
			if got.attempt != nil {
				number = got.attempt.Number
			}
			if number != c.attempt || got.isEnd != c.isEnd {
				t.Errorf("attempt %d, end %t; want %d, %t", number, got.isEnd, c.attempt, c.isEnd)
			}
		})
	}
}
