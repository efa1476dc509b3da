package controlstore

import (
	"bytes"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// What the answers to one question may be at most, which the client library holds all at once. The largest of ours
// are 1,000 keys of SCAN, some kilobytes, and ACL GETUSER, three lists deep. TestAnswers_AreBoundInSum measures that a
// question and a sweep together allocate 4 MiB at most, whatever the server is.
const (
	maxAnswers = 1 << 20
	maxParts   = 4096
	maxLine    = 64 << 10
	maxDepth   = 3
)

var (
	errGarbage = errors.New("it does not speak Redis' protocol")
	errTLS     = errors.New("it speaks TLS, and the address does not begin with rediss://")
	errHuge    = errors.New("its answers are larger than any that Redis gives")
)

// guard is a connection through which nothing comes but well-formed replies of a bearable
// size, and that knows when the other side was slow. It is used by one goroutine.
type guard struct {
	net.Conn
	replies replies
	broken  error
	// limit is what is slow, measured from a question to the first byte after it.
	limit time.Duration
	timer *time.Timer
	late  atomic.Bool
}

// Write sends a question.
func (g *guard) Write(question []byte) (int, error) {
	g.replies.size, g.replies.parts = 0, 0
	if g.timer == nil {
		g.timer = time.AfterFunc(g.limit, func() { g.late.Store(true) })
	}
	n, err := g.Conn.Write(question)
	if err != nil {
		err = g.farewell(err)
	}
	return n, err
}

// farewell is what a server said before it closed the connection, err if nothing: one that
// refuses our certificate, or everybody, does not wait for a question.
func (g *guard) farewell(err error) error {
	words := make([]byte, maxLine)
	n, last := g.Conn.Read(words)
	if operation := (&net.OpError{}); errors.As(last, &operation) && operation.Op == "remote error" {
		return last
	}
	_ = g.replies.feed(words[:n]) // for its first line alone
	if g.replies.turnedAway != "" {
		return g.replies.turnedAway
	}
	return err
}

// refusal is an error that a server answered with, as the client library has them.
type refusal string

func (r refusal) Error() string { return string(r) }

// RedisError tells it from other errors.
func (refusal) RedisError() {}

// Read receives a part of a reply.
func (g *guard) Read(buffer []byte) (int, error) {
	if g.broken != nil {
		return 0, g.broken
	}
	n, err := g.Conn.Read(buffer)
	if n > 0 {
		g.answered()
		if g.broken = g.replies.feed(buffer[:n]); g.broken != nil {
			return 0, g.broken
		}
	}
	if err != nil && g.replies.turnedAway != "" {
		err = g.replies.turnedAway
	}
	return n, err
}

// Close ends the connection.
func (g *guard) Close() error {
	g.answered()
	return g.Conn.Close()
}

func (g *guard) answered() {
	if g.timer != nil {
		g.timer.Stop()
		g.timer = nil
	}
}

// replies follows a stream of replies of protocol version 2 without keeping them.
type replies struct {
	began bool
	// turnedAway is the answer of a server that takes no connection of ours, which it gives
	// unasked before it closes.
	turnedAway refusal
	// line is what has come of a line, skip how much of a text is still to come, and open
	// how many elements each open list still wants.
	line []byte
	skip int
	open []int
	// size and parts are those of all replies since the last question.
	size, parts int
}

// feed takes what comes next.
func (r *replies) feed(next []byte) error {
	if !r.began && len(next) > 0 {
		r.began = true
		if next[0] == 0x15 { // the first byte of a TLS alert
			return errTLS
		}
	}
	for len(next) > 0 {
		n, err := r.take(next)
		if r.size += n; err == nil && r.size > maxAnswers {
			err = errHuge
		}
		if err != nil {
			return err
		}
		next = next[n:]
	}
	return nil
}

// take takes what belongs together, a part of a text or of a line, and tells how much.
func (r *replies) take(next []byte) (int, error) {
	if r.skip > 0 {
		n := min(r.skip, len(next))
		if r.skip -= n; r.skip == 0 {
			r.close()
		}
		return n, nil
	}
	n, whole := len(next), false
	if end := bytes.IndexByte(next, '\n'); end >= 0 {
		n, whole = end+1, true
	}
	r.line = append(r.line, next[:n]...)
	if len(r.line) > maxLine {
		return n, errHuge
	}
	if !whole {
		return n, nil
	}
	line := r.line
	r.line = r.line[:0]
	return n, r.header(line)
}

// header takes a line that is complete.
func (r *replies) header(line []byte) error {
	if len(line) < 3 || line[len(line)-2] != '\r' {
		return errGarbage
	}
	if r.parts++; r.parts > maxParts {
		return errHuge
	}
	rest := string(line[1 : len(line)-2])
	switch line[0] {
	case '-':
		if strings.HasPrefix(rest, "DENIED ") || strings.HasPrefix(rest, "ERR max number of clients") {
			r.turnedAway = refusal(rest)
		}
		r.close()
	case '+', ':':
		r.close()
	case '$':
		return r.begin(rest, maxAnswers, func(size int) { r.skip = size + len("\r\n") })
	case '*':
		return r.begin(rest, maxParts, r.enter)
	default:
		return errGarbage
	}
	return nil
}

// begin begins a text or a list of a size, -1 for one that is none.
func (r *replies) begin(text string, most int, with func(size int)) error {
	size, err := strconv.Atoi(text)
	switch {
	case err != nil || size < -1:
		return errGarbage
	case size == -1:
		r.close()
	case size > most:
		return errHuge
	default:
		with(size)
	}
	if len(r.open) > maxDepth {
		return errHuge
	}
	return nil
}

// enter begins a list.
func (r *replies) enter(size int) {
	if size == 0 {
		r.close()
		return
	}
	r.open = append(r.open, size)
}

// close ends an element, and the lists of which it was the last.
func (r *replies) close() {
	for last := len(r.open) - 1; last >= 0; last-- {
		if r.open[last]--; r.open[last] > 0 {
			return
		}
		r.open = r.open[:last]
	}
}
