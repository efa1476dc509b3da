package client_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol/client"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll/polltest"
)

func TestSnapshotsAreGivenForAChange(t *testing.T) {
	run(t, func(t *testing.T, b *bench) {
		sidecar := b.sidecar("a:1")
		b.Want(cluster, target(1))
		polltest.Pass(time.Second)
		if got, ok := sidecar.Snapshot(); !ok || cmp.Diff(snapshot(1), got) != "" {
			t.Errorf("ordered: %v, %+v", ok, got)
		}
		for range 10 {
			b.Want(cluster, target(1))
			polltest.Pass(time.Second)
		}
		if n := sidecar.Given(); n != 1 {
			t.Errorf("the same orders were given %d times", n)
		}
		for i := range 100 { // 100 changes in a second
			b.Want(cluster, target(i))
			polltest.Pass(10 * time.Millisecond)
		}
		polltest.Pass(time.Second)
		if got, _ := sidecar.Snapshot(); cmp.Diff(snapshot(99), got) != "" {
			t.Errorf("the last orders are not there: %+v", got)
		}
		if n := sidecar.Given(); n > 10 || sidecar.Streams() != 1 {
			t.Errorf("orders were given %d times in a second, on %d streams", n, sidecar.Streams())
		}
	})
}

func TestWakesOnlyForNews(t *testing.T) {
	run(t, func(t *testing.T, b *bench) {
		sidecar := b.sidecar("a:1")
		if _, ok := b.Last(cluster, "head"); ok {
			t.Error("something is known of an autoscaler that nobody wanted")
		}
		b.Want(cluster, target(1))
		polltest.Pass(time.Second)
		if answer := b.last(); !answer.Connected || !answer.At.IsZero() || b.wakes() != 1 {
			t.Errorf("connected: %+v", answer)
		}
		say(t, sidecar, decided(3))
		first := b.last()
		if diff := cmp.Diff(decided(3), first.Decision); diff != "" || first.At.IsZero() || b.wakes() != 1 {
			t.Errorf("the first decision: %+v", first)
		}
		if _, ok := b.Last(cluster, "another head"); ok {
			t.Error("another head's UID gets the decision")
		}
		for range 20 {
			polltest.Pass(time.Second)
			say(t, sidecar, decided(3))
		}
		if n := b.wakes(); n != 0 || !b.last().At.After(first.At) {
			t.Errorf("%d wakes for the same decision, which is of %s", n, b.last().At)
		}
	})
}

// TestWhatIsNews: each part of a decision may be what a reconcile waits for.
func TestWhatIsNews(t *testing.T) {
	run(t, func(t *testing.T, b *bench) {
		sidecar := b.connected(t)
		b.wakes()
		for name, change := range map[string]protocol.Decision{
			"another target": decided(4),
			"another reason": {Head: "head", Targets: []protocol.Target{{Group: "cpu", Replicas: 4, Reason: "idle"}}},
			"who leaves":     {Head: "head", Removals: []protocol.Removal{{Pod: "a", Reason: protocol.Idle}}},
			"who is drained": {Head: "head", Removals: []protocol.Removal{{Pod: "a", Reason: protocol.Idle, Drained: true}}},
			"what never is":  {Head: "head", Infeasible: []protocol.Infeasible{{Shape: "{GPU: 9}", Count: 1}}},
			"trouble":        {Head: "head", Error: "the head does not answer"},
		} {
			polltest.Pass(time.Second)
			say(t, sidecar, change)
			if n := b.wakes(); n != 1 {
				t.Errorf("%s: %d wakes", name, n)
			}
		}
	})
}

// TestAnotherAutoscaler: what another one said counts no more, nor who is forgotten.
func TestAnotherAutoscaler(t *testing.T) {
	token := token("secret")
	for name, change := range map[string]func(*client.Target){
		"head":    func(w *client.Target) { w.Head = "another" },
		"address": func(w *client.Target) { w.Address = "b:1" },
		"token":   func(w *client.Target) { w.Token = token },
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, b *bench) {
				first, second := b.sidecar("a:1"), b.sidecar("b:1")
				say(t, first, decided(3))
				b.Want(cluster, target(1))
				polltest.Pass(time.Second)
				b.last()
				wanted := target(1)
				change(&wanted)
				b.Want(cluster, wanted)
				for _, head := range []types.UID{"head", "another"} {
					if answer, ok := b.Last(cluster, head); ok {
						t.Errorf("of %s %+v is still known", head, answer)
					}
				}
				polltest.Pass(time.Second)
				if n := first.Live() + second.Live(); n > 1 {
					t.Errorf("%d streams", n)
				}
				b.Forget(cluster)
				b.Forget(cluster)
				polltest.Pass(time.Second)
				if n := first.Live() + second.Live(); n != 0 {
					t.Errorf("%d streams after it was forgotten", n)
				}
				if _, ok := b.Last(cluster, wanted.Head); ok {
					t.Error("something is known of what was forgotten")
				}
				b.dials()
				polltest.Pass(time.Minute)
				if n := b.dials(); n != 0 {
					t.Errorf("%d connections after it was forgotten", n)
				}
			})
		})
	}
}

