package passthrough

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// Names of routes, as metrics and logs have them.
const (
	RouteObjects   = "objects"
	RouteEvents    = "events"
	RouteDiscovery = "discovery"
	RouteOpenAPI   = "openapi"
	RouteReviews   = "reviews"
	// RouteNone is of what does not pass.
	RouteNone = "none"
)

// ours is the path of the kinds, and paths below it.
var ours = "/apis/" + v1beta1.GroupVersion.String()

// A route is what may pass at one path.
type route struct{ name, method string }

var (
	discovery = route{RouteDiscovery, http.MethodGet}
	openAPI   = route{RouteOpenAPI, http.MethodGet}
	review    = route{RouteReviews, http.MethodPost}
)

// fixed are the paths that are served as they are. Discovery is about all groups of which something passes.
var fixed = map[string]route{
	"/api":                                discovery,
	"/api/v1":                             discovery,
	"/apis":                               discovery,
	"/apis/" + v1beta1.GroupVersion.Group: discovery,
	ours:                                  discovery,
	"/apis/events.k8s.io":                 discovery,
	"/apis/events.k8s.io/v1":              discovery,
	"/version":                            discovery,
	"/openapi/v3":                         openAPI,
	"/openapi/v3" + ours:                  openAPI,
	"/apis/authentication.k8s.io/v1/selfsubjectreviews":      review,
	"/apis/authorization.k8s.io/v1/selfsubjectaccessreviews": review,
	"/apis/authorization.k8s.io/v1/selfsubjectrulesreviews":  review,
}

// eventSelectors are the fields by which events are confined to those about our kinds, by the path of their group.
var eventSelectors = map[string]string{
	"/api/v1":                "involvedObject.apiVersion",
	"/apis/events.k8s.io/v1": "regarding.apiVersion",
}

// methods are those that any path has.
var methods = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

const notServed = "this server serves the kinds of heliostat.dev/v1beta1, lists and watches of events about them, discovery, " +
	"and the caller's reviews of itself: ask the API server of Kubernetes for anything else"

// Request is what a request asks for, in the words of Kubernetes.
type Request struct {
	Route string
	// Verb, Namespace, Name and the resource are known of objects and events.
	Verb, Namespace, Name                 string
	Group, Version, Resource, Subresource string
	// IsStream is that the answer has no end of its own.
	IsStream bool

	query              string
	byFields, byLabels string
}

// IsChange reports whether the request changes an object.
func (r Request) IsChange() bool {
	return r.Route == RouteObjects && !slices.Contains([]string{"get", "list", "watch"}, r.Verb)
}

// attributes are what the API server is asked about whether a watch may go on: the same that it judged at the beginning.
func (r Request) attributes() authorizationv1.ResourceAttributes {
	what := authorizationv1.ResourceAttributes{
		Namespace: r.Namespace, Verb: r.Verb, Group: r.Group, Version: r.Version, Resource: r.Resource, Subresource: r.Subresource, Name: r.Name,
	}
	if r.byFields != "" {
		what.FieldSelector = &authorizationv1.FieldSelectorAttributes{RawSelector: r.byFields}
	}
	if r.byLabels != "" {
		what.LabelSelector = &authorizationv1.LabelSelectorAttributes{RawSelector: r.byLabels}
	}
	return what
}

// Read returns what a request asks for, or why it does not pass.
func Read(r *http.Request) (Request, *Refusal) {
	none := Request{Route: RouteNone}
	if !slices.Contains(methods, r.Method) {
		return none, refuse(http.StatusMethodNotAllowed, "unsupported method: use GET, POST, PUT, PATCH or DELETE")
	}
	if r.URL.Host != "" || r.URL.Scheme != "" || !isPlain(r.URL) {
		return none, refuse(http.StatusBadRequest, "the path of the request can be read in more than one way: send it without a host, //, . or .. and without escapes")
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return none, refuse(http.StatusBadRequest, "the query of the request does not parse: join parameters by & and escape their values")
	}
	path := strings.TrimSuffix(r.URL.Path, "/")
	if at, is := fixed[path]; is {
		if r.Method != at.method {
			return none, refuse(http.StatusMethodNotAllowed, "the path has no such method here: use "+at.method)
		}
		return Request{Route: at.name, query: r.URL.RawQuery}, nil
	}
	if rest, is := strings.CutPrefix(path, ours+"/"); is {
		request := parse(RouteObjects, ours, strings.Split(rest, "/"))
		request.fill(r, query)
		return request, nil
	}
	for base, field := range eventSelectors {
		if rest, is := strings.CutPrefix(path, base+"/"); is {
			return readEvents(r, query, parse(RouteEvents, base, strings.Split(rest, "/")), field)
		}
	}
	return none, refuse(http.StatusNotFound, notServed)
}

