// Package polltest plays with pollers in a bubble of time.
//
// In: a poller, and heads that answer as a test says. Out: which objects the poller woke, which calls came, and which rules
// of a conversation it broke. It must never be a head of its own: what a head does is said by the tests of each poller.
package polltest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// Poller polls while it is started, and wakes reconciles.
type Poller interface {
	Changes() source.Source
	Start(ctx context.Context) error
}

// Bench is a poller that was started, and the queue that it wakes.
type Bench struct {
	// End ends the poller, and waits until it has ended.
	End   func()
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// Start starts a poller in the bubble of time of a test.
func Start(t *testing.T, poller Poller) *Bench {
	t.Helper()
	b := &Bench{queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())}
	ctx, stop := context.WithCancel(t.Context())
	if err := poller.Changes().Start(ctx, b.queue); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := poller.Start(ctx); err != nil {
			t.Error(err)
		}
	}()
	b.End = sync.OnceFunc(func() {
		stop()
		<-ended
		b.queue.ShutDown()
	})
	synctest.Wait()
	return b
}

// Pass lets time go by.
func (*Bench) Pass(d time.Duration) { Pass(d) }

// Pass lets time go by in a bubble.
func Pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// Woken counts the wakes of each object, by its name, since they were last asked for.
func (b *Bench) Woken() map[string]int {
	all := map[string]int{}
	for range b.queue.Len() {
		request, _ := b.queue.Get()
		b.queue.Done(request)
		all[request.Name]++
	}
	return all
}

// Wakes counts the wakes of all objects since they were last asked for.
func (b *Bench) Wakes() (n int) {
	for _, times := range b.Woken() {
		n += times
	}
	return n
}

// WokenOnly counts the wakes of an object since they were last asked for, and asserts that no other one was woken.
func (b *Bench) WokenOnly(t *testing.T, name string) int {
	t.Helper()
	woken := b.Woken()
	times := woken[name]
	delete(woken, name)
	for other := range woken {
		t.Errorf("%s was woken", other)
	}
	return times
}

// Head is the script of a head, with what it has to complain of.
type Head interface{ Problems() []string }

// Heads are scripted heads by their addresses.
type Heads[H Head] struct {
	mu  sync.Mutex
	all map[string]H
}

// Put puts a head at an address.
func (h *Heads[H]) Put(address string, head H) H {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.all == nil {
		h.all = map[string]H{}
	}
	h.all[address] = head
	return head
}

// At returns the head at an address. It fails as a call does where nobody is there.
func (h *Heads[H]) At(address string) (H, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	head, is := h.all[address]
	if !is {
		return head, Failure(headclient.Unavailable)
	}
	return head, nil
}

// All returns the heads by their addresses. Nothing may change them meanwhile.
func (h *Heads[H]) All() map[string]H { return h.all }

// Problems returns what heads have to complain of.
func (h *Heads[H]) Problems() (all []string) {
	for address, head := range h.all {
		for _, problem := range head.Problems() {
			all = append(all, fmt.Sprintf("%s: %s", address, problem))
		}
	}
	return all
}
