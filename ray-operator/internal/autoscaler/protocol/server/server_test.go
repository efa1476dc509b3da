package server

import (
	"bytes"
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	pb "github.com/heliostat-dev/heliostat/proto/gen/heliostat/scalelink/v1"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/decision"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol/protocoltest"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol/wire"
)

// bench is a serving Server in a bubble of time.
type bench struct {
	*Server
	t        *testing.T
	listener *bufconn.Listener
	stop     context.CancelFunc
}

// run runs a test with a Server that serves, and holds it to leave no goroutine.
func run(t *testing.T, options Options, test func(t *testing.T, b *bench)) {
	synctest.Test(t, func(t *testing.T) {
		b := &bench{Server: New(options), t: t, listener: bufconn.Listen(256 << 10)}
		var ctx context.Context
		ctx, b.stop = context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- b.Serve(ctx, b.listener) }()
		test(t, b)
		b.stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		elapse(2 * time.Second) // what counts newcomers ends
	})
}

// connect is an operator with a token, until the test ends.
func (b *bench) connect(token string) *protocoltest.Operator {
	b.t.Helper()
	o, err := b.try("head", token)
	if err != nil {
		b.t.Fatal(err)
	}
	return o
}

func (b *bench) try(head, token string) (*protocoltest.Operator, error) {
	o, err := protocoltest.ConnectBy(b.t.Context(), func(ctx context.Context, _ string) (net.Conn, error) { return b.listener.DialContext(ctx) }, "a:1", head, token)
	if err == nil {
		b.t.Cleanup(o.Close)
	}
	synctest.Wait()
	return o, err
}

func (b *bench) order(o *protocoltest.Operator, most int) {
	b.t.Helper()
	if err := o.Order(snapshot(most)); err != nil {
		b.t.Fatal(err)
	}
}

// has asserts the orders that count; below zero, that there are none.
func (b *bench) has(most int) {
	b.t.Helper()
	got, ok := b.Snapshot()
	switch {
	case ok != (most >= 0):
		b.t.Errorf("orders are there: %v", ok)
	case ok && cmp.Diff(snapshot(most), got) != "":
		b.t.Error(cmp.Diff(snapshot(most), got))
	}
}

// news reports whether Changed has given something.
func (b *bench) news() bool {
	select {
	case <-b.Changed():
		return true
	default:
		return false
	}
}

func elapse(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
	synctest.Wait()
}

func snapshot(most int) protocol.Snapshot {
	return protocol.Snapshot{Head: "head", Pace: decision.Default, Groups: []protocol.Group{{Name: "cpu", Max: most, Hosts: 1}}}
}

func decided(replicas int) protocol.Decision {
	return protocol.Decision{Head: "head", Targets: []protocol.Target{{Group: "cpu", Replicas: replicas}}}
}

func (b *bench) say(replicas int) {
	b.t.Helper()
	if err := b.Say(decided(replicas)); err != nil {
		b.t.Fatal(err)
	}
	synctest.Wait()
}

// heard asserts the last decision that an operator heard, and how often one came.
func heard(t *testing.T, o *protocoltest.Operator, replicas, times int) {
	t.Helper()
	got, n := o.Decision()
	if n != times || times > 0 && cmp.Diff(decided(replicas), got) != "" {
		t.Errorf("heard %d words, the last is %+v", n, got)
	}
}

func TestSnapshot(t *testing.T) {
	run(t, Options{}, func(t *testing.T, b *bench) {
		b.has(-1)
		o := b.connect("")
		b.has(-1)
		if b.news() {
			t.Error("an operator without orders changes nothing")
		}
		b.order(o, 1)
		b.has(1)
		if !b.news() || b.news() {
			t.Error("orders are no news, or twice")
		}
		b.order(o, 2)
		b.order(o, 3)
		b.has(3)
		if !b.news() || b.news() {
			t.Error("more orders are no news, or twice")
		}
		o.Close()
		elapse(10 * time.Millisecond)
		b.has(-1)
		if !b.news() {
			t.Error("that the operator has gone is no news")
		}
	})
}

func TestDecision(t *testing.T) {
	run(t, Options{}, func(t *testing.T, b *bench) {
		first := b.connect("")
		heard(t, first, 0, 0)
		b.say(1)
		heard(t, first, 1, 1)
		elapse(time.Second)
		b.say(1)
		elapse(time.Second)
		heard(t, first, 1, 1)
		b.say(2)
		heard(t, first, 2, 2)
		if err := b.Say(decided(-1)); err == nil {
			t.Error("a decision that cannot be is said")
		}
		elapse(time.Second)
		heard(t, first, 2, 2)
		for i := range 100 { // in a second
			b.say(i)
			elapse(10 * time.Millisecond)
		}
		elapse(time.Second)
		if got, n := first.Decision(); n > 12 || cmp.Diff(decided(99), got) != "" {
			t.Errorf("of 100 words in a second %d were said, and last %+v", n-2, got)
		}
		first.Close()
		b.say(5)
		second := b.connect("")
		heard(t, second, 5, 1)
	})
}

