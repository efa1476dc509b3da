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
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/diagnose"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/archives"
	scaleclient "github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol/client"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster/store"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/controlstore"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kube"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll/nodes"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/queue"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/sweep"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/volume"
)

// Reconciler reconciles ComputeClusters. What it remembers makes it one that is not copied.
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
	Heads nodes.Source
	// Scale holds the streams to the autoscalers beside heads.
	Scale scaleclient.Source
	// Stores asks the Redis of clusters in the background, and Notes keeps what must be
	// cleaned there when a cluster is gone.
	Stores controlstore.Source
	Notes  Notes
	// Archives has what archivers said last, and Authority returns the certificate of theirs; both nil where history is not installed.
	Archives  archives.Source
	Authority func() string
	// Credentials remembers how given Redis servers were reached.
	Credentials *sweep.Credentials

	Events  telemetry.Recorder
	Metrics *telemetry.Metrics
	Clock   clock.PassiveClock
	// Site is what the installation knows of itself.
	Site desired.Site
	// WatchNodes reports whether nodes may be read.
	WatchNodes bool
	// Statuses remembers which statuses wait, Deleted which clusters were seen to go.
	Statuses reconcile.Statuses
	Deleted  DeletedClusters
	// Tokens remembers the operator's own Secrets.
	Tokens Tokens
	// Cordons remembers since when nodes are cordoned that do not say so.
	Cordons Cordons
	// StoreNodes remembers which nodes managed Redis run on.
	StoreNodes store.Nodes
	// PodEvents remembers what was told of pods whose containers are not made, of a StatefulSet whose pod is not, and of claims that
	// are not bound.
	PodEvents diagnose.EventCache
	// GivenClaims remembers the claims of shared volumes that users name.
	GivenClaims volume.GivenClaims
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
	var cluster v1beta1.ComputeCluster
	if err := r.Client.Get(ctx, request.NamespacedName, &cluster); err != nil {
		if apierrors.IsNotFound(err) {
			r.forgetCluster(request.NamespacedName)
			return ctrl.Result{}, r.hastener().hastenOrphans(ctx, request.NamespacedName)
		}
		return ctrl.Result{}, fmt.Errorf("read ComputeCluster %s: %w", request, err)
	}
	if cluster.DeletionTimestamp != nil || !IsManaged(&cluster) {
		r.forgetCluster(request.NamespacedName) // the garbage collector is at it, or another controller
		return ctrl.Result{}, r.hastener().hastenForeground(ctx, &cluster)
	}
	r.Deleted.forgetCluster(request.NamespacedName)
	seen, err := r.observer().observeCluster(ctx, &cluster)
	if err != nil {
		return ctrl.Result{}, err
	}
	if r.Archives != nil {
		seen.Archive = r.Archives.State(cluster.UID)
	}
	now := r.Clock.Now()
	plan, err := r.decidePlan(ctx, &cluster, &seen, now)
	if err != nil {
		return ctrl.Result{}, err
	}
	outcome := r.applier().applyPlan(ctx, &cluster, seen, plan)
	r.askHead(&cluster, seen, plan)
	r.steerScaler(&cluster, seen, plan)
	r.askStore(&cluster, seen, plan, outcome)
	if outcome.Conflict != nil {
		plan.wakeIn(reconcile.Recheck)
	}
	ending := reconcile.Ending{Object: &cluster, Events: r.Events, Wake: plan.Wake, WriteStatus: func() (time.Duration, error) {
		return r.writeStatus(ctx, &cluster, Status(&cluster, seen, plan, outcome, now), now)
	}}
	ended := outcome.Outcome
	ended.Err = errors.Join(ended.Err, outcome.Unmade)
	return ending.End(ended)
}

