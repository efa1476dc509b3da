// Package rest answers the API below /v1, as REST and as gRPC.
//
// In: requests of callers, what the server's cache knows, and the packages that explain, watch and read output. Out: the
// answers of proto/heliostat/v1, and a Problem where there is none. REST and gRPC are the same functions.
//
// It must never answer from the cache or a head before the API server has said that the caller may read that, write but as
// the caller, or let the text of an unknown error out.
package rest

import (
	"bytes"
	"context"
	_ "embed" // the document
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/heliostat-dev/heliostat/apiserver/access"
	"github.com/heliostat-dev/heliostat/apiserver/places"
	"github.com/heliostat-dev/heliostat/apiserver/problem"
	"github.com/heliostat-dev/heliostat/apiserver/view"
	heliostatv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/v1"
)

// DocumentPath is where the OpenAPI document is.
const DocumentPath = "/openapi/v1.json"

//go:embed openapi.json
var openAPI []byte

// documentRoute is that of the document, which the protocol does not declare.
var documentRoute = Route{Method: http.MethodGet, Path: DocumentPath, Call: "OpenAPI"}

// API answers requests below /v1. It may be used by many goroutines.
type API struct {
	portal  *portal
	routes  []Route
	gateway *runtime.ServeMux
	bodies  bodies
	log     *slog.Logger
}

// New returns the API over what it needs.
func New(needs Needs) (*API, error) {
	api := &API{portal: newPortal(needs), routes: Routes(), log: needs.Log,
		bodies: bodies{places.NewArrivals(), places.NewMemory()}}
	api.gateway = runtime.NewServeMux(
		runtime.WithMarshalerOption(runtime.MIMEWildcard, &runtime.JSONPb{
			// A list that is empty is there all the same: a client that counts need not ask whether it is.
			MarshalOptions:   protojson.MarshalOptions{EmitDefaultValues: true},
			UnmarshalOptions: protojson.UnmarshalOptions{},
		}),
		runtime.WithErrorHandler(api.answerProblem),
		runtime.WithIncomingHeaderMatcher(func(string) (string, bool) { return "", false }),
		runtime.WithDisableHTTPMethodOverride(),
		runtime.WithDisablePathLengthFallback(),
		runtime.WithForwardResponseOption(setCode),
	)
	if err := heliostatv1.RegisterPortalHandlerServer(context.Background(), api.gateway, api.portal); err != nil {
		return nil, fmt.Errorf("register routes: %w", err)
	}
	return api, nil
}

// Request is what a request below /v1 asks for, read and checked as far as it can be without its body.
type Request struct {
	route *Route
	// Namespace, Kind and Name are what the path names.
	Namespace, Kind, Name string
	id                    string
	// body is that of a request of REST that was received; nil before.
	body []byte
}

// Label names the route in metrics and logs: the call, such as "ListObjects". It is empty for one that is not served.
func (r Request) Label() string { return r.route.Call }

// IsChange reports whether the request changes something.
func (r Request) IsChange() bool {
	return r.route.Method != http.MethodGet && r.route.Call != callConvert
}

// IsStream reports whether the answer goes on.
func (r Request) IsStream() bool { return r.route.IsStream }

