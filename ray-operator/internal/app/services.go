package app

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/headwatch/serving"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/index"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/service"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
)

// services adds the controller of ClusterServices.
func services(manager ctrl.Manager, cfg Config, measured *telemetry.Metrics, dial headclient.Options) error {
	now := clock.RealClock{}
	heads := serving.New(serving.DialBy(dial), serving.AskBy(dial.Connect), now)
	if err := manager.Add(heads); err != nil {
		return fmt.Errorf("add what asks heads about Serve: %w", err)
	}
	board := serving.NewBoard(heads)
	own, err := pending(manager, &v1alpha1.ClusterService{}, &v1alpha1.ComputeCluster{}, &appsv1.ControllerRevision{})
	if err != nil {
		return err
	}
	written := writer(manager, measured, own)
	reconciler := &service.Reconciler{
		Client:  manager.GetClient(),
		Live:    manager.GetAPIReader(),
		Writer:  written,
		Routes:  written,
		Nodes:   nodes(manager, cfg),
		Heads:   board,
		Events:  telemetry.Recorder{Events: manager.GetEventRecorder(Name)},
		Metrics: measured,
		Clock:   now,
		Site:    site(cfg),
	}
	known := newCensus()
	build := ctrl.NewControllerManagedBy(manager).Named("clusterservice").
		For(&v1alpha1.ClusterService{}, builder.WithPredicates(known.counts(), notItsStatus(own)))
	woken := sources{manager.GetCache(), manager.GetCache()}.ofServices(known, heads.Changes(board.Services))
	if err := complete(build, woken, own.Rest(reconciler), workers{cfg.Workers, measured}); err != nil {
		return fmt.Errorf("add the controller of ClusterServices: %w", err)
	}
	return nil
}

// wakesItsService wakes the service that an object belongs to, by its owner reference.
func wakesItsService() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) []reconcile.Request {
		return servicesIn(obj.GetNamespace(), obj.GetOwnerReferences())
	})
}

func servicesIn(namespace string, owners []metav1.OwnerReference) []reconcile.Request {
	var woken []reconcile.Request
	for _, owner := range owners {
		if owner.Kind == "ClusterService" {
			woken = append(woken, request(namespace, owner.Name))
		}
	}
	return woken
}

// users finds the services that use a cluster.
type users struct {
	reader client.Reader
	// known says where there are services at all.
	known *census
}

// of are the service that a cluster was made for, and those that refer to it.
func (u users) of(ctx context.Context, namespace, cluster string, owners []metav1.OwnerReference) []reconcile.Request {
	woken := servicesIn(namespace, owners)
	var list v1alpha1.ClusterServiceList
	err := u.reader.List(ctx, &list, client.InNamespace(namespace), client.MatchingFields{index.Cluster: cluster}, client.UnsafeDisableDeepCopy)
	if err != nil {
		log.FromContext(ctx).Error(err, "cannot tell which services refer to a ComputeCluster", "cluster", cluster)
	}
	for i := range list.Items {
		woken = append(woken, request(namespace, list.Items[i].Name))
	}
	return woken
}

// ofCluster wakes the services that use a cluster.
func (u users) ofCluster() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, cluster client.Object) []reconcile.Request {
		if !u.known.has(cluster.GetNamespace()) {
			return nil
		}
		return u.of(ctx, cluster.GetNamespace(), cluster.GetName(), cluster.GetOwnerReferences())
	})
}

// ofPod wakes the services that use the cluster of a pod.
func (u users) ofPod() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, pod client.Object) []reconcile.Request {
		if !u.known.has(pod.GetNamespace()) {
			return nil
		}
		name := types.NamespacedName{Namespace: pod.GetNamespace(), Name: pod.GetLabels()[v1alpha1.LabelCluster]}
		var cluster v1alpha1.ComputeCluster
		if err := u.reader.Get(ctx, name, &cluster, client.UnsafeDisableDeepCopy); client.IgnoreNotFound(err) != nil {
			log.FromContext(ctx).Error(err, "cannot tell whose pod it is", "pod", client.ObjectKeyFromObject(pod))
		}
		return u.of(ctx, name.Namespace, name.Name, cluster.OwnerReferences)
	})
}

// beside wakes the services on the cluster of one that has changed: what it asked for may be
// theirs now.
func (u users) beside() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []reconcile.Request {
		changed, ok := obj.(*v1alpha1.ClusterService)
		if !ok || changed.Spec.ClusterRef == nil {
			return nil
		}
		return u.of(ctx, changed.Namespace, changed.Spec.ClusterRef.Name, nil)
	})
}
