package app

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/kueue"
)

// sources lists what wakes controllers, beside changes of their own kind.
//
// The lists are values and not calls of a builder, so that a test can start them on a queue without an API server.
//
// The reader finds whom to wake. It reads from the cache and never waits: handlers hold up the events of all objects.
type sources struct {
	cache  cache.Cache
	reader client.Reader
}

// changes returns a source of the changes of a kind.
func (s sources) changes(kind client.Object, wakes handler.EventHandler, told ...predicate.Predicate) source.Source {
	return source.Kind(s.cache, kind, wakes, told...)
}

// ofClusters returns what wakes ComputeClusters: nodes only where they may be watched.
func (s sources) ofClusters(cfg Config, heads, scalers, stores source.Source) []source.Source {
	all := []source.Source{
		heads, scalers, stores,
		s.changes(&v1alpha1.ClusterJob{}, clusterOfJob(), predicate.GenerationChangedPredicate{}),
		s.changes(&networkingv1.NetworkPolicy{}, wakesClustersBeside(s.reader), whatPoliciesTell()),
	}
	for _, kind := range children() {
		all = append(all, s.changes(kind, wakesItsCluster(), whatTells(kind)))
	}
	if cfg.Kueue {
		all = append(all, s.changes(&kueue.Workload{}, wakesQueuedClusters(s.reader)))
	}
	if cfg.WatchNodes {
		all = append(all, s.changes(&corev1.Node{}, wakesClustersOn(s.reader), whatNodesTell()))
	}
	return all
}

// ofJobs returns what wakes ClusterJobs. The census is of them.
func (s sources) ofJobs(cfg Config, now clock.PassiveClock, known *census, heads source.Source) []source.Source {
	wakes := waker{s.reader, now, known}
	all := []source.Source{
		heads,
		s.changes(&v1alpha1.ClusterJob{}, wakes.nextInLine()),
		s.changes(&v1alpha1.ComputeCluster{}, wakes.jobsOfCluster()),
		s.changes(&corev1.Pod{}, wakes.jobsOfHead(), whatHeadsTell()),
	}
	if cfg.Kueue {
		all = append(all, s.changes(&kueue.Workload{}, wakesQueuedJobs()))
	}
	return all
}

// ofServices returns what wakes ClusterServices. The census is of them.
func (s sources) ofServices(known *census, heads source.Source) []source.Source {
	users := users{s.reader, known}
	all := []source.Source{
		heads,
		s.changes(&v1alpha1.ClusterService{}, users.beside(), predicate.GenerationChangedPredicate{}),
		s.changes(&v1alpha1.ComputeCluster{}, users.ofCluster()),
		s.changes(&corev1.Pod{}, users.ofPod(), whatPodsTell()),
	}
	for _, kind := range []client.Object{
		&corev1.Service{}, &networkingv1.NetworkPolicy{}, &policyv1.PodDisruptionBudget{}, &appsv1.ControllerRevision{},
	} {
		all = append(all, s.changes(kind, wakesItsService(), whatTells(kind)))
	}
	return all
}

// complete adds a controller that is woken by what its builder has, and by sources. Its workers are shared among namespaces.
func complete(build *builder.Builder, woken []source.Source, reconciler reconcile.Reconciler, with workers) error {
	for _, one := range woken {
		build.WatchesRawSource(one)
	}
	options := controller.Options{RateLimiter: backOff(), NewQueue: queueOf(with), MaxConcurrentReconciles: sharedWorkers(with.most)}
	return build.WithOptions(options).Complete(reconciler)
}

// The pauses after passes that failed.
const (
	firstPause = 5 * time.Millisecond
	// longestPause is short enough that a cluster recovers soon after the API server has.
	longestPause = 30 * time.Second
)

// backOff doubles the pause after each pass over an object that failed.
func backOff() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstPause, longestPause)
}
