package cluster

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/fault"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kueue"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/pass"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// seeQueue finds the cluster's place in a queue.
func (r *Reconciler) seeQueue(ctx context.Context, cluster *v1alpha1.ComputeCluster, seen *Seen) (err error) {
	seen.Queue, err = r.Queue.OfCluster(ctx, cluster)
	return err
}

// queue has the queue say whether a cluster may run that wants to.
func (p *planner) queue(wants bool) {
	now := kueue.Standing{Wants: wants, Runs: len(p.seen.Pods) > 0, Ready: p.startedUp()}
	p.Queue = kueue.Decide(p.seen.Queue, now, metav1.NewTime(p.now))
	if p.seen.Queue.Problem != "" || p.seen.Queue.Rides && p.Queue.Held {
		p.wakeIn(pass.Recheck) // no watch tells of what is missing
	}
}

// yield has a stalled cluster make room as any other: it keeps what runs while that is admitted, and needs no quota without.
func (p *planner) yield() {
	if p.queue(false); p.Queue.Held {
		p.clear("the queue does not admit the cluster")
	}
}

// inQuota returns the size of a group as far as the queue has given it quota: a size that was kept may be above that.
func (p *planner) inQuota(group *v1alpha1.WorkerGroup, size Size) Size {
	if most, limited := p.seen.Queue.Workload.Admitted(kueue.PodSetOf(group.Name)); limited && p.seen.Queue.Queue != "" {
		size.Replicas = min(size.Replicas, most/pod.Hosts(group))
	}
	return size
}

// startedUp reports whether the head is ready, and as many workers of each group as it must have.
func (p *planner) startedUp() bool {
	if p.head == nil || !p.head.ready() {
		return false
	}
	ready := map[string]int{}
	for _, worker := range p.seen.Pods {
		if p.has(worker) && worker.ready() {
			ready[worker.At.Group]++
		}
	}
	for i := range p.cluster.Spec.WorkerGroups {
		group := &p.cluster.Spec.WorkerGroups[i]
		least := p.wanted(group)
		if autoscaled(p.cluster) {
			least = bounds(group).Min
		}
		if !group.Suspend && ready[group.Name] < least*pod.Hosts(group) {
			return false
		}
	}
	return true
}

// queued says what a cluster waits for that has no admission.
func (t *teller) queued() reason.Finding {
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