// Read returns what a request asks for, or why it is not served.
func (a *API) Read(r *http.Request) (Request, error) {
	raw := r.URL.EscapedPath()
	isIn := func(part string) bool { return strings.Contains(raw, part) }
	if slices.ContainsFunc([]string{"%", "//", "/../", "/./"}, isIn) {
		return Request{}, problem.Bad("path", "has an escape, '//', '/./' or '/../'", "send it plain")
	}
	if raw == DocumentPath && r.Method == http.MethodGet {
		return Request{route: &documentRoute}, nil
	}
	parts, verb := split(raw)
	route, others := find(a.routes, r.Method, parts, verb)
	if route == nil && len(others) > 0 {
		refused := problem.New(http.StatusMethodNotAllowed, "MethodNotAllowed", "the path has no method "+r.Method,
			"use "+strings.Join(others, " or "))
		refused.Allow = others
		return Request{}, refused
	}
	if route == nil {
		return Request{}, problem.New(http.StatusNotFound, "NotFound", "the path is not served",
			"see the paths in docs/reference/rest.md")
	}
	values := route.values(parts)
	if err := checkPath(values); err != nil {
		return Request{}, err
	}
	if err := checkQuery(route, r.URL.RawQuery); err != nil {
		return Request{}, err
	}
	request := Request{route: route, Namespace: values["namespace"], Kind: values["kind"], Name: values["name"],
		id: values["id"]}
	switch {
	case strings.Contains(route.Path, "/submissions"):
		request.Kind = view.Clusters
	case strings.Contains(route.Path, "/replicas"):
		request.Kind = view.Services
	}
	return request, nil
}

// Serve answers a request that was read by Read, for its caller. It receives the body where Receive has not.
func (a *API) Serve(w http.ResponseWriter, r *http.Request, request Request, caller *access.Caller) {
	ctx := withCaller(r.Context(), caller)
	if request.route == &documentRoute {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(openAPI) // a caller who is gone needs no answer
		return
	}
	if request.route.IsStream {
		if err := a.serveStream(w, r.WithContext(ctx), request); err != nil {
			a.Refuse(w, err)
		}
		return
	}
	r = r.WithContext(ctx)
	if request.route.Method != http.MethodGet {
		withBody, giveBack, err := a.withBody(w, r, request, caller)
		if err != nil {
			a.Refuse(w, err)
			return
		}
		defer giveBack()
		r = withBody
	}
	a.gateway.ServeHTTP(w, r)
}

// withBody returns a request with its body as grpc-gateway reads it, and takes the memory for that until the request is answered.
func (a *API) withBody(
	w http.ResponseWriter, r *http.Request, request Request, caller *access.Caller,
) (made *http.Request, giveBack func(), err error) {
	if request, err = a.Receive(w, r, request, caller); err != nil {
		return nil, nil, err
	}
	ctx, err := withKey(r.Context(), r.Header)
	if err != nil {
		return nil, nil, err
	}
	text, giveBack, err := a.readReceived(ctx, request, r.Header.Get("Content-Type"), senderOf(caller))
	if err != nil {
		return nil, nil, err
	}
	r = r.WithContext(ctx)
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	r.Header.Set("Content-Type", "application/json")
	return r, giveBack, nil
}

// Refuse answers why a request failed.
func (a *API) Refuse(w http.ResponseWriter, err error) {
	p := problem.Of(err)
	if p.Code >= http.StatusInternalServerError {
		a.log.Error("A request below /v1 failed", "error", err, "requestID", w.Header().Get("X-Request-Id"))
	}
	p.Write(w, w.Header().Get("X-Request-Id"))
}

// answerProblem is grpc-gateway's way to answer that a call failed.
//
//nolint:revive // argument-limit: grpc-gateway's runtime.ErrorHandlerFunc has these
func (a *API) answerProblem(
	_ context.Context, _ *runtime.ServeMux, _ runtime.Marshaler, w http.ResponseWriter, _ *http.Request, err error,
) {
	var known *problem.Problem
	if said, is := status.FromError(err); is && !errors.As(err, &known) && said.Code() == codes.InvalidArgument {
		err = problem.Bad("request", "cannot be read", "correct it as docs/reference/rest.md says")
	}
	a.Refuse(w, err)
}

// setCode sets the code of an answer that is no plain 200.
func setCode(_ context.Context, w http.ResponseWriter, message proto.Message) error {
	if created, is := message.(*heliostatv1.CreateObjectResponse); is && created.GetIsCreated() {
		w.WriteHeader(http.StatusCreated)
	}
	return nil
}
