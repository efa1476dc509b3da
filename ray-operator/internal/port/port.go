// Package port opens ports in pods whose other containers run the code of users.
//
// In: an address, a clock and a log. Out: a listener, as soon as nobody else has the port.
//
// It must never give up because a port is taken: while the process was away, the code of users could take it. A process
// that ended would wait for longer each time before the kubelet starts it again, and for minutes in the end.
package port

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"syscall"
	"time"

	"k8s.io/utils/clock"
)

// again is how often a port is tried that somebody else has.
const again = 500 * time.Millisecond

// Open listens at host:port, as soon as nobody else does.
func Open(ctx context.Context, address string, clock clock.Clock, log *slog.Logger) (net.Listener, error) {
	for tries := 0; ; tries++ {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		if !errors.Is(err, syscall.EADDRINUSE) {
			return listener, err
		}
		if tries == 0 {
			log.Error("Somebody else has the port; it is tried again until it is free", "address", address)
		}
		timer := clock.NewTimer(again)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, err
		case <-timer.C():
		}
	}
}
