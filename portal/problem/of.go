package problem

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/ray-operator/validate"
)

// Errors of package access that Of knows. They stand here, so that what decides verbs needs no client of Kubernetes.
var (
	// ErrUnauthorized is that a caller is not believed, or no longer.
	ErrUnauthorized = errors.New("the API server does not accept the token, or no longer: get another one")
	// ErrUnreached is that no connection to the API server could be made, so that nothing was sent.
	ErrUnreached = errors.New("the API server cannot be reached")
)

// soon is after how long an API server that did not answer is asked again.
const soon = 5 * time.Second

// Of returns an error as a problem. An error that it does not know is one of the server's own, and says no more.
func Of(err error) *Problem {
	var known *Problem
	var answered apierrors.APIStatus
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, ErrUnauthorized):
		detail, remedy, _ := strings.Cut(innermost(err).Error(), ": ")
		return New(http.StatusUnauthorized, "Unauthorized", detail, remedy)
	case errors.As(err, &answered):
		return ofStatus(answered.Status())
	case errors.Is(err, context.Canceled):
		return New(clientClosedRequest, "ClientClosedRequest", "the caller did not wait for the answer", "")
	case errors.Is(err, context.DeadlineExceeded):
		return New(http.StatusGatewayTimeout, "Timeout", "there was no answer in time, and a change may have been made",
			"look before you try again")
	case errors.Is(err, ErrUnreached):
		return New(http.StatusServiceUnavailable, "ServiceUnavailable",
			"the API server cannot be reached, and nothing was done",
			"try again").Later(soon)
	}
	return New(http.StatusInternalServerError, "InternalError", "the server failed",
		"send the request ID to an administrator: the server's log says why")
}

// innermost returns the error that others are wrapped around.
func innermost(err error) error {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return err
}

// Forbidden returns the refusal of a verb. It is the same whether the object exists or not.
func Forbidden(user, verb, resource, namespace string) *Problem {
	where := "in namespace " + namespace
	if namespace == "" {
		where = "in all namespaces"
	}
	return New(http.StatusForbidden, "Forbidden", fmt.Sprintf("user %q cannot %s %s %s", user, verb, resource, where),
		"ask an administrator for a role that permits it")
}

// OfFindings returns what rules refuse of an object below a path.
func OfFindings(above string, findings validate.Findings) *Problem {
	p := New(http.StatusUnprocessableEntity, "Invalid", "", "")
	for i, text := range findings.ErrorList() {
		p.Errors = append(p.Errors, FieldError{Field: join(above, findings[i].Path), Rule: findings[i].Rule,
			Message: text.ErrorBody(), Remedy: findings[i].Remedy})
	}
	p.summarize()
	return p
}

// summarize says in one sentence what the errors are.
func (p *Problem) summarize() {
	if len(p.Errors) == 0 {
		return
	}
	p.Detail = p.Errors[0].Field + ": " + p.Errors[0].Message
	if more := len(p.Errors) - 1; more > 0 {
		p.Detail += fmt.Sprintf(" (and %d more)", more)
	}
}

func join(above, path string) string {
	if above == "" || path == "" {
		return above + path
	}
	return above + "." + path
}

// ofStatus returns what the API server answered.
func ofStatus(answer metav1.Status) *Problem {
	p := New(int(answer.Code), string(answer.Reason), answer.Message, "")
	if p.Code < http.StatusBadRequest {
		p.Code = http.StatusInternalServerError
	}
	if answer.Details != nil {
		p.RetryAfter = time.Duration(answer.Details.RetryAfterSeconds) * time.Second
		for _, cause := range answer.Details.Causes {
			message, remedy := splitRefusal(cause.Message)
			p.Errors = append(p.Errors, FieldError{Field: cause.Field, Message: message, Remedy: remedy})
		}
	}
	switch answer.Reason {
	case metav1.StatusReasonConflict:
		p.Remedy = "read the object again, and send the change for what it is now"
	case metav1.StatusReasonAlreadyExists:
		p.Remedy = "choose another name"
	case metav1.StatusReasonInvalid:
		p.Code = http.StatusUnprocessableEntity
	}
	return p
}

// splitRefusal returns what is wrong and what helps of a refusal in the words of our rules.
func splitRefusal(text string) (message, remedy string) {
	at := strings.LastIndex(text, "; ")
	if at < 0 || !strings.HasPrefix(text, "Invalid value") && !strings.HasPrefix(text, "Forbidden") {
		return text, ""
	}
	return text, text[at+len("; "):]
}
