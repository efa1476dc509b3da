// Package progress says on one line how far something is.
//
// In: a state in words, each time somebody looks, and how long it has taken. Out: on a terminal one line that is written
// over; elsewhere one line per change, so that a log of CI stays short.
//
// It must never print colours, and nothing to standard output.
package progress

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// clear takes the cursor to the first column and removes the line.
const clear = "\r\x1b[K"

// Line is a line of progress.
type Line struct {
	out io.Writer
	// width is nil where the writer is no terminal.
	width  func() int
	last   string
	isOpen bool
}

// New returns a line. Width returns how many columns a terminal has; it is nil where there is none.
func New(out io.Writer, width func() int) *Line { return &Line{out: out, width: width} }

// Silent returns a line that is never printed.
func Silent() *Line { return New(io.Discard, nil) }

// Show says how it is now, after a time.
func (l *Line) Show(state string, after time.Duration) {
	text := fmt.Sprintf("%5s  %s", after.Round(time.Second), state)
	if l.width != nil {
		fmt.Fprint(l.out, clear, fit(text, l.width()))
		l.isOpen = true
		return
	}
	if state != l.last {
		fmt.Fprintln(l.out, text)
		l.last = state
	}
}

// Close takes the live line away, so that what follows begins a line.
func (l *Line) Close() {
	if l.isOpen {
		fmt.Fprint(l.out, clear)
		l.isOpen = false
	}
}

// fit cuts a text that would go on in the next line of a terminal.
func fit(text string, width int) string {
	if width <= 1 || utf8.RuneCountInString(text) < width {
		return text
	}
	return strings.TrimRight(string([]rune(text)[:width-2]), " ") + "…"
}
