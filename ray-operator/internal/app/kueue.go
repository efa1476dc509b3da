package app

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/index"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kube"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kueue"
	keeping "github.com/heliostat-dev/heliostat/ray-operator/internal/queue"
)

// requireKueue fails where objects are to wait for Kueue, and the API server does not know its kinds.
func (cfg Config) requireKueue(mapper meta.RESTMapper) error {
	if !cfg.Kueue {
		return nil
	}
	kind := kueue.GroupVersion.WithKind("Workload")
	_, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return fmt.Errorf("find the kinds of Kueue: the API server has no Workload of %s; install Kueue 0.15 or later, "+
			"or start the operator without --kueue", kueue.GroupVersion)
	}
	if err != nil {
		return fmt.Errorf("find the kinds of Kueue: %w", err)
	}
	return nil
}

// keeperOf returns what keeps the Workloads of a controller's objects, nil without Kueue.
func keeperOf(manager ctrl.Manager, cfg Config, writer *kube.Writer) *keeping.Keeper {
	if !cfg.Kueue {
		return nil
	}
	return &keeping.Keeper{Client: manager.GetClient(), Writer: writer, Defaults: cfg.PodDefaults}
}

// queued returns kinds that passes wait for after their own writes, with Workloads where there are some.
func (cfg Config) queued(kinds ...client.Object) []client.Object {
	if cfg.Kueue {
		kinds = append(kinds, &kueue.Workload{})
	}
	return kinds
}

// wakesQueuedClusters wakes the cluster that a Workload is for, or those that its job made.
func wakesQueuedClusters(clusters client.Reader) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, workload client.Object) []reconcile.Request {
		owner := metav1.GetControllerOfNoCopy(workload)
		switch {
		case owner == nil:
			return nil
		case owner.Kind == "ComputeCluster":
			return []reconcile.Request{request(workload.GetNamespace(), owner.Name)}
		}
		var list v1alpha1.ComputeClusterList
		owned := client.MatchingFields{index.Owner: string(owner.UID)}
		if err := clusters.List(ctx, &list, client.InNamespace(workload.GetNamespace()), owned, client.UnsafeDisableDeepCopy); err != nil {
			log.FromContext(ctx).Error(err, "Cannot list the clusters of a queued job", "job", owner.Name)
		}
		var requests []reconcile.Request
		for i := range list.Items {
			requests = append(requests, request(list.Items[i].Namespace, list.Items[i].Name))
		}
		return requests
	})
}

// wakesQueuedJobs wakes the job that a Workload is for.
func wakesQueuedJobs() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, workload client.Object) []reconcile.Request {
		owner := metav1.GetControllerOfNoCopy(workload)
		if owner == nil || owner.Kind != "ClusterJob" {
			return nil
		}
		return []reconcile.Request{request(workload.GetNamespace(), owner.Name)}
	})
}
