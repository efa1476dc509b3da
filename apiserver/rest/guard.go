package rest

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// ErrPanic is that a request panicked. Its caller learns no more than the request's ID, and the log has the stack.
var ErrPanic = errors.New("the request panicked")

// guard returns a function that fails with ErrPanic where another one panics: it would end the server in a goroutine of its
// own, and in gRPC anywhere.
func guard(call func() error) func() error {
	return func() (err error) {
		defer func() {
			if cause := recover(); cause != nil {
				err = fmt.Errorf("%w: %v\n%s", ErrPanic, cause, debug.Stack())
			}
		}()
		return call()
	}
}
