package protocoltest

import (
	"context"
	"fmt"
	"net"
	"sync"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol/wire"
)

// Operator is a scripted operator with one stream. Its methods may be called at any time.
type Operator struct {
	stream *wire.Stream
	ctx    context.Context //nolint:containedctx // the stream's own life
	hangUp context.CancelFunc
	ended  chan struct{}

	mu        sync.Mutex
	decisions int
	decision  protocol.Decision
	err       error
}

// Connect follows the autoscaler at host:port beside a head, with a token if it is not empty.
// It returns when the autoscaler has taken it, or would not: the error is then its status.
func Connect(ctx context.Context, address, head, token string) (*Operator, error) {
	return ConnectBy(ctx, func(ctx context.Context, address string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", address)
	}, address, head, token)
}

// ConnectBy is Connect by a connection of the caller's choice.
func ConnectBy(ctx context.Context, dial wire.Dialer, address, head, token string) (*Operator, error) {
	o := &Operator{ended: make(chan struct{})}
	o.ctx, o.hangUp = context.WithCancel(ctx)
	var err error
	if o.stream, err = wire.NewCaller(dial).Follow(o.ctx, address, head, token); err != nil {
		o.hangUp()
		return nil, fmt.Errorf("connect to the autoscaler at %s: %w", address, err)
	}
	go o.read()
	return o, nil
}

// Order sends a snapshot, and returns when it is taken, or why not.
func (o *Operator) Order(snapshot protocol.Snapshot) error {
	frame, err := wire.EncodeSnapshot(snapshot)
	if err != nil {
		return err
	}
	return o.OrderRaw(frame)
}

// OrderRaw sends any bytes for a snapshot.
func (o *Operator) OrderRaw(frame wire.Frame) error {
	return o.stream.Order(o.ctx, frame)
}

// Decision is what the autoscaler said last, and how often it has spoken.
func (o *Operator) Decision() (protocol.Decision, int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.decision, o.decisions
}

// Ended is closed when the stream has ended; Err is then why.
func (o *Operator) Ended() <-chan struct{} { return o.ended }

// Err is why the stream has ended, nil while it has not.
func (o *Operator) Err() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.err
}

// Close hangs up, and waits until nothing of it runs.
func (o *Operator) Close() {
	o.hangUp()
	<-o.ended
	o.stream.Close()
}

func (o *Operator) read() {
	defer close(o.ended)
	for {
		frame, err := o.stream.Receive()
		var decision protocol.Decision
		if err == nil {
			decision, err = wire.DecodeDecision(frame)
		}
		o.mu.Lock()
		if o.err = err; err == nil {
			o.decision = decision
			o.decisions++
		}
		o.mu.Unlock()
		if err != nil {
			return
		}
	}
}
