package job

import (
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// situation is what a decision reads: the job, what was seen, the record as planned so far, and the time. What takes
// one by value reads it and changes nothing.
type situation struct {
	job    *v1beta1.ClusterJob
	seen   Seen
	record Record
	now    time.Time
}

// submissionID returns the name under which Ray has the attempt.
func (s situation) submissionID() string {
	return naming.Submission(s.job.Name, s.job.UID, s.record.Attempt)
}

// hasOwnCluster reports whether the job has a cluster of its own.
func (s situation) hasOwnCluster() bool { return s.job.Spec.ClusterTemplate != nil }

// isBound reports whether an attempt is bound to a head.
func (s situation) isBound() bool { return s.record.Bound.Head != "" }

// clusterName returns the name of the cluster that the job runs on, or will.
func (s situation) clusterName() string { return clusterNameOf(s.job, s.record) }

func clusterNameOf(job *v1beta1.ClusterJob, record Record) string {
	switch {
	case record.Bound.Head != "":
		return record.Bound.Cluster
	case job.Spec.ClusterRef != nil:
		return job.Spec.ClusterRef.Name
	default:
		return naming.JobCluster(job.Name, job.UID, record.Own)
	}
}

// startedAt returns when the bound attempt was first seen to run, zero if it was not. What Ray calls the start of a
// job is its submission, so that counts only for one that was over before anyone looked.
func (s situation) startedAt() time.Time {
	if entry := findAttempt(s.job.Status.Attempts, s.record.Attempt); entry != nil && entry.StartTime != nil {
		return entry.StartTime.Time
	}
	switch job := &s.seen.Answer.Job; {
	case !s.seen.Heard || !s.seen.Answer.Known || job.Status == headclient.JobPending:
		return time.Time{}
	case job.Status.Over() && job.ExitCode == nil && isSupervisorFailure(*job): // Ray never got to it
		return time.Time{}
	case job.Status.Over():
		return job.Start
	default:
		return s.now
	}
}

// ranSince returns when the job first ran since it was resumed last, zero if it did not.
func (s situation) ranSince() time.Time {
	if s.record.Ran > 0 {
		return time.Unix(s.record.Ran, 0)
	}
	if s.isBound() {
		return s.startedAt()
	}
	return time.Time{}
}

// boundPhase returns the phase of a bound attempt.
func (s situation) boundPhase() string {
	if s.startedAt().IsZero() {
		return v1beta1.PhaseSubmitting
	}
	return v1beta1.PhaseRunning
}

// waitingPhase returns the phase of a job that has no head to submit to yet.
func (s situation) waitingPhase() string {
	if s.hasOwnCluster() {
		return v1beta1.PhaseProvisioning
	}
	return v1beta1.PhasePending
}

// endingCluster returns the name of a cluster that is terminating.
func (s situation) endingCluster() string {
	if len(s.seen.Former) > 0 {
		return s.seen.Former[0].Name
	}
	return s.record.Last.Cluster
}

// isSuspending reports whether the bound attempt is stopped for a suspension.
func (s situation) isSuspending() bool {
	return s.record.Ending == reason.JobSuspended.Code || s.record.Ending == reason.JobPreempted.Code
}

// hasSession reports whether the session that the attempt is bound to answers.
func (s situation) hasSession() bool {
	return s.seen.Heard && s.seen.Answer.Session.Name == s.record.Bound.Session
}

// isLastAttempt reports whether no attempt may follow the bound one: the job is asked to stop, or was
// when the end of that attempt began.
func isLastAttempt(s situation) bool {
	return isStopAsked(s.job) || s.record.Ending == reason.Stopped.Code
}

func attemptDeadline(spec *v1beta1.ClusterJobSpec) int32 {
	if spec.Retry == nil {
		return 0
	}
	return valueOf(spec.Retry.AttemptDeadlineSeconds)
}
