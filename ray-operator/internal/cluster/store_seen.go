package cluster

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
	"github.com/heliostat-dev/heliostat/ray-operator/internal/fault"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/sweep"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// StoreSeen is what is known of a control store.
type StoreSeen struct {
	// Verdict is what a Redis said last of the recorded incarnation, if Known.
	Verdict controlstore.Verdict
	Known   bool
	// Noted tells that it is written down that the cluster has keys in a Redis of its user's.
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

	claim *corev1.PersistentVolumeClaim
	// given tells that the claim is the user's, ofRedis that a Redis keeps its file there.
	given, ofRedis bool
}

// memoryOn returns the UID of the claim that the head's own store is on, empty without one.
func (s StoreSeen) memoryOn() types.UID {
	if s.Volume.ofRedis {
		return ""
	}
	return s.Volume.UID
}

// askCalm is how often a store that serves is asked, askBusy how often while its head is not
// ready: a managed Redis that was started again does not know the head's user until it is asked.
const askCalm, askBusy = 5 * time.Second, time.Second

// seeStore recalls what a Redis said last, and looks at a store's claim.
func (o observer) seeStore(ctx context.Context, cluster *v1beta1.ComputeCluster, seen *Seen) error {
	if cluster.Spec.ControlStore == nil || seen.RecordError != nil {
		return nil
	}
	if inRedis(cluster) {
		claim := claimOf(cluster, seen.Record, seen.Pods)
		seen.Store.Verdict, seen.Store.Known = o.Stores.Last(client.ObjectKeyFromObject(cluster), claim)
	}
	if given := cluster.Spec.ControlStore.Redis; given != nil {
		var err error
		if seen.Store.Noted, err = o.Notes.Kept(ctx, sweep.Of(cluster, given)); err != nil {
			return err
		}
	}
	if pod.StoreClaim(cluster) == "" {
		return nil
	}
	return errors.Join(o.seeVolume(ctx, cluster, seen), o.seeStorePod(ctx, cluster, seen), o.seeStoreNode(ctx, cluster, seen))
}

// seeStorePod looks at the pod of a managed Redis that is not ready, or at why there is none.
func (o observer) seeStorePod(ctx context.Context, cluster *v1beta1.ComputeCluster, seen *Seen) error {
	set, isThere := seen.Fixtures[storeSetKind].Object.(*appsv1.StatefulSet)
	if !isThere || set.Status.ReadyReplicas > 0 {
		return nil
	}
	var err error
	now, wants := o.Clock.Now(), set.Spec.Replicas == nil || *set.Spec.Replicas > 0
	switch {
	case set.Status.Replicas > 0:
		seen.Store.Pod, err = o.readStorePod(ctx, cluster, set)
	case wants && now.Sub(set.CreationTimestamp.Time) >= podAfter && !seen.Store.Verdict.Admitted:
		seen.Store.SetEvents, _, err = o.PodEvents.Of(ctx, o.Live, set, now)
	}
	return err
}

// podAfter is how old a StatefulSet without a pod is when its events are read: one that can make its pod does so within a
// second.
const podAfter = 10 * time.Second

// readStorePod reads the pod of a managed Redis, and returns nil where there is none. The cache has pods of Ray alone.
func (o observer) readStorePod(ctx context.Context, cluster *v1beta1.ComputeCluster, set *appsv1.StatefulSet) (*corev1.Pod, error) {
	name := types.NamespacedName{Namespace: cluster.Namespace, Name: naming.StorePod(cluster.Name)}
	var found corev1.Pod
	switch err := o.Live.Get(ctx, name, &found); {
	case client.IgnoreNotFound(err) != nil:
		return nil, fmt.Errorf("read pod %s: %w", name, err)
	case err != nil, !metav1.IsControlledBy(&found, set):
		return nil, nil //nolint:nilnil // there is none, which is no error
	}
	return &found, nil
}

// claimOf returns what a cluster wants of a Redis for the incarnation of a record.
func claimOf(cluster *v1beta1.ComputeCluster, record Record, pods []Pod) controlstore.Claim {
	turn := record.recordedIncarnation()
	return controlstore.Claim{
		Owner: cluster.UID, Cluster: cluster.Namespace + "/" + cluster.Name, Namespace: pod.StoreNamespace(cluster),
		Session: turn.Session, Epoch: turn.Epoch, Own: isManaged(cluster),
		Begun: turn.Session < turn.Epoch || record.HeadUID != "" || headOf(pods, turn.Epoch) != nil,
	}
}

// seeVolume looks at a store's claim, and at the node that holds its volume where the head is
// not there. A claim of the user's is in no cache.
func (o observer) seeVolume(ctx context.Context, cluster *v1beta1.ComputeCluster, seen *Seen) error {
	head := headOf(seen.Pods, seen.Record.Epoch)
	ready := head != nil && head.isReady()
	wanted := desired.StoreClaim(cluster)
	volume := &seen.Store.Volume
	*volume = Volume{Name: pod.StoreClaim(cluster), given: wanted == nil, ofRedis: inRedis(cluster)}
	var reader client.Reader = o.Client
	if volume.given {
		reader = o.Live
	}
	if volume.given && ready { // it works with it
		*volume = Volume{Name: volume.Name, given: true, Presence: reconcile.Ours, Phase: corev1.ClaimBound, UID: seen.Record.Volume}
		return nil
	}
	claim := &corev1.PersistentVolumeClaim{}
	key := types.NamespacedName{Namespace: cluster.Namespace, Name: volume.Name}
	switch err := reader.Get(ctx, key, claim); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("read claim %s: %w", key, err)
	}
	volume.claim, volume.UID, volume.Phase = claim, claim.UID, claim.Status.Phase
	volume.Presence = presenceOfClaim(claim, cluster, volume.given)
	if ready || inRedis(cluster) || claim.Spec.VolumeName == "" {
		return nil
	}
	return o.seeHolder(ctx, claim.Spec.VolumeName, volume)
}

