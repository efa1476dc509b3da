package phases

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/apiserver/explain"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// wayOfJob is that of the current attempt, or of the last one. A job with a cluster of its own is queued until that is
// made. One on a cluster that others use waits in the queue once the cluster is there.
func wayOfJob(job *v1beta1.ClusterJob, in explain.Input) way {
	w := begin(&job.ObjectMeta, job.Status.Conditions, job.Status.Phase)
	attempt, former := attemptsOf(job)
	w.began = latest(w.began, resumed(job.Status.Conditions), ending(former))
	cluster := clusterOf(in, job.Namespace, job.Status.ClusterName)
	answered, hasHead := headSince(cluster, w.began)
	var made, submitted, started time.Time
	if cluster != nil {
		made = latest(w.began, cluster.CreationTimestamp.Time)
	}
	if attempt != nil {
		submitted, started = timeOf(attempt.SubmitTime), timeOf(attempt.StartTime)
	}
	w.steps = []step{{name: Queued, until: made}, {name: Cluster, until: submitted}}
	if job.Spec.ClusterRef != nil {
		w.steps = []step{{name: Cluster, until: answered}, {name: Queued, until: submitted}}
	}
	w.steps = append(w.steps, step{name: Submitted, until: started})
	if gathers(job) {
		w.steps = append(w.steps, step{name: Gathered, until: gathered(job, submitted, started)})
	}
	w.steps = append(w.steps, step{name: Running})

	at := position(job)
	if w.isOver = isOver(job); w.isOver {
		w.over, w.isSuspended, at = timeOf(job.Status.EndTime), false, reached(job, attempt, hasHead)
		w.steps = w.steps[:at+1]
		w.steps[at].isDone, w.steps[at].until = true, w.over
		w.steps[at].hasFailed = job.Status.Phase == v1beta1.PhaseFailed
	}
	for i := range at {
		w.steps[i].isDone = true
	}
	return w
}

// attemptsOf are the attempt that the way is of, nil where there is none yet, and the one before it.
func attemptsOf(job *v1beta1.ClusterJob) (attempt, former *v1beta1.JobAttempt) {
	all := job.Status.Attempts
	if len(all) == 0 {
		return nil, nil
	}
	last := &all[len(all)-1]
	isAt := isOver(job) || slices.Contains([]string{v1beta1.PhaseSubmitting, v1beta1.PhaseGathering, v1beta1.PhaseRunning}, job.Status.Phase)
	if last.EndTime != nil && !isAt { // the next one is waited for
		return nil, last
	}
	if len(all) > 1 {
		former = &all[len(all)-2]
	}
	return last, former
}

// gathered is when the first process of a gang started in an attempt that was submitted and whose driver started at some times;
// zero where it did not, and where an attempt before was the first with processes: nobody keeps it then.
func gathered(job *v1beta1.ClusterJob, submitted, started time.Time) time.Time {
	ran := timeOf(job.Status.StartTime)
	if started.IsZero() || ran.Before(submitted) {
		return time.Time{}
	}
	return latest(started, ran)
}

func ending(attempt *v1beta1.JobAttempt) time.Time {
	if attempt == nil {
		return time.Time{}
	}
	return timeOf(attempt.EndTime)
}

func timeOf(at *metav1.Time) time.Time {
	if at == nil {
		return time.Time{}
	}
	return at.Time
}

func isOver(job *v1beta1.ClusterJob) bool {
	switch job.Status.Phase {
	case v1beta1.PhaseSucceeded, v1beta1.PhaseFailed, v1beta1.PhaseStopped:
		return true
	}
	return false
}

// position is the place of the step that a job is at.
func position(job *v1beta1.ClusterJob) int {
	inLine := slices.Contains([]string{reason.JobQueued.Code, reason.GangQueued.Code, reason.GangTooLarge.Code}, explain.Headline(job).Code)
	name := Queued
	switch job.Status.Phase {
	case v1beta1.PhaseRunning:
		name = Running
	case v1beta1.PhaseGathering:
		name = Gathered
	case v1beta1.PhaseSubmitting:
		name = Submitted
	case v1beta1.PhaseProvisioning:
		name = Cluster
	case v1beta1.PhaseRetrying:
	default:
		if job.Spec.ClusterRef != nil && !inLine {
			name = Cluster
		}
	}
	return slices.Index(names(job), name)
}

// gathers reports whether a job waits for places of its processes: it is a gang, or has trials.
func gathers(job *v1beta1.ClusterJob) bool { return job.Spec.Gang != nil || job.Spec.Tune != nil }

// names are those of the steps of a job.
func names(job *v1beta1.ClusterJob) []string {
	all := []string{Queued, Cluster, Submitted}
	if job.Spec.ClusterRef != nil {
		all = []string{Cluster, Queued, Submitted}
	}
	if gathers(job) {
		all = append(all, Gathered)
	}
	return append(all, Running)
}

// reached is the place of the step that a job was at when it came to its end.
func reached(job *v1beta1.ClusterJob, attempt *v1beta1.JobAttempt, hasHead bool) int {
	name := Queued
	isStarted := attempt != nil && attempt.StartTime != nil
	switch {
	case job.Status.Phase == v1beta1.PhaseSucceeded, isStarted && (!gathers(job) || job.Status.StartTime != nil):
		name = Running
	case isStarted: // its driver ran, and no process
		name = Gathered
	case attempt != nil && attempt.SubmitTime != nil:
		name = Submitted
	case job.Spec.ClusterRef != nil && !hasHead, job.Spec.ClusterRef == nil && job.Status.OwnCluster > 0:
		name = Cluster
	}
	return slices.Index(names(job), name)
}
