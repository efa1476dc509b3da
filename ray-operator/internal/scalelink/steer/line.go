package steer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/scalelink"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/scalelink/wire"
)

// How soon a stream is tried again.
const (
	// spread is over how long the first tries of lines that begin together are spread at least, perLine what each line adds:
	// with each goes a read of a Secret.
	spread, perLine = 500 * time.Millisecond, 5 * time.Millisecond
	// shortest and longest bound the pause after a failure, which doubles with each in a row.
	shortest, longest = time.Second, 5 * time.Second
)

// line is the stream to one autoscaler, made again when it breaks. It has a goroutine that
// reads, and one that sends while there is something to send. All but the last two of its fields
// are guarded by the Link's lock.
type line struct {
	link    *Link
	cluster types.NamespacedName
	target  Target
	// orders are what the autoscaler is to know; invalid is why they cannot be sent.
	orders   wire.Frame
	invalid  error
	answer   Answer
	answered bool
	stop     context.CancelFunc
	// stream is the one there is, nil without.
	stream *stream

	token    *headclient.Remembered
	failures int
}

// stream is one to an autoscaler.
type stream struct {
	*wire.Stream
	ctx   context.Context //nolint:containedctx // the stream's own life
	head  types.UID
	token string
	end   context.CancelCauseFunc
	// sent is what was sent on it; sending tells that a goroutine ensures that this is
	// what is wanted. The Link's lock guards both.
	sent    wire.Frame
	sending bool
}

func newLine(link *Link, cluster types.NamespacedName, target Target) *line {
	return &line{link: link, cluster: cluster, target: target, stop: func() {}}
}

// leadsTo reports whether a target is the autoscaler at the end of this line. Tokens are
// functions that are asked again each time: only whether there is one can be compared.
func (l *line) leadsTo(target Target) bool {
	return l.target.Head == target.Head && l.target.Address == target.Address && l.target.Trust == target.Trust &&
		(l.target.Token == nil) == (target.Token == nil)
}

// run keeps a stream until its context ends.
func (l *line) run(ctx context.Context) {
	for pause := rand.N(l.link.spread()); l.pass(ctx, pause); {
		err := l.converse(ctx)
		l.token.Heard(err)
		if ctx.Err() != nil {
			return
		}
		l.failures++
		l.link.publish(l, func(a *Answer) {
			if a.Failure == "" {
				a.FailingSince = l.link.clock.Now()
			}
			a.Connected, a.Failure, a.Err = false, headclient.KindOf(err), err
		})
		back := min(shortest<<min(l.failures-1, 8), longest)
		pause = back - back/10 + rand.N(back/5)
	}
}

// pass lets time go by. It is false when the context ends.
func (l *line) pass(ctx context.Context, pause time.Duration) bool {
	timer := l.link.clock.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
		return true
	}
}

// converse makes a stream and reads it until it breaks, which it always does for a reason.
func (l *line) converse(ctx context.Context) error {
	l.link.mu.Lock()
	target, invalid := l.target, l.invalid
	l.link.mu.Unlock()
	act := "follow the autoscaler at " + target.Address
	if invalid != nil {
		return &headclient.Error{Kind: headclient.Invalid, Act: act, Err: invalid}
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	if l.token == nil && target.Token != nil { // a line is given one always or never
		l.token = headclient.Remember(func(ctx context.Context) (string, error) { return l.wanted().Token(ctx) })
	}
	token, err := read(ctx, l.token.Token())
	if err != nil {
		return &headclient.Error{Kind: headclient.Unauthenticated, Act: act, Err: err}
	}
	kind, err := l.follow(ctx, target, &stream{head: target.Head, token: token, end: end})
	if cause := context.Cause(ctx); cause != nil { // what was seen is only that we hung up
		kind, err = kindOf(cause), cause
	}
	return &headclient.Error{Kind: kind, Act: act, Err: err}
}

// spread is over how long first tries are spread.
func (l *Link) spread() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(spread, time.Duration(len(l.lines))*perLine)
}

func (l *line) wanted() Target {
	l.link.mu.Lock()
	defer l.link.mu.Unlock()
	return l.target
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
func (l *line) follow(ctx context.Context, target Target, s *stream) (headclient.Kind, error) {
	silent := time.AfterFunc(2*wire.Greeting, func() { s.end(errSilent) })
	defer silent.Stop()
	opened, err := l.link.callerOf(target).Follow(ctx, target.Address, string(s.head), s.token)
	if err != nil {
		return s.explain(err)
	}
	defer opened.Close()
	silent.Stop()
	s.Stream, s.ctx = opened, ctx
	l.adopt(s)
	defer l.abandon()
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

// adopt makes a stream the one that there is, and sends the orders on it.
func (l *line) adopt(s *stream) {
	l.link.publish(l, func(a *Answer) {
		a.Connected, a.Failure, a.Err, a.FailingSince = true, "", nil, time.Time{}
	})
	l.link.mu.Lock()
	defer l.link.mu.Unlock()
	l.stream = s
	l.tell()
}

func (l *line) abandon() {
	l.link.mu.Lock()
	defer l.link.mu.Unlock()
	l.stream = nil
}

// heard publishes a word.
func (l *line) heard(word scalelink.Word) {
	l.failures = 0
	l.link.publish(l, func(a *Answer) { a.Word, a.At = word, l.link.clock.Now() })
}

// tell ensures that the autoscaler gets the orders that are wanted now. The caller holds
// the lock.
func (l *line) tell() {
	s := l.stream
	switch {
	case s == nil: // the next stream begins with them
	case l.invalid != nil:
		s.end(l.invalid)
	case !s.sending:
		s.sending = true
		l.link.running.Go(func() { l.send(s) })
	}
}

// send sends orders until what is wanted was sent. Those that were wanted only while
// others were under way are never sent.
func (l *line) send(s *stream) {
	for {
		l.link.mu.Lock()
		if l.invalid != nil || bytes.Equal(s.sent, l.orders) {
			s.sending = false
			l.link.mu.Unlock()
			return
		}
		s.sent = l.orders
		l.link.mu.Unlock()
		if err := s.order(); err != nil {
			s.end(err)
			return
		}
		if !l.pass(s.ctx, wire.SendPause) {
			return
		}
	}
}

// order gives the orders, and fails if nobody takes them in time.
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
