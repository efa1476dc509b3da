// Package fault sorts errors into what a controller must do about them.
//
// In: errors of the API server and of our own steps. Out: three sorts, told apart
// with errors.As: plain (try again with back-off), Wait (normal, come back later) and
// Terminal (a person has to act). An error is returned, never set on an object in
// passing, and it is never compared by its text, but for one that Kubernetes gives no
// other mark.
package fault

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/heliostat-dev/heliostat/ray-operator/reason"
)

// Wait says that something is under way and that its end will bring a new pass.
type Wait struct{ For string }

// Error names what is waited for.
func (w *Wait) Error() string { return "wait for " + w.For }

// Terminal says that nothing will change until a person acts.
type Terminal struct{ Finding reason.Finding }

// Error is the finding's code and text.
func (t *Terminal) Error() string { return t.Finding.Code + ": " + t.Finding.Text }

// Cause returns the finding, for those who know errors by what they can say alone.
func (t *Terminal) Cause() reason.Finding { return t.Finding }

// IsWait reports whether an error, or every error joined in it, is a Wait.
func IsWait(err error) bool {
	switch err := err.(type) { //nolint:errorlint // walks the tree by hand: errors.As finds any, not all
	case *Wait:
		return true
	case interface{ Unwrap() error }:
		return IsWait(err.Unwrap())
	case interface{ Unwrap() []error }:
		return !slices.ContainsFunc(err.Unwrap(), func(part error) bool { return !IsWait(part) })
	default:
		return false
	}
}

// Finding is what a terminal error says, if there is one in err.
func Finding(err error) (reason.Finding, bool) {
	var terminal *Terminal
	if errors.As(err, &terminal) {
		return terminal.Finding, true
	}
	return reason.Finding{}, false
}

// Refused reports whether the API server understood a request and would not have it:
// quota, admission, an invalid object, a missing right. Trying again helps only
// after someone changed something, so it is shown.
func Refused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) ||
		apierrors.IsRequestEntityTooLargeError(err) || isWebhookFailure(err)
}

// isWebhookFailure reports whether the API server could not ask an admission webhook.
// It calls that an internal error and gives it no mark but its words.
func isWebhookFailure(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsInternalError(err) && errors.As(err, &status) && strings.Contains(status.Status().Message, "failed calling webhook")
}

// Conflict is the terminal error for a name that something of others' has taken.
func Conflict(object string) error {
	return &Terminal{Finding: reason.NameConflict.Of(object)}
}

// Wrap gives an error the verb and object that it was met at, and keeps its sort.
func Wrap(err error, format string, values ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(values, err)...)
}
