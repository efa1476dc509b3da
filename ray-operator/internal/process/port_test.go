package process

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	testclock "k8s.io/utils/clock/testing"
)

// occupy takes a port.
func occupy(t *testing.T) net.Listener {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() }) // it may be closed already
	return listener
}

type opened struct {
	listener net.Listener
	err      error
}

// open opens a port that somebody else has, and returns once it waits.
func open(ctx context.Context, t *testing.T, address string) (*testclock.FakeClock, *strings.Builder, <-chan opened) {
	t.Helper()
	clock, said, done := testclock.NewFakeClock(time.Unix(1e9, 0)), &strings.Builder{}, make(chan opened, 1)
	go func() {
		listener, err := Listen(ctx, address, clock, slog.New(slog.NewTextHandler(said, nil)))
		done <- opened{listener, err}
	}()
	waits(t, clock)
	return clock, said, done
}

func waits(t *testing.T, clock *testclock.FakeClock) {
	t.Helper()
	has := func(context.Context) (bool, error) { return clock.HasWaiters(), nil }
	if err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 20*time.Second, true, has); err != nil {
		t.Fatal("it does not wait for the port")
	}
}

func TestListen_WaitsForItsPort(t *testing.T) {
	other := occupy(t)
	clock, said, done := open(t.Context(), t, other.Addr().String())
	clock.Step(again)
	waits(t, clock)
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	clock.Step(again)
	got := <-done
	if got.err != nil {
		t.Fatal(got.err)
	}
	if err := got.listener.Close(); err != nil {
		t.Error(err)
	}
	if strings.Count(said.String(), "\n") != 1 || !strings.Contains(said.String(), "The port is in use") {
		t.Errorf("it said %q", said)
	}
}

func TestListen_EndsWithItsContext(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	_, _, done := open(ctx, t, occupy(t).Addr().String())
	stop()
	if got := <-done; !errors.Is(got.err, syscall.EADDRINUSE) {
		t.Errorf("it ended with %v", got.err)
	}
}

func TestListen_RefusesNoPort(t *testing.T) {
	if _, err := Listen(t.Context(), "127.0.0.1:70000", nil, nil); err == nil {
		t.Error("it listens at a port that is none")
	}
}
