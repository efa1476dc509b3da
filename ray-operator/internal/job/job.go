// Package job brings each ClusterJob to its end: one run for each attempt, on a cluster
// that exists or on one that it makes.
//
// In: ClusterJobs, the ComputeClusters that they use and the pods of those, from the cache;
// what heads said last. Out: writes through package kube, what is wanted of heads, a status,
// events. A pass has four steps: observe reads, Decide chooses, apply writes, Status tells.
//
// It must never wait for a head, submit an attempt to another head than the one that the
// record names, leave the end of a job again, or touch a cluster that is not the job's own.
package job

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kube"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll/jobs"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/queue"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// Reconciler reconciles ClusterJobs. What it remembers makes it one that is not copied.
type Reconciler struct {
	// Client reads from the cache.
	Client client.Client
	// Live reads past the cache.
	Live   client.Reader
	Writer *kube.Writer
	// Nodes reads nodes from the cache; nil where they may not be watched.
	Nodes client.Reader
	// Queue keeps the Workloads of jobs that wait in a queue, nil where there is no Kueue.
	Queue *queue.Keeper
	// Runs asks live heads in the background.
	Runs    jobs.Source
	Events  telemetry.Recorder
	Metrics *telemetry.Metrics
	Clock   clock.PassiveClock
	// Statuses remembers which statuses wait, Places who has just taken a place on a cluster.
	Statuses reconcile.Statuses
	Places   Places
	// Waiting remembers what was read of the jobs in queues.
	Waiting WaitingJobs
	permits permits
	// claimRests remembers up to when the claims of a job whose spec has not changed are left as they are.
	claimRests permits
}

// progressWait is how long a status that only tells of progress waits for more to tell.
const progressWait = time.Second

// gatherWait is how long a status waits that only tells how many places of a gang are there.
const gatherWait = 5 * time.Second

// IsManaged reports whether a job is this operator's to manage.
func IsManaged(job *v1beta1.ClusterJob) bool { return reconcile.IsOurs(job.Spec.ManagedBy) }

// Reconcile does one pass over one job.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var job v1beta1.ClusterJob
	err := r.Client.Get(ctx, request.NamespacedName, &job)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("read ClusterJob %s: %w", request, err)
	}
	if apierrors.IsNotFound(err) || !IsManaged(&job) {
		r.Statuses.Forget(request.NamespacedName)
		r.Runs.Forget(request.NamespacedName)
		return ctrl.Result{}, nil
	}
	now := r.Clock.Now() // one for both, or a job whose wait ends between them would pass its queue by
	seen, holders, err := r.observeJob(ctx, &job, now)
	if err != nil {
		return ctrl.Result{}, err
	}
	plan := Decide(&job, seen, now)
	before := job.DeepCopy()
	outcome := reconcile.Outcome{Err: r.applyPlan(ctx, &job, seen.Queue, &plan, holders)}
	if before.ResourceVersion = job.ResourceVersion; outcome.Err == nil {
		outcome.Err = r.askHead(ctx, &job, seen, plan)
	}
	if outcome.Err == nil {
		outcome.Events = plan.Events
	} else {
		plan.Record, plan.Done = nil, nil // nothing of it may be told
	}
	outcome.Err = errors.Join(outcome.Err, r.mendClaims(ctx, &job, &plan))
	ending := reconcile.Ending{Object: before, Events: r.Events, Wake: plan.Wake, WriteStatus: func() (time.Duration, error) {
		return r.writeStatus(ctx, before, Status(before, seen, plan, outcome.Err, now), now)
	}}
	return ending.End(outcome)
}

// writeStatus writes the status if it differs in meaning from the one there is, or says after how
// long it must be written.
func (r *Reconciler) writeStatus(ctx context.Context, job *v1beta1.ClusterJob, status v1beta1.ClusterJobStatus, now time.Time) (time.Duration, error) {
	change := reconcile.StatusChange{Seen: withoutSpec(job, job.Status), Wanted: withoutSpec(job, status)}
	change.Patience = func() time.Duration {
		switch {
		case isUrgent(&job.Status, &status):
			return 0
		case status.Phase == v1beta1.PhaseGathering && job.Status.Phase == status.Phase:
			return gatherWait
		default:
			return progressWait
		}
	}
	written, wait, err := r.Statuses.Write(ctx, r.Writer, change, now)
	if !written {
		return wait, err
	}
	r.Metrics.JobChanged(job, &status, now)
	return 0, nil
}

// isUrgent reports whether a status says more than that there is progress.
func isUrgent(former, latter *v1beta1.ClusterJobStatus) bool {
	switch {
	case former.ObservedGeneration == 0, len(former.Attempts) != len(latter.Attempts), len(former.Conditions) != len(latter.Conditions):
		return true
	case former.Phase != latter.Phase && (isEndPhase(latter.Phase) || latter.Phase == v1beta1.PhaseSuspended):
		return true
	case isGangNews(former, latter): // its events are told in this pass
		return true
	}
	for i := range latter.Attempts {
		if latter.Attempts[i].EndTime != nil && former.Attempts[i].EndTime == nil {
			return true // what follows waits for its lines to be told
		}
	}
	for i := range latter.Conditions {
		now := reason.Finding{Code: latter.Conditions[i].Reason}
		if former.Conditions[i].Reason != now.Code && now.Severity() == reason.Warning {
			return true
		}
	}
	return false
}

// isGangNews reports whether a status tells that a gang has its places, or started again.
func isGangNews(former, latter *v1beta1.ClusterJobStatus) bool {
	if latter.Gang == nil || former.Gang == nil {
		return latter.Gang != nil && latter.Phase == v1beta1.PhaseRunning
	}
	return former.Gang.Restarts != latter.Gang.Restarts || former.Phase != latter.Phase && latter.Phase == v1beta1.PhaseRunning
}

func withoutSpec(job *v1beta1.ClusterJob, status v1beta1.ClusterJobStatus) *v1beta1.ClusterJob {
	return &v1beta1.ClusterJob{ObjectMeta: reconcile.StatusMeta(job), Status: status}
}
