// Package progress tells the person at the terminal what is being done and how
// long it has taken so far.
//
// In: one line for each step. Out: the line with the seconds since the start,
// on one writer. It must never be written to by the programs that are started:
// those have log files.
package progress

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Log writes lines; it may be used by many goroutines.
type Log struct {
	mu    sync.Mutex
	out   io.Writer
	start time.Time
}

// New writes to out, counting from start.
func New(out io.Writer, start time.Time) *Log { return &Log{out: out, start: start} }

// Step writes one line.
func (l *Log) Step(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.out, "[%5.1fs] %s\n", time.Since(l.start).Seconds(), fmt.Sprintf(format, args...))
}
