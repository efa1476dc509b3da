package job

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/fault"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/index"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// observeJob reads the world; it writes nothing.
func (r *Reconciler) observeJob(ctx context.Context, job *v1beta1.ClusterJob, now time.Time) (Seen, []types.UID, error) {
	var seen Seen
	if seen.Record, seen.RecordError = recallRecord(job); seen.RecordError != nil {
		return seen, nil, nil
	}
	if err := r.seeClusters(ctx, job, &seen); err != nil {
		return seen, nil, err
	}
	if err := r.seeHeads(ctx, job, &seen); err != nil {
		return seen, nil, err
	}
	if err := r.seeQueue(ctx, job, &seen); err != nil {
		return seen, nil, err
	}
	id, head := "", seen.Head
	switch record := &seen.Record; {
	case record.Bound.Head != "":
		id = naming.Submission(job.Name, job.UID, record.Attempt)
		at := record.Bound.Head
		if head != nil {
			at = head.UID
		}
		seen.Answer, seen.Heard = r.Runs.Last(client.ObjectKeyFromObject(job), at, id)
	case seen.LastHead != nil && !isTold(job, record):
		id = naming.Submission(job.Name, job.UID, record.Past[len(record.Past)-1].Number)
		seen.Answer, seen.Heard = r.Runs.Last(client.ObjectKeyFromObject(job), record.Last.Head, id)
	case head != nil:
		seen.Answer, seen.Heard = r.Runs.Last(client.ObjectKeyFromObject(job), head.UID, id)
	}
	if err := r.seeLostPlaces(ctx, job, &seen); err != nil {
		return seen, nil, err
	}
	holders, err := r.seePosition(ctx, job, &seen, now)
	return seen, holders, err
}

// seeClusters finds the cluster that the job runs on and those it has no more use for.
func (r *Reconciler) seeClusters(ctx context.Context, job *v1beta1.ClusterJob, seen *Seen) error {
	name := clusterNameOf(job, seen.Record)
	if job.Spec.ClusterRef != nil {
		var cluster v1beta1.ComputeCluster
		err := r.Client.Get(ctx, types.NamespacedName{Namespace: job.Namespace, Name: name}, &cluster)
		if bound := seen.Record.Bound; err == nil && (bound.Head == "" || bound.UID == cluster.UID) {
			seen.Cluster = &cluster // a record names a cluster by its UID as well: another under the name is not meant
		}
		return fault.Wrap(client.IgnoreNotFound(err), "read ComputeCluster %s", name)
	}
	var list v1beta1.ComputeClusterList
	err := r.Client.List(ctx, &list, client.InNamespace(job.Namespace), client.MatchingFields{index.Owner: string(job.UID)})
	if err != nil {
		return fmt.Errorf("list the job's clusters: %w", err)
	}
	seen.addOwnClusters(job.Name, name, list.Items)
	last := seen.Record.Last.Cluster
	if last == "" && seen.Record.Own > 1 {
		last = naming.JobCluster(job.Name, job.UID, seen.Record.Own-1)
	}
	if last == "" || last == name {
		return nil
	}
	var pods corev1.PodList
	err = r.Client.List(ctx, &pods, client.InNamespace(job.Namespace), client.MatchingLabels{v1beta1.LabelCluster: last}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return fmt.Errorf("list the pods of ComputeCluster %s: %w", last, err)
	}
	there := make([]*corev1.Pod, len(pods.Items))
	for i := range pods.Items {
		there[i] = &pods.Items[i]
	}
	seen.Stranded, _, err = reconcile.Stranded(ctx, r.Nodes, there, r.Clock.Now())
	seen.Remains = len(there) - len(seen.Stranded)
	return err
}

// addOwnClusters adds the clusters that the operator made for a job: the one with a name, and the former ones.
func (s *Seen) addOwnClusters(job, name string, clusters []v1beta1.ComputeCluster) {
	for i := range clusters {
		switch cluster := &clusters[i]; {
		case cluster.Labels[v1beta1.LabelJob] != job: // somebody else put the job's reference there
		case cluster.Name == name:
			s.Cluster = cluster
		default:
			s.Former = append(s.Former, cluster)
		}
	}
}

// seeHeads finds the head that the attempt is bound to, or the one that it could be.
func (r *Reconciler) seeHeads(ctx context.Context, job *v1beta1.ClusterJob, seen *Seen) error {
	record := &seen.Record
	wanted := []types.UID{record.Bound.UID}
	if record.Bound.Head == "" {
		wanted = []types.UID{record.Last.UID}
		if seen.Cluster != nil {
			wanted = append(wanted, seen.Cluster.UID)
		}
	}
	for _, owner := range wanted {
		if owner == "" {
			continue
		}
		var pods corev1.PodList
		err := r.Client.List(ctx, &pods, client.InNamespace(job.Namespace), client.MatchingFields{index.Owner: string(owner)}, client.UnsafeDisableDeepCopy)
		if err != nil {
			return fmt.Errorf("list the cluster's pods: %w", err)
		}
		for i := range pods.Items {
			seen.noteHead(&pods.Items[i])
		}
	}
	return nil
}

// noteHead takes a pod of the cluster for what it is to the job.
func (s *Seen) noteHead(pod *corev1.Pod) {
	if pod.Labels[v1beta1.LabelRole] != v1beta1.RoleHead || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		return
	}
	if pod.UID == s.Record.Last.Head {
		s.LastHead = pod
	}
	if s.canBeHead(pod) && (s.Head == nil || reconcile.Epoch(pod) > reconcile.Epoch(s.Head)) {
		s.Head = pod
	}
}

// canBeHead reports whether a head can be that of the attempt: the one that it is bound to or an heir
// of that one, and of an attempt that is not bound any of the cluster that stays.
func (s *Seen) canBeHead(pod *corev1.Pod) bool {
	stays := s.Cluster != nil && pod.DeletionTimestamp == nil && naming.IsOwned(pod, s.Cluster.UID)
	if bound := s.Record.Bound; bound.Head != "" {
		return pod.UID == bound.Head || stays && s.Cluster.UID == bound.UID && s.Cluster.Spec.ControlStore != nil
	}
	return stays
}

// seePosition finds where the job stands among those that wait for the cluster, and who runs
// there.
func (r *Reconciler) seePosition(ctx context.Context, job *v1beta1.ClusterJob, seen *Seen, now time.Time) ([]types.UID, error) {
	isLimited := seen.Cluster != nil && seen.Cluster.Spec.MaxConcurrentJobs != nil
	if seen.Cluster == nil || !isLimited && gangOf(&job.Spec) == nil || job.Spec.ClusterRef == nil || !r.Waiting.readEntry(job).isWaiting(now) {
		return nil, nil
	}
	var jobs v1beta1.ClusterJobList
	err := r.Client.List(ctx, &jobs, client.InNamespace(job.Namespace), client.MatchingFields{index.Unended: seen.Cluster.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list the jobs of ComputeCluster %s: %w", seen.Cluster.Name, err)
	}
	queued := r.Waiting.sortWaiting(jobs.Items, seen.Cluster, now)
	if isLimited {
		seen.Position = Position{Most: int(*seen.Cluster.Spec.MaxConcurrentJobs), Running: len(queued.holders), Place: queued.placeOf(job.UID)}
	}
	seen.Position.Gang, seen.Position.GangPlace = queued.gangBefore(job.UID)
	return queued.holders, nil
}
