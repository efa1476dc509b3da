package access

import "errors"

// serverError is what went wrong with a request of the server's own. It is no status of the API server any more.
type serverError struct{ cause error }

// OfServer returns an error of a request that the server made as itself. The API server's answer is about the server's own
// account then, so no caller may take it for one about themselves, or read it.
func OfServer(err error) error {
	if err == nil {
		return nil
	}
	return &serverError{err}
}

// Error implements error: for logs.
func (e *serverError) Error() string { return e.cause.Error() }

// Is finds what is no answer: that nobody was reached, and that there was no time left.
func (e *serverError) Is(target error) bool { return errors.Is(e.cause, target) }
