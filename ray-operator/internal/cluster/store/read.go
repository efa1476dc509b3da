package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/controlstore"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// Seen is what is known of a control store.
type Seen struct {
	// Verdict is what a Redis said last of the recorded epoch and session, if Known.
	Verdict controlstore.Verdict
	Known   bool
	// Noted reports that it is written down that the cluster has keys in a Redis of its user's.
	Noted bool
	// Volume is the claim of a store that has one.
	Volume Volume
	// Pod is that of a managed Redis which is not ready, nil where there is none.
	Pod *corev1.Pod
	// SetEvents are those of the StatefulSet of a managed Redis that has no pod.
	SetEvents []corev1.Event
	// Node is the name of the node of a managed Redis whose head has a budget, empty where it is not known.
	Node string
}

// Volume is what is known of a store's claim.
type Volume struct {
	Name     string
	UID      types.UID
	Presence reconcile.Presence
	Phase    corev1.PersistentVolumeClaimPhase
	// HeldBy names the node that the volume is bound to, if that is lost.
	HeldBy string
	// Claim is what was read, nil for nothing. It is not to be changed.
	Claim *corev1.PersistentVolumeClaim
	// IsGiven reports that the claim is the user's, IsOfRedis that a Redis keeps its file there.
	IsGiven, IsOfRedis bool
}

// MemoryOn returns the UID of the claim that the head's own store is on, empty without one.
func (s Seen) MemoryOn() types.UID {
	if s.Volume.IsOfRedis {
		return ""
	}
	return s.Volume.UID
}

// Reader reads the objects of a store.
type Reader struct {
	// Client reads from the cache, Live past it.
	Client, Live client.Reader
	// Owns returns what belongs to a cluster under the name of an object that was read.
	Owns func(object client.Object, cluster *v1beta1.ComputeCluster) reconcile.Presence
	// IsLost reports whether a node does not answer; nil where nodes may not be read.
	IsLost func(node *corev1.Node) bool
	// Events reads the events of a StatefulSet.
	Events func(ctx context.Context, set *appsv1.StatefulSet) ([]corev1.Event, error)
	Nodes  *Nodes
	Now    time.Time
}

// Users are those who use a store.
type Users struct {
	// Set is what runs a managed Redis, nil where there is none.
	Set *appsv1.StatefulSet
	// HasReadyHead: the recorded head works with the store. RecordedVolume is the UID of the claim that it is on.
	HasReadyHead   bool
	RecordedVolume types.UID
	// HasBudgets: there is a budget of the head or of its Redis.
	HasBudgets bool
}

// ReadObjects adds to what is known of a store in a volume, or in a managed Redis: its claim, pod and node.
func (r Reader) ReadObjects(ctx context.Context, cluster *v1beta1.ComputeCluster, users Users, seen *Seen) error {
	var volume, redis, node error
	seen.Volume, volume = r.readVolume(ctx, cluster, users)
	if users.Set != nil {
		redis = r.readRedis(ctx, cluster, users.Set, seen)
		if users.HasBudgets && r.IsLost != nil {
			seen.Node, node = r.readNodeName(ctx, cluster, users.Set)
		}
	}
	return errors.Join(volume, redis, node)
}

// podAfter is how old a StatefulSet without a pod is when its events are read: one that can make its pod does so within a
// second.
const podAfter = 10 * time.Second

// readRedis looks at the pod of a managed Redis that is not ready, or at why there is none.
func (r Reader) readRedis(ctx context.Context, cluster *v1beta1.ComputeCluster, set *appsv1.StatefulSet, seen *Seen) (err error) {
	wants := set.Spec.Replicas == nil || *set.Spec.Replicas > 0
	switch {
	case set.Status.ReadyReplicas > 0:
	case set.Status.Replicas > 0:
		seen.Pod, err = r.readPod(ctx, cluster, set)
	case wants && r.Now.Sub(set.CreationTimestamp.Time) >= podAfter && !seen.Verdict.Admitted:
		seen.SetEvents, err = r.Events(ctx, set)
	}
	return err
}

// readPod reads the pod of a managed Redis, and returns nil where there is none. The cache has pods of Ray alone.
func (r Reader) readPod(ctx context.Context, cluster *v1beta1.ComputeCluster, set *appsv1.StatefulSet) (*corev1.Pod, error) {
	name := types.NamespacedName{Namespace: cluster.Namespace, Name: naming.StorePod(cluster.Name)}
	var found corev1.Pod
	switch err := r.Live.Get(ctx, name, &found); {
	case client.IgnoreNotFound(err) != nil:
		return nil, fmt.Errorf("read pod %s: %w", name, err)
	case err != nil, !metav1.IsControlledBy(&found, set):
		return nil, nil //nolint:nilnil // there is none, which is no error
	}
	return &found, nil
}

