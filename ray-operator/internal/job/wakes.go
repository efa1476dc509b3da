package job

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/index"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kueue"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/wake"
)

// kindName is the kind that owner references name.
const kindName = "ClusterJob"

// WakeRules say what wakes jobs, beside changes of their own: Workloads of Kueue where there is a queue. What was read
// of jobs in queues of clusters is remembered in waiting.
func WakeRules(waiting *WaitingJobs, now clock.PassiveClock, isQueued bool) []wake.Rule {
	rules := []wake.Rule{
		{Name: "a job wakes the next in the queue", Kind: &v1beta1.ClusterJob{}, Matters: changesPlace, Find: nextInQueue(waiting, now)},
		{Name: "a cluster wakes the jobs that use it", Kind: &v1beta1.ComputeCluster{}, Matters: wake.Always, Find: jobsOfCluster},
		{Name: "a head wakes the jobs of its cluster", Kind: &corev1.Pod{}, Matters: changesHead, Find: jobsOfHead},
	}
	if isQueued {
		rules = append(rules, wake.Rule{Name: "a Workload wakes its job", Kind: &kueue.Workload{},
			Matters: wake.Always, Find: wake.Controllers(kindName)})
	}
	return rules
}

// changesPlace reports whether a job took a place on its cluster or gave one back, which it does too where it goes, or whether its
// gang has got its places.
func changesPlace(c wake.Change) bool {
	if c.New == nil {
		return true
	}
	before, was := c.Old.(*v1beta1.ClusterJob)
	now, is := c.New.(*v1beta1.ClusterJob)
	return was && is && (Holds(before) != Holds(now) || Gathers(before) != Gathers(now))
}

// nextInQueue finds the first of those that wait for a job's cluster.
func nextInQueue(waiting *WaitingJobs, now clock.PassiveClock) func(context.Context, client.Reader, wake.Change) ([]types.NamespacedName, error) {
	return func(ctx context.Context, cache client.Reader, c wake.Change) ([]types.NamespacedName, error) {
		changed, is := c.Object().(*v1beta1.ClusterJob)
		if !is || changed.Spec.ClusterRef == nil {
			return nil, nil
		}
		name := types.NamespacedName{Namespace: changed.Namespace, Name: changed.Spec.ClusterRef.Name}
		var cluster v1beta1.ComputeCluster
		switch err := cache.Get(ctx, name, &cluster, client.UnsafeDisableDeepCopy); {
		case err != nil:
			return nil, client.IgnoreNotFound(err)
		case cluster.Spec.MaxConcurrentJobs == nil && gangOf(&changed.Spec) == nil:
			return nil, nil // none waits
		}
		jobs, err := listJobs(ctx, cache, name)
		return waiting.Next(jobs, &cluster, now.Now()), err
	}
}

// jobsOfCluster finds the job that a cluster was made for, and those that refer to it and have not ended.
func jobsOfCluster(ctx context.Context, cache client.Reader, c wake.Change) ([]types.NamespacedName, error) {
	cluster := c.Object()
	names := wake.Owners(kindName, cluster)
	jobs, err := listJobs(ctx, cache, client.ObjectKeyFromObject(cluster))
	for i := range jobs {
		names = append(names, client.ObjectKeyFromObject(&jobs[i]))
	}
	return names, err
}

// listJobs lists the jobs that refer to a cluster and have not ended.
func listJobs(ctx context.Context, cache client.Reader, cluster types.NamespacedName) ([]v1beta1.ClusterJob, error) {
	var list v1beta1.ClusterJobList
	err := cache.List(ctx, &list, client.InNamespace(cluster.Namespace), client.MatchingFields{index.Unended: cluster.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("list ClusterJobs that refer to ComputeCluster %s: %w", cluster, err)
	}
	return list.Items, nil
}

// changesHead reports whether a head came or went, got an address, or turned ready or unready.
func changesHead(c wake.Change) bool {
	if c.Object().GetLabels()[v1beta1.LabelRole] != v1beta1.RoleHead {
		return false
	}
	before, was := c.Old.(*corev1.Pod)
	now, is := c.New.(*corev1.Pod)
	if !was || !is {
		return true
	}
	return before.Status.PodIP != now.Status.PodIP || before.Status.Phase != now.Status.Phase ||
		reconcile.Ready(before) != reconcile.Ready(now) || (before.DeletionTimestamp == nil) != (now.DeletionTimestamp == nil)
}

// jobsOfHead finds the jobs that use the cluster of a head.
func jobsOfHead(ctx context.Context, cache client.Reader, c wake.Change) ([]types.NamespacedName, error) {
	cluster, err := wake.ClusterOf(ctx, cache, c.Object())
	if err != nil {
		return nil, err
	}
	return jobsOfCluster(ctx, cache, wake.Change{New: cluster})
}
