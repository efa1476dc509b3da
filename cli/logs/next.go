package logs

import (
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// step is what there is to do next about the output of a job.
type step struct {
	// attempt is the one whose output comes next, nil while there is none.
	attempt *v1beta1.JobAttempt
	// isEnd: no output comes any more.
	isEnd bool
}

// next returns what follows after the output of an attempt was printed; 0 is none. Wanted is the number of the one attempt
// that the user asked for, 0 for the current one and those that follow.
func next(job *v1beta1.ClusterJob, printed, wanted int32) step {
	isOver := job.Status.EndTime != nil
	if wanted > 0 {
		if printed == wanted {
			return step{isEnd: true}
		}
		return step{attempt: find(job, wanted), isEnd: isOver && find(job, wanted) == nil}
	}
	for i := range job.Status.Attempts {
		one := &job.Status.Attempts[i]
		isLast := i == len(job.Status.Attempts)-1
		// Before anything was printed only the current attempt counts; after that each that follows.
		if one.Number > printed && one.SubmissionID != "" && (isLast || printed > 0) {
			return step{attempt: one}
		}
	}
	return step{isEnd: isOver}
}

func find(job *v1beta1.ClusterJob, number int32) *v1beta1.JobAttempt {
	for i := range job.Status.Attempts {
		if one := &job.Status.Attempts[i]; one.Number == number && one.SubmissionID != "" {
			return one
		}
	}
	return nil
}
