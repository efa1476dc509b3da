package problem_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/heliostat-dev/heliostat/portal/access"
	"github.com/heliostat-dev/heliostat/portal/problem"
	heliostatv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/v1"
	"github.com/heliostat-dev/heliostat/ray-operator/validate"
)

var clusters = schema.GroupResource{Group: "heliostat.dev", Resource: "computeclusters"}

func TestOf_ReadsEachSortOfError(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want string
		grpc codes.Code
	}{
		"one of ours stays":         {problem.New(409, "Owned", "a job owns it", "do it to the job"), "409 Owned: a job owns it: do it to the job", codes.FailedPrecondition},
		"a refused token":           {access.ErrUnauthorized, "401 Unauthorized: the API server does not accept the token, or no longer: get another one", codes.Unauthenticated},
		"an API server that is far": {access.ErrUnreached, "503 ServiceUnavailable: the API server cannot be reached, and nothing was done: try again", codes.Unavailable},
		"a name that is taken":      {apierrors.NewAlreadyExists(clusters, "a"), `409 AlreadyExists: computeclusters.heliostat.dev "a" already exists: choose another name`, codes.AlreadyExists},
		"what is not there":         {apierrors.NewNotFound(clusters, "a"), `404 NotFound: computeclusters.heliostat.dev "a" not found`, codes.NotFound},
		"a stale version":           {apierrors.NewConflict(clusters, "a", errors.New("x")), `409 Conflict: Operation cannot be fulfilled on computeclusters.heliostat.dev "a": x: read the object again, and send the change for what it is now`, codes.FailedPrecondition},
		"a caller who went":         {context.Canceled, "499 ClientClosedRequest: the caller did not wait for the answer", codes.Canceled},
		"no answer in time":         {context.DeadlineExceeded, "504 Timeout: there was no answer in time, and a change may have been made: look before you try again", codes.DeadlineExceeded},
		"what nobody knows":         {errors.New("secret"), "500 InternalError: the server failed: send the request ID to an administrator: the server's log says why", codes.Internal},
	} {
		t.Run(name, func(t *testing.T) {
			p := problem.Of(fmt.Errorf("find it: %w", c.err))
			if got := fmt.Sprintf("%d %s: %s", p.Code, p.Reason, p.Error()); got != c.want {
				t.Errorf("it is %q, want %q", got, c.want)
			}
			if got := p.GRPCStatus().Code(); got != c.grpc {
				t.Errorf("gRPC's code is %s, want %s", got, c.grpc)
			}
		})
	}
}

func TestOf_NamesEachCauseWithItsRemedy(t *testing.T) {
	err := apierrors.NewInvalid(schema.GroupKind{Group: "heliostat.dev", Kind: "ComputeCluster"}, "a", nil)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{
		{Field: "spec.image", Message: `Invalid value: "x": image must not be x; choose y`}, {Field: "spec.rayVersion", Message: "Required value"},
	}
	want := []problem.FieldError{
		{Field: "spec.image", Message: `Invalid value: "x": image must not be x; choose y`, Remedy: "choose y"}, {Field: "spec.rayVersion", Message: "Required value"},
	}
	p := problem.Of(err)
	if diff := cmp.Diff(want, p.Errors); diff != "" || p.Code != 422 {
		t.Errorf("the code is %d: %s", p.Code, diff)
	}
}

func TestOfFindings_HasTheWordsOfTheAPIServer(t *testing.T) {
	p := problem.OfFindings("object", validate.Findings{
		{Rule: "a-rule", Path: "spec.image", Value: "x", Refused: "image must not be x", Remedy: "choose y"},
		{Rule: "b-rule", Path: "spec.head", Refused: "head must be", Remedy: "give one"},
	})
	want := []problem.FieldError{
		{Field: "object.spec.image", Rule: "a-rule", Message: `Invalid value: "x": image must not be x; choose y`, Remedy: "choose y"},
		{Field: "object.spec.head", Rule: "b-rule", Message: "Forbidden: head must be; give one", Remedy: "give one"},
	}
	if diff := cmp.Diff(want, p.Errors); diff != "" {
		t.Error(diff)
	}
	if p.Detail != want[0].Field+": "+want[0].Message+" (and 1 more)" {
		t.Errorf("the detail is %q", p.Detail)
	}
}

func TestProblem_IsWrittenForRESTAndGRPC(t *testing.T) {
	p := problem.New(503, "HeadStarting", "the head starts", "wait").Later(1500 * time.Millisecond)
	p.Errors = []problem.FieldError{{Field: "a", Message: "b"}}
	w := httptest.NewRecorder()
	p.Write(w, "id")
	var body map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"type": "urn:heliostat:reason:HeadStarting", "title": "Service Unavailable", "status": 503.0, "reason": "HeadStarting",
		"detail": "the head starts", "remedy": "wait", "requestId": "id", "errors": []any{map[string]any{"field": "a", "message": "b"}},
	}
	if diff := cmp.Diff(want, body); diff != "" {
		t.Error(diff)
	}
	if h := w.Header(); h.Get("Retry-After") != "2" || h.Get("Content-Type") != problem.ContentType || w.Code != 503 {
		t.Errorf("the answer is %d with %v", w.Code, h)
	}
	said, is := status.FromError(fmt.Errorf("call: %w", p))
	if !is || len(said.Details()) != 1 {
		t.Fatalf("gRPC's status is %v", said)
	}
	detail, is := said.Details()[0].(*heliostatv1.Problem)
	if !is || detail.GetReason() != "HeadStarting" || detail.GetRetryAfterSeconds() != 2 || detail.GetErrors()[0].GetField() != "a" {
		t.Errorf("gRPC's detail is %v", said.Details()[0])
	}
}
