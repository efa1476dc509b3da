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

// markToken is what the text of a mark has.
type markToken struct {
	_       struct{} `cbor:",toarray"`
	Version uint64
	Layout  uint32
	At      distances
	Before  distances
	Last    *Key
}

// mark returns the mark without its scope, and reports whether its positions are whole.
func (t *markToken) mark() (m Mark, is bool) {
	if m.At, is = t.At.position(); is && t.Last != nil {
		m.Last = t.Last
		m.Before, is = t.Before.position()
	}
	return m, is
}

// Place returns the text of a mark without its scope, which is the same for all callers.
func (v *View) Place(m Mark) string {
	if m.At == nil {
		return noMark
	}
	token := markToken{Version: markVersion, Layout: v.layout, At: distancesOf(m.At)}
	if m.Last != nil {
		token.Before, token.Last = distancesOf(m.Before), m.Last
	}
	return encodeToken(token)
}

// JoinMark returns the text of a mark: its place and its scope.
func JoinMark(place string, scope uint64) string {
	if place == noMark {
		return noMark
	}
	return place + "." + strconv.FormatUint(scope, 36)
}

// ParseMark reads the text of a mark. The text of one from which nothing can go on gives a mark without a position. It
// fails with ErrForeign for a mark of a server that reads other namespaces or writes marks of another version, and with a
// finding for any other text.
func (v *View) ParseMark(text string) (Mark, error) {
	if text == noMark {
		return Mark{}, nil
	}
	place, scope, _ := strings.Cut(text, ".")
	if version, is := versionOf(place); is && version != markVersion {
		return Mark{}, fmt.Errorf("read an ID of version %d: %w", version, ErrForeign)
	}
	var token markToken
	err := decodeToken(place, &token)
	m, is := token.mark()
	if err == nil {
		m.Scope, err = strconv.ParseUint(scope, 36, 64)
	}
	if err == nil && scope != strconv.FormatUint(m.Scope, 36) { // the text becomes the ID of events
		err = errToken
	}
	if err != nil || !is {
		return Mark{}, Findings{{
			Field: "since", Message: "since is no ID of an event of this server",
			Remedy: "give the ID of the last event as it came, or leave it out to begin with the full state",
		}}
	}
	if token.Layout != v.layout || len(m.At) != len(v.sources) || (m.Last != nil && len(m.Before) != len(v.sources)) {
		return Mark{}, ErrForeign
	}
	return m, nil
}
