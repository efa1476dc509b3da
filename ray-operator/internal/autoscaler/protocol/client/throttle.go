package client

import (
	"context"
	"net"

	"golang.org/x/time/rate"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol/wire"
)

// How many bytes of a connection are read: the longest decision at once, and then 512 KiB a
// second, in which ten words a second about 400 workers that leave have room. It bounds what
// a hostile autoscaler can make the operator do, by whatever frames of HTTP/2.
const (
	bytesAtOnce    = wire.MaxDecision
	bytesPerSecond = 512 << 10
)

// throttled is a connection that is read only so fast.
type throttled struct {
	net.Conn
	limiter *rate.Limiter
	closed  context.Context //nolint:containedctx // the life of the connection
	end     context.CancelFunc
}

func throttle(connection net.Conn) net.Conn {
	closed, end := context.WithCancel(context.Background())
	return &throttled{Conn: connection, limiter: rate.NewLimiter(bytesPerSecond, bytesAtOnce), closed: closed, end: end}
}

// Read reads, and then waits until so much may be read.
func (t *throttled) Read(p []byte) (int, error) {
	n, err := t.Conn.Read(p[:min(len(p), bytesAtOnce)])
	if wait := t.limiter.WaitN(t.closed, n); err == nil {
		err = wait // it fails only once the connection was closed
	}
	return n, err
}

// Close ends the connection, and reads that wait on it.
func (t *throttled) Close() error {
	t.end()
	return t.Conn.Close()
}