// TestAnotherOperator takes the place of the one before, whose orders count no more.
func TestAnotherOperator(t *testing.T) {
	run(t, Options{Token: func() (string, error) { return "secret", nil }}, func(t *testing.T, b *bench) {
		first := b.connect("secret")
		b.order(first, 1)
		b.say(4)
		b.news()
		second := b.connect("secret")
		b.has(-1)
		if !b.news() {
			t.Error("another operator is no news")
		}
		if err := first.Order(snapshot(7)); err == nil {
			t.Error("the one before gives orders")
		}
		<-first.Ended()
		if status.Code(first.Err()) != codes.Aborted {
			t.Errorf("the one before ended with %v", first.Err())
		}
		b.has(-1)
		b.order(second, 2)
		b.has(2)
		heard(t, second, 4, 1)
		elapse(time.Hour)
		b.has(2)
		if second.Err() != nil {
			t.Error("a calm hour ends the stream", second.Err())
		}
	})
}

// TestProof_CountsOnceOnItsConnection: who has seen a proof on its way has nothing of it.
func TestProof_CountsOnceOnItsConnection(t *testing.T) {
	run(t, Options{Head: "head", Token: func() (string, error) { return "secret", nil }}, func(t *testing.T, b *bench) {
		meet := func() pb.ScaleServiceClient {
			connection, err := grpc.NewClient("passthrough:///a:1", grpc.WithTransportCredentials(insecure.NewCredentials()),
				grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return b.listener.DialContext(ctx) }))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = connection.Close() })
			return pb.NewScaleServiceClient(connection)
		}
		ask := func(who pb.ScaleServiceClient) []byte {
			nonce, err := who.Challenge(t.Context(), &pb.Hello{})
			if err != nil {
				t.Fatal(err)
			}
			return nonce.GetNonce()
		}
		follow := func(who pb.ScaleServiceClient, proof []byte) error {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			stream, err := who.Follow(ctx, &pb.Claim{Head: "head", Proof: proof})
			if err == nil {
				_, err = stream.Recv()
			}
			synctest.Wait()
			return err
		}
		if err := b.Say(protocol.Decision{Head: "head"}); err != nil {
			t.Fatal(err)
		}
		first, second := meet(), meet()
		proof := wire.Prove("secret", ask(first), "head")
		ask(second)
		if err := follow(second, proof); status.Code(err) != codes.Unauthenticated {
			t.Errorf("on another connection: %v", err)
		}
		if err := follow(first, proof); err != nil {
			t.Errorf("on its own: %v", err)
		}
		if err := follow(first, proof); status.Code(err) != codes.Unauthenticated {
			t.Errorf("a second time: %v", err)
		}
		if err := follow(meet(), wire.Prove("secret", nil, "head")); status.Code(err) != codes.Unauthenticated {
			t.Errorf("without a challenge: %v", err)
		}
		if bytes.Equal(ask(first), ask(first)) {
			t.Error("a nonce comes twice")
		}
	})
}

func TestWhoIsListenedTo(t *testing.T) {
	current, broken := "first", error(nil)
	run(t, Options{Head: "head", Token: func() (string, error) { return current, broken }}, func(t *testing.T, b *bench) {
		refused := func(head, token string, code codes.Code) {
			t.Helper()
			if o, err := b.try(head, token); status.Code(err) != code {
				t.Errorf("%q with %q: %v, %v instead of %s", head, token, o, err, code)
			}
			elapse(time.Second)
		}
		first := b.connect("first")
		b.order(first, 1)
		for _, wrong := range []string{"", "firs", "first1", "second"} {
			refused("head", wrong, codes.Unauthenticated)
		}
		refused("another", "first", codes.FailedPrecondition)
		wrong := snapshot(2)
		wrong.Head = "another"
		if err := first.Order(wrong); status.Code(err) != codes.FailedPrecondition {
			t.Errorf("orders for another head: %v", err)
		}
		if err := first.OrderRaw([]byte("\xff\xff")); err == nil {
			t.Error("garbage is obeyed")
		}
		b.has(1)
		current = "second" // the one that is there stays
		refused("head", "first", codes.Unauthenticated)
		b.has(1)
		if err := first.Order(snapshot(3)); status.Code(err) != codes.Unauthenticated {
			t.Errorf("orders with the former token: %v", err)
		}
		b.connect("second")
		elapse(time.Second)
		broken = errors.New("the file is gone")
		refused("head", "second", codes.Unavailable)
		current, broken = "", nil
		refused("head", "", codes.Unavailable)
	})
}
