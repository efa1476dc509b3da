package controlstore

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/turns"
)

// Visitor asks one server about one claim; a Visit is the one for real stores.
type Visitor interface {
	// Ask finds out whether the server can serve the claim, and admits it if so.
	Ask(ctx context.Context) Verdict
	// Confirm reports, at little cost, whether what admitted the claim still holds.
	Confirm(ctx context.Context) bool
	// Close ends what is kept between two questions.
	Close()
}

// Visiting returns a Visitor of a server.
type Visiting func(server Server, claim Claim) Visitor

// Watch asks stores while it runs. It is a runnable of controller-runtime's manager, and
// because it acts on stores, of the leader's alone.
type Watch struct {
	visit Visiting
	turns *turns.Turns
	clock clock.Clock

	mu      sync.Mutex
	ctx     context.Context //nolint:containedctx // the life of the goroutines that Want starts
	asked   sync.WaitGroup
	stores  map[types.NamespacedName]*asker
	waiting []workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// New makes a Watch, which asks nothing until it is started. Each question takes a turn of its cluster's namespace.
func New(visit Visiting, turns *turns.Turns, clock clock.Clock) *Watch {
	return &Watch{visit: visit, turns: turns, clock: clock, stores: map[types.NamespacedName]*asker{}}
}

// Start asks until its context ends, and returns when nothing runs any more.
func (w *Watch) Start(ctx context.Context) error {
	w.mu.Lock()
	w.ctx = ctx
	for _, a := range w.stores {
		w.launch(a)
	}
	w.mu.Unlock()
	<-ctx.Done()
	w.mu.Lock()
	clear(w.stores) // after this no Want starts anything: it sees that the context has ended
	w.mu.Unlock()
	w.asked.Wait()
	return nil
}

// Changes wakes the reconciles of a controller: a source for its builder's
// WatchesRawSource.
func (w *Watch) Changes() source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.waiting = append(w.waiting, queue)
		return nil
	})
}

// Want is Source's. The same claim again changes how the store is reached and how often it
// is asked, and nothing of what is known: whether two functions that read a server are the
// same cannot be told.
func (w *Watch) Want(cluster types.NamespacedName, target Target) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.stores[cluster]
	if before != nil && before.target.Claim == target.Claim {
		news := before.target.Every != target.Every || before.target.Generation != target.Generation
		before.target = target
		if news {
			select {
			case before.news <- struct{}{}:
			default: // it knows already that there is something new
			}
		}
		return
	}
	a := &asker{watch: w, cluster: cluster, target: target, news: make(chan struct{}, 1), stop: func() {}}
	if before != nil {
		before.stop()
		if before.verdict.Admitted && begins(before.target.Claim, target.Claim) {
			a.verdict, a.answered = before.verdict, true
		}
	}
	w.stores[cluster] = a
	w.launch(a)
}

// begins reports whether all that is new in a claim is that its head was made. What admitted
// the head then still holds until the store was asked again.
func begins(before, after Claim) bool {
	before.Begun = true
	return before == after
}

// Forget is Source's.
func (w *Watch) Forget(cluster types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if a := w.stores[cluster]; a != nil {
		a.stop()
		delete(w.stores, cluster)
	}
}

// Last is Source's. It holds while the store is asked again.
func (w *Watch) Last(cluster types.NamespacedName, claim Claim) (Verdict, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.stores[cluster]
	if a == nil || a.target.Claim != claim || !a.answered {
		return Verdict{}, false
	}
	return a.verdict, true
}

// launch starts an asker's goroutine, once the Watch itself was started. The caller holds
// the lock.
func (w *Watch) launch(a *asker) {
	if w.ctx == nil || w.ctx.Err() != nil {
		return
	}
	ctx, stop := context.WithCancel(w.ctx)
	a.stop = stop
	w.asked.Go(func() {
		defer stop()
		a.run(ctx)
	})
}

// publish keeps a verdict, unless its asker was stopped meanwhile, and wakes the cluster's
// reconcile if it means something new.
func (w *Watch) publish(a *asker, verdict Verdict) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stores[a.cluster] != a {
		return
	}
	news := !a.answered || a.verdict != verdict
	a.verdict, a.answered = verdict, true
	if !news {
		return
	}
	for _, queue := range w.waiting {
		queue.Add(reconcile.Request{NamespacedName: a.cluster})
	}
}
