package rest

import (
	"net/http"
	"slices"
	"strings"

	"google.golang.org/genproto/googleapis/api/annotations"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	heliostatv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/v1"
)

// Route is a path of the API with a method, and the call that answers it.
type Route struct {
	// Method is HTTP's, and Path a pattern such as /v1/namespaces/{namespace}/presets.
	Method, Path string
	// Call is the name of the call in the protocol.
	Call string
	// IsStream reports whether the answer goes on until it is over, as text or as server-sent events.
	IsStream bool

	// message is the type of the call's message, and answer the call where it has one answer.
	message protoreflect.MessageType
	answer  grpc.MethodHandler
	parts   []string
	verb    string
}

// streams are the paths of calls whose answers go on: the protocol has no form for these.
var streams = map[string]string{
	"WatchObjects":      "/v1/objects/watch",
	"ReadLog":           "/v1/namespaces/{namespace}/jobs/{name}/log",
	"ReadSubmissionLog": "/v1/namespaces/{namespace}/clusters/{name}/submissions/{id}/log",
	"ReadReplicaLog":    "/v1/namespaces/{namespace}/services/{name}/replicas/{id}/log",
	"ReadFile":          "/v1/namespaces/{namespace}/{kind}/{name}/files/{path}",
	"DownloadFiles":     "/v1/namespaces/{namespace}/{kind}/{name}/files:download",
}

// Routes returns all routes, as the protocol declares them.
func Routes() []Route {
	var routes []Route
	calls := heliostatv1.File_heliostat_v1_portal_proto.Services().ByName("Portal").Methods()
	for i := range calls.Len() {
		call := calls.Get(i)
		name := string(call.Name())
		route := Route{Method: http.MethodGet, Path: streams[name], Call: name, IsStream: call.IsStreamingServer(),
			answer: answerOf(name)}
		route.message, _ = protoregistry.GlobalTypes.FindMessageByName(call.Input().FullName()) // generated beside the call
		declared := proto.GetExtension(call.Options(), annotations.E_Http)
		rules := []*annotations.HttpRule{nil}
		if rule, is := declared.(*annotations.HttpRule); is && rule != nil {
			rules = append([]*annotations.HttpRule{rule}, rule.GetAdditionalBindings()...)
		}
		for _, rule := range rules {
			routes = append(routes, route.at(rule))
		}
	}
	return routes
}

// at returns the route with the method and the path of a rule. One without a rule has a path.
func (r Route) at(rule *annotations.HttpRule) Route {
	switch {
	case rule.GetGet() != "":
		r.Path = rule.GetGet()
	case rule.GetDelete() != "":
		r.Method, r.Path = http.MethodDelete, rule.GetDelete()
	case rule.GetPost() != "":
		r.Method, r.Path = http.MethodPost, rule.GetPost()
	}
	r.parts, r.verb = split(r.Path)
	return r
}

// restOfPath is the variable that takes all that is left of a path, slashes and colons too.
const restOfPath = "{path}"

// hasRest reports whether the last variable of the route takes all that is left of a path.
func (r *Route) hasRest() bool { return r.parts[len(r.parts)-1] == restOfPath }

// folded returns the parts of a path with all that the route's last variable takes as the last of them.
func (r *Route) folded(parts []string, verb string) ([]string, string) {
	last := len(r.parts) - 1
	if !r.hasRest() || len(parts) <= last {
		return parts, verb
	}
	rest := strings.Join(parts[last:], "/")
	if verb != "" {
		rest += ":" + verb
	}
	return append(slices.Clone(parts[:last]), rest), ""
}

// answerOf returns what answers a call, as gRPC has it; nil of one whose answer goes on.
func answerOf(call string) grpc.MethodHandler {
	for _, one := range heliostatv1.Portal_ServiceDesc.Methods {
		if one.MethodName == call {
			return one.Handler
		}
	}
	return nil
}

// split returns the parts of a path, and the verb that is behind the last one.
func split(path string) (parts []string, verb string) {
	parts = strings.Split(strings.TrimPrefix(path, "/"), "/")
	last := len(parts) - 1
	parts[last], verb, _ = strings.Cut(parts[last], ":")
	return parts, verb
}

// matches reports whether a path, split, is one of the route's, and how many of its parts the route spells out.
func (r *Route) matches(parts []string, verb string) (spelled int, is bool) {
	parts, verb = r.folded(parts, verb)
	if len(parts) != len(r.parts) || verb != r.verb {
		return 0, false
	}
	for i, part := range r.parts {
		switch {
		case part == parts[i]:
			spelled++
		case !isVariable(part) || parts[i] == "":
			return 0, false
		}
	}
	return spelled, true
}

func isVariable(part string) bool { return strings.HasPrefix(part, "{") }

// variables are the fields of the request that are in the path.
func (r *Route) variables() []string {
	var names []string
	for _, part := range r.parts {
		if isVariable(part) {
			names = append(names, strings.Trim(part, "{}"))
		}
	}
	return names
}

// values returns what stands in a path for the route's variables.
func (r *Route) values(parts []string, verb string) map[string]string {
	values := map[string]string{}
	parts, _ = r.folded(parts, verb)
	for i, part := range r.parts {
		if isVariable(part) {
			values[strings.Trim(part, "{}")] = parts[i]
		}
	}
	return values
}

// find returns the route of a request: of several the one that spells out the most. Where the path has routes of other
// methods alone, they are returned.
func find(routes []Route, method string, parts []string, verb string) (route *Route, others []string) {
	best := -1
	for i := range routes {
		spelled, is := routes[i].matches(parts, verb)
		switch {
		case !is:
		case routes[i].Method != method:
			if !slices.Contains(others, routes[i].Method) {
				others = append(others, routes[i].Method)
			}
		case spelled > best:
			best, route = spelled, &routes[i]
		}
	}
	return route, others
}

// Parameter is a field of a request that stands in the path or the query.
type Parameter struct {
	Name string
	// Type is that of JSON Schema.
	Type             string
	IsList, IsInPath bool
}

// Parameters returns the parameters of a route with the method GET, those of the path first.
func Parameters(route Route) []Parameter {
	var inPath, inQuery []Parameter
	fields := route.message.Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		one := Parameter{Name: field.JSONName(), Type: "string", IsList: field.IsList()}
		switch field.Kind() {
		case protoreflect.BoolKind:
			one.Type = "boolean"
		case protoreflect.Int32Kind, protoreflect.Int64Kind:
			one.Type = "integer"
		}
		if slices.Contains(route.variables(), string(field.Name())) {
			one.IsInPath = true
			inPath = append(inPath, one)
			continue
		}
		inQuery = append(inQuery, one)
	}
	return append(inPath, inQuery...)
}

// NeedsBody reports whether a route makes no sense without a body.
func NeedsBody(route Route) bool {
	return slices.Contains([]string{"CreateObject", "CreateSubmission", "ScaleObject", callConvert}, route.Call)
}

// TakesManifests reports whether the body of a route may be YAML too.
func TakesManifests(route Route) bool { return route.Call == callConvert }
