package service

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/diagnose"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/desired/pod"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/fault"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kube"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll/nodes"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/reconcile"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// apply carries a plan out. What is written first decides what may follow: a failure ends it.
// The version that serves comes first: a refusal of another's objects takes nothing
// from it. What became of the route is told apart: it keeps nothing else from being done.
func (r *Reconciler) apply(ctx context.Context, service *v1beta1.ClusterService, plan *Plan) (routed, err error) {
	if plan.Empty() {
		return nil, nil
	}
	log.FromContext(ctx).Info("Applying plan", "plan", plan.String())
	if plan.Keep != nil {
		if _, err := r.Writer.Create(ctx, plan.Keep); err != nil {
			return nil, err
		}
	}
	if err := r.writeRecord(ctx, service, *plan); err != nil {
		return nil, err
	}
	if err := r.confirmUnchanged(ctx, service, *plan); err != nil {
		return nil, err
	}
	var errs []error
	for _, fixing := range plan.Fixtures {
		if fixing.Kind == kindRoute {
			routed = fixing.Write(ctx, r.Routes)
			continue
		}
		failed := fixing.Write(ctx, r.Writer)
		if fixing.Kind == kindHead && reconcile.Shown(failed) { // the service works without it
			noteHead(plan, failed)
			continue
		}
		errs = append(errs, failed)
	}
	errs = append(errs, r.labelTraffic(ctx, service, *plan))
	for _, change := range plan.Change {
		errs = append(errs, r.Writer.Edit(ctx, change.Seen, change.Wanted))
	}
	for _, cluster := range plan.Discard {
		errs = append(errs, r.Writer.Delete(ctx, cluster, nil))
	}
	if plan.Make != nil {
		_, err := r.Writer.Create(ctx, plan.Make)
		errs = append(errs, err)
	}
	for _, revision := range plan.Drop {
		errs = append(errs, r.Writer.Delete(ctx, revision, nil))
	}
	return routed, errors.Join(errs...)
}

// noteHead notes in a plan why the stable address of the head was not written, and has the next pass try again.
func noteHead(plan *Plan, failed error) {
	plan.Wake = reconcile.Soonest(plan.Wake, reconcile.Recheck)
	conflict, isTaken := fault.Finding(failed)
	switch {
	case !isTaken:
		plan.Events = append(plan.Events, eventOf(diagnose.Refusal(kindHead, failed), "Provision"))
	case plan.Conflict == nil:
		plan.Conflict = &conflict
	}
}

// writeRecord writes the record and the finalizer.
func (r *Reconciler) writeRecord(ctx context.Context, service *v1beta1.ClusterService, plan Plan) error {
	if plan.Record == nil {
		return nil
	}
	err := reconcile.WriteRecord(ctx, r.Writer, service, plan.Record.textOf(service.UID), func(wanted *v1beta1.ClusterService) {
		if plan.Finalizer {
			controllerutil.AddFinalizer(wanted, v1beta1.FinalizerServe)
		} else {
			controllerutil.RemoveFinalizer(wanted, v1beta1.FinalizerServe)
		}
	})
	if apierrors.IsNotFound(err) && service.DeletionTimestamp != nil {
		return &fault.Wait{For: "the cache to know that ClusterService " + service.Name + " is gone"}
	}
	return err
}

// confirmUnchanged looks past the cache whether the service is as it was seen, before anything is done to
// clusters, pods or the route. Where the record was just written that is known.
func (r *Reconciler) confirmUnchanged(ctx context.Context, service *v1beta1.ClusterService, plan Plan) error {
	acts := plan.Make != nil || len(plan.Change)+len(plan.Discard)+len(plan.Open)+len(plan.Close)+len(plan.Lead)+len(plan.Strand) > 0 ||
		slices.ContainsFunc(plan.Fixtures, func(f reconcile.FixtureChange) bool { return f.Kind == kindRoute })
	if !acts || plan.Record != nil {
		return nil
	}
	var there v1beta1.ClusterService
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(service), &there)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read ClusterService %s past the cache: %w", service.Name, err)
	}
	same := err == nil && there.UID == service.UID && there.Generation == service.Generation &&
		there.Annotations[v1beta1.AnnotationRecord] == service.Annotations[v1beta1.AnnotationRecord]
	if !same {
		return &fault.Wait{For: "the cache to know what became of ClusterService " + service.Name}
	}
	return nil
}

// labelTraffic gives pods requests before it takes them from others: at no time there are fewer
// that have them than there were or must be.
func (r *Reconciler) labelTraffic(ctx context.Context, service *v1beta1.ClusterService, plan Plan) error {
	on, serve, route := v1beta1.ServeOn, naming.ServeLabel(service.Name), naming.RouteLabel(service.Name)
	given := errors.Join(r.labelPods(ctx, plan.Open, serve, &on, nil), r.labelPods(ctx, plan.Lead, route, &on, nil))
	if given != nil {
		return given
	}
	var closed *string
	if service.Spec.ClusterRef == nil { // on other clusters the connections are not the service's alone
		now := reconcile.Stamp(r.Clock.Now())
		closed = &now
	}
	return errors.Join(r.labelPods(ctx, plan.Close, serve, nil, closed), r.labelPods(ctx, plan.Strand, route, nil, closed))
}

// labelPods gives pods a label, or takes it from them where value is nil, and notes since when.
func (r *Reconciler) labelPods(ctx context.Context, pods []*corev1.Pod, key string, value, closed *string) error {
	return errors.Join(kube.AtOnce(len(pods), func(i int) error {
		return r.Writer.Label(ctx, pods[i], map[string]*string{key: value}, map[string]*string{v1beta1.AnnotationClosed: closed})
	})...)
}

// publishWants says what is wanted of heads from now on.
func (r *Reconciler) publishWants(service *v1beta1.ClusterService, plan Plan) {
	name := client.ObjectKeyFromObject(service)
	var kept []types.NamespacedName
	for _, want := range plan.Wants {
		cluster := client.ObjectKeyFromObject(want.Cluster)
		if secret := pod.TokenSecret(want.Cluster.ComputeCluster); secret != "" {
			want.At.Token = nodes.TokenFrom(r.Live, types.NamespacedName{Namespace: service.Namespace, Name: secret})
		}
		want.At.Trust = nodes.TrustOf(r.Live, want.Cluster.Head)
		r.Heads.Want(cluster, name, want.Want)
		kept = append(kept, cluster)
	}
	r.Heads.Forget(name, kept...)
}
