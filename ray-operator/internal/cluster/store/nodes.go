package store

import (
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Nodes remembers which nodes managed Redis run on, whose pods no cache holds. A StatefulSet changes with its pod, so
// the pod is read once for each version of its set. The zero value is ready.
type Nodes struct {
	mu   sync.Mutex
	seen map[types.NamespacedName]nodeOfSet
}

type nodeOfSet struct {
	set  types.UID
	as   string // the set's resourceVersion
	node string
}

func (n *Nodes) last(cluster types.NamespacedName, set *appsv1.StatefulSet) (string, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if known := n.seen[cluster]; known.set == set.UID && known.as == set.ResourceVersion {
		return known.node, true
	}
	return "", false
}

func (n *Nodes) keep(cluster types.NamespacedName, set *appsv1.StatefulSet, node string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.seen == nil {
		n.seen = map[types.NamespacedName]nodeOfSet{}
	}
	n.seen[cluster] = nodeOfSet{set.UID, set.ResourceVersion, node}
}

// Forget drops what is known of a cluster.
func (n *Nodes) Forget(cluster types.NamespacedName) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.seen, cluster)
}