// presenceOfClaim judges a store's claim. One that was retained has no owner and names the cluster.
func presenceOfClaim(claim *corev1.PersistentVolumeClaim, cluster *v1beta1.ComputeCluster, given bool) reconcile.Presence {
	retained := metav1.GetControllerOf(claim) == nil && claim.Labels[v1beta1.LabelStore] == cluster.Name
	switch {
	case !given && !retained:
		found, _ := presence(nil, claim, cluster) // it was read
		return found
	case claim.DeletionTimestamp != nil:
		return reconcile.Terminating
	default:
		return reconcile.Ours
	}
}

// seeHolder finds out whether a volume is bound to a node that is lost.
func (o observer) seeHolder(ctx context.Context, name string, volume *Volume) error {
	if !o.WatchNodes {
		return nil
	}
	var bound corev1.PersistentVolume
	if err := o.Live.Get(ctx, types.NamespacedName{Name: name}, &bound); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read volume %s: %w", name, err)
	}
	for _, node := range nodesOfVolume(&bound) {
		var there corev1.Node
		if err := o.Client.Get(ctx, types.NamespacedName{Name: node}, &there); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read node %s: %w", node, err)
		}
		if there.Name != "" && nodeOf(&there).Lost.IsZero() {
			volume.HeldBy = ""
			return nil
		}
		volume.HeldBy = node
	}
	return nil
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

// askStore sets what is asked of a Redis in the background.
func (r *Reconciler) askStore(cluster *v1beta1.ComputeCluster, seen Seen, plan Plan, outcome Outcome) {
	name := client.ObjectKeyFromObject(cluster)
	switch {
	case !inRedis(cluster) || plan.Stalled != nil:
		return
	case plan.ForgetStore, plan.Note && !outcome.Noted:
		r.Stores.Forget(name)
		return
	}
	record := seen.Record
	if plan.Record != nil {
		record = *plan.Record
	}
	every := askCalm
	set, isSet := seen.Fixtures[storeSetKind].Object.(*appsv1.StatefulSet)
	if head := headOf(seen.Pods, plan.Epoch); head == nil || !head.isReady() || isSet && set.Status.ReadyReplicas == 0 {
		every = askBusy
	}
	r.Stores.Want(name, controlstore.Target{Claim: claimOf(cluster, record, seen.Pods), Every: every, Generation: cluster.Generation, Server: r.storeServer(cluster, plan.EncryptsStore)})
}

// storeServer reads how a cluster's Redis is reached, with TLS where it is a managed one that encrypts.
func (r *Reconciler) storeServer(cluster *v1beta1.ComputeCluster, encrypts bool) func(context.Context) (controlstore.Server, error) {
	if given := cluster.Spec.ControlStore.Redis; given != nil {
		note := sweep.Of(cluster, given)
		return func(ctx context.Context) (controlstore.Server, error) {
			server, err := note.Server(ctx, r.Live)
			if err == nil {
				r.Credentials.Remember(note, server)
			}
			return server, err
		}
	}
	secret := types.NamespacedName{Namespace: cluster.Namespace, Name: naming.Store(cluster.Name)}
	owner := cluster.UID
	return func(ctx context.Context) (controlstore.Server, error) {
		var kept corev1.Secret
		if err := r.Live.Get(ctx, secret, &kept); client.IgnoreNotFound(err) != nil {
			return controlstore.Server{}, fmt.Errorf("read Secret %s: %w", secret, err)
		}
		if !naming.IsOwned(&kept, owner) {
			return controlstore.Server{}, &fault.Terminal{Finding: reason.StoreSecretMissing.In("managed").Of("Secret "+secret.Name+" is not there", secret.Name)}
		}
		server := controlstore.Server{
			Address: pod.ManagedStoreAddress(cluster, encrypts), Username: v1beta1.StoreOperatorUser, Password: string(kept.Data[v1beta1.StoreOperatorKey]),
			HeadPassword: string(kept.Data[v1beta1.StoreHeadKey]),
		}
		if !encrypts {
			return server, nil
		}
		var err error
		server.CA, server.ServerName, err = r.trustStore(ctx, cluster)
		return server, err
	}
}

// makeVolume makes a store's claim. One that nobody owns and that just appeared is looked at
// in the next pass.
func (a applier) makeVolume(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	_, err := a.Writer.Create(ctx, claim)
	if _, conflict := fault.Finding(err); conflict && metav1.GetControllerOf(claim) == nil {
		return &fault.Wait{For: "the cache to show claim " + claim.Name}
	}
	return err
}

// makeStoreSecret makes the Secret of a managed Redis; one that is there stays.
func (a applier) makeStoreSecret(ctx context.Context, cluster *v1beta1.ComputeCluster) error {
	_, err := a.Writer.Create(ctx, desired.StoreSecret(cluster, newToken(), newToken()))
	return err
}
