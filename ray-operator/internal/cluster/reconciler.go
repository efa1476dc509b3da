// Package cluster keeps each ComputeCluster's pods, Service and Secret at the state
// that its spec declares.
//
// In: ComputeClusters and what belongs to them, from the cache. Out: writes through
// package kube, a status, events. A pass has four steps: observe reads, Decide chooses,
// apply writes, Status tells.
//
// It never asks a head anything, never touches an object whose owner is not the
// cluster, and never writes a spec.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/controlstore"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/headwatch"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kube"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/pass"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/podevents"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/queue"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/scalelink/steer"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/sweep"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
)

// Reconciler reconciles ComputeClusters. Told, Gone, Cordons and PodEvents make it one that is not copied.
type Reconciler struct {
	// Client reads from the cache.
	Client client.Client
	// Live reads past the cache.
	Live   client.Reader
	Writer *kube.Writer
	// Groups reads and writes the objects by which schedulers know gangs. No cache holds them.
	Groups *kube.Writer
	// Queue keeps the Workloads of clusters that wait in a queue, nil where there is no Kueue.
	Queue *queue.Keeper
	// Heads asks live heads in the background.
	Heads headwatch.Source
	// Scale holds the streams to the autoscalers beside heads.
	Scale steer.Source
	// Stores asks the Redis of clusters in the background, and Notes keeps what must be
	// cleaned there when a cluster is gone.
	Stores controlstore.Source
	Notes  Notes
	// Credentials remembers how given Redis servers were reached.
	Credentials *sweep.Credentials

	Events  telemetry.Recorder
	Metrics *telemetry.Metrics
	Clock   clock.PassiveClock
	// Site is what the installation knows of itself.
	Site desired.Site
	// WatchNodes reports whether nodes may be read.
	WatchNodes bool
	// Told remembers which statuses wait, Gone which clusters were seen to go.
	Told pass.Told
	Gone Gone
	// Tokens remembers the operator's own Secrets.
	Tokens Tokens
	// Cordons remembers since when nodes are cordoned that do not say so.
	Cordons Cordons
	// PodEvents remembers what was told of pods whose containers are not made.
	PodEvents podevents.Memory
}

// Notes keeps notes about clusters' keys in a Redis, beside the operator.
type Notes interface {
	// Keep writes a note down, or mends it. Repeating it changes nothing.
	Keep(ctx context.Context, note sweep.Note) error
	// Kept reports whether a note is there as it must be, and costs no call.
	Kept(ctx context.Context, note sweep.Note) (bool, error)
}

// Reconcile does one pass over one cluster.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var cluster v1alpha1.ComputeCluster
	if err := r.Client.Get(ctx, request.NamespacedName, &cluster); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(request.NamespacedName)
			return ctrl.Result{}, r.hasten(ctx, request.NamespacedName)
		}
		return ctrl.Result{}, fmt.Errorf("read ComputeCluster %s: %w", request, err)
	}
	if cluster.DeletionTimestamp != nil || !IsManaged(&cluster) {
		r.forget(request.NamespacedName) // the garbage collector is at it, or another controller
		return ctrl.Result{}, r.hastenForeground(ctx, &cluster)
	}
	r.Gone.forget(request.NamespacedName)
	seen, err := r.observe(ctx, &cluster)
	if err != nil {
		return ctrl.Result{}, err
	}
	now := r.Clock.Now()
	plan, err := r.decide(ctx, &cluster, &seen, now)
	if err != nil {
		return ctrl.Result{}, err
	}
	outcome := r.apply(ctx, &cluster, seen, plan)
	r.ask(&cluster, seen, plan)
	r.steer(&cluster, seen, plan)
	r.askStore(&cluster, seen, plan, outcome)
	wait, told := r.tell(ctx, &cluster, Status(&cluster, seen, plan, outcome, now), now)
	plan.wakeIn(wait)
	for _, event := range outcome.Events {
		r.Events.Record(&cluster, event)
	}
	return result(plan, outcome, told)
}

// decide looks at the Secrets of token and authority where the plan depends on them or it is time to, and only there.
func (r *Reconciler) decide(ctx context.Context, cluster *v1alpha1.ComputeCluster, seen *Seen, now time.Time) (Plan, error) {
	own := ownSecret(cluster) != ""
	fresh := !own && isNew(cluster, seen)
	known, good := r.recallToken(cluster, seen, fresh || own, now)
	if fresh {
		seen.Token = Token{} // nothing was made yet; if the Secret was, making it tells
	}
	plan := Decide(cluster, *seen, r.Site, now)
	token := !fresh && (plan.Makes() || own || known.isDue(cluster, *seen, plan, good, now))
	authority := needsAuthority(cluster, *seen, plan)
	looks := token || authority && !fresh
	err := r.seeSecrets(ctx, cluster, seen, looks, authority)
	if err == nil && looks {
		r.Tokens.keep(cluster, seen.Token, now)
		good = tokenAgain
	}
	if err == nil && (token || authority) {
		plan = Decide(cluster, *seen, r.Site, now)
	}
	plan.wakeIn(good)
	return plan, err
}

// isNew reports whether nothing was made for a cluster yet, as far as anything tells.
func isNew(cluster *v1alpha1.ComputeCluster, seen *Seen) bool {
	return seen.RecordMissing && cluster.Status.Epoch == 0 && len(seen.Pods) == 0
}

// recallToken takes over what was last seen of the operator's own Secret, and returns how long that is good for.
func (r *Reconciler) recallToken(cluster *v1alpha1.ComputeCluster, seen *Seen, others bool, now time.Time) (lookedAt, time.Duration) {
	if others || !pod.TokenRequired(cluster) {
		return lookedAt{}, tokenAgain
	}
	known, good := r.Tokens.recall(cluster, now)
	seen.Token = known.Token
	return known, good
}

