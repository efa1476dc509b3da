package loadgen

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

	"github.com/coder/websocket"
	"google.golang.org/grpc/status"
)

// Cause is a sort of failure. A status other than 200 is a sort of its own, "status 503" or "gRPC status Unavailable".
type Cause string

// Sorts of failures.
const (
	// NoAnswer: it was not answered in time.
	NoAnswer Cause = "no answer in time"
	// Refused: nobody listens there.
	Refused Cause = "refused"
	// Reset: the connection was cut.
	Reset Cause = "reset"
	// Closed: the connection was closed before the answer was whole.
	Closed Cause = "closed"
	// Unreachable: there is no way there.
	Unreachable Cause = "unreachable"
	// Garbled: the answer is not what was asked for.
	Garbled Cause = "garbled"
	// Other: none of these.
	Other Cause = "other"
)

// garbledError tells of an answer that is not what was asked for.
type garbledError struct{ said string }

func (e garbledError) Error() string { return "read the answer: " + e.said }

func garbled(format string, values ...any) error { return garbledError{fmt.Sprintf(format, values...)} }

// statusError tells of an answer with another status than was asked for.
type statusError struct {
	status int
	said   []byte
}

func (e statusError) Error() string { return fmt.Sprintf("the answer is %d: %q", e.status, e.said) }

// causeOf sorts a failure. kept tells that the connection was used before: one that was
// closed while it was idle gives an error that cannot be told otherwise.
func causeOf(err error, kept bool) Cause {
	if answered, ok := errors.AsType[statusError](err); ok {
		return Cause(fmt.Sprintf("status %d", answered.status))
	}
	if _, ok := errors.AsType[garbledError](err); ok {
		return Garbled
	}
	if failed, ok := errors.AsType[interface {
		error
		GRPCStatus() *status.Status
	}](err); ok {
		return Cause("gRPC status " + failed.GRPCStatus().Code().String())
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return NoAnswer
	}
	if _, ok := errors.AsType[websocket.CloseError](err); ok {
		return Closed
	}
	for _, known := range []struct {
		err   error
		cause Cause
	}{
		{context.DeadlineExceeded, NoAnswer},
		{syscall.ECONNREFUSED, Refused},
		{syscall.ECONNRESET, Reset},
		{syscall.EPIPE, Reset},
		{syscall.EHOSTUNREACH, Unreachable},
		{syscall.ENETUNREACH, Unreachable},
		{io.EOF, Closed},
		{io.ErrUnexpectedEOF, Closed},
		{net.ErrClosed, Closed},
	} {
		if errors.Is(err, known.err) {
			return known.cause
		}
	}
	if kept {
		return Closed
	}
	return Other
}
