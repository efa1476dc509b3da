package passthrough

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/portal/limits"
)

// Refusal is an answer of the server's own. It is an error, so that it can be why a context ends.
type Refusal struct {
	Code    int
	Message string
	// RetryAfter is in how many seconds the same request may be answered; 0 is that nobody knows.
	RetryAfter int
}

// reasons are Kubernetes' words for codes: clients compare them.
var reasons = map[int]metav1.StatusReason{
	http.StatusBadRequest:            metav1.StatusReasonBadRequest,
	http.StatusUnauthorized:          metav1.StatusReasonUnauthorized,
	http.StatusForbidden:             metav1.StatusReasonForbidden,
	http.StatusNotFound:              metav1.StatusReasonNotFound,
	http.StatusMethodNotAllowed:      metav1.StatusReasonMethodNotAllowed,
	http.StatusRequestEntityTooLarge: metav1.StatusReasonRequestEntityTooLarge,
	http.StatusTooManyRequests:       metav1.StatusReasonTooManyRequests,
	http.StatusServiceUnavailable:    metav1.StatusReasonServiceUnavailable,
	http.StatusGatewayTimeout:        metav1.StatusReasonTimeout,
}

func refuse(code int, message string) *Refusal { return &Refusal{Code: code, Message: message} }

// full returns why there is no place for a request.
func full(err error, isStream bool) *Refusal {
	seconds, remedy := 1, "send fewer at once"
	if isStream {
		seconds, remedy = 5, "end some, or watch all namespaces at once"
	}
	if errors.Is(err, limits.ErrServerFull) {
		remedy = "try again"
	}
	return &Refusal{Code: http.StatusTooManyRequests, RetryAfter: seconds, Message: err.Error() + ": " + remedy}
}

// Error implements error.
func (r *Refusal) Error() string { return r.Message }

// status returns the refusal as Kubernetes writes it.
func (r *Refusal) status() *metav1.Status {
	status := &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Code: int32(r.Code), Message: r.Message, Reason: reasons[r.Code],
	}
	if r.RetryAfter > 0 {
		status.Details = &metav1.StatusDetails{RetryAfterSeconds: int32(r.RetryAfter)}
	}
	return status
}

// Write answers a request.
func (r *Refusal) Write(w http.ResponseWriter) {
	body, err := json.Marshal(r.status())
	if err != nil { // a Status always marshals
		body = []byte(`{"apiVersion":"v1","kind":"Status","status":"Failure"}`)
	}
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	if r.Code == http.StatusUnauthorized {
		header.Set("WWW-Authenticate", `Bearer realm="heliostat"`)
	}
	if r.RetryAfter > 0 {
		header.Set("Retry-After", strconv.Itoa(r.RetryAfter))
	}
	w.WriteHeader(r.Code)
	_, _ = w.Write(append(body, '\n')) // a caller that is gone needs no answer
}