// decidePlan decides by what is known of the Secrets of token and authority. It looks at them where the plan depends on
// them or it is time to, and decides again only where one is not as it was known.
func (r *Reconciler) decidePlan(ctx context.Context, cluster *v1beta1.ComputeCluster, seen *Seen, now time.Time) (Plan, error) {
	own := ownSecret(cluster) != ""
	fresh := !own && isNew(cluster, seen)
	known, good := r.recallToken(cluster, seen, fresh || own, now)
	if fresh {
		seen.Token, seen.Authority = Token{}, reconcile.Absent // nothing was made yet; if the Secret was, making it tells
	}
	assumed := seen.secrets()
	site := r.currentSite()
	plan := Decide(cluster, *seen, site, now)
	token := !fresh && (plan.Makes() || own || known.isDue(cluster, *seen, plan, good, now))
	authority := needsAuthority(cluster, *seen, plan)
	looks := token || authority && !fresh
	err := r.observer().seeSecrets(ctx, cluster, seen, looks, authority)
	if err == nil && looks {
		r.Tokens.keepToken(cluster, seen.Token, now)
		_, good = r.Tokens.recallToken(cluster, now)
	}
	if err == nil && seen.secrets() != assumed {
		plan = Decide(cluster, *seen, site, now)
	}
	plan.wakeIn(good)
	return plan, err
}

// secrets is what a plan depends on of the Secrets of token and authority.
type secrets struct {
	token, authority reconcile.Presence
	lacking          string
}

// secrets returns what a plan depends on of the Secrets.
func (s Seen) secrets() secrets {
	return secrets{token: s.Token.Presence, lacking: s.Token.Lacking, authority: s.Authority}
}

// isNew reports whether nothing was made for a cluster yet, as far as anything tells.
func isNew(cluster *v1beta1.ComputeCluster, seen *Seen) bool {
	return seen.RecordMissing && cluster.Status.Epoch == 0 && len(seen.Pods) == 0
}

// recallToken takes over what was last seen of the operator's own Secret, and returns how long that is good for.
func (r *Reconciler) recallToken(cluster *v1beta1.ComputeCluster, seen *Seen, others bool, now time.Time) (lookedAt, time.Duration) {
	if others || !pod.TokenRequired(cluster) {
		return lookedAt{}, tokenAgain
	}
	known, good := r.Tokens.recallToken(cluster, now)
	seen.Token = known.Token
	return known, good
}

// seeSecrets looks at the Secrets of token and authority, as far as the plan needs them.
func (o observer) seeSecrets(ctx context.Context, cluster *v1beta1.ComputeCluster, seen *Seen, token, authority bool) (err error) {
	if token {
		err = o.seeToken(ctx, cluster, seen)
	}
	if authority {
		err = errors.Join(err, o.seeAuthority(ctx, cluster, seen))
	}
	return err
}

// IsManaged reports whether a cluster is this operator's to manage.
func IsManaged(cluster *v1beta1.ComputeCluster) bool {
	return reconcile.IsOurs(cluster.Spec.ManagedBy)
}

// forgetCluster ends what is kept in memory about a cluster.
func (r *Reconciler) forgetCluster(cluster types.NamespacedName) {
	r.Statuses.Forget(cluster)
	r.Tokens.Forget(cluster)
	r.Heads.Forget(cluster)
	r.Scale.Forget(cluster)
	r.Stores.Forget(cluster)
	r.StoreNodes.Forget(cluster)
}

// writeStatus writes the status if it differs in meaning from the one there is, or says after
// how long it must be written.
func (r *Reconciler) writeStatus(
	ctx context.Context, cluster *v1beta1.ComputeCluster, status v1beta1.ComputeClusterStatus, now time.Time,
) (time.Duration, error) {
	change := reconcile.StatusChange{Seen: withoutSpec(cluster, cluster.Status), Wanted: withoutSpec(cluster, status)}
	change.Patience = func() time.Duration { return patienceFor(cluster.Status, status) }
	written, wait, err := r.Statuses.Write(ctx, r.Writer, change, now)
	if !written {
		return wait, err
	}
	r.Metrics.Changed(cluster, &status, now)
	for _, event := range cameBack(&cluster.Status, &status) {
		r.Events.Record(cluster, event)
	}
	if warning, isNew := reconcile.NewWarning(cluster.Status.Conditions, status.Conditions); isNew {
		r.Events.Record(cluster, telemetry.Event{Finding: warning, Action: "Wait", Warning: true})
	}
	return 0, nil
}

func withoutSpec(cluster *v1beta1.ComputeCluster, status v1beta1.ComputeClusterStatus) *v1beta1.ComputeCluster {
	return &v1beta1.ComputeCluster{ObjectMeta: reconcile.StatusMeta(cluster), Status: status}
}
