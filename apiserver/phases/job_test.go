package phases_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// words are what jobs say here.
const words = "the job API of ComputeCluster demo does not answer yet"

// own is the cluster of a job, made after a minute; shared was there long before. Both have a head after six.
var (
	answers = since(v1beta1.ConditionHeadReady, true, 6)
	own     = but(clusterOf(since(v1beta1.ConditionReady, true, 6), answers), func(c *v1beta1.ComputeCluster) { c.CreationTimestamp = at(1) })
	shared  = but(own.DeepCopy(), func(c *v1beta1.ComputeCluster) { c.CreationTimestamp = at(-90) })
)

// ended is a job that came to its end after twenty minutes.
func ended(phase string, isShared bool, attempts ...v1beta1.JobAttempt) *v1beta1.ClusterJob {
	job := jobOf(phase, isShared, attempts...)
	job.Status.EndTime, job.Status.OwnCluster = new(at(20)), 1
	job.Status.Conditions = append(job.Status.Conditions, since(v1beta1.ConditionStalled, phase != v1beta1.PhaseSucceeded, 20))
	return job
}

// gang makes a job a gang.
func gang(job *v1beta1.ClusterJob) *v1beta1.ClusterJob {
	job.Spec.Gang = &v1beta1.Gang{}
	return job
}

// hasRunSince has a job run first after so many minutes.
func hasRunSince(job *v1beta1.ClusterJob, minutes int) *v1beta1.ClusterJob {
	job.Status.StartTime = new(at(minutes))
	return job
}

// saying is a job with one more condition.
func saying(job *v1beta1.ClusterJob, condition metav1.Condition) *v1beta1.ClusterJob {
	job.Status.Conditions = append(job.Status.Conditions, condition)
	return job
}

