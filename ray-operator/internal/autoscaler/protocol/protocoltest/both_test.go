package protocoltest_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol/client"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol/server"
)

var cluster = types.NamespacedName{Namespace: "team", Name: "demo"}

func snapshot(max int) protocol.Snapshot {
	return protocol.Snapshot{
		Head: "head", Pace: "Default",
		Groups: []protocol.Group{{
			Name: "cpu", Max: max, Hosts: 1, IdleTimeout: time.Minute,
			Resources: map[string]float64{"CPU": 4, "memory": 1 << 33}, Labels: map[string]string{"zone": "a"},
		}},
		Pods: []protocol.Pod{{UID: "pod", Group: "cpu", Stage: protocol.Starting, Since: time.UnixMilli(1e12).UTC(), Why: "its image is pulled"}},
	}
}

func decision(replicas int) protocol.Decision {
	return protocol.Decision{
		Head: "head", Targets: []protocol.Target{{Group: "cpu", Replicas: replicas, Reason: "3 × {CPU: 1}"}},
		Removals:   []protocol.Removal{{Pod: "pod", Node: "ab", Reason: protocol.Idle, Drained: true}},
		Infeasible: []protocol.Infeasible{{Shape: "{GPU: 9}", Count: 1, Reason: "no group has GPU"}},
	}
}

// eventually waits until a check passes.
func eventually(t *testing.T, check func() error) {
	t.Helper()
	var last error
	if err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, 20*time.Second, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	}); err != nil {
		t.Fatal(last)
	}
}

// start runs something until the test ends, and waits for its end.
func start(t *testing.T, run func(context.Context) error) {
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func listener(t *testing.T, address string) net.Listener {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestBothEnds goes the whole way, with the real ends.
func TestBothEnds(t *testing.T) {
	none := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, none) })
	sidecar := server.New(server.Options{Head: "head", Token: func() (string, error) { return "secret", nil }})
	at := listener(t, "127.0.0.1:0")
	start(t, func(ctx context.Context) error { return sidecar.Serve(ctx, at) })
	link := client.New(clock.RealClock{}, headclient.ConnectAnywhere, nil)
	start(t, link.Start)

	link.Want(cluster, client.Target{
		Head: "head", Address: at.Addr().String(), Snapshot: snapshot(3),
		Token: func(context.Context) (string, error) { return "secret", nil },
	})
	eventually(t, func() error {
		got, ok := sidecar.Snapshot()
		if diff := cmp.Diff(snapshot(3), got); !ok || diff != "" {
			return fmt.Errorf("the orders are there: %v, %s", ok, diff)
		}
		return nil
	})
	<-sidecar.Changed()
	if err := sidecar.Say(decision(2)); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		got, ok := link.Last(cluster, "head")
		if diff := cmp.Diff(decision(2), got.Decision); !ok || !got.Connected || got.At.IsZero() || diff != "" {
			return fmt.Errorf("the decision is there: %v, connected: %v, at %s, %s", ok, got.Connected, got.At, diff)
		}
		return nil
	})
	link.Forget(cluster)
	eventually(t, func() error {
		if _, ok := sidecar.Snapshot(); ok {
			return fmt.Errorf("orders of an operator that has gone count")
		}
		return nil
	})
}
