package access

import (
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Transport returns what carries requests to the API server for a caller, and for nobody else, whatever their headers say.
func (k *clients) Transport(c *Caller) http.RoundTripper { return acting{clients: k, caller: c} }

// acting sends requests for a caller.
type acting struct {
	*clients
	caller *Caller
}

// RoundTrip implements http.RoundTripper.
func (a acting) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	dropIdentity(request.Header)
	if a.caller.method == MethodToken {
		a.caller.token.Authorize(request.Header)
		return a.lanes.RoundTrip(request)
	}
	if a.caller.isOver(a.clock.Now()) {
		return nil, ErrExpired
	}
	return transport.NewImpersonatingRoundTripper(a.caller.impersonation(), a.account).RoundTrip(request)
}

// dropIdentity takes away all by which an API server learns who a user is.
func dropIdentity(header http.Header) {
	for name := range header {
		if name == authorization || strings.HasPrefix(name, "Impersonate-") || strings.HasPrefix(name, "X-Remote-") {
			delete(header, name)
		}
	}
}

// named gives requests of the server's own its name, and lets its clients repeat no write that may have been carried out: they
// do where an answer of 5xx says when to come again.
type named struct{ to http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (n named) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("User-Agent", agent)
	answer, err := n.to.RoundTrip(request)
	if err == nil && request.Method != http.MethodGet && answer.StatusCode >= http.StatusInternalServerError {
		answer.Header.Del("Retry-After")
	}
	return answer, err
}

// settings returns those of clients that use a transport. They follow no redirect, as a credential would go along.
func (k *clients) settings(to http.RoundTripper) (*rest.Config, *http.Client) {
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &rest.Config{Host: k.address.String(), QPS: -1, WarningHandler: rest.NoWarnings{}}, &http.Client{Transport: named{to}, CheckRedirect: stay}
}

// newMapper returns where objects of a scheme are served, so that clients need not ask. Of the kinds that the server uses,
// namespaces alone are in none.
func newMapper(scheme *runtime.Scheme) meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(scheme.PreferredVersionAllGroups())
	for kind := range scheme.AllKnownTypes() {
		made, err := scheme.New(kind)
		if _, is := made.(client.Object); err != nil || !is {
			continue
		}
		scope := meta.RESTScope(meta.RESTScopeNamespace)
		if kind.Kind == "Namespace" {
			scope = meta.RESTScopeRoot
		}
		mapper.Add(kind, scope)
	}
	return mapper
}
