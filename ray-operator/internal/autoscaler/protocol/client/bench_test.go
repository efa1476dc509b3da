package client_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/test/bufconn"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/decision"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol/client"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol/protocoltest"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll/polltest"
)

var cluster = types.NamespacedName{Namespace: "team", Name: "demo"}

// bench is a running Link over scripted autoscalers by their addresses, in a bubble of time.
type bench struct {
	*client.Link
	*polltest.Bench
	t *testing.T

	mu        sync.Mutex
	listeners map[string]*bufconn.Listener
	dialed    int
	lines     []*wireline
	over      error // why nothing is permitted
}

// run runs a test with a started Link, and holds it to leave no goroutine.
func run(t *testing.T, test func(t *testing.T, b *bench)) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{t: t, listeners: map[string]*bufconn.Listener{}}
		b.Link = client.New(clock.RealClock{}, b.dial, b.permit)
		b.Bench = polltest.Start(t, b.Link)
		test(t, b)
		b.End()
	})
}

func (b *bench) dial(ctx context.Context, address string) (net.Conn, error) {
	b.mu.Lock()
	b.dialed++
	listener := b.listeners[address]
	b.mu.Unlock()
	if listener == nil {
		return nil, errors.New("nobody listens")
	}
	connection, err := listener.DialContext(ctx)
	if err != nil {
		return nil, err
	}
	line := &wireline{Conn: connection, closed: make(chan struct{})}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lines = append(b.lines, line)
	return line, nil
}

func (b *bench) permit() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.over
}

// deny has the Lease be over by an error, and renewed by nil.
func (b *bench) deny(over error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = over
}

// dials counts the connections that were tried since it was last asked.
func (b *bench) dials() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.dialed
	b.dialed = 0
	return n
}

// listen makes a listener at an address.
func (b *bench) listen(address string) net.Listener {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.listeners[address] = bufconn.Listen(256 << 10)
	return b.listeners[address]
}

// sidecar makes a scripted autoscaler at an address, until the test ends.
func (b *bench) sidecar(address string) *protocoltest.Sidecar {
	s := protocoltest.ServeSidecar(b.listen(address))
	b.t.Cleanup(s.Close)
	return s
}

// connected makes an autoscaler that has decided, and waits a second for its stream.
func (b *bench) connected(t *testing.T) *protocoltest.Sidecar {
	t.Helper()
	sidecar := b.sidecar("a:1")
	say(t, sidecar, decided(3))
	b.Want(cluster, target(1))
	polltest.Pass(time.Second)
	return sidecar
}

// cut lets nothing through any more on the connections that there are, either way.
func (b *bench) cut() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, line := range b.lines {
		line.cut.Store(true)
	}
}

// wireline is a connection that can go dead without a decision.
type wireline struct {
	net.Conn
	cut    atomic.Bool
	once   sync.Once
	closed chan struct{}
	read   atomic.Int64
}

func (w *wireline) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	w.read.Add(int64(n))
	if w.cut.Load() {
		<-w.closed
		return 0, net.ErrClosed
	}
	return n, err
}

func (w *wireline) Write(p []byte) (int, error) {
	if w.cut.Load() {
		return len(p), nil
	}
	return w.Conn.Write(p)
}

func (w *wireline) Close() error {
	w.once.Do(func() { close(w.closed) })
	return w.Conn.Close()
}

// wakes counts the wakes of the cluster since it was last asked. No other object may have been woken.
func (b *bench) wakes() int { return b.WokenOnly(b.t, cluster.Name) }

// last is what is known of the cluster's autoscaler.
func (b *bench) last() client.Answer {
	b.t.Helper()
	answer, ok := b.Last(cluster, "head")
	if !ok {
		b.t.Fatal("nothing is known of the autoscaler")
	}
	return answer
}

// await lets time pass until what is known of the autoscaler is so, and fails if it never is.
func (b *bench) await(what string, limit time.Duration, so func(client.Answer) bool) {
	b.t.Helper()
	const step = 50 * time.Millisecond
	for waited := time.Duration(0); !so(b.last()); waited += step {
		if waited >= limit {
			b.t.Fatalf("not within %s: %s: %+v", limit, what, b.last())
		}
		polltest.Pass(step)
	}
}

// failed asserts how the stream failed, and that the decision of before is still known.
func (b *bench) failed(kind headclient.Kind, replicas int) client.Answer {
	b.t.Helper()
	answer := b.last()
	if answer.Connected || answer.Failure != kind || headclient.KindOf(answer.Err) != kind || answer.FailingSince.IsZero() {
		b.t.Errorf("not %s: %+v", kind, answer)
	}
	if replicas >= 0 && (len(answer.Decision.Targets) != 1 || answer.Decision.Targets[0].Replicas != replicas) {
		b.t.Errorf("the last decision is %+v, not %d replicas", answer.Decision, replicas)
	}
	return answer
}

// target wants the autoscaler of "head" at a:1 to have a group of at most so many.
func target(most int) client.Target {
	return client.Target{Head: "head", Address: "a:1", Snapshot: snapshot(most)}
}

func snapshot(most int) protocol.Snapshot {
	return protocol.Snapshot{Head: "head", Pace: decision.Default, Groups: []protocol.Group{{Name: "cpu", Max: most, Hosts: 1}}}
}

func decided(replicas int) protocol.Decision {
	return protocol.Decision{Head: "head", Targets: []protocol.Target{{Group: "cpu", Replicas: replicas}}}
}

// say lets an autoscaler say a decision.
func say(t *testing.T, s *protocoltest.Sidecar, decision protocol.Decision) {
	t.Helper()
	if err := s.Say(decision); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
}
