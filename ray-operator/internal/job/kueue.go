package job

import (
	"cmp"
	"context"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/fault"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kueue"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
	"github.com/heliostat-dev/heliostat/ray-operator/validate"
)

// seeQueue finds the job's place in a queue, and where it has one whether anything of the job is there.
func (r *Reconciler) seeQueue(ctx context.Context, job *v1beta1.ClusterJob, seen *Seen) (err error) {
	var own *v1beta1.ComputeCluster
	if job.Spec.ClusterTemplate != nil {
		own = ownCluster(job, seen.Record.Own)
	}
	asks := own
	if own != nil && seen.Cluster != nil { // an edit of the template is for the next one
		asks = seen.Cluster
	}
	seen.Queue, err = r.Queue.OfJob(ctx, job, asks)
	if err != nil || seen.Queue.Queue == "" || own == nil {
		return err
	}
	names := []string{own.Name, seen.Record.Last.Cluster, naming.JobCluster(job.Name, job.UID, seen.Record.Own-1)}
	slices.Sort(names)
	seen.Queue.Clusters = slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
	if seen.Alive = seen.Cluster != nil || len(seen.Former) > 0; seen.Alive {
		return nil
	}
	for _, name := range seen.Queue.Clusters {
		var pods corev1.PodList
		err := r.Client.List(ctx, &pods, client.InNamespace(job.Namespace), client.MatchingLabels{v1beta1.LabelCluster: name}, client.UnsafeDisableDeepCopy)
		if err != nil {
			return fault.Wrap(err, "list the pods of ComputeCluster %s", name)
		}
		seen.Alive = seen.Alive || len(pods.Items) > 0
	}
	return nil
}

// queueAnswer returns what the job's place in a queue means for it.
func queueAnswer(v view) kueue.Answer {
	outcome := v.record.Outcome
	now := kueue.State{
		Wants: isRunnable(v), Runs: v.seen.Alive,
		Ready: v.seen.Cluster != nil && meta.IsStatusConditionTrue(v.seen.Cluster.Status.Conditions, v1beta1.ConditionReady),
	}
	if outcome.Phase != "" {
		now.Ended, now.Failed = cmp.Or(outcome.Text, outcome.Reason), outcome.Phase != v1beta1.PhaseSucceeded
	}
	return kueue.Decide(v.seen.Queue, now, metav1.NewTime(v.now))
}

// queueRecheck returns after how long to look again at a queue, 0 for never.
func queueRecheck(seen *Seen) time.Duration {
	switch {
	case seen.Queue.Problem != "":
		return reconcile.Recheck // no watch tells of what is missing
	case seen.Queue.Queue != "" && seen.Alive && seen.Cluster == nil && len(seen.Former) == 0:
		return time.Second // nobody tells of the pods of a cluster that is gone
	default:
		return 0
	}
}

// isRunnable reports whether nothing but the queue keeps the job from running: an invalid one, and a gang that its cluster can
// never hold, run no attempt but one that is bound.
func isRunnable(v view) bool {
	if ptr.Deref(v.job.Spec.Suspend, false) || v.job.DeletionTimestamp != nil || v.seen.Queue.Queue == "" {
		return false
	}
	return v.isBound() || v.lack == "" && len(validate.Job(v.job)) == 0
}

// isHeld reports whether a job may not run now: it is suspended, or its queue says so.
func isHeld(job *v1beta1.ClusterJob, queue kueue.Answer) bool {
	return ptr.Deref(job.Spec.Suspend, false) || queue.Held
}

// explainQueue returns what a job without admission waits for.
func explainQueue(queue kueue.Seen, waits string) reason.Finding {
	if queue.Problem != "" {
		return reason.QueueBlocked.Of(queue.Queue, queue.Problem)
	}
	return reason.Queued.Of(queue.Queue, waits)
}
