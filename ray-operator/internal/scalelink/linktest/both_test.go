package linktest_test

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
	"github.com/heliostat-dev/heliostat/ray-operator/internal/scalelink"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/scalelink/listen"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/scalelink/steer"
)

var cluster = types.NamespacedName{Namespace: "team", Name: "demo"}

func orders(max int) scalelink.Orders {
	return scalelink.Orders{
		Head: "head", Pace: "Default",
		Groups: []scalelink.Group{{
			Name: "cpu", Max: max, Hosts: 1, IdleTimeout: time.Minute,
			Resources: map[string]float64{"CPU": 4, "memory": 1 << 33}, Labels: map[string]string{"zone": "a"},
		}},
		Pods: []scalelink.Pod{{UID: "pod", Group: "cpu", Stage: scalelink.Starting, Since: time.UnixMilli(1e12).UTC(), Why: "its image is pulled"}},
	}
}

func word(replicas int) scalelink.Word {
	return scalelink.Word{
		Head: "head", Targets: []scalelink.Target{{Group: "cpu", Replicas: replicas, Reason: "3 × {CPU: 1}"}},
		Leaving: []scalelink.Leaver{{Pod: "pod", Node: "ab", Reason: scalelink.Idle, Drained: true}},
		Never:   []scalelink.Infeasible{{Shape: "{GPU: 9}", Count: 1, Reason: "no group has GPU"}},
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
	sidecar := listen.New(listen.Options{Head: "head", Token: func() (string, error) { return "secret", nil }})
	at := listener(t, "127.0.0.1:0")
	start(t, func(ctx context.Context) error { return sidecar.Serve(ctx, at) })
	link := steer.New(clock.RealClock{}, headclient.ConnectAnywhere, nil)
	start(t, link.Start)

	link.Want(cluster, steer.Target{
		Head: "head", Address: at.Addr().String(), Orders: orders(3),
		Token: func(context.Context) (string, error) { return "secret", nil },
	})
	eventually(t, func() error {
		got, ok := sidecar.Orders()
		if diff := cmp.Diff(orders(3), got); !ok || diff != "" {
			return fmt.Errorf("the orders are there: %v, %s", ok, diff)
		}
		return nil
	})
	<-sidecar.Changed()
	if err := sidecar.Say(word(2)); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		got, ok := link.Last(cluster, "head")
		if diff := cmp.Diff(word(2), got.Word); !ok || !got.Connected || got.At.IsZero() || diff != "" {
			return fmt.Errorf("the word is there: %v, connected: %v, at %s, %s", ok, got.Connected, got.At, diff)
		}
		return nil
	})
	link.Forget(cluster)
	eventually(t, func() error {
		if _, ok := sidecar.Orders(); ok {
			return fmt.Errorf("orders of an operator that has gone count")
		}
		return nil
	})
}
