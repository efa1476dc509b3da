package cluster

import (
	"context"
	"time"

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
	seen.Queue, err = o.queue.OfCluster(ctx, cluster)
	return err
}

// planQueue returns what the cluster's place in a queue means for it, and how soon to look again, 0 for never.
func planQueue(b basis, sizes map[string]Size, wants bool) (answer kueue.Answer, wake time.Duration) {
	now := kueue.State{Wants: wants, Runs: len(b.seen.Pods) > 0, Ready: hasStartedUp(b, sizes)}
	answer = kueue.Decide(b.seen.Queue, now, metav1.NewTime(b.now))
	if b.seen.Queue.Problem != "" || b.seen.Queue.Rides && answer.Held {
		wake = reconcile.Recheck // no watch tells of what is missing
	}
	return answer, wake
}

// limitToQuota returns the size of a group as far as the queue has given it quota: a size that was kept may be above
// that.
func limitToQuota(s situation, group *v1beta1.WorkerGroup, size Size) Size {
	if most, limited := s.seen.Queue.Workload.Admitted(kueue.PodSetOf(group.Name)); limited && s.seen.Queue.Queue != "" {
		size.Replicas = min(size.Replicas, most/pod.Hosts(group))
	}
	return size
}

// explainQueue returns what a cluster without admission waits for.
func explainQueue(queue kueue.Seen, answer kueue.Answer, err error) reason.Finding {
	switch {
	case queue.Problem != "":
		return reason.QueueBlocked.Of(queue.Queue, queue.Problem)
	case fault.Refused(err):
		return reason.QueueBlocked.Of(queue.Queue, err.Error())
	default:
		return reason.Queued.Of(queue.Queue, answer.Waits)
	}
}
