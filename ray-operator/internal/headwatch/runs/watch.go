package runs

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// How many calls may be under way at once, one per head at most. Where calls of a sort hung
// the last time, further ones of that sort to that head have slots of their own: heads that
// hang hold up each other and nobody else, after each held one of the many for the time of
// one call. A head that has just come up is slow to take its first submission, and is not to
// stand in a line with those that do not even say who they are.
const (
	slots     = 256
	slowSlots = 32
)

// Watch asks heads about runs while it is started. It is a runnable of controller-runtime's
// manager, and because it acts on heads, of the leader's alone.
type Watch struct {
	dial  Dialer
	clock clock.Clock
	// quick and slow have a place for each call that may be under way.
	quick chan struct{}
	slow  [acts]chan struct{}
	// abandoned is nil where nothing is forgotten, and tidying has a place for each head that is asked to forget.
	abandoned Abandoned
	tidying   chan struct{}

	mu      sync.Mutex
	ctx     context.Context //nolint:containedctx // the life of the goroutines that Want starts
	asking  sync.WaitGroup
	askers  map[key]*asker
	runs    map[types.NamespacedName]*run
	tidyDue map[types.UID]time.Time // by head
	waiting []workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// key tells one conversation from another.
type key struct {
	cluster   types.NamespacedName
	head      types.UID
	jobs, gcs string
	token     bool
	trust     headclient.Trust
}

func (p Place) key() key {
	return key{cluster: p.Cluster, head: p.Head, jobs: p.Jobs, gcs: p.GCS, token: p.Token != nil, trust: p.Trust}
}

// place is where the conversation of a key is, with a token.
func (k key) place(token headclient.Token) Place {
	return Place{Cluster: k.cluster, Head: k.head, Jobs: k.jobs, GCS: k.gcs, Trust: k.trust, Token: token}
}

// run is one run of a job. Its first fields are guarded by the Watch's lock, the others are
// its asker's own.
type run struct {
	job  types.NamespacedName
	at   *asker
	want Want
	// answer holds what is known of the run itself; what is known of its head is the asker's.
	answer   Answer
	answered bool
	// news is since when something was said that the run had no turn for yet; zero if none.
	news time.Time

	progress
}

// New makes a Watch, which asks nothing until it is started. Submissions that are abandoned are forgotten; nil is none.
func New(dial Dialer, abandoned Abandoned, clock clock.Clock) *Watch {
	w := &Watch{
		dial: dial, abandoned: abandoned, clock: clock, quick: make(chan struct{}, slots), tidying: make(chan struct{}, slowSlots),
		askers: map[key]*asker{}, runs: map[types.NamespacedName]*run{}, tidyDue: map[types.UID]time.Time{},
	}
	for act := range w.slow {
		w.slow[act] = make(chan struct{}, slowSlots)
	}
	return w
}

// Start asks until its context ends, and returns when nothing runs any more.
func (w *Watch) Start(ctx context.Context) error {
	w.mu.Lock()
	w.ctx = ctx
	for _, a := range w.askers {
		w.launch(a)
	}
	w.mu.Unlock()
	<-ctx.Done()
	w.mu.Lock()
	clear(w.runs)
	clear(w.askers) // after this no Want starts anything: it sees that the context has ended
	w.mu.Unlock()
	w.asking.Wait()
	return nil
}

// Changes wakes the reconciles of a controller of jobs: a source for its builder's
// WatchesRawSource.
func (w *Watch) Changes() source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.waiting = append(w.waiting, queue)
		return nil
	})
}

// Want is Source's.
func (w *Watch) Want(job types.NamespacedName, want Want) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock.Now()
	r := w.runs[job]
	if r != nil && (r.at.key != want.At.key() || r.want.ID != want.ID || r.want.Session != want.Session) {
		// What was heard of another run counts no more. The asker stays if it is wanted again.
		w.part(r, want.At.key())
		r = nil
	}
	if r == nil {
		a := w.asker(want.At, now)
		r = &run{job: job, at: a, want: want, news: now}
		w.runs[job], a.runs[job] = r, r
		a.rouse()
		return
	}
	if r.news.IsZero() && r.says(want, now) {
		r.news = now
	}
	r.want, r.at.token = want, want.At.Token
	if !r.news.IsZero() {
		r.at.rouse()
	}
}

// says reports whether a want says something to act upon: that a submission was withdrawn
// or a permit prolonged is nothing.
func (r *run) says(want Want, now time.Time) bool {
	permitted := func(w Want) bool { return w.Submission != nil && !w.Stop && now.Before(w.Until) }
	return want.Stop && !r.want.Stop ||
		permitted(want) && !permitted(r.want) && r.answer.Submitted.IsZero()
}

// Forget is Source's.
func (w *Watch) Forget(job types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r := w.runs[job]; r != nil {
		w.part(r, key{})
	}
}

// Last is Source's.
func (w *Watch) Last(job types.NamespacedName, head types.UID, id string) (Answer, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.runs[job]
	if r == nil || r.want.At.Head != head || r.want.ID != id || !r.answered {
		return Answer{}, false
	}
	return r.at.whole(r.answer), true
}

// asker finds or makes the one who asks at a place. The caller holds the lock.
func (w *Watch) asker(at Place, now time.Time) *asker {
	a := w.askers[at.key()]
	if a == nil {
		a = &asker{
			watch: w, key: at.key(), began: now, runs: map[types.NamespacedName]*run{},
			news: make(chan struct{}, 1), end: func() {},
		}
		w.askers[a.key] = a
		w.launch(a)
	}
	a.token = at.Token
	return a
}

// part takes a run from its asker, who ends when nobody wants anything of it, unless it is
// the one to be kept. The caller holds the lock.
func (w *Watch) part(r *run, keep key) {
	delete(w.runs, r.job)
	delete(r.at.runs, r.job)
	if len(r.at.runs) == 0 && r.at.key != keep {
		r.at.end()
		delete(w.askers, r.at.key)
	}
}

// launch starts an asker's goroutine, once the Watch itself was started. The caller holds
// the lock.
func (w *Watch) launch(a *asker) {
	if w.ctx == nil || w.ctx.Err() != nil {
		return
	}
	ctx, end := context.WithCancel(w.ctx)
	a.end = end
	w.asking.Go(func() {
		defer end()
		a.work(ctx)
	})
	w.asking.Go(func() { w.tidy(ctx, a) })
}

// wake wakes the reconcile of a job. The caller holds the lock.
func (w *Watch) wake(job types.NamespacedName) {
	for _, queue := range w.waiting {
		queue.Add(reconcile.Request{NamespacedName: job})
	}
}

// wanted is what is wanted of a run now, and whether anything still is.
func (w *Watch) wanted(r *run) (Want, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return r.want, w.runs[r.job] == r
}

// tokenOf gives the token of a place as it was wanted last.
func (w *Watch) tokenOf(a *asker) headclient.Token {
	if !a.key.token {
		return nil
	}
	return func(ctx context.Context) (string, error) {
		w.mu.Lock()
		token := a.token
		w.mu.Unlock()
		return token(ctx)
	}
}
