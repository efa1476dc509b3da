// Package problem says why a call of the API below /v1 failed, in one form for REST and gRPC.
//
// In: errors of the server's packages and of the API server. Out: a Problem with an HTTP code, a code of the catalogue
// or of Kubernetes, what is wrong and what helps, as application/problem+json or as the status of a gRPC call.
//
// It must never show the text of an error that it does not know: such a text may name what its caller may not see.
package problem

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	heliostatv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/v1"
)

// clientClosedRequest is the code of a request whose caller did not wait for the answer, as proxies count it.
const clientClosedRequest = 499

// ContentType is the media type of RFC 9457.
const ContentType = "application/problem+json"

// Problem is why a call failed. It is an error.
type Problem struct {
	// Code is an HTTP status code.
	Code int
	// Reason is a code of the catalogue for what an object's state forbids, else one of Kubernetes' for the sort of failure.
	Reason string
	// Detail is what is wrong, and Remedy what helps.
	Detail, Remedy string
	// Errors are all that is wrong with what was sent.
	Errors []FieldError
	// RetryAfter is after how long the same call may succeed; 0 where it will not by itself.
	RetryAfter time.Duration
	// Allow are the methods that a path has, where it has not the one of the request.
	Allow []string
}

// FieldError is one thing that is wrong with what was sent.
type FieldError struct {
	// Field is a path, such as object.spec.workerGroups[0].name.
	Field string `json:"field"`
	// Rule is the ID of a rule of the reference, where it is one.
	Rule string `json:"rule,omitempty"`
	// Message is what is wrong, and Remedy what helps.
	Message string `json:"message"`
	Remedy  string `json:"remedy,omitempty"`
}

// Error implements error.
func (p *Problem) Error() string {
	if p.Remedy == "" {
		return p.Detail
	}
	return p.Detail + ": " + p.Remedy
}

// New returns a problem with what is wrong and what helps.
func New(code int, reason, detail, remedy string) *Problem {
	return &Problem{Code: code, Reason: reason, Detail: detail, Remedy: remedy}
}

// Bad returns a problem with one field of a request, with code 400.
func Bad(field, message, remedy string) *Problem {
	p := New(http.StatusBadRequest, "BadRequest", fmt.Sprintf("%s %s", field, message), remedy)
	p.Errors = []FieldError{{Field: field, Message: message, Remedy: remedy}}
	return p
}

// Later returns the problem with when the same call may succeed.
func (p *Problem) Later(after time.Duration) *Problem {
	later := *p
	later.RetryAfter = after
	return &later
}

// codesOf are gRPC's codes for those of HTTP.
var codesOf = map[int]codes.Code{
	http.StatusBadRequest:                  codes.InvalidArgument,
	http.StatusUnauthorized:                codes.Unauthenticated,
	http.StatusForbidden:                   codes.PermissionDenied,
	http.StatusNotFound:                    codes.NotFound,
	http.StatusMethodNotAllowed:            codes.Unimplemented,
	http.StatusConflict:                    codes.FailedPrecondition,
	http.StatusGone:                        codes.OutOfRange,
	http.StatusRequestEntityTooLarge:       codes.ResourceExhausted,
	http.StatusUnsupportedMediaType:        codes.InvalidArgument,
	http.StatusUnprocessableEntity:         codes.InvalidArgument,
	http.StatusTooManyRequests:             codes.ResourceExhausted,
	http.StatusRequestHeaderFieldsTooLarge: codes.ResourceExhausted,
	clientClosedRequest:                    codes.Canceled,
	http.StatusBadGateway:                  codes.Unavailable,
	http.StatusServiceUnavailable:          codes.Unavailable,
	http.StatusGatewayTimeout:              codes.DeadlineExceeded,
}

// GRPCStatus returns the problem as the status of a gRPC call, with a Problem of the protocol as its detail.
func (p *Problem) GRPCStatus() *status.Status {
	code, is := codesOf[p.Code]
	if !is {
		code = codes.Internal
	}
	if p.Reason == "AlreadyExists" {
		code = codes.AlreadyExists
	}
	plain := status.New(code, p.Error())
	detailed, err := plain.WithDetails(p.message())
	if err != nil { // a text that is no UTF-8
		return plain
	}
	return detailed
}

// message returns the problem as the protocol has it.
func (p *Problem) message() *heliostatv1.Problem {
	message := &heliostatv1.Problem{Reason: p.Reason, Detail: p.Detail, Remedy: p.Remedy,
		RetryAfterSeconds: p.retryAfter()}
	for _, one := range p.Errors {
		message.Errors = append(message.Errors, &heliostatv1.FieldError{
			Field: one.Field, Rule: one.Rule, Message: one.Message, Remedy: one.Remedy})
	}
	return message
}

// retryAfter returns whole seconds, rounded up.
func (p *Problem) retryAfter() int32 { return int32(math.Ceil(p.RetryAfter.Seconds())) }

// body is the problem as RFC 9457 writes it.
type body struct {
	Type      string       `json:"type"`
	Title     string       `json:"title"`
	Status    int          `json:"status"`
	Reason    string       `json:"reason"`
	Detail    string       `json:"detail"`
	Remedy    string       `json:"remedy,omitempty"`
	RequestID string       `json:"requestId,omitempty"`
	Errors    []FieldError `json:"errors,omitempty"`
}

// Write answers a request whose ID is given.
func (p *Problem) Write(w http.ResponseWriter, requestID string) {
	text, err := json.Marshal(body{
		Type:   "urn:heliostat:reason:" + cmp.Or(p.Reason, "InternalError"),
		Title:  cmp.Or(http.StatusText(p.Code), "Unknown"),
		Status: p.Code, Reason: p.Reason, Detail: p.Detail, Remedy: p.Remedy, RequestID: requestID, Errors: p.Errors,
	})
	if err != nil { // strings always marshal
		text = []byte(`{"status":500}`)
	}
	header := w.Header()
	header.Set("Content-Type", ContentType)
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	if p.Code == http.StatusUnauthorized {
		header.Set("WWW-Authenticate", `Bearer realm="heliostat"`)
	}
	if len(p.Allow) > 0 {
		header.Set("Allow", strings.Join(p.Allow, ", "))
	}
	if after := p.retryAfter(); after > 0 {
		header.Set("Retry-After", strconv.Itoa(int(after)))
	}
	w.WriteHeader(p.Code)
	_, _ = w.Write(text) // a caller who is gone needs no answer
}
