package cluster

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/fault"
)

// takes tells whether the plan takes something from a session that may be alive: workers,
// claims, the Service's way to the head. Such an act is bound to the object that it takes,
// and not to the spec or the record for which it does.
func (p Plan) takes() bool {
	for _, fixing := range p.Fixtures {
		if fixing.Act != Make {
			return true
		}
	}
	for _, removal := range p.Delete {
		if !removal.Pod.finished() {
			return true
		}
	}
	return len(p.Exits)+len(p.Release)+len(p.Resize)+len(p.Adopt) > 0
}

// confirm asks the API server, before a plan takes anything, whether the cluster is still
// the one that the plan was made for. A cache that is late, such as that of an operator which
// has just started beside a late API server, may show a record of an epoch that is long over:
// all that lives would be taken for leftovers of another.
func (r *Reconciler) confirm(ctx context.Context, cluster *v1alpha1.ComputeCluster, plan Plan) error {
	if !plan.takes() {
		return nil
	}
	var live v1alpha1.ComputeCluster
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(cluster), &live)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read ComputeCluster %s: %w", client.ObjectKeyFromObject(cluster), err)
	}
	same := live.UID == cluster.UID && live.Generation == cluster.Generation && live.DeletionTimestamp == nil &&
		live.Annotations[v1alpha1.AnnotationRecord] == cluster.Annotations[v1alpha1.AnnotationRecord]
	if apierrors.IsNotFound(err) || !same {
		return &fault.Wait{For: "the cache to show the cluster as it is"}
	}
	return nil
}

// takesFrom tells whether the plan takes workers from a group.
func (p Plan) takesFrom(group string) bool {
	of := func(pod Pod) bool { return pod.At.Group == group }
	return slices.ContainsFunc(p.Exits, func(leave Leave) bool { return of(leave.Pod) }) ||
		slices.ContainsFunc(p.Delete, func(removal Removal) bool { return of(removal.Pod) })
}