func TestStreamThatBreaks(t *testing.T) {
	run(t, func(t *testing.T, b *bench) {
		sidecar := b.connected(t)
		b.wakes()
		sidecar.Close()
		polltest.Pass(100 * time.Millisecond)
		since := b.failed(headclient.Unavailable, 3).FailingSince
		if n := b.wakes(); n != 1 {
			t.Errorf("%d wakes for a stream that broke", n)
		}
		b.dials()
		polltest.Pass(60 * time.Second)
		if n := b.dials(); n < 12 || n > 17 {
			t.Errorf("%d tries in a minute, which are to be 1 to 5 s apart", n)
		}
		if answer := b.failed(headclient.Unavailable, 3); !answer.FailingSince.Equal(since) || b.wakes() != 0 {
			t.Errorf("failing goes on: %+v", answer)
		}
	})
}

// TestStreamComesBack with the orders of the meantime, and the decision of before until there is
// another.
func TestStreamComesBack(t *testing.T) {
	run(t, func(t *testing.T, b *bench) {
		sidecar := b.connected(t)
		sidecar.Close()
		polltest.Pass(time.Minute)
		b.wakes()
		b.Want(cluster, target(2)) // while nobody listens
		again := b.sidecar("a:1")
		polltest.Pass(6 * time.Second)
		if got, ok := again.Snapshot(); !ok || cmp.Diff(snapshot(2), got) != "" {
			t.Errorf("the restarted one has %v, %+v", ok, got)
		}
		answer := b.last()
		if !answer.Connected || answer.Failure != "" || answer.Err != nil || !answer.FailingSince.IsZero() || b.wakes() != 1 {
			t.Errorf("after it came back: %+v", answer)
		}
		if diff := cmp.Diff(decided(3), answer.Decision); diff != "" {
			t.Error("the last decision is gone", diff)
		}
	})
}

func TestAnotherOperatorTookOver(t *testing.T) {
	run(t, func(t *testing.T, b *bench) {
		sidecar := b.connected(t)
		sidecar.Cut(status.Error(codes.Aborted, "another operator has taken over"))
		polltest.Pass(10 * time.Millisecond)
		b.failed(headclient.Refused, 3)
		sidecar.Cut(nil)
		polltest.Pass(5 * time.Second)
		if n := sidecar.Streams(); n != 2 || !b.last().Connected {
			t.Errorf("%d streams, %+v", n, b.last())
		}
	})
}

// TestLine_NeedsAPermit to take an autoscaler over, and to give it orders.
func TestLine_NeedsAPermit(t *testing.T) {
	run(t, func(t *testing.T, b *bench) {
		sidecar, over := b.sidecar("a:1"), errors.New("another leads")
		b.deny(over)
		b.Want(cluster, target(1))
		polltest.Pass(10 * time.Second)
		if answer := b.failed(headclient.Unavailable, -1); !errors.Is(answer.Err, over) || sidecar.Streams() != 0 {
			t.Errorf("%d streams without a permit: %+v", sidecar.Streams(), answer)
		}
		b.deny(nil)
		say(t, sidecar, decided(3))
		polltest.Pass(6 * time.Second)
		b.deny(over)
		b.Want(cluster, target(2))
		polltest.Pass(100 * time.Millisecond)
		if answer := b.failed(headclient.Unavailable, 3); !errors.Is(answer.Err, over) || sidecar.Given() != 1 {
			t.Errorf("orders were given %d times: %+v", sidecar.Given(), answer)
		}
		b.deny(nil)
		polltest.Pass(6 * time.Second)
		if got, _ := sidecar.Snapshot(); cmp.Diff(snapshot(2), got) != "" || !b.last().Connected {
			t.Errorf("it has %+v, %+v", got, b.last())
		}
	})
}

// TestSnapshotsThatCannotBe are not sent, and not those of before either.
func TestSnapshotsThatCannotBe(t *testing.T) {
	run(t, func(t *testing.T, b *bench) {
		sidecar := b.connected(t)
		b.Want(cluster, target(-1))
		polltest.Pass(10 * time.Millisecond)
		b.failed(headclient.Invalid, 3)
		polltest.Pass(10 * time.Second)
		if sidecar.Live() != 0 || sidecar.Given() != 1 {
			t.Errorf("%d streams, orders were given %d times", sidecar.Live(), sidecar.Given())
		}
		b.Want(cluster, target(2))
		polltest.Pass(6 * time.Second)
		if got, _ := sidecar.Snapshot(); cmp.Diff(snapshot(2), got) != "" || !b.last().Connected {
			t.Errorf("mended: %+v, %+v", got, b.last())
		}
		b.Want(cluster, client.Target{Head: "head", Address: "no address", Snapshot: snapshot(1)})
		polltest.Pass(time.Second)
		b.failed(headclient.Unavailable, -1)
	})
}

// TestEnd: after it nothing is done, whatever is wanted.
func TestEnd(t *testing.T) {
	run(t, func(t *testing.T, b *bench) {
		sidecar := b.sidecar("a:1")
		b.Want(cluster, target(1))
		polltest.Pass(time.Second)
		b.End()
		polltest.Pass(time.Second)
		if n := sidecar.Live(); n != 0 {
			t.Errorf("%d streams after the end", n)
		}
		b.dials()
		b.Want(cluster, target(1))
		polltest.Pass(time.Minute)
		if n := b.dials(); n != 0 {
			t.Errorf("%d connections after the end", n)
		}
	})
}
