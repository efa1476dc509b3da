package process

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

// Listen listens at host:port, as soon as nobody else does.
func Listen(ctx context.Context, address string, clock clock.Clock, log *slog.Logger) (net.Listener, error) {
	for tries := 0; ; tries++ {
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		if !errors.Is(err, syscall.EADDRINUSE) {
			return listener, err
		}
		if tries == 0 {
			log.Error("The port is in use; retrying until it is free", "address", address)
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
