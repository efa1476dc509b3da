package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/autoscaler/protocol/wire"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll"
)

// How soon a stream is tried again.
const (
	// spread is over how long the first tries of connections that begin together are spread at least.
	spread = 500 * time.Millisecond
	// shortest and longest bound the pause after a failure, which doubles with each in a row.
	shortest, longest = time.Second, 5 * time.Second
)

// endpoint is an autoscaler, as poll has it.
type endpoint = poll.Endpoint[types.NamespacedName, place, wanted, Answer]

// connection is the stream to one autoscaler, made again when it breaks. It has a goroutine that reads, and one that sends
// while there is something to send.
type connection struct {
	*endpoint
	link     *Link
	failures int

	mu sync.Mutex
	// stream is the one there is, nil without. sending reports that a goroutine sends a snapshot on it, and more that another
	// may be wanted since it looked. The lock guards all three.
	stream        *stream
	sending, more bool
}

// stream is one to an autoscaler.
type stream struct {
	*wire.Stream
	ctx   context.Context //nolint:containedctx // the stream's own life
	head  types.UID
	token string
	end   context.CancelCauseFunc
	// senders are the goroutines that send, one at a time, and sent is what they sent last.
	senders sync.WaitGroup
	sent    wire.Frame
}

// run keeps a stream until its context ends.
func (l *connection) run(ctx context.Context, _ <-chan struct{}) {
	for pause := l.Spread(spread); l.pass(ctx, pause); {
		err := l.converse(ctx)
		l.Token.Heard(err)
		if ctx.Err() != nil {
			return
		}
		l.failures++
		l.publish(func(a *Answer) {
			if a.Failure == "" {
				a.FailingSince = l.link.clock.Now()
			}
			a.Connected, a.Failure, a.Err = false, headclient.KindOf(err), err
		})
		pause = poll.Jitter(poll.Double(shortest, l.failures, longest))
	}
}

// pass lets time go by. It is false when the context ends.
func (l *connection) pass(ctx context.Context, pause time.Duration) bool {
	_, err := l.Pause(ctx, pause, nil)
	return err == nil
}

// publish changes what is known of the autoscaler.
func (l *connection) publish(change func(*Answer)) {
	l.Publish(func(_ types.NamespacedName, _ wanted, answer Answer) Answer {
		change(&answer)
		return answer
	})
}

// converse makes a stream and reads it until it breaks, which it always does for a reason.
func (l *connection) converse(ctx context.Context) error {
	target := l.Latest()
	act := "follow the autoscaler at " + target.Address
	if target.invalid != nil {
		return &headclient.Error{Kind: headclient.Invalid, Act: act, Err: target.invalid}
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	token, err := read(ctx, l.Token.Token())
	if err != nil {
		return &headclient.Error{Kind: headclient.Unauthenticated, Act: act, Err: err}
	}
	if err := l.permitted(); err != nil {
		return &headclient.Error{Kind: headclient.Unavailable, Act: act, Err: err}
	}
	kind, err := l.follow(ctx, target.Target, &stream{head: target.Head, token: token, end: end})
	if cause := context.Cause(ctx); cause != nil { // what was seen is only that we hung up
		kind, err = kindOf(cause), cause
	}
	return &headclient.Error{Kind: kind, Act: act, Err: err}
}

// permitted reports why nothing may be asked of an autoscaler now.
func (l *connection) permitted() error {
	if l.link.permit == nil {
		return nil
	}
	return l.link.permit()
}

// read reads the token for a stream that is about to be made.
func read(ctx context.Context, token headclient.Token) (string, error) {
	if token == nil {
		return "", nil
	}
	limited, stop := context.WithTimeout(ctx, wire.Greeting)
	defer stop()
	text, err := token(limited)
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	if text == "" {
		return "", errors.New("read the token: it is empty")
	}
	return text, nil
}

// follow opens a stream and publishes what comes on it, until it breaks.
func (l *connection) follow(ctx context.Context, target Target, s *stream) (headclient.Kind, error) {
	silent := time.AfterFunc(2*wire.Greeting, func() { s.end(errSilent) })
	defer silent.Stop()
	opened, err := l.link.callerOf(target).Follow(ctx, target.Address, string(s.head), s.token)
	if err != nil {
		return s.explain(err)
	}
	defer opened.Close()
	silent.Stop()
	s.Stream = opened
	l.publish(func(a *Answer) { a.Connected, a.Failure, a.Err, a.FailingSince = true, "", nil, time.Time{} })
	defer l.adopt(ctx, s)()
	for {
		frame, err := s.Receive()
		if err != nil {
			return s.explain(err)
		}
		decision, err := wire.DecodeDecision(frame)
		if err == nil && decision.Head != string(s.head) {
			err = fmt.Errorf("it speaks of another head, %q", decision.Head)
		}
		if err != nil {
			return headclient.Protocol, s.hide(err.Error())
		}
		l.heard(decision)
		if !l.pass(ctx, wire.Pause) {
			return headclient.Unavailable, ctx.Err()
		}
	}
}

// heard publishes a decision.
func (l *connection) heard(decision protocol.Decision) {
	l.failures = 0
	l.publish(func(a *Answer) { a.Decision, a.At = decision, l.link.clock.Now() })
}

// adopt makes a stream the one that there is, sends the snapshot on it, and returns what ends that.
func (l *connection) adopt(ctx context.Context, s *stream) (abandon func()) {
	var stop context.CancelFunc
	s.ctx, stop = context.WithCancel(ctx)
	l.mu.Lock()
	l.stream, l.sending, l.more = s, false, false
	l.mu.Unlock()
	l.tell()
	return func() {
		l.mu.Lock()
		l.stream = nil
		l.mu.Unlock()
		stop()
		s.senders.Wait()
	}
}

// tell ensures that the autoscaler gets the snapshot that is wanted now.
func (l *connection) tell() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.more = true
	if s := l.stream; s != nil && !l.sending { // the next stream begins with it
		l.sending = true
		s.senders.Go(func() {
			if err := l.send(s); err != nil && s.ctx.Err() == nil {
				s.end(err)
			}
		})
	}
}

