// Package service keeps the applications of each ClusterService running behind one address, and brings changes to
// their users without losing a request.
//
// In: ClusterServices, their ComputeClusters and pods, from the cache; the last answers of heads and proxies.
// Out: writes through package kube, wants for heads, a status, events.
//
// Between observe, which reads, and apply, which writes, Decide passes values through pure stages, each of which takes
// what the former one returns: follow brings the record to the spec; assess says how each version is; advance makes the
// next record of it, and must never choose pods; route chooses pods, shares and Services, and must never touch clusters;
// provision compares clusters, heads and objects with what was decided, and must never say how far an upgrade is. report
// only tells.
//
// The package must never wait for a head or a proxy, touch a cluster that is not the service's own, take away an
// application that the record does not name, send requests to a pod whose proxy was not seen to take any, or let a
// candidate harm the version that serves.
package service

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
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kube"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll/services"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
)

// Heads is the part of a services.Watch that a controller of services uses.
type Heads interface {
	// Want says what a service wants of a cluster, in place of what it said before. It never
	// blocks; saying the same again changes nothing.
	Want(cluster, service types.NamespacedName, want services.Want)
	// Forget ends what a service wants of all clusters but those that are kept.
	Forget(service types.NamespacedName, keep ...types.NamespacedName)
	// Last is what was heard last from the head that is the pod of this UID, with Taken and
	// Refused as far as they are about what the service wants. It is false before the first
	// answer or failure.
	Last(cluster, service types.NamespacedName, head types.UID) (services.Answer, bool)
}

// Reconciler reconciles ClusterServices. What it remembers makes it one that is not copied.
type Reconciler struct {
	// Client reads from the cache.
	Client client.Client
	// Live reads past the cache.
	Live   client.Reader
	Writer *kube.Writer
	// Routes writes HTTPRoutes, which no cache holds.
	Routes *kube.Writer
	// Nodes reads nodes from the cache; nil where they may not be watched.
	Nodes client.Reader
	// Heads asks live heads and proxies in the background.
	Heads   Heads
	Events  telemetry.Recorder
	Metrics *telemetry.Metrics
	Clock   clock.PassiveClock
	// Site is what the installation knows of itself.
	Site desired.Site
	// Statuses writes statuses.
	Statuses reconcile.Statuses
	parsed   parsedRevisions
}

// IsManaged reports whether a service is this operator's to manage.
func IsManaged(service *v1beta1.ClusterService) bool {
	return reconcile.IsOurs(service.Spec.ManagedBy)
}

// Reconcile does one pass over one service.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var service v1beta1.ClusterService
	err := r.Client.Get(ctx, request.NamespacedName, &service)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("read ClusterService %s: %w", request, err)
	}
	if apierrors.IsNotFound(err) || !IsManaged(&service) {
		r.Heads.Forget(request.NamespacedName)
		return ctrl.Result{}, nil
	}
	seen, err := r.observe(ctx, &service)
	if err != nil {
		return ctrl.Result{}, err
	}
	now := r.Clock.Now()
	plan := Decide(&service, seen, r.Site, now)
	before := service.DeepCopy()
	routed, err := r.apply(ctx, &service, &plan)
	routed = plan.takeRouteRefusal(routed)
	outcome := reconcile.Outcome{Err: errors.Join(err, routed), IsTold: err == nil}
	if before.ResourceVersion = service.ResourceVersion; err == nil {
		r.publishWants(before, plan)
		outcome.Events = plan.Events
	}
	ending := reconcile.Ending{Object: before, Events: r.Events, Wake: plan.Wake, WriteStatus: func() (time.Duration, error) {
		return 0, r.writeStatus(ctx, before, Status(before, seen, plan, err, now), now)
	}}
	return ending.End(outcome)
}

// writeStatus writes the status if it differs in meaning from the one there is.
func (r *Reconciler) writeStatus(
	ctx context.Context, service *v1beta1.ClusterService, status v1beta1.ClusterServiceStatus, now time.Time,
) error {
	change := reconcile.StatusChange{Seen: withoutSpec(service, service.Status), Wanted: withoutSpec(service, status)}
	written, _, err := r.Statuses.Write(ctx, r.Writer, change, now)
	if written {
		r.Metrics.ServiceChanged(service, &status, now)
	}
	return err
}

// withoutSpec returns a service with a status and no spec, which takes no time to compare.
func withoutSpec(service *v1beta1.ClusterService, status v1beta1.ClusterServiceStatus) *v1beta1.ClusterService {
	return &v1beta1.ClusterService{ObjectMeta: reconcile.StatusMeta(service), Status: status}
}