// isPlain reports whether a path means the same to all that read it.
func isPlain(at *url.URL) bool {
	outside := func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-._~:/", r))
	}
	if at.RawPath != "" || at.Opaque != "" || !strings.HasPrefix(at.Path, "/") || strings.ContainsFunc(at.Path, outside) {
		return false
	}
	parts := strings.Split(strings.TrimSuffix(at.Path[1:], "/"), "/")
	return at.Path == "/" || !slices.ContainsFunc(parts, func(part string) bool { return part == "" || part == "." || part == ".." })
}

// parse reads the parts of a path below a group and version, as the API server does. What begins with "watch" is an old
// form of a watch, whatever its method is.
func parse(name, base string, parts []string) Request {
	request := Request{Route: name}
	group := strings.Split(strings.TrimPrefix(strings.TrimPrefix(base, "/apis/"), "/api/"), "/")
	request.Version = group[len(group)-1]
	if len(group) > 1 {
		request.Group = group[0]
	}
	if parts[0] == "watch" && len(parts) > 1 {
		request.Verb, request.IsStream, parts = "watch", true, parts[1:]
	}
	if parts[0] == "namespaces" && len(parts) > 1 {
		request.Namespace = parts[1]
		if parts = parts[2:]; len(parts) == 0 {
			parts = []string{"namespaces", request.Namespace}
		}
	}
	at := func(i int) string {
		if i < len(parts) {
			return parts[i]
		}
		return ""
	}
	request.Resource, request.Name, request.Subresource = at(0), at(1), at(2)
	return request
}

// verbs are those of methods that need no look at the query.
var verbs = map[string]string{
	http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete",
}

// fill adds the verb, and what a query says of it.
func (r *Request) fill(of *http.Request, query url.Values) {
	r.query = of.URL.RawQuery
	switch {
	case r.IsStream:
	case of.Method == http.MethodDelete && r.Name == "":
		r.Verb = "deletecollection"
		return
	case of.Method != http.MethodGet:
		r.Verb = verbs[of.Method]
		return
	case r.Name != "":
		r.Verb = "get"
		return
	default:
		r.Verb, r.IsStream = "list", isTrue(query["watch"])
		if r.IsStream {
			r.Verb = "watch"
		}
		r.Name = nameIn(query.Get("fieldSelector"))
	}
	r.byFields, r.byLabels = query.Get("fieldSelector"), query.Get("labelSelector")
}

// nameIn returns the name that a selector asks for: who has the right to that name alone may list by it.
func nameIn(selector string) string {
	parsed, err := fields.ParseSelector(selector)
	if err != nil {
		return ""
	}
	name, _ := parsed.RequiresExactMatch("metadata.name")
	return name
}

// isTrue reads a parameter as the API server does: what is there and is not false is true.
func isTrue(values []string) bool {
	return len(values) > 0 && !strings.EqualFold(values[0], "false") && values[0] != "0"
}

// readEvents confines a list or watch of events to those about our kinds.
func readEvents(r *http.Request, query url.Values, request Request, field string) (Request, *Refusal) {
	none := Request{Route: RouteNone}
	if request.Resource != "events" || request.Subresource != "" || request.IsStream {
		return none, refuse(http.StatusNotFound, notServed)
	}
	if request.Name != "" {
		return none, refuse(http.StatusNotFound, "one event by its name is not served: list events with fieldSelector=metadata.name=NAME")
	}
	if r.Method != http.MethodGet {
		return none, refuse(http.StatusMethodNotAllowed, "events are read only here: use GET")
	}
	given := query["fieldSelector"]
	if len(given) > 1 {
		return none, refuse(http.StatusBadRequest, "the query has more than one fieldSelector: join them by commas")
	}
	// Ours comes first: one that ends with a backslash would take in what follows.
	selector := field + "=" + v1beta1.GroupVersion.String()
	if len(given) == 1 && given[0] != "" {
		if _, err := fields.ParseSelector(given[0]); err != nil {
			return none, refuse(http.StatusBadRequest, "the fieldSelector does not parse: write field=value, joined by commas")
		}
		selector += "," + given[0]
	}
	query.Set("fieldSelector", selector)
	request.fill(r, query)
	request.query = query.Encode()
	return request, nil
}
