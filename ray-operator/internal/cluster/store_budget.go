package cluster

import (
	"context"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
)

// storeBudgetKind is the kind of the budget of a managed Redis.
const storeBudgetKind = "PodDisruptionBudget of the store"

// storeNodeAgain is how soon to look again at the node of a Redis that is not beside its head: no watch leads from that
// node to the cluster.
const storeNodeAgain = time.Minute

// storeBudgetOf returns the budget that keeps evictions from a managed Redis as long as they are kept from its head,
// which ends with it. It is lifted with the head's, and where the node of Redis must be free to go. It comes after the
// head's, because from then on the node is known.
func storeBudgetOf(b basis) client.Object {
	if !isManaged(b.cluster) || budgetOf(b) == nil || !b.seen.hasBudgets() || isEvictableFrom(b, b.seen.Store.Node) {
		return nil
	}
	return desired.StoreBudget(b.cluster)
}

// untilStoreNodeIsSeen returns how soon to look again at the node of a managed Redis, 0 where a watch tells of it.
func untilStoreNodeIsSeen(b basis) time.Duration {
	if node := b.seen.Store.Node; node == "" || node == b.headNode() {
		return 0
	}
	return storeNodeAgain
}

// hasBudgets reports whether there is a budget of the head or of its Redis.
func (s Seen) hasBudgets() bool {
	return s.Fixtures[budgetKind].Presence != reconcile.Absent || s.Fixtures[storeBudgetKind].Presence != reconcile.Absent
}

// StoreNodes remembers which nodes managed Redis run on, whose pods no cache holds. A StatefulSet changes with its pod, so
// the pod is read once for each version of its set. The zero value is ready.
type StoreNodes struct {
	mu   sync.Mutex
	seen map[types.NamespacedName]storeNode
}

type storeNode struct {
	set  types.UID
	as   string // the set's resourceVersion
	node string
}

func (n *StoreNodes) last(cluster types.NamespacedName, set *appsv1.StatefulSet) (string, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if known := n.seen[cluster]; known.set == set.UID && known.as == set.ResourceVersion {
		return known.node, true
	}
	return "", false
}

func (n *StoreNodes) keep(cluster types.NamespacedName, set *appsv1.StatefulSet, node string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.seen == nil {
		n.seen = map[types.NamespacedName]storeNode{}
	}
	n.seen[cluster] = storeNode{set.UID, set.ResourceVersion, node}
}

func (n *StoreNodes) forget(cluster types.NamespacedName) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.seen, cluster)
}

// seeStoreNode looks at the node of a managed Redis that has a budget, or may get one.
func (o observer) seeStoreNode(ctx context.Context, cluster *v1beta1.ComputeCluster, seen *Seen) error {
	set, isThere := seen.Fixtures[storeSetKind].Object.(*appsv1.StatefulSet)
	if !o.WatchNodes || !isThere || !seen.hasBudgets() {
		return nil
	}
	name := client.ObjectKeyFromObject(cluster)
	node, known := o.StoreNodes.last(name, set)
	if !known {
		redis, err := o.readStorePod(ctx, cluster, set)
		if err != nil {
			return err
		}
		if redis != nil {
			node = redis.Spec.NodeName
		}
		o.StoreNodes.keep(name, set, node)
	}
	seen.Store.Node = node
	return o.seeNode(ctx, node, seen)
}
