package rest

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/heliostat-dev/heliostat/apiserver/access"
	"github.com/heliostat-dev/heliostat/apiserver/problem"
	"github.com/heliostat-dev/heliostat/apiserver/view"
	heliostatv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/v1"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1alpha1"
)

// portal implements the calls of the protocol.
type portal struct {
	heliostatv1.UnimplementedPortalServer
	Needs
	// converting has room for one conversion.
	converting chan struct{}
}

type callerKey struct{}

func withCaller(ctx context.Context, caller *access.Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, caller)
}

// callerOf returns who a call is of. Each call has one: REST and gRPC put it there before anything else.
func callerOf(ctx context.Context) (*access.Caller, error) {
	caller, is := ctx.Value(callerKey{}).(*access.Caller)
	if !is {
		return nil, problem.New(http.StatusUnauthorized, "Unauthorized", "the call has no caller",
			"send a bearer token")
	}
	return caller, nil
}

// attributes returns what a verb on a resource of heliostat.dev is to a review.
func attributes(verb, resource, subresource, namespace, name string) authorizationv1.ResourceAttributes {
	return authorizationv1.ResourceAttributes{
		Group: v1alpha1.GroupVersion.Group, Version: v1alpha1.GroupVersion.Version, Resource: resource, Subresource: subresource,
		Verb: verb, Namespace: namespace, Name: name,
	}
}

// attributesOf returns what a call about an object needs, as reviews ask. The kind may be left out where the call's permissions name
// their resource.
func attributesOf(call, kind string, on place) []authorizationv1.ResourceAttributes {
	all := make([]authorizationv1.ResourceAttributes, 0, len(permissions[call]))
	for _, needed := range permissions[call] {
		resource, subresource, _ := strings.Cut(needed.Resource, "/")
		if resource == "" {
			resource = view.Resource(kind)
		}
		all = append(all, attributes(needed.Verb, resource, subresource, on.GetNamespace(), on.GetName()))
	}
	return all
}

// mayAll returns nil where the caller may do everything of these.
func (p *portal) mayAll(ctx context.Context, all []authorizationv1.ResourceAttributes) error {
	for _, what := range all {
		if err := p.may(ctx, what); err != nil {
			return err
		}
	}
	return nil
}

// may returns nil where the caller may do a verb on a resource of heliostat.dev in a namespace; all of them where that is
// empty.
func (p *portal) may(ctx context.Context, what authorizationv1.ResourceAttributes) error {
	caller, err := callerOf(ctx)
	if err != nil {
		return err
	}
	err = p.Access.May(ctx, caller, what)
	resource := what.Resource
	if what.Subresource != "" {
		resource += "/" + what.Subresource
	}
	if isForbidden(err) {
		return problem.Forbidden(caller.User().Username, what.Verb, resource, what.Namespace)
	}
	if err != nil {
		return fmt.Errorf("ask whether the caller may %s %s: %w", what.Verb, resource, err)
	}
	return nil
}