// readNodeName returns the name of the node of a managed Redis.
func (r Reader) readNodeName(ctx context.Context, cluster *v1beta1.ComputeCluster, set *appsv1.StatefulSet) (string, error) {
	name := client.ObjectKeyFromObject(cluster)
	if node, known := r.Nodes.last(name, set); known {
		return node, nil
	}
	redis, err := r.readPod(ctx, cluster, set)
	if err != nil {
		return "", err
	}
	node := ""
	if redis != nil {
		node = redis.Spec.NodeName
	}
	r.Nodes.keep(name, set, node)
	return node, nil
}

// readVolume looks at a store's claim, and at the node that holds its volume where the head is
// not there. A claim of the user's is in no cache.
func (r Reader) readVolume(ctx context.Context, cluster *v1beta1.ComputeCluster, users Users) (Volume, error) {
	volume := Volume{Name: pod.StoreClaim(cluster), IsGiven: desired.StoreClaim(cluster) == nil, IsOfRedis: InRedis(cluster)}
	reader := r.Client
	if volume.IsGiven {
		reader = r.Live
	}
	if volume.IsGiven && users.HasReadyHead { // it works with it
		return Volume{Name: volume.Name, IsGiven: true, Presence: reconcile.Ours, Phase: corev1.ClaimBound, UID: users.RecordedVolume}, nil
	}
	claim := &corev1.PersistentVolumeClaim{}
	key := types.NamespacedName{Namespace: cluster.Namespace, Name: volume.Name}
	switch err := reader.Get(ctx, key, claim); {
	case apierrors.IsNotFound(err):
		return volume, nil
	case err != nil:
		return volume, fmt.Errorf("read claim %s: %w", key, err)
	}
	volume.Claim, volume.UID, volume.Phase = claim, claim.UID, claim.Status.Phase
	volume.Presence = r.presenceOfClaim(claim, cluster, volume.IsGiven)
	if users.HasReadyHead || InRedis(cluster) || claim.Spec.VolumeName == "" {
		return volume, nil
	}
	var err error
	volume.HeldBy, err = r.readHolder(ctx, claim.Spec.VolumeName)
	return volume, err
}

// presenceOfClaim judges a store's claim. One that was retained has no owner and names the cluster.
func (r Reader) presenceOfClaim(claim *corev1.PersistentVolumeClaim, cluster *v1beta1.ComputeCluster, given bool) reconcile.Presence {
	retained := metav1.GetControllerOf(claim) == nil && claim.Labels[v1beta1.LabelStore] == cluster.Name
	switch {
	case !given && !retained:
		return r.Owns(claim, cluster)
	case claim.DeletionTimestamp != nil:
		return reconcile.Terminating
	default:
		return reconcile.Ours
	}
}

// readHolder returns the lost node that a volume is bound to, empty where one of its nodes answers.
func (r Reader) readHolder(ctx context.Context, name string) (string, error) {
	if r.IsLost == nil {
		return "", nil
	}
	var bound corev1.PersistentVolume
	if err := r.Live.Get(ctx, types.NamespacedName{Name: name}, &bound); client.IgnoreNotFound(err) != nil {
		return "", fmt.Errorf("read volume %s: %w", name, err)
	}
	holder := ""
	for _, node := range nodesOfVolume(&bound) {
		var there corev1.Node
		if err := r.Client.Get(ctx, types.NamespacedName{Name: node}, &there); client.IgnoreNotFound(err) != nil {
			return holder, fmt.Errorf("read node %s: %w", node, err)
		}
		if there.Name != "" && !r.IsLost(&there) {
			return "", nil
		}
		holder = node
	}
	return holder, nil
}

// nodesOfVolume returns the nodes, by name, that a volume says it can be used on; none where it
// does not name nodes.
func nodesOfVolume(volume *corev1.PersistentVolume) []string {
	if volume.Spec.NodeAffinity == nil || volume.Spec.NodeAffinity.Required == nil {
		return nil
	}
	var names []string
	for _, term := range volume.Spec.NodeAffinity.Required.NodeSelectorTerms {
		for _, wish := range slices.Concat(term.MatchExpressions, term.MatchFields) {
			if (wish.Key == corev1.LabelHostname || wish.Key == metav1.ObjectNameField) && wish.Operator == corev1.NodeSelectorOpIn {
				names = append(names, wish.Values...)
			}
		}
	}
	return names
}
