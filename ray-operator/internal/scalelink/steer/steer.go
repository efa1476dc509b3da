// Package steer is the operator's end of the streams to the autoscalers.
//
// In: per cluster the head's address and token, and the orders for the autoscaler there,
// stated again as a whole whenever they change. Out: the autoscaler's last word with its
// time, whether it is listened to now, and a wake of the cluster's reconcile when any of
// this means something new.
//
// It must never let one head delay another, keep more than 48 KiB for a cluster that is
// calm, take a missing word for an empty one, read a hostile autoscaler faster than an
// honest one speaks, put a token into a log or an error, or write to Kubernetes.
package steer

import (
	"bytes"
	"context"
	"net"
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/scalelink"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/scalelink/wire"
)

// Source is what a controller needs of a Link.
type Source interface {
	// Want says what a cluster's autoscaler is to know, in place of what was said before. It
	// never blocks; saying the same again sends nothing. Another head or address, or a
	// token where there was none, is another autoscaler: the word of the one before is
	// forgotten.
	Want(cluster types.NamespacedName, target Target)
	// Forget hangs up, and drops what is known of the cluster's autoscaler.
	Forget(cluster types.NamespacedName)
	// Last is what is known of the autoscaler beside the head that is the pod of this UID.
	// It is false before it answered or failed for the first time, and for another head
	// than the one wanted.
	Last(cluster types.NamespacedName, head types.UID) (Answer, bool)
}

// Target is an autoscaler and what it is to know.
type Target struct {
	// Head is the UID of the head pod, Address the host:port of the autoscaler in it, taken
	// from the pod that the operator owns and never from a status.
	Head    types.UID
	Address string
	// Token is read for each stream; nil for a cluster without authentication.
	Token headclient.Token
	// Trust is nil for a cluster without encryption.
	Trust headclient.Trust
	// Orders are sent with Head as their head. It is not kept: who calls may change it.
	Orders scalelink.Orders
}

// Answer is what is known of an autoscaler. It is never changed once it was given out.
type Answer struct {
	// Word is what it said last, At when that came: zero if it never spoke. It outlives the
	// stream on which it came.
	Word scalelink.Word
	At   time.Time
	// Connected tells that there is a stream now. Without one, Word may be out of date.
	Connected bool
	// Failure is why there is none, empty while there is one; Err is the failure, and
	// FailingSince when the first in a row was seen. Invalid: the orders are out of bounds,
	// and nothing is sent until they are not. Refused: another operator took over, or the
	// autoscaler is that of another head.
	Failure      headclient.Kind
	Err          error
	FailingSince time.Time
}

// Link keeps a stream to each autoscaler that is wanted while it runs. It is a runnable of
// controller-runtime's manager, and because an autoscaler obeys the caller that came last,
// of the leader's alone.
type Link struct {
	clock   clock.Clock
	connect headclient.Connect
	// caller speaks to the autoscalers of clusters without encryption.
	caller *wire.Caller

	mu      sync.Mutex
	ctx     context.Context //nolint:containedctx // the life of the goroutines that Want starts
	running sync.WaitGroup
	lines   map[types.NamespacedName]*line
	waiting []workqueue.TypedRateLimitingInterface[reconcile.Request]
}

// New makes a Link, which connects to nobody until it is started.
func New(clock clock.Clock, connect wire.Dialer) *Link {
	link := &Link{clock: clock, connect: headclient.Connect(connect), lines: map[types.NamespacedName]*line{}}
	link.caller = link.newCaller(nil)
	return link
}

// newCaller returns one that encrypts as the Trust says, reads slowly, and waits for nobody who does not answer.
func (l *Link) newCaller(trust headclient.Trust) *wire.Caller {
	connect := l.connect.Over(trust)
	return wire.NewCaller(func(ctx context.Context, address string) (net.Conn, error) {
		limited, stop := context.WithTimeout(ctx, wire.Greeting)
		defer stop()
		connection, err := connect(limited, address)
		if err != nil {
			return nil, err
		}
		return throttle(connection), nil
	})
}

// callerOf returns the one for a target.
func (l *Link) callerOf(target Target) *wire.Caller {
	if target.Trust == nil {
		return l.caller
	}
	return l.newCaller(target.Trust)
}

// Start keeps streams until its context ends, and returns when nothing runs any more.
func (l *Link) Start(ctx context.Context) error {
	l.mu.Lock()
	l.ctx = ctx
	for _, line := range l.lines {
		l.launch(line)
	}
	l.mu.Unlock()
	<-ctx.Done()
	l.mu.Lock()
	clear(l.lines) // after this no Want starts anything: it sees that the context has ended
	l.mu.Unlock()
	l.running.Wait()
	return nil
}

// Changes wakes the reconciles of a controller: a source for its builder's
// WatchesRawSource.
func (l *Link) Changes() source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.waiting = append(l.waiting, queue)
		return nil
	})
}

// Want is Source's.
func (l *Link) Want(cluster types.NamespacedName, target Target) {
	target.Orders.Head = string(target.Head)
	orders, err := wire.FromOrders(target.Orders)
	target.Orders = scalelink.Orders{}
	l.mu.Lock()
	defer l.mu.Unlock()
	existing := l.lines[cluster]
	if existing != nil && !existing.leadsTo(target) {
		existing.stop() // what another autoscaler said counts no more
		existing = nil
	}
	if existing == nil {
		existing = newLine(l, cluster, target)
		l.lines[cluster] = existing
		existing.orders, existing.invalid = orders, err
		l.launch(existing)
		return
	}
	existing.target = target // it may bring another way to read the token
	if !bytes.Equal(existing.orders, orders) || (existing.invalid == nil) != (err == nil) {
		existing.orders, existing.invalid = orders, err
		existing.tell()
	}
}

// Forget is Source's.
func (l *Link) Forget(cluster types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if line := l.lines[cluster]; line != nil {
		line.stop()
		delete(l.lines, cluster)
	}
}

// Last is Source's.
func (l *Link) Last(cluster types.NamespacedName, head types.UID) (Answer, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := l.lines[cluster]
	if line == nil || line.target.Head != head || !line.answered {
		return Answer{}, false
	}
	return line.answer, true
}

// launch starts a line's goroutine, once the Link itself was started. The caller holds the
// lock.
func (l *Link) launch(line *line) {
	if l.ctx == nil || l.ctx.Err() != nil {
		return
	}
	ctx, stop := context.WithCancel(l.ctx)
	line.stop = stop
	l.running.Go(func() {
		defer stop()
		line.run(ctx)
	})
}

// publish changes what is known of a line's autoscaler, unless the line was given up
// meanwhile, and wakes the cluster's reconcile if it means something new.
func (l *Link) publish(line *line, change func(*Answer)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lines[line.cluster] != line {
		return
	}
	before, known := line.answer, line.answered
	change(&line.answer)
	line.answered = true
	if known && !differ(before, line.answer) {
		return
	}
	for _, queue := range l.waiting {
		queue.Add(reconcile.Request{NamespacedName: line.cluster})
	}
}

// differ reports whether an answer means something new: not that it failed once more, or that
// the same was said again.
func differ(a, b Answer) bool {
	return a.Connected != b.Connected || a.Failure != b.Failure || a.At.IsZero() != b.At.IsZero() || !reflect.DeepEqual(a.Word, b.Word)
}
