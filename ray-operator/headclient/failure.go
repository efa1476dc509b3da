package headclient

import (
	"errors"
	"strings"
	"unicode"
)

// Kind is a sort of failure: what a caller may do about it.
type Kind string

// The kinds of failure.
const (
	// Unauthenticated: the token is missing, cannot be read, or is not the head's.
	Unauthenticated Kind = "Unauthenticated"
	// Unavailable: nobody listens, or the connection broke.
	Unavailable Kind = "Unavailable"
	// Timeout: the head took the call and gave no answer in time, or nothing was heard.
	Timeout Kind = "Timeout"
	// Refused: the head understood and would not.
	Refused Kind = "Refused"
	// NotFound: the head says that it knows no such job, actor or key.
	NotFound Kind = "NotFound"
	// Gone: the head knows the job, and its output, or the place in it that was asked for, is
	// not there.
	Gone Kind = "Gone"
	// Exists: the head has a job of that ID.
	Exists Kind = "Exists"
	// Unsupported: this Ray does not know the call.
	Unsupported Kind = "Unsupported"
	// Protocol: what came back is not what Ray says, or more than is let in.
	Protocol Kind = "Protocol"
	// Invalid: the caller asked for what must not be sent; nothing was.
	Invalid Kind = "Invalid"
)

// Error is a failure to get an answer from a head. It is found with errors.As.
type Error struct {
	Kind Kind
	// Act is what was asked for, and of whom.
	Act string
	Err error
}

// Error says what was asked for, what sort of failure it is, and its cause.
func (e *Error) Error() string { return e.Act + ": " + string(e.Kind) + ": " + e.Err.Error() }

// Unwrap is the cause.
func (e *Error) Unwrap() error { return e.Err }

// KindOf is the kind of a failure; empty for nil, Protocol for errors that are not of this
// package.
func KindOf(err error) Kind {
	var failure *Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &failure):
		return failure.Kind
	default:
		return Protocol
	}
}

// CauseOf is what a failure says without what was asked for; of errors that are not of this package
// all that they say.
func CauseOf(err error) string {
	var failure *Error
	if errors.As(err, &failure) {
		return failure.Err.Error()
	}
	return err.Error()
}

func fail(kind Kind, act string, err error) *Error { return &Error{Kind: kind, Act: act, Err: err} }

func (c *Client) fail(kind Kind, act string, err error) *Error {
	return fail(kind, act+" at "+c.address, err)
}

// Limits on texts, in bytes.
const (
	// maxName is for names that are compared: no name in Kubernetes or Ray is longer.
	maxName = 253
	// maxText is for texts that people read.
	maxText = 256
)

// text is something a head said, fit to be shown: valid, in one line, cut where too long.
func text(said []byte) string {
	if len(said) > maxText {
		said = said[:maxText]
	}
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(string(said), "")))
}