// seeSecrets looks at the Secrets of token and authority, as far as the plan needs them.
func (r *Reconciler) seeSecrets(ctx context.Context, cluster *v1alpha1.ComputeCluster, seen *Seen, token, authority bool) (err error) {
	if token {
		err = r.seeToken(ctx, cluster, seen)
	}
	if authority {
		err = errors.Join(err, r.seeAuthority(ctx, cluster, seen))
	}
	return err
}

// IsManaged reports whether a cluster is this operator's to manage.
func IsManaged(cluster *v1alpha1.ComputeCluster) bool {
	by := cluster.Spec.ManagedBy
	return by == "" || by == v1alpha1.ManagedByOperator
}

// forget ends what is kept in memory about a cluster.
func (r *Reconciler) forget(cluster types.NamespacedName) {
	r.Told.Forget(cluster)
	r.Tokens.Forget(cluster)
	r.Heads.Forget(cluster)
	r.Scale.Forget(cluster)
	r.Stores.Forget(cluster)
}

// tell writes the status if it differs in meaning from the one there is, or says after
// how long it must be written.
func (r *Reconciler) tell(
	ctx context.Context, cluster *v1alpha1.ComputeCluster, status v1alpha1.ComputeClusterStatus, now time.Time,
) (time.Duration, error) {
	name := client.ObjectKeyFromObject(cluster)
	if equality.Semantic.DeepEqual(cluster.Status, status) {
		r.Told.Forget(name)
		return 0, nil
	}
	if wait := r.Told.Wait(name, waitsFor(cluster.Status, status), now); wait > 0 && !urgent(cluster.Status, status) {
		return wait, nil
	}
	if err := r.Writer.Status(ctx, bare(cluster, cluster.Status), bare(cluster, status)); err != nil {
		return 0, err
	}
	r.Told.Forget(name)
	r.Metrics.Changed(cluster, &status, now)
	for _, event := range cameBack(&cluster.Status, &status) {
		r.Events.Record(cluster, event)
	}
	return 0, nil
}

// bare is a cluster with a status and no spec, which takes no time to compare.
func bare(cluster *v1alpha1.ComputeCluster, status v1alpha1.ComputeClusterStatus) *v1alpha1.ComputeCluster {
	return &v1alpha1.ComputeCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.Name, ResourceVersion: cluster.ResourceVersion}, Status: status,
	}
}

// result turns a pass into when to look again.
func result(plan Plan, outcome Outcome, told error) (ctrl.Result, error) {
	if outcome.Conflict != nil {
		plan.wakeIn(pass.Recheck)
	}
	return pass.Result(plan.Wake, errors.Join(outcome.Err, told))
}

// hasten shortens the grace of pods whose cluster is gone, which the garbage collector
// would give their full grace. Where the cluster was not seen to go, the API server is
// asked first: the cache may just not know of it yet. All at once: a kubelet that has begun
// to stop a pod does not take a shorter grace any more, so this must not come after the
// garbage collector.
func (r *Reconciler) hasten(ctx context.Context, name types.NamespacedName) error {
	gone := r.Gone.last(name)
	if gone == "" {
		return r.hastenUnseen(ctx, name)
	}
	items, err := r.ownedPods(ctx, name.Namespace, gone)
	if err != nil {
		return err
	}
	if len(items) == 0 {
		r.Gone.forget(name)
	}
	pods := podsOf{items}
	return r.hurry(ctx, name.Namespace, pods.orphans(""))
}

// hastenUnseen does the same for pods whose cluster was not seen to go.
func (r *Reconciler) hastenUnseen(ctx context.Context, name types.NamespacedName) error {
	var pods podsOf
	if err := pods.read(ctx, r.Client, name); err != nil || len(pods.orphans("")) == 0 {
		return err
	}
	var cluster v1alpha1.ComputeCluster
	if err := r.Live.Get(ctx, name, &cluster); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read ComputeCluster %s: %w", name, err)
	}
	if owner := pods.owner(); cluster.UID == "" && owner != "" {
		r.Gone.Add(name, owner)
	}
	return r.hurry(ctx, name.Namespace, pods.orphans(cluster.UID))
}

// hastenForeground does the same for a cluster whose deletion waits for its pods: it is gone only after them.
func (r *Reconciler) hastenForeground(ctx context.Context, cluster *v1alpha1.ComputeCluster) error {
	waits := slices.Contains(cluster.Finalizers, metav1.FinalizerDeleteDependents)
	if cluster.DeletionTimestamp == nil || !IsManaged(cluster) || !waits {
		return nil
	}
	items, err := r.ownedPods(ctx, cluster.Namespace, cluster.UID)
	if err != nil {
		return err
	}
	pods := podsOf{items}
	return r.hurry(ctx, cluster.Namespace, pods.orphans(""))
}

// hurry deletes pods with the grace of orphans, all at once: those of one owner with one call.
func (r *Reconciler) hurry(ctx context.Context, namespace string, orphans []Removal) error {
	if len(orphans) > 0 {
		log.FromContext(ctx).Info("hastening pods whose cluster is deleted", "pods", len(orphans))
	}
	owners, alone := groupOrphans(orphans)
	together := kube.AtOnce(len(owners), func(i int) error {
		return r.Writer.DeleteTogether(ctx, namespace, v1alpha1.LabelClusterUID, string(owners[i]), grace(orphanGrace))
	})
	return errors.Join(summed(together), summed(kube.AtOnce(len(alone), func(i int) error {
		return r.Writer.Delete(ctx, alone[i].Pod.Pod, alone[i].GraceSeconds)
	})))
}
