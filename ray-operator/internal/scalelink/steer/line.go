package steer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/poll"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/scalelink"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/scalelink/wire"
)

// How soon a stream is tried again.
const (
	// spread is over how long the first tries of lines that begin together are spread at least.
	spread = 500 * time.Millisecond
	// shortest and longest bound the pause after a failure, which doubles with each in a row.
	shortest, longest = time.Second, 5 * time.Second
)

// endpoint is an autoscaler, as poll has it.
type endpoint = poll.Endpoint[types.NamespacedName, place, wanted, Answer]

// line is the stream to one autoscaler, made again when it breaks. It has a goroutine that reads, and one that sends
// while there is a stream.
type line struct {
	*endpoint
	link     *Link
	failures int
}

// stream is one to an autoscaler.
type stream struct {
	*wire.Stream
	head  types.UID
	token string
	end   context.CancelCauseFunc
}

// run keeps a stream until its context ends.
func (l *line) run(ctx context.Context, news <-chan struct{}) {
	for pause := l.Spread(spread); l.pass(ctx, pause); {
		err := l.converse(ctx, news)
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
func (l *line) pass(ctx context.Context, pause time.Duration) bool {
	_, err := l.Pause(ctx, pause, nil)
	return err == nil
}

// publish changes what is known of the autoscaler.
func (l *line) publish(change func(*Answer)) {
	l.Publish(func(_ types.NamespacedName, _ wanted, answer Answer) Answer {
		change(&answer)
		return answer
	})
}

// converse makes a stream and reads it until it breaks, which it always does for a reason.
func (l *line) converse(ctx context.Context, news <-chan struct{}) error {
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
	kind, err := l.follow(ctx, target.Target, &stream{head: target.Head, token: token, end: end}, news)
	if cause := context.Cause(ctx); cause != nil { // what was seen is only that we hung up
		kind, err = kindOf(cause), cause
	}
	return &headclient.Error{Kind: kind, Act: act, Err: err}
}

// permitted reports why nothing may be asked of an autoscaler now.
func (l *line) permitted() error {
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
func (l *line) follow(ctx context.Context, target Target, s *stream, news <-chan struct{}) (headclient.Kind, error) {
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
	defer l.sendOrders(ctx, s, news)()
	for {
		frame, err := s.Receive()
		if err != nil {
			return s.explain(err)
		}
		word, err := wire.ToWord(frame)
		if err == nil && word.Head != string(s.head) {
			err = fmt.Errorf("it speaks of another head, %q", word.Head)
		}
		if err != nil {
			return headclient.Protocol, s.hide(err.Error())
		}
		l.heard(word)
		if !l.pass(ctx, wire.Pause) {
			return headclient.Unavailable, ctx.Err()
		}
	}
}

// heard publishes a word.
func (l *line) heard(word scalelink.Word) {
	l.failures = 0
	l.publish(func(a *Answer) { a.Word, a.At = word, l.link.clock.Now() })
}

// sendOrders begins to send orders on a stream, and returns what ends that.
func (l *line) sendOrders(ctx context.Context, s *stream, news <-chan struct{}) (end func()) {
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := l.send(ctx, s, news); err != nil && ctx.Err() == nil {
			s.end(err)
		}
	}()
	return func() { stop(); <-ended }
}

// send sends the orders that are wanted, each time that they change, until its context ends. Those that were wanted only
// while others were under way are never sent.
func (l *line) send(ctx context.Context, s *stream, news <-chan struct{}) error {
	var sent wire.Frame
	for {
		target := l.Latest()
		if target.invalid != nil {
			return target.invalid
		}
		if bytes.Equal(sent, target.orders) {
			if _, err := l.Pause(ctx, -1, news); err != nil {
				return err
			}
			continue
		}
		if err := l.permitted(); err != nil {
			return err
		}
		given := make(chan error, 1)
		go func() { given <- s.order(ctx, target.orders) }() // a goroutine that waits keeps the stack that it once needed
		if err := <-given; err != nil {
			return err
		}
		if sent = target.orders; !l.pass(ctx, wire.SendPause) {
			return ctx.Err()
		}
	}
}

// order gives the orders, and fails if nobody takes them in time.
func (s *stream) order(ctx context.Context, orders wire.Frame) error {
	limited, stop := context.WithTimeoutCause(ctx, 2*wire.Greeting, errSilent)
	defer stop()
	err := s.Order(limited, orders)
	if err == nil {
		return nil
	}
	if cause := context.Cause(limited); cause != nil {
		return cause
	}
	kind, err := s.explain(err)
	return &headclient.Error{Kind: kind, Act: "give orders", Err: err}
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
