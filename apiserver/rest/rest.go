// Package rest answers the API below /v1, as REST and as gRPC.
//
// In: requests of callers, what the server's cache knows, and the packages that explain, watch and read output. Out: the
// answers of proto/heliostat/v1, and a Problem where there is none. REST and gRPC are the same functions.
//
// It must never answer from the cache or a head before the API server has said that the caller may read that, write but as
// the caller, or let the text of an unknown error out.
package rest

import (
	_ "embed" // the document
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/heliostat-dev/heliostat/apiserver/view"
	"github.com/heliostat-dev/heliostat/portal/access"
	"github.com/heliostat-dev/heliostat/portal/limits"
	"github.com/heliostat-dev/heliostat/portal/problem"
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
	portal *portal
	routes []Route
	bodies bodies
	log    *slog.Logger
}

// New returns the API over what it needs.
func New(needs Needs) *API {
	return &API{portal: newPortal(needs), routes: Routes(), log: needs.Log,
		bodies: bodies{limits.NewArrivals(), limits.NewMemory()}}
}

// Request is what a request below /v1 asks for, read and checked as far as it can be without its body.
type Request struct {
	route *Route
	// Namespace, Kind and Name are what the path names.
	Namespace, Kind, Name string
	// message has what path and query say. It is nil of the document, and of a call of gRPC.
	message proto.Message
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
	before, _, _ := strings.Cut(raw, "/files/") // names of files may have any bytes
	isIn := func(part string) bool { return strings.Contains(raw, part) }
	if strings.Contains(before, "%") || slices.ContainsFunc([]string{"//", "/../", "/./"}, isIn) {
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
	values := route.values(parts, verb)
	if err := checkPath(values); err != nil {
		return Request{}, err
	}
	message, err := messageOf(route, values, r.URL.RawQuery)
	if err != nil {
		return Request{}, err
	}
	request := Request{route: route, Namespace: values["namespace"], Kind: values["kind"], Name: values["name"],
		message: message}
	switch {
	case strings.Contains(route.Path, "/submissions"):
		request.Kind = view.Clusters
	case strings.Contains(route.Path, "/replicas"):
		request.Kind = view.Services
	}
	return request, nil
}

// messageOf returns the message of a request for a route, as far as its path and its query say.
func messageOf(route *Route, inPath map[string]string, query string) (proto.Message, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, problem.Bad("query", "cannot be parsed", "escape it as URLs are")
	}
	message := route.message.New()
	if err := readQuery(route, message, values); err != nil {
		return nil, err
	}
	for name, value := range inPath {
		message.Set(message.Descriptor().Fields().ByName(protoreflect.Name(name)), protoreflect.ValueOfString(value))
	}
	return message.Interface(), nil
}

// Serve answers a request that was read by Read, for its caller. It receives the body where Receive has not.
func (a *API) Serve(w http.ResponseWriter, r *http.Request, request Request, caller *access.Caller) {
	r = r.WithContext(withCaller(r.Context(), caller))
	var err error
	switch {
	case request.route == &documentRoute:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(openAPI) // a caller who is gone needs no answer
	case request.route.IsStream:
		err = a.serveStream(w, r, request)
	default:
		err = a.serveCall(w, r, request, caller)
	}
	if err != nil {
		a.Refuse(w, err)
	}
}

// serveCall answers a request with one answer. The memory of its body is taken until then.
func (a *API) serveCall(w http.ResponseWriter, r *http.Request, request Request, caller *access.Caller) error {
	ctx := r.Context()
	if request.route.Method != http.MethodGet {
		received, err := a.Receive(w, r, request, caller)
		if err != nil {
			return err
		}
		if ctx, err = withKey(ctx, r.Header); err != nil {
			return err
		}
		giveBack, err := a.readReceived(ctx, received, r.Header.Get("Content-Type"), senderOf(caller))
		if err != nil {
			return err
		}
		defer giveBack()
	}
	answer, err := request.route.answer(a.portal, ctx, request.giveMessage, nil)
	if err != nil {
		return err
	}
	return writeAnswer(w, answer)
}

// giveMessage fills the message of a call in, as gRPC's functions ask for it.
func (r Request) giveMessage(into any) error {
	message, is := into.(proto.Message)
	if !is {
		return fmt.Errorf("read a request: a %T is no message", into)
	}
	r.message.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		message.ProtoReflect().Set(field, value)
		return true
	})
	return nil
}

// writeAnswer writes the answer of a call as JSON.
func writeAnswer(w http.ResponseWriter, answer any) error {
	message, is := answer.(proto.Message)
	if !is {
		return fmt.Errorf("write an answer: a %T is no message", answer)
	}
	// A list that is empty is there all the same: a client that counts need not ask whether it is.
	text, err := protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(message)
	if err != nil {
		return fmt.Errorf("write an answer: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	if created, is := answer.(*heliostatv1.CreateObjectResponse); is && created.GetIsCreated() {
		w.WriteHeader(http.StatusCreated)
	}
	_, _ = w.Write(text) // a caller who is gone needs no answer
	return nil
}

// Refuse answers why a request failed.
func (a *API) Refuse(w http.ResponseWriter, err error) {
	p := problem.Of(err)
	if p.Code >= http.StatusInternalServerError {
		a.log.Error("A request below /v1 failed", "error", err, "requestID", w.Header().Get("X-Request-Id"))
	}
	p.Write(w, w.Header().Get("X-Request-Id"))
}
