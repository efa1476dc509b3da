package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kube"
)

// orphanGrace in seconds is for pods of a cluster that is gone: nobody waits for them.
const orphanGrace = int64(5)

// podsOf are the pods that say that they belong to a cluster of a name, whatever its UID.
type podsOf struct{ items []corev1.Pod }

func (p *podsOf) readPods(ctx context.Context, reader client.Reader, cluster types.NamespacedName) error {
	var list corev1.PodList
	labels := client.MatchingLabels{v1beta1.LabelCluster: cluster.Name}
	if err := reader.List(ctx, &list, client.InNamespace(cluster.Namespace), labels, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("list the pods of %s: %w", cluster, err)
	}
	p.items = list.Items
	return nil
}

// findOrphans returns those whose owner is a ComputeCluster other than the living one, and whose grace is longer than
// orphanGrace. One that is on no node goes at once anyway.
func (p *podsOf) findOrphans(living types.UID) []Removal {
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
		return owner.UID, one.Pod.Labels[v1beta1.LabelClusterUID] == string(owner.UID)
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

// soleOwner returns the UID of the one cluster that all of them belong to, empty if there is none.
func (p *podsOf) soleOwner() (owner types.UID) {
	for i := range p.items {
		ref := metav1.GetControllerOfNoCopy(&p.items[i])
		if ref == nil || i > 0 && ref.UID != owner {
			return ""
		}
		owner = ref.UID
	}
	return owner
}

// DeletedClusters remembers clusters that are deleted, until their pods are. What it forgets costs one read of the API server.
// The zero value is ready.
type DeletedClusters struct {
	mu   sync.Mutex
	uids map[types.NamespacedName]types.UID
}

// Add notes that a cluster is gone.
func (g *DeletedClusters) Add(cluster types.NamespacedName, uid types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.uids == nil {
		g.uids = map[types.NamespacedName]types.UID{}
	}
	g.uids[cluster] = uid
}

// lastOf returns the UID of the cluster that went last under the name, empty if that is not known.
func (g *DeletedClusters) lastOf(cluster types.NamespacedName) types.UID {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.uids[cluster]
}

// forgetCluster drops what is known under a name: the pods are gone too, or another cluster has the name.
func (g *DeletedClusters) forgetCluster(cluster types.NamespacedName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.uids, cluster)
}

// hastener shortens the grace of pods whose cluster is gone or terminating.
type hastener struct {
	client, live client.Reader
	writer       *kube.Writer
	deleted      *DeletedClusters
}

// hastener returns what shortens the grace of the pods of a reconciler's clusters.
func (r *Reconciler) hastener() hastener {
	return hastener{client: r.Client, live: r.Live, writer: r.Writer, deleted: &r.Deleted}
}

// hastenOrphans shortens the grace of pods whose cluster is gone, which the garbage collector
// would give their full grace. Where the cluster was not seen to go, the API server is
// asked first: the cache may just not know of it yet. All at once: a kubelet that has begun
// to stop a pod does not take a shorter grace any more, so this must not come after the
// garbage collector.
func (h hastener) hastenOrphans(ctx context.Context, name types.NamespacedName) error {
	gone := h.deleted.lastOf(name)
	if gone == "" {
		return h.hastenUnseen(ctx, name)
	}
	items, err := listOwnedPods(ctx, h.client, name.Namespace, gone)
	if err != nil {
		return err
	}
	if len(items) == 0 {
		h.deleted.forgetCluster(name)
	}
	pods := podsOf{items}
	return h.hurryPods(ctx, name.Namespace, pods.findOrphans(""))
}

// hastenUnseen does the same for pods whose cluster was not seen to go.
func (h hastener) hastenUnseen(ctx context.Context, name types.NamespacedName) error {
	var pods podsOf
	if err := pods.readPods(ctx, h.client, name); err != nil || len(pods.findOrphans("")) == 0 {
		return err
	}
	var cluster v1beta1.ComputeCluster
	if err := h.live.Get(ctx, name, &cluster); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read ComputeCluster %s: %w", name, err)
	}
	if owner := pods.soleOwner(); cluster.UID == "" && owner != "" {
		h.deleted.Add(name, owner)
	}
	return h.hurryPods(ctx, name.Namespace, pods.findOrphans(cluster.UID))
}

// hastenForeground does the same for a cluster whose deletion waits for its pods: it is gone only after them.
func (h hastener) hastenForeground(ctx context.Context, cluster *v1beta1.ComputeCluster) error {
	waits := slices.Contains(cluster.Finalizers, metav1.FinalizerDeleteDependents)
	if cluster.DeletionTimestamp == nil || !IsManaged(cluster) || !waits {
		return nil
	}
	items, err := listOwnedPods(ctx, h.client, cluster.Namespace, cluster.UID)
	if err != nil {
		return err
	}
	pods := podsOf{items}
	return h.hurryPods(ctx, cluster.Namespace, pods.findOrphans(""))
}

// hurryPods deletes pods with the grace of orphans, all at once: those of one owner with one call.
func (h hastener) hurryPods(ctx context.Context, namespace string, orphans []Removal) error {
	if len(orphans) > 0 {
		log.FromContext(ctx).Info("Shortening the grace period of pods of a deleted cluster", "pods", len(orphans))
	}
	owners, alone := groupOrphans(orphans)
	together := kube.AtOnce(len(owners), func(i int) error {
		return h.writer.DeleteTogether(ctx, namespace, v1beta1.LabelClusterUID, string(owners[i]), grace(orphanGrace))
	})
	return errors.Join(sumErrors(together), sumErrors(kube.AtOnce(len(alone), func(i int) error {
		return h.writer.Delete(ctx, alone[i].Pod.Pod, alone[i].GraceSeconds)
	})))
}