// jobPhases are jobs with their clusters, and how far they are.
var jobPhases = map[string]struct {
	job     *v1beta1.ClusterJob
	cluster *v1beta1.ComputeCluster
	want    string
}{
	"queued until its cluster is made": {
		jobOf(v1beta1.PhasePending, false), nil,
		"Queued Current 0-? (" + words + "), Cluster Pending, Submitted Pending, Running Pending",
	},
	"waits for its cluster": {
		jobOf(v1beta1.PhaseProvisioning, false), own,
		"Queued Done 0-1, Cluster Current 1-? (" + words + "), Submitted Pending, Running Pending",
	},
	"waits for another cluster": {
		jobOf(v1beta1.PhasePending, true), nil,
		"Cluster Current 0-? (" + words + "), Queued Pending, Submitted Pending, Running Pending",
	},
	"waits in the queue": {
		but(jobOf(v1beta1.PhasePending, true), func(job *v1beta1.ClusterJob) {
			job.Status.Conditions = []metav1.Condition{waiting(reason.JobQueued.Of("demo", 2, 2, 1))}
		}), shared,
		"Cluster Done 0-6, Queued Current 6-? (ComputeCluster demo runs 2 of the 2 jobs that its maxConcurrentJobs allows; position 1 in the queue), " +
			"Submitted Pending, Running Pending",
	},
	"waits since it was resumed": {
		saying(jobOf(v1beta1.PhasePending, true), since(v1beta1.ConditionSuspended, false, 10)), nil, "Cluster Current 10-? (" + words + "), Queued Pending, Submitted Pending, Running Pending",
	},
	"submitted": {
		jobOf(v1beta1.PhaseSubmitting, false, attempt(1, 7, 0, 0)), own,
		"Queued Done 0-1, Cluster Done 1-7, Submitted Current 7-? (" + words + "), Running Pending",
	},
	"gathers": {
		gang(jobOf(v1beta1.PhaseGathering, true, attempt(1, 7, 8, 0))), shared,
		"Cluster Done 0-6, Queued Done 6-7, Submitted Done 7-8, Gathered Current 8-? (" + words + "), Running Pending",
	},
	"runs as a gang": {
		hasRunSince(gang(jobOf(v1beta1.PhaseRunning, true, attempt(1, 7, 8, 0))), 9), shared,
		"Cluster Done 0-6, Queued Done 6-7, Submitted Done 7-8, Gathered Done 8-9, Running Current 9-? (" + words + ")",
	},
	"runs as a gang in a later attempt": {
		hasRunSince(gang(jobOf(v1beta1.PhaseRunning, true, attempt(2, 7, 8, 0))), 1), shared,
		"Cluster Done 0-6, Queued Done 6-7, Submitted Done 7-8, Gathered Done 8-?, Running Current ?-? (" + words + ")",
	},
	"waits behind an older gang": {
		gang(but(jobOf(v1beta1.PhasePending, true), func(job *v1beta1.ClusterJob) {
			job.Status.Conditions = []metav1.Condition{waiting(reason.GangQueued.Of("first", "demo", 1))}
		})), shared,
		"Cluster Done 0-6, Queued Current 6-? (the gang of ClusterJob first gathers first on ComputeCluster demo; position 1 in the queue), " +
			"Submitted Pending, Gathered Pending, Running Pending",
	},
	"did not find its places": {
		gang(ended(v1beta1.PhaseFailed, true, attempt(1, 7, 8, 20))), shared,
		"Cluster Done 0-6, Queued Done 6-7, Submitted Done 7-8, Gathered Failed 8-20 (" + words + "), Ended Done 20-?",
	},
	"runs": {
		jobOf(v1beta1.PhaseRunning, true, attempt(1, 7, 8, 0)), shared,
		"Cluster Done 0-6, Queued Done 6-7, Submitted Done 7-8, Running Current 8-? (" + words + ")",
	},
	"its second attempt runs": {
		jobOf(v1beta1.PhaseRunning, true, attempt(1, 7, 8, 9), attempt(2, 12, 13, 0)), shared,
		"Cluster Done 9-9, Queued Done 9-12, Submitted Done 12-13, Running Current 13-? (" + words + ")",
	},
	"its output is collected": {
		jobOf(v1beta1.PhaseRunning, true, attempt(1, 7, 8, 9)), shared,
		"Cluster Done 0-6, Queued Done 6-7, Submitted Done 7-8, Running Current 8-? (" + words + ")",
	},
	"ended before it ran": {
		jobOf(v1beta1.PhaseSubmitting, true, attempt(1, 7, 0, 9)), shared,
		"Cluster Done 0-6, Queued Done 6-7, Submitted Current 7-? (" + words + "), Running Pending",
	},
	"is retried where others run": {
		jobOf(v1beta1.PhaseRetrying, true, attempt(1, 7, 8, 9)), shared,
		"Cluster Done 9-9, Queued Current 9-? (" + words + "), Submitted Pending, Running Pending",
	},
	"failed before its cluster was made": {
		but(ended(v1beta1.PhaseFailed, false), func(job *v1beta1.ClusterJob) { job.Status.OwnCluster = 0 }), nil,
		"Queued Failed 0-20 (" + words + "), Ended Done 20-?",
	},
	"failed in the queue": {
		ended(v1beta1.PhaseFailed, true), shared, "Cluster Done 0-6, Queued Failed 6-20 (" + words + "), Ended Done 20-?",
	},
	"succeeded before it was seen to run": {
		ended(v1beta1.PhaseSucceeded, true, attempt(1, 7, 0, 20)), shared,
		"Cluster Done 0-6, Queued Done 6-7, Submitted Done 7-?, Running Done ?-20, Ended Done 20-?",
	},
	"waits for what its cluster waits for": {
		jobOf(v1beta1.PhaseProvisioning, false), clusterOf(waiting(reason.HeadMissing.Of())),
		"Queued Done 0-0, Cluster Current 0-? (ComputeCluster demo: there is no head pod yet), Submitted Pending, Running Pending",
	},
	"waits for its second attempt": {
		jobOf(v1beta1.PhaseRetrying, false, attempt(1, 7, 8, 9)), own,
		"Queued Current 9-? (" + words + "), Cluster Pending, Submitted Pending, Running Pending",
	},
	"succeeded": {
		ended(v1beta1.PhaseSucceeded, false, attempt(1, 7, 8, 20)), nil,
		"Queued Done 0-?, Cluster Done ?-7, Submitted Done 7-8, Running Done 8-20, Ended Done 20-?",
	},
	"failed as it ran": {
		ended(v1beta1.PhaseFailed, false, attempt(1, 7, 8, 20)), own,
		"Queued Done 0-1, Cluster Done 1-7, Submitted Done 7-8, Running Failed 8-20 (" + words + "), Ended Done 20-?",
	},
	"failed before it was submitted": {
		ended(v1beta1.PhaseFailed, false), own, "Queued Done 0-1, Cluster Failed 1-20 (" + words + "), Ended Done 20-?",
	},
	"failed for want of a cluster": {
		ended(v1beta1.PhaseFailed, true), nil, "Cluster Failed 0-20 (" + words + "), Ended Done 20-?",
	},
	"stopped": {
		ended(v1beta1.PhaseStopped, true, attempt(1, 7, 0, 20)), shared,
		"Cluster Done 0-6, Queued Done 6-7, Submitted Done 7-20, Ended Done 20-?",
	},
	"suspended": {
		saying(jobOf(v1beta1.PhaseSuspended, false), since(v1beta1.ConditionSuspended, true, 10)), nil, "Suspended Current 10-? (" + words + "), Queued Pending, Cluster Pending, Submitted Pending, Running Pending",
	},
}

func TestOf_Job(t *testing.T) {
	for name, test := range jobPhases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, draw(test.job, []*v1beta1.ComputeCluster{nil, test.cluster})); diff != "" {
				t.Error(diff)
			}
		})
	}
}
