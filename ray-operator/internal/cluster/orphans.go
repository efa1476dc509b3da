package cluster

import (
	"context"
	"fmt"
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
	if err := reader.List(ctx, &list, client.InNamespace(cluster.Namespace), labels); err != nil {
		return fmt.Errorf("list the pods of %s: %w", cluster, err)
	}
	p.items = list.Items
	return nil
}

// areOf tells whether all of them belong to the cluster with the UID.
func (p *podsOf) areOf(owner types.UID) bool {
	for i := range p.items {
		if ref := metav1.GetControllerOf(&p.items[i]); owner == "" || ref == nil || ref.UID != owner {
			return false
		}
	}
	return true
}

// orphans are those whose owner is a ComputeCluster other than the living one, and
// whose grace is longer than orphanGrace.
func (p *podsOf) orphans(living types.UID) []Removal {
	var orphans []Removal
	for i := range p.items {
		pod := &p.items[i]
		owner := metav1.GetControllerOf(pod)
		if owner == nil || owner.Kind != "ComputeCluster" || owner.UID == living {
			continue
		}
		if pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds <= orphanGrace {
			continue
		}
		orphans = append(orphans, Removal{Pod: Pod{Pod: pod}, GraceSeconds: grace(orphanGrace), Why: "its cluster is gone"})
	}
	return orphans
}

// Gone remembers clusters that were seen to go, until their pods are looked at. What it
// forgets costs one read of the API server. The zero value is ready.
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

// take gives the UID of the cluster that went last under the name, once.
func (g *Gone) take(cluster types.NamespacedName) types.UID {
	g.mu.Lock()
	defer g.mu.Unlock()
	uid := g.uids[cluster]
	delete(g.uids, cluster)
	return uid
}
