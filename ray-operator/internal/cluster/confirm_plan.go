package cluster

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/fault"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// isTaking reports whether the plan takes something from a session that may be alive: workers,
// claims, the Service's way to the head. Such an act is bound to the object that it takes,
// and not to the spec or the record for which it does.
func (p Plan) isTaking() bool {
	for _, fixing := range p.Fixtures {
		if fixing.Act != reconcile.Make {
			return true
		}
	}
	for _, removal := range p.Delete {
		if !removal.Pod.hasFinished() {
			return true
		}
	}
	return len(p.Exits)+len(p.Release)+len(p.Resize)+len(p.Adopt)+len(p.Reclaim) > 0
}

// confirmPlan asks the API server, before a plan takes anything, whether the cluster is still
// the one that the plan was made for. A cache that is late, such as that of an operator which
// has just started beside a late API server, may show a record of an epoch that is long over:
// all that lives would be taken for leftovers of another.
func (a applier) confirmPlan(ctx context.Context, cluster *v1beta1.ComputeCluster, seen Seen, plan Plan) error {
	if !plan.isTaking() {
		return nil
	}
	var live v1beta1.ComputeCluster
	err := a.live.Get(ctx, client.ObjectKeyFromObject(cluster), &live)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read ComputeCluster %s: %w", client.ObjectKeyFromObject(cluster), err)
	}
	same := live.UID == cluster.UID && live.Generation == cluster.Generation && live.DeletionTimestamp == nil &&
		live.Annotations[v1beta1.AnnotationRecord] == cluster.Annotations[v1beta1.AnnotationRecord]
	if apierrors.IsNotFound(err) || !same {
		return &fault.Wait{For: "the cache to show the cluster as it is"}
	}
	if err := a.confirmUnstarted(ctx, cluster, plan); err != nil {
		return err
	}
	return a.confirmWorkers(ctx, cluster, seen, plan)
}

// confirmUnstarted asks the API server whether the pods that go because they never started have not begun to run
// meanwhile.
func (a applier) confirmUnstarted(ctx context.Context, cluster *v1beta1.ComputeCluster, plan Plan) error {
	if len(plan.Unstarted) == 0 {
		return nil
	}
	pods, err := a.listLivePods(ctx, cluster, naming.ClusterSelector(cluster.Name))
	if err != nil {
		return err
	}
	changed := map[types.UID]bool{}
	for i := range pods {
		changed[pods[i].UID] = !(Pod{Pod: &pods[i]}).isUnstarted()
	}
	if slices.ContainsFunc(plan.Unstarted, func(p Pod) bool { return changed[p.UID] }) {
		return &fault.Wait{For: "the cache to show the pods as they are"}
	}
	return nil
}

// listLivePods lists pods of a cluster as the API server has them.
func (a applier) listLivePods(ctx context.Context, cluster *v1beta1.ComputeCluster, labels map[string]string) ([]corev1.Pod, error) {
	var pods corev1.PodList
	if err := a.live.List(ctx, &pods, client.InNamespace(cluster.Namespace), client.MatchingLabels(labels)); err != nil {
		return nil, fmt.Errorf("list the pods of ComputeCluster %s: %w", client.ObjectKeyFromObject(cluster), err)
	}
	return pods.Items, nil
}

// confirmWorkers asks the API server for the workers too, where a plan takes some from a
// cluster of which nobody says how large it should be: it stays as large as it is, so one
// that is taken because the cache still shows another would not come back.
func (a applier) confirmWorkers(ctx context.Context, cluster *v1beta1.ComputeCluster, seen Seen, plan Plan) error {
	takes := slices.ContainsFunc(cluster.Spec.WorkerGroups, func(g v1beta1.WorkerGroup) bool { return plan.isTakingFrom(g.Name) })
	if !takes || !isAutoscaled(cluster) || seen.Scaler.Connected {
		return nil
	}
	pods, err := a.listLivePods(ctx, cluster, naming.RoleSelector(cluster.Name, v1beta1.RoleWorker))
	if err != nil {
		return err
	}
	counts, living := map[types.UID]bool{}, map[types.UID]bool{}
	for _, known := range seen.Pods {
		if known.At.Group != "" && known.isStaying() {
			counts[known.UID] = true
		}
	}
	for i := range pods {
		if live := (Pod{Pod: &pods[i]}); naming.IsOwned(live, cluster.UID) && live.isStaying() {
			living[live.UID] = true
		}
	}
	if !maps.Equal(counts, living) {
		return &fault.Wait{For: "the cache to show the workers as they are"}
	}
	return nil
}

// isTakingFrom reports whether the plan takes workers from a group.
func (p Plan) isTakingFrom(group string) bool {
	of := func(pod Pod) bool { return pod.At.Group == group }
	return slices.ContainsFunc(p.Exits, func(leave Leave) bool { return of(leave.Pod) }) ||
		slices.ContainsFunc(p.Delete, func(removal Removal) bool { return of(removal.Pod) })
}
