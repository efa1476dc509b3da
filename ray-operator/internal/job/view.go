package job

import (
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// view is what a decision reads: the job, what was seen, the record as planned so far, and the time. What takes
// one reads it and changes nothing.
type view struct {
	job    *v1beta1.ClusterJob
	seen   Seen
	record Record
	now    time.Time
	// lack is why the cluster can never hold the job's gang, empty where it may.
	lack string
}

// submissionID returns the name under which Ray has the attempt.
func (v view) submissionID() string {
	return naming.Submission(v.job.Name, v.job.UID, v.record.Attempt)
}

// hasOwnCluster reports whether the job has a cluster of its own.
func (v view) hasOwnCluster() bool { return v.job.Spec.ClusterTemplate != nil }

// isBound reports whether an attempt is bound to a head.
func (v view) isBound() bool { return v.record.Bound.Head != "" }

// clusterName returns the name of the cluster that the job runs on, or will.
func (v view) clusterName() string { return clusterNameOf(v.job, v.record) }

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
func (v view) startedAt() time.Time {
	if entry := findAttempt(v.job.Status.Attempts, v.record.Attempt); entry != nil && entry.StartTime != nil {
		return entry.StartTime.Time
	}
	switch job := &v.seen.Answer.Job; {
	case !v.seen.Heard || !v.seen.Answer.Known || job.Status == headclient.JobPending:
		return time.Time{}
	case job.Status.Over() && job.ExitCode == nil && isSupervisorFailure(*job): // Ray never got to it
		return time.Time{}
	case job.Status.Over():
		return job.Start
	default:
		return v.now
	}
}

// ranSince returns when the job first ran since it was resumed last, zero if it did not.
func (v view) ranSince() time.Time {
	if v.record.Ran > 0 {
		return time.Unix(v.record.Ran, 0)
	}
	if v.isBound() {
		return v.workedSince()
	}
	return time.Time{}
}

// beganAt returns when the job was made, or resumed last.
func (v view) beganAt() time.Time {
	if v.record.Began > 0 {
		return time.Unix(v.record.Began, 0)
	}
	return v.job.CreationTimestamp.Time
}

// boundPhase returns the phase of a bound attempt.
func (v view) boundPhase() string {
	switch {
	case v.startedAt().IsZero():
		return v1beta1.PhaseSubmitting
	case v.isGang():
		return v.gangPhase()
	default:
		return v1beta1.PhaseRunning
	}
}

// waitingPhase returns the phase of a job that has no head to submit to yet.
func (v view) waitingPhase() string {
	if v.hasOwnCluster() {
		return v1beta1.PhaseProvisioning
	}
	return v1beta1.PhasePending
}

// endingCluster returns the name of a cluster that is terminating.
func (v view) endingCluster() string {
	if len(v.seen.Former) > 0 {
		return v.seen.Former[0].Name
	}
	return v.record.Last.Cluster
}

// isSuspending reports whether the bound attempt is stopped for a suspension.
func (v view) isSuspending() bool {
	return v.record.Ending == reason.JobSuspended.Code || v.record.Ending == reason.JobPreempted.Code
}

// hasSession reports whether the session that the attempt is bound to answers.
func (v view) hasSession() bool {
	return v.seen.Heard && v.seen.Answer.Session.Name == v.record.Bound.Session
}

// isLastAttempt reports whether no attempt may follow the bound one: the job is asked to stop, or was
// when the end of that attempt began, by the code of why it did.
func isLastAttempt(job *v1beta1.ClusterJob, ending string) bool {
	return isStopAsked(job) || ending == reason.Stopped.Code
}

func attemptDeadline(spec *v1beta1.ClusterJobSpec) int32 {
	if spec.Retry == nil {
		return 0
	}
	return valueOf(spec.Retry.AttemptDeadlineSeconds)
}
