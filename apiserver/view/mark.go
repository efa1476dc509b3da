package view

import (
	"fmt"
	"strconv"
	"strings"
)

// markVersion is the version of a mark's text.
const markVersion = 1

// noMark is the text of a mark from which nothing can go on.
const noMark = "0"

// Mark says what somebody has: all lines as they were at At. Where Last is given, only those up to Last are as at At,
// and those behind it as at Before: a mark in the middle of a batch of changes. Any server that reads the same
// namespaces understands it.
type Mark struct {
	At     Position
	Before Position
	Last   *Key
	// Scope is a hash of what was asked for and of what could be seen.
	Scope uint64
}

// Place returns the text of a mark without its scope, which is the same for all callers.
func (v *View) Place(m Mark) string {
	if m.At == nil {
		return noMark
	}
	w := &writer{}
	w.number(markVersion)
	w.number(uint64(v.layout))
	w.position(m.At)
	if m.Last != nil {
		w.position(m.Before)
		w.key(*m.Last)
	}
	return w.String()
}

// JoinMark returns the text of a mark: its place and its scope.
func JoinMark(place string, scope uint64) string {
	if place == noMark {
		return noMark
	}
	return place + "." + strconv.FormatUint(scope, 36)
}

// ParseMark reads the text of a mark. The text of one from which nothing can go on gives a mark without a position. It
// fails with ErrForeign for a mark of a server that reads other namespaces, and with a finding for any other text.
func (v *View) ParseMark(text string) (Mark, error) {
	if text == noMark {
		return Mark{}, nil
	}
	place, scope, _ := strings.Cut(text, ".")
	r := newReader(place)
	version, layout := r.number(), r.number()
	if r.err == nil && version != markVersion {
		return Mark{}, fmt.Errorf("read an ID of version %d: %w", version, ErrForeign)
	}
	m := Mark{At: r.position()}
	if r.err == nil && len(r.bytes) > 0 {
		m.Before = r.position()
		last := r.key()
		m.Last = &last
	}
	err := r.end()
	if err == nil {
		m.Scope, err = strconv.ParseUint(scope, 36, 64)
	}
	if err != nil {
		return Mark{}, Findings{{
			Field: "since", Message: "since is no ID of an event of this server",
			Remedy: "give the ID of the last event as it came, or leave it out to begin with the full state",
		}}
	}
	if layout != uint64(v.layout) || len(m.At) != len(v.sources) || (m.Last != nil && len(m.Before) != len(v.sources)) {
		return Mark{}, ErrForeign
	}
	return m, nil
}
