package cluster

import (
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
)

// orphanGrace in seconds is for pods of a cluster that is gone: nobody waits for them.
const orphanGrace = int64(5)

// podsOf are the pods that say that they belong to a cluster of a name, whatever its UID.
type podsOf struct{ items []corev1.Pod }

func (p *podsOf) read(ctx context.Context, reader client.Reader, cluster types.NamespacedName) error {
	var list corev1.PodList
	labels := client.MatchingLabels{v1alpha1.LabelCluster: cluster.Name}
	if err := reader.List(ctx, &list, client.InNamespace(cluster.Namespace), labels, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the pods of %s: %w", cluster, err)
	}
	p.items = list.Items
	return nil
}

// orphans are those whose owner is a ComputeCluster other than the living one, and whose grace is longer than
// orphanGrace. One that is on no node goes at once anyway.
func (p *podsOf) orphans(living types.UID) []Removal {
	var orphans []Removal
	for i := range p.items {
		pod := &p.items[i]
		owner := metav1.GetControllerOfNoCopy(pod)
		if owner == nil || owner.Kind != "ComputeCluster" || owner.UID == living || pod.Spec.NodeName == "" {
			continue
		}
		if pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds <= orphanGrace {
			continue
		}
		orphans = append(orphans, Removal{Pod: Pod{Pod: pod}, GraceSeconds: grace(orphanGrace), Why: "its cluster is gone"})
	}
	return orphans
}

// groupOrphans returns the owners with more than one orphan that has their label, and all other orphans.
func groupOrphans(orphans []Removal) (owners []types.UID, alone []Removal) {
	labelled := map[types.UID]int{}
	ownerOf := func(one Removal) (types.UID, bool) {
		owner := metav1.GetControllerOfNoCopy(one.Pod.Pod)
		return owner.UID, one.Pod.Labels[v1alpha1.LabelClusterUID] == string(owner.UID)
	}
	for _, one := range orphans {
		if owner, is := ownerOf(one); is {
			labelled[owner]++
		}
	}
	for _, one := range orphans {
		if owner, is := ownerOf(one); !is || labelled[owner] < 2 {
			alone = append(alone, one)
		} else if !slices.Contains(owners, owner) {
			owners = append(owners, owner)
		}
	}
	return owners, alone
}

// owner is the UID of the one cluster that all of them belong to, empty if there is none.
func (p *podsOf) owner() (owner types.UID) {
	for i := range p.items {
		ref := metav1.GetControllerOfNoCopy(&p.items[i])
		if ref == nil || i > 0 && ref.UID != owner {
			return ""
		}
		owner = ref.UID
	}
	return owner
}

// Gone remembers clusters that are gone, until their pods are. What it forgets costs one read of the API server.
// The zero value is ready.
type Gone struct {
	mu   sync.Mutex
	uids map[types.NamespacedName]types.UID
}

// Add notes that a cluster is gone.
func (g *Gone) Add(cluster types.NamespacedName, uid types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.uids == nil {
		g.uids = map[types.NamespacedName]types.UID{}
	}
	g.uids[cluster] = uid
}

// last is the UID of the cluster that went last under the name, empty if that is not known.
func (g *Gone) last(cluster types.NamespacedName) types.UID {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.uids[cluster]
}

// forget drops what is known under a name: the pods are gone too, or another cluster has the name.
func (g *Gone) forget(cluster types.NamespacedName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.uids, cluster)
}
