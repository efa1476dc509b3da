package cluster

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/fault"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kueue"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// seeQueue finds the cluster's place in a queue.
func (o observer) seeQueue(ctx context.Context, cluster *v1beta1.ComputeCluster, seen *Seen) (err error) {
	seen.Queue, err = o.Queue.OfCluster(ctx, cluster)
	return err
}

// planQueue plans what the cluster's place in a queue means for it.
func planQueue(p *planner, wants bool) {
	now := kueue.State{Wants: wants, Runs: len(p.seen.Pods) > 0, Ready: hasStartedUp(p.basis(), p.Sizes)}
	p.Queue = kueue.Decide(p.seen.Queue, now, metav1.NewTime(p.now))
	if p.seen.Queue.Problem != "" || p.seen.Queue.Rides && p.Queue.Held {
		p.wakeIn(reconcile.Recheck) // no watch tells of what is missing
	}
}

// yieldQuota deletes the pods of a stalled cluster that the queue does not admit. What runs is kept while that is
// admitted.
func yieldQuota(p *planner) {
	if planQueue(p, false); p.Queue.Held {
		deletePods(p, "the queue does not admit the cluster")
	}
}

// limitToQuota returns the size of a group as far as the queue has given it quota: a size that was kept may be above
// that.
func limitToQuota(s *situation, group *v1beta1.WorkerGroup, size Size) Size {
	if most, limited := s.seen.Queue.Workload.Admitted(kueue.PodSetOf(group.Name)); limited && s.seen.Queue.Queue != "" {
		size.Replicas = min(size.Replicas, most/pod.Hosts(group))
	}
	return size
}

// explainQueue returns what a cluster without admission waits for.
func explainQueue(t *statusDraft) reason.Finding {
	queue := t.seen.Queue
	switch {
	case queue.Problem != "":
		return reason.QueueBlocked.Of(queue.Queue, queue.Problem)
	case fault.Refused(t.outcome.Err):
		return reason.QueueBlocked.Of(queue.Queue, t.outcome.Err.Error())
	default:
		return reason.Queued.Of(queue.Queue, t.plan.Queue.Waits)
	}
}
