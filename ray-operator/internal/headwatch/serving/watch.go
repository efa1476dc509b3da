package serving

import (
	"context"
	"reflect"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Watch asks heads and proxies while it is started. It is a runnable of controller-runtime's
// manager, and because it acts on heads, of the leader's alone.
type Watch struct {
	dial  Dialer
	ask   Asker
	clock clock.Clock

	mu       sync.Mutex
	ctx      context.Context //nolint:containedctx // the life of the goroutines that Want starts
	looking  sync.WaitGroup
	lookouts map[types.NamespacedName]*lookout
	waiting  []waiting
}

// waiting is a controller that wants to be woken.
type waiting struct {
	queue    workqueue.TypedRateLimitingInterface[reconcile.Request]
	services func(cluster types.NamespacedName) []types.NamespacedName
}

// New makes a Watch, which asks nothing until it is started.
func New(dial Dialer, ask Asker, clock clock.Clock) *Watch {
	return &Watch{dial: dial, ask: ask, clock: clock, lookouts: map[types.NamespacedName]*lookout{}}
}

// Start asks until its context ends, and returns when nothing runs any more.
func (w *Watch) Start(ctx context.Context) error {
	w.mu.Lock()
	w.ctx = ctx
	for _, l := range w.lookouts {
		w.launch(l)
	}
	w.mu.Unlock()
	<-ctx.Done()
	w.mu.Lock()
	clear(w.lookouts) // after this no Want starts anything: it sees that the context has ended
	w.mu.Unlock()
	w.looking.Wait()
	return nil
}

// Changes wakes the reconciles of a controller of services: a source for its builder's
// WatchesRawSource. The function says which services a cluster has; it is called without
// any lock, from the goroutine of that cluster.
func (w *Watch) Changes(services func(cluster types.NamespacedName) []types.NamespacedName) source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.waiting = append(w.waiting, waiting{queue: queue, services: services})
		return nil
	})
}

// Want is Source's.
func (w *Watch) Want(cluster types.NamespacedName, want Wants) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.lookouts[cluster]
	if l != nil && !same(Wants{At: l.want.At}, Wants{At: want.At}) {
		l.stop() // what another head said or took counts no more
		l = nil
	}
	if l == nil {
		l = &lookout{watch: w, cluster: cluster, want: want, news: make(chan struct{}, 1), stir: make(chan struct{}, 1), stop: func() {}}
		w.lookouts[cluster] = l
		w.launch(l)
		return
	}
	news := !same(l.want, want)
	l.want = want
	if news {
		tell(l.news)
		tell(l.stir)
	}
}

func tell(news chan struct{}) {
	select {
	case news <- struct{}{}:
	default: // it knows already that there is something new
	}
}

// Forget is Source's.
func (w *Watch) Forget(cluster types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l := w.lookouts[cluster]; l != nil {
		l.stop()
		delete(w.lookouts, cluster)
	}
}

// Last is Source's.
func (w *Watch) Last(cluster types.NamespacedName, head types.UID) (Answer, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.lookouts[cluster]
	if l == nil || l.want.At.Head != head || !l.answered {
		return Answer{}, false
	}
	return l.answer, true
}

// launch starts a lookout's goroutine, once the Watch itself was started. The caller holds
// the lock.
func (w *Watch) launch(l *lookout) {
	if w.ctx == nil || w.ctx.Err() != nil {
		return
	}
	ctx, stop := context.WithCancel(w.ctx)
	l.stop = stop
	w.looking.Go(func() {
		defer stop()
		l.run(ctx)
	})
	w.looking.Go(func() { l.askProxies(ctx) })
}

// same reports whether two wants are the same of the same head. Tokens are functions that are
// asked again each time: only whether there is one can be compared.
func same(a, b Wants) bool {
	tokens := (a.At.Token == nil) == (b.At.Token == nil)
	a.At.Token, b.At.Token = nil, nil
	return tokens && reflect.DeepEqual(a, b)
}

// publish keeps an answer of a head, with what its proxies replied last.
func (w *Watch) publish(l *lookout, answer Answer, pressing bool) {
	w.change(l, func(before Answer) (Answer, bool) {
		if pressing && !l.pressing {
			tell(l.stir)
		}
		answer.Probes, l.pressing = l.replies, pressing
		known := l.answered
		l.answered = true
		return answer, !known || HasNews(before, answer)
	})
}

// publishReplies keeps the replies of proxies. They are told together with what their head said.
func (w *Watch) publishReplies(l *lookout, replies map[Probe]Reply) {
	w.change(l, func(answer Answer) (Answer, bool) {
		news := l.answered && replied(answer.Probes, replies)
		answer.Probes, l.replies = replies, replies
		return answer, news
	})
}

// change keeps another answer, unless its lookout was stopped meanwhile, and wakes the services of the cluster if it
// means something new.
func (w *Watch) change(l *lookout, to func(before Answer) (after Answer, news bool)) {
	w.mu.Lock()
	if w.lookouts[l.cluster] != l {
		w.mu.Unlock()
		return
	}
	var news bool
	l.answer, news = to(l.answer)
	woken := slices.Clone(w.waiting)
	w.mu.Unlock()
	if !news {
		return
	}
	for _, controller := range woken {
		for _, service := range controller.services(l.cluster) {
			controller.queue.Add(reconcile.Request{NamespacedName: service})
		}
	}
}
