// Package app puts the operator together: scheme, caches, indexes, controllers.
//
// In: a Config, filled from flags by cmd/operator. Out: a manager that runs until its
// context ends. Every setting enters here and is passed on as a value; nothing below
// reads a flag or the environment.
package app

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kube"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/telemetry"
)

// Name is the operator's name: its user agent, and the reporter of its events.
const Name = "heliostat-operator"

// Config is what can be set about the operator.
type Config struct {
	// REST is how to reach the API server.
	REST *rest.Config
	// MetricsAddress and HealthAddress are host:port to listen on; "0" turns off.
	MetricsAddress, HealthAddress string
	// Workers is how many clusters are worked on at once.
	Workers int
	// Resync is after how long every cluster is looked at again though nothing happened.
	Resync time.Duration
}

// Scheme knows the kinds that the operator reads and writes.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("build the scheme: %w", err)
		}
	}
	return scheme, nil
}

// New builds the manager with its controllers. It reaches the API server to learn its
// resources, and fails if it cannot.
func New(cfg Config) (ctrl.Manager, error) {
	scheme, err := Scheme()
	if err != nil {
		return nil, err
	}
	cfg.REST.UserAgent = Name
	// The API server's own fairness limits us; a client-side limit only adds delay.
	cfg.REST.QPS = -1
	cached, err := caches(cfg.Resync)
	if err != nil {
		return nil, err
	}
	yes := true
	manager, err := ctrl.NewManager(cfg.REST, ctrl.Options{
		Scheme:                 scheme,
		Metrics:                server.Options{BindAddress: cfg.MetricsAddress},
		HealthProbeBindAddress: cfg.HealthAddress,
		Cache:                  cached,
		Client: client.Options{Cache: &client.CacheOptions{
			DisableFor: []client.Object{&corev1.Secret{}}, EnableReadYourWritesConsistency: &yes,
		}},
		Controller: config.Controller{MaxConcurrentReconciles: cfg.Workers, ReconciliationTimeout: time.Minute},
	})
	if err != nil {
		return nil, fmt.Errorf("build the manager: %w", err)
	}
	for _, probe := range []func(string, healthz.Checker) error{manager.AddHealthzCheck, manager.AddReadyzCheck} {
		if err := probe("ping", healthz.Ping); err != nil {
			return nil, fmt.Errorf("add a health check: %w", err)
		}
	}
	return manager, clusters(manager)
}

// caches hold only what is ours of the kinds that others use too, and without the
// fields that nobody here reads.
func caches(resync time.Duration) (cache.Options, error) {
	ours, err := labels.NewRequirement(v1alpha1.LabelCluster, selection.Exists, nil)
	if err != nil {
		return cache.Options{}, fmt.Errorf("select our pods: %w", err)
	}
	return cache.Options{
		SyncPeriod:       &resync,
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Pod{}: {Label: labels.NewSelector().Add(*ours)},
		},
	}, nil
}

// clusters adds the controller of ComputeClusters.
func clusters(manager ctrl.Manager) error {
	ctx := context.Background()
	if err := manager.GetFieldIndexer().IndexField(ctx, &corev1.Pod{}, cluster.OwnerIndex, ownerUID); err != nil {
		return fmt.Errorf("index pods by owner: %w", err)
	}
	reconciler := &cluster.Reconciler{
		Client: manager.GetClient(),
		Live:   manager.GetAPIReader(),
		Writer: &kube.Writer{Client: manager.GetClient(), Live: manager.GetAPIReader()},
		Events: telemetry.Recorder{Events: manager.GetEventRecorder(Name)},
		Clock:  clock.RealClock{},
	}
	err := ctrl.NewControllerManagedBy(manager).
		Named("computecluster").
		For(&v1alpha1.ComputeCluster{}).
		Owns(&corev1.Service{}).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(clusterOf)).
		Complete(reconciler)
	if err != nil {
		return fmt.Errorf("add the controller of ComputeClusters: %w", err)
	}
	return nil
}

// ownerUID is the value of cluster.OwnerIndex for a pod.
func ownerUID(obj client.Object) []string {
	if owner := metav1.GetControllerOf(obj); owner != nil {
		return []string{string(owner.UID)}
	}
	return nil
}

// clusterOf is the cluster that a pod belongs to, by its owner reference.
func clusterOf(_ context.Context, obj client.Object) []reconcile.Request {
	owner := metav1.GetControllerOf(obj)
	if owner == nil || owner.Kind != "ComputeCluster" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: obj.GetNamespace(), Name: owner.Name}}}
}
