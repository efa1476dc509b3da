package app

import (
	"bufio"
	"net"
	"net/http"
	"slices"
	"time"

	"k8s.io/utils/clock"
)

const (
	// unreadFor is for how long nothing of an answer may be read before it ends: it keeps a place and a connection.
	unreadFor = time.Minute
	// maxWrite is how many bytes are written at once: the time is that of each of them.
	maxWrite = 32 << 10
)

// limited writes an answer to its connection, and ends it where nobody reads it.
type limited struct {
	http.ResponseWriter
	clock   clock.WithDelayedExecution
	control *http.ResponseController
	// isTaken is that the connection is another one's by now, such as a WebSocket's.
	isTaken bool
}

// limit returns what the answer to a request is written by. It must be finished.
func (f *front) limit(w http.ResponseWriter, r *http.Request) *limited {
	l := &limited{ResponseWriter: w, clock: f.clock, control: http.NewResponseController(w)}
	if r.ProtoMajor == 1 { // a connection that is kept has the deadline of the answer before
		_ = l.control.SetWriteDeadline(time.Time{}) // every server's connections have one
	}
	return l
}

// finish gives the connection a while for what it still holds of the answer.
func (l *limited) finish() {
	if !l.isTaken {
		_ = l.control.SetWriteDeadline(l.clock.Now().Add(unreadFor)) // every server's connections have one
	}
}

// Write implements http.ResponseWriter. Each part may take unreadFor.
func (l *limited) Write(body []byte) (written int, err error) {
	for part := range slices.Chunk(body, maxWrite) {
		err = l.within(func() error {
			n, err := l.ResponseWriter.Write(part)
			written += n
			return err
		})
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

// FlushError is what http.ResponseController flushes by.
func (l *limited) FlushError() error { return l.within(l.control.Flush) }

// Hijack implements http.Hijacker.
func (l *limited) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	connection, buffered, err := l.control.Hijack()
	l.isTaken = err == nil
	return connection, buffered, err
}

// within lets a write take unreadFor. One that takes longer fails, and so do those after it.
func (l *limited) within(write func() error) error {
	began, ended := l.clock.Now(), make(chan struct{})
	timer := l.clock.AfterFunc(unreadFor, func() {
		defer close(ended)
		_ = l.control.SetWriteDeadline(began) // which is over
	})
	err := write()
	if !timer.Stop() {
		<-ended // what it does is for this answer alone
	}
	return err
}

// Unwrap lets http.ResponseController find what is below.
func (l *limited) Unwrap() http.ResponseWriter { return l.ResponseWriter }
