// Package poll is the frame of all pollers: what asks endpoints in the background, so that no reconcile waits for one.
//
// In: per key, which endpoint must be asked and for what, stated again as a whole whenever it changes; and the rules of
// one sort of endpoint. Out: per key the last answer, and a wake of its owner's reconcile when that means something new.
//
// It must never add up what several owners want, let one endpoint delay another, give an answer to a question that was
// replaced, keep a goroutine for an endpoint of which nobody wants anything, or act on an endpoint itself: what changes
// something there takes a permit, in the client that sends it.
package poll

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// Loop polls an endpoint until its context ends. The channel holds something while a want has said something new.
type Loop func(ctx context.Context, news <-chan struct{})

// Rules are those of one sort of endpoint. K tells questions apart and E endpoints; W is what is wanted, and A an
// answer. All are called with a lock held: what they return must follow from their arguments.
type Rules[K, E comparable, W, A any] struct {
	// Loops returns what polls an endpoint. Each loop gets a goroutine of its own.
	Loops func(*Endpoint[K, E, W, A]) []Loop
	// Owner returns the object whose reconcile an answer wakes.
	Owner func(K) types.NamespacedName
	// Token returns what reads the endpoint's token; nil where no endpoint has one.
	Token func(W) headclient.Token
	// Says reports whether a want says something that the loops must act on.
	Says func(before, after W, known A) bool
	// Replaces reports whether a want is another question than the one before, so that what was heard counts no more.
	// Nil is never; another endpoint always is another question.
	Replaces func(before, after W) bool
	// Outlives reports whether an answer holds for the question that replaces its own. Nil is never.
	Outlives func(before, after W, known A) bool
	// HasNews reports whether an answer means something else than the one before.
	HasNews func(before, after A) bool
}

// Set polls endpoints while it is started. It is a runnable of controller-runtime's manager, and because its loops may
// act on endpoints, of the leader's alone.
type Set[K, E comparable, W, A any] struct {
	rules Rules[K, E, W, A]
	clock clock.Clock

	mu        sync.Mutex
	ctx       context.Context //nolint:containedctx // the life of the goroutines that Want starts
	running   sync.WaitGroup
	endpoints map[E]*Endpoint[K, E, W, A]
	parts     map[K]*Part[K, E, W, A]
	waiting   []workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// New returns a Set, which polls nothing until it is started.
func New[K, E comparable, W, A any](rules Rules[K, E, W, A], clock clock.Clock) *Set[K, E, W, A] {
	return &Set[K, E, W, A]{
		rules: rules, clock: clock, endpoints: map[E]*Endpoint[K, E, W, A]{}, parts: map[K]*Part[K, E, W, A]{},
	}
}

// Start polls until its context ends, and returns when no loop runs any more.
func (s *Set[K, E, W, A]) Start(ctx context.Context) error {
	s.mu.Lock()
	s.ctx = ctx
	for _, e := range s.endpoints {
		s.launch(e)
	}
	s.mu.Unlock()
	<-ctx.Done()
	s.mu.Lock()
	clear(s.parts)
	clear(s.endpoints) // after this no Want starts anything: it sees that the context has ended
	s.mu.Unlock()
	s.running.Wait()
	return nil
}

// Changes wakes the reconciles of a controller: a source for its builder's WatchesRawSource.
func (s *Set[K, E, W, A]) Changes() source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.waiting = append(s.waiting, queue)
		return nil
	})
}

// Want says what is wanted of an endpoint, in place of what was said of this key before. It never blocks; saying the
// same again changes nothing. An endpoint of which nobody wants anything any more is polled no longer.
func (s *Set[K, E, W, A]) Want(key K, at E, want W) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.parts[key]
	if before != nil && before.at.Key == at && (s.rules.Replaces == nil || !s.rules.Replaces(before.want, want)) {
		says := s.rules.Says(before.want, want, before.answer)
		before.want, before.at.latest = want, want
		if says {
			before.announce()
		}
		return
	}
	e, known := s.endpoints[at]
	if !known {
		e = s.newEndpoint(at, want)
	}
	p := &Part[K, E, W, A]{Key: key, set: s, at: e, want: want}
	if before != nil && before.answered && s.rules.Outlives != nil && s.rules.Outlives(before.want, want, before.answer) {
		p.answer, p.answered = before.answer, true
	}
	s.parts[key], e.parts[key], e.latest = p, p, want
	if before != nil {
		s.leave(before)
	}
	p.announce()
	if !known {
		s.launch(e)
	}
}

// Forget ends what is wanted by a key, and drops what is known.
func (s *Set[K, E, W, A]) Forget(key K) {
	s.ForgetAll(func(other K) bool { return other == key })
}

// ForgetAll ends what is wanted by the keys that match.
func (s *Set[K, E, W, A]) ForgetAll(match func(K) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, p := range s.parts {
		if match(key) {
			delete(s.parts, key)
			s.leave(p)
		}
	}
}

// Last returns what is wanted by a key and the last answer, false before the first one.
func (s *Set[K, E, W, A]) Last(key K) (W, A, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.parts[key]; p != nil && p.answered {
		return p.want, p.answer, true
	}
	var want W
	var answer A
	return want, answer, false
}

// newEndpoint returns one that is not polled yet. The caller holds the lock.
func (s *Set[K, E, W, A]) newEndpoint(at E, want W) *Endpoint[K, E, W, A] {
	e := &Endpoint[K, E, W, A]{Key: at, set: s, parts: map[K]*Part[K, E, W, A]{}, end: func() {}}
	if s.rules.Token != nil && s.rules.Token(want) != nil {
		e.Token = headclient.Remember(func(ctx context.Context) (string, error) { return s.rules.Token(e.Latest())(ctx) })
	}
	s.endpoints[at] = e
	return e
}

// leave takes a part from its endpoint, which ends with its last one. The caller holds the lock.
func (s *Set[K, E, W, A]) leave(p *Part[K, E, W, A]) {
	e := p.at
	if e.parts[p.Key] == p {
		delete(e.parts, p.Key)
	}
	if len(e.parts) == 0 {
		e.end()
		delete(s.endpoints, e.Key)
	}
}

// launch starts an endpoint's loops, once the Set itself was started. The caller holds the lock.
func (s *Set[K, E, W, A]) launch(e *Endpoint[K, E, W, A]) {
	if s.ctx == nil || s.ctx.Err() != nil {
		return
	}
	ctx, end := context.WithCancel(s.ctx)
	e.end = end
	loops := s.rules.Loops(e)
	for range loops {
		e.news = append(e.news, make(chan struct{}, 1))
	}
	for i, loop := range loops {
		s.running.Go(func() {
			defer end()
			loop(ctx, e.news[i])
		})
	}
}

// wake wakes the reconcile of a key's owner. The caller holds the lock.
func (s *Set[K, E, W, A]) wake(key K) {
	for _, queue := range s.waiting {
		queue.Add(reconcile.Request{NamespacedName: s.rules.Owner(key)})
	}
}
