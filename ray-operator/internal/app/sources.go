package app

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/cluster"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/job"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/service"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/wake"
)

// sources are what rules follow. The reader finds whom to wake: it reads from the cache and never waits, for handlers hold
// up the events of all objects.
type sources struct {
	cache  cache.Cache
	reader client.Reader
	// known says in which namespaces there are objects to wake at all; nil is in all.
	known *census
}

// follow returns a source for each rule.
//
// They are values and not calls of a builder, so that a test can start them on a queue without an API server.
func (s sources) follow(rules []wake.Rule) []source.Source {
	var all []source.Source
	for _, rule := range rules {
		all = append(all, source.Kind(s.cache, rule.Kind, s.handle(rule)))
	}
	return all
}

// poller asks heads, autoscalers or stores in the background. Its source wakes an object when an answer for it changes.
type poller interface{ Changes() source.Source }

// ofClusters returns what wakes clusters: changes of objects, and answers of heads, autoscalers and control stores.
func (s sources) ofClusters(cfg Config, heads, scalers, stores poller) []source.Source {
	rules := cluster.WakeRules(cluster.Watched{Nodes: cfg.WatchNodes, Queue: cfg.Kueue})
	return append(s.follow(rules), heads.Changes(), scalers.Changes(), stores.Changes())
}

// ofJobs returns what wakes jobs: changes of objects, and what heads answer about runs.
func (s sources) ofJobs(waiting *job.WaitingJobs, now clock.PassiveClock, cfg Config, heads poller) []source.Source {
	return append(s.follow(job.WakeRules(waiting, now, cfg.Kueue)), heads.Changes())
}

// ofServices returns what wakes services: changes of objects, and what heads answer about Serve.
func (s sources) ofServices(heads poller) []source.Source {
	return append(s.follow(service.WakeRules()), heads.Changes())
}

// handle returns what puts those into a queue whom a rule finds.
func (s sources) handle(rule wake.Rule) handler.EventHandler {
	tell := func(ctx context.Context, change wake.Change, into queue) {
		object := change.Object()
		if s.known != nil && !s.known.has(object.GetNamespace()) {
			return
		}
		names, err := rule.Wake(ctx, s.reader, change)
		if err != nil {
			log.FromContext(ctx).Error(err, "Cannot find all objects that a change affects", "rule", rule.Name, "object", client.ObjectKeyFromObject(object))
		}
		for _, name := range names {
			into.Add(reconcile.Request{NamespacedName: name})
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, into queue) {
			tell(ctx, wake.Change{New: e.Object}, into)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, into queue) {
			tell(ctx, wake.Change{Old: e.ObjectOld, New: e.ObjectNew}, into)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, into queue) {
			tell(ctx, wake.Change{Old: e.Object}, into)
		},
	}
}

// complete adds a controller that is woken by what its builder has, and by sources. Its workers are shared among namespaces.
func complete(build *builder.Builder, woken []source.Source, reconciler reconcile.Reconciler, with workers) error {
	for _, one := range woken {
		build.WatchesRawSource(one)
	}
	return build.WithOptions(optionsOf(with)).Complete(reconciler)
}

// optionsOf returns those of a controller with workers.
func optionsOf(with workers) controller.Options {
	return controller.Options{RateLimiter: backOff(), NewQueue: queueOf(with), MaxConcurrentReconciles: sharedWorkers(with.most)}
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