// send sends snapshots until the one that is wanted was sent. One that was wanted only while another was under way is
// never sent.
func (l *connection) send(s *stream) error {
	for l.hasMore() {
		target := l.Latest()
		switch {
		case target.invalid != nil:
			return target.invalid
		case bytes.Equal(s.sent, target.snapshot):
			continue
		}
		if err := l.permitted(); err != nil {
			return err
		}
		s.sent = target.snapshot
		if err := s.order(); err != nil {
			return err
		}
		if !l.pass(s.ctx, wire.SendPause) {
			return s.ctx.Err()
		}
	}
	return nil
}

// hasMore reports whether another snapshot may be wanted than when it was asked last. If not, nothing is sent any more.
func (l *connection) hasMore() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sending, l.more = l.more, false
	return l.sending
}

// order sends the snapshot, and fails if nobody takes it in time.
func (s *stream) order() error {
	limited, stop := context.WithTimeoutCause(s.ctx, 2*wire.Greeting, errSilent)
	defer stop()
	err := s.Order(limited, s.sent)
	if err == nil {
		return nil
	}
	if cause := context.Cause(limited); cause != nil {
		return cause
	}
	kind, err := s.explain(err)
	return &headclient.Error{Kind: kind, Act: "send a snapshot", Err: err}
}

var errSilent = errors.New("it took the call and never answered")

// kindOf sorts why we hung up.
func kindOf(cause error) headclient.Kind {
	var failure *headclient.Error
	switch {
	case errors.As(cause, &failure):
		return failure.Kind
	case errors.Is(cause, errSilent):
		return headclient.Timeout
	case errors.Is(cause, wire.ErrBounds):
		return headclient.Invalid
	default:
		return headclient.Unavailable
	}
}

// explain sorts why a stream broke.
func (s *stream) explain(err error) (headclient.Kind, error) {
	said := status.Convert(err)
	kind := headclient.Protocol
	switch said.Code() {
	case codes.Unauthenticated, codes.PermissionDenied:
		kind = headclient.Unauthenticated
	case codes.Unavailable, codes.Canceled:
		kind = headclient.Unavailable
	case codes.DeadlineExceeded:
		kind = headclient.Timeout
	case codes.Aborted, codes.FailedPrecondition:
		kind = headclient.Refused
	case codes.Unimplemented:
		kind = headclient.Unsupported
	}
	if errors.Is(err, io.EOF) {
		return headclient.Unavailable, errors.New("it ended the stream")
	}
	return kind, s.hide(said.Message())
}

// hide makes an error of what an autoscaler said, or what was found in it, without the
// token, which the code beside it knows.
func (s *stream) hide(said string) error {
	if s.token != "" {
		said = strings.ReplaceAll(said, s.token, "[token]")
	}
	return errors.New(wire.Text(said))
}
