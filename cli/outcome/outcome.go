// Package outcome says how a command ended.
//
// In: an error of a command. Out: the exit code for scripts. A command returns an Error where the code is not that of a
// failure. It must never print anything: the program prints each error once.
package outcome

import (
	"errors"
	"fmt"
)

// Exit codes.
const (
	// Done: the command did what it was asked for, or what it waited for succeeded.
	Done = 0
	// Failed: something went wrong on the way, or what the command waited for failed.
	Failed = 1
	// Usage: the command cannot be understood, or names what is not there.
	Usage = 2
	// Stopped: what the command waited for was stopped or suspended.
	Stopped = 3
	// Differs: what was converted will behave differently.
	Differs = 3
	// Timeout: the command waited as long as it was asked to.
	Timeout = 4
	// Refused: somebody may not do this, it cannot be done, or what the command waited for was never admitted.
	Refused = 5
	// Detached: the user interrupted the command, and nothing else changed. It is the code that shells have for Ctrl-C.
	Detached = 130
)

// Error is an error with its exit code. One without a text says what was printed already.
type Error struct {
	Code int
	Err  error
}

// Errorf returns an error with an exit code.
func Errorf(code int, format string, values ...any) error {
	return &Error{Code: code, Err: fmt.Errorf(format, values...)}
}

func (e *Error) Error() string {
	if e.Err == nil {
		return ""
	}
	return e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// Code returns the exit code of a command that ended with an error, or with none.
func Code(err error) int {
	var coded *Error
	switch {
	case err == nil:
		return Done
	case errors.As(err, &coded):
		return coded.Code
	default:
		return Failed
	}
}
