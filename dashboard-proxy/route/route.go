// Package route reads where a request to the dashboards' origin goes.
//
// In: method, Host and request target as they were sent; which label below the wildcard is whose. Out: a target with the
// path for its upstream and the verb of Kubernetes that the request needs, or a Refusal. One parse serves authorisation
// and upstream: what is sent on is a part of what was read, byte by byte.
//
// It is pure. It must never let a path through that an upstream could read in another way: it refuses such a path, and
// repairs none.
package route

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Kind is what a request is for.
type Kind string

// Kinds. Cluster and Service are resources of Kubernetes, whose subresource proxy guards them.
const (
	Cluster Kind = "computeclusters"
	Service Kind = "clusterservices"
	// Own is what the proxy answers itself, below /-/.
	Own Kind = "own"
	// Root is the start of the dashboards' origin.
	Root Kind = "root"
)

// Labels finds whose a DNS label below the wildcard is. Labels are looked up and never split.
type Labels interface {
	FindLabel(label string) (kind Kind, namespace, name string, found bool)
}

// Site is where clusters are reached.
type Site struct {
	// Wildcard is the host[:port] below which each object has a label of its own; empty where there is none.
	Wildcard string
	// Labels are asked where there is a wildcard.
	Labels Labels
}

// Request is what is read of a request.
type Request struct {
	// Target is the request target as sent, such as /team-a/demo/api/version?a=b.
	Method, Host, Target string
}

// Target is where a request goes.
type Target struct {
	Kind Kind
	// Namespace and Name are empty of what has none, and where a label is nobody's.
	Namespace, Name string
	// Address is how the caller named the object: namespace/name, or a label.
	Address string
	// Prefix is what stands before Path in the path as sent.
	Prefix string
	// Path begins with a slash, and Query has no question mark. Both are as sent, escapes included.
	Path, Query string
	// HasNoSlash: the path ends with the name. Path is a slash then.
	HasNoSlash bool
	// IsBelowWildcard: the object has an origin of its own.
	IsBelowWildcard bool
	// Verb is that of Kubernetes which the caller needs. It is empty of Own and Root.
	Verb string
}

// Refusal is why a request goes nowhere. It is an error.
type Refusal struct {
	Code int
	// Text says what is wrong and what helps.
	Text string
}

// Error implements error.
func (r *Refusal) Error() string { return r.Text }

// verbs are those of Kubernetes for methods.
var verbs = map[string]string{
	http.MethodGet: "get", http.MethodHead: "get", http.MethodPost: "create", http.MethodPut: "update",
	http.MethodPatch: "patch", http.MethodDelete: "delete",
}

// Methods are those that are served.
func Methods() string { return "DELETE, GET, HEAD, PATCH, POST, PUT" }

// Read returns where a request goes, or a *Refusal.
func (s Site) Read(r Request) (Target, error) {
	verb, known := verbs[r.Method]
	if !known {
		return Target{}, refuse(http.StatusMethodNotAllowed, "the method is not served: use one of "+Methods())
	}
	path, query, _ := strings.Cut(r.Target, "?")
	if err := checkPath(path); err != nil {
		return Target{}, err
	}
	if err := checkQuery(query); err != nil {
		return Target{}, err
	}
	target, err := s.find(r.Host, path)
	if err != nil {
		return Target{}, err
	}
	target.Query = query
	switch target.Kind {
	case Own, Root:
	case Cluster:
		if target.Verb = verb; verb == "get" && hasEffect(target.Path) {
			target.Verb = "create"
		}
	case Service:
		target.Verb = verb
	}
	return target, nil
}

// find splits a path that was checked.
func (s Site) find(host, path string) (Target, error) {
	isOwn := path == "/-" || strings.HasPrefix(path, "/-/")
	if label, is := s.labelOf(host); is {
		if isOwn {
			return Target{Kind: Own, Path: path, IsBelowWildcard: true}, nil
		}
		kind, namespace, name, found := s.Labels.FindLabel(label)
		if !found {
			kind = Cluster
		}
		return Target{Kind: kind, Namespace: namespace, Name: name, Address: label, Path: path, IsBelowWildcard: true}, nil
	}
	switch {
	case path == "/":
		return Target{Kind: Root, Path: path}, nil
	case strings.HasPrefix(path, clusters+"/"):
		return object(Cluster, clusters, path)
	case isOwn:
		return Target{Kind: Own, Path: path}, nil
	case strings.HasPrefix(path, services+"/"):
		return object(Service, services, path)
	}
	return object(Cluster, "", path)
}

// labelOf returns the label of a host below the wildcard.
func (s Site) labelOf(host string) (string, bool) {
	if s.Wildcard == "" {
		return "", false
	}
	label, is := strings.CutSuffix(CleanHost(host), "."+CleanHost(s.Wildcard))
	return label, is && label != "" && !strings.Contains(label, ".")
}

// CleanHost returns a host as all that are equal have it: in lower case, and without the port of HTTPS.
func CleanHost(host string) string { return strings.TrimSuffix(strings.ToLower(host), ":443") }

// object reads namespace and name behind what stands before them.
func object(kind Kind, before, path string) (Target, error) {
	parts := strings.SplitN(path[len(before)+1:], "/", 3)
	if len(parts) < 2 || !isLabel(parts[0]) || !isLabel(parts[1]) {
		return Target{}, refuse(http.StatusNotFound,
			"nothing has this address: clusters are at /NAMESPACE/NAME/, and services at /services/NAMESPACE/NAME/")
	}
	target := Target{
		Kind: kind, Namespace: parts[0], Name: parts[1], Address: parts[0] + "/" + parts[1],
		Prefix: before + "/" + parts[0] + "/" + parts[1], Path: "/", HasNoSlash: len(parts) == 2,
	}
	if !target.HasNoSlash {
		target.Path = path[len(target.Prefix):]
	}
	return target, nil
}

// isLabel reports whether a text can be the name of a namespace or of one of our objects.
func isLabel(text string) bool {
	isGood := func(b byte) bool { return 'a' <= b && b <= 'z' || '0' <= b && b <= '9' || b == '-' }
	return text != "" && len(text) <= 63 && text[0] != '-' && text[len(text)-1] != '-' &&
		!slices.ContainsFunc([]byte(text), func(b byte) bool { return !isGood(b) })
}

// URL returns the address of the target at an upstream.
func (t Target) URL(host string) (*url.URL, error) {
	plain, err := url.PathUnescape(t.Path)
	if err != nil { // Read has refused such a path
		return nil, fmt.Errorf("read the path: %w", err)
	}
	return &url.URL{Scheme: "http", Host: host, Path: plain, RawPath: t.Path, RawQuery: t.Query}, nil
}

// Resource returns the name of the kind as users know it.
func (k Kind) Resource() string {
	if k == Service {
		return "ClusterService"
	}
	return "ComputeCluster"
}

func refuse(code int, text string) *Refusal { return &Refusal{Code: code, Text: text} }
