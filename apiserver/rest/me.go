package rest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/heliostat-dev/heliostat/apiserver/view"
	"github.com/heliostat-dev/heliostat/portal/access"
	heliostatv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/v1"
)

// Of one call, so many reviews are under way for a namespace, and so many namespaces.
const (
	atOnce           = 16
	namespacesAtOnce = 4
)

// GetMe implements the protocol.
func (p *portal) GetMe(ctx context.Context, _ *heliostatv1.GetMeRequest) (*heliostatv1.GetMeResponse, error) {
	caller, err := callerOf(ctx)
	if err != nil {
		return nil, err
	}
	user := caller.User()
	return &heliostatv1.GetMeResponse{Name: user.Username, Groups: user.Groups, Method: caller.Method(),
		Issuer: caller.Issuer()}, nil
}

// asked are the permissions that a list of namespaces tells of.
var asked = func() []Permission {
	var all []Permission
	for _, kind := range view.Kinds() {
		for _, verb := range []string{"list", "create", "patch", "delete"} {
			all = append(all, Permission{verb, view.Resource(kind)})
		}
	}
	for _, resource := range []string{"clusterjobs/log", "clusterservices/log", "clusterservices/proxy", "computeclusters/proxy"} {
		all = append(all, Permission{"get", resource})
	}
	return append(all, Permission{"create", "computeclusters/proxy"})
}()

// ListNamespaces implements the protocol.
func (p *portal) ListNamespaces(
	ctx context.Context, _ *heliostatv1.ListNamespacesRequest,
) (*heliostatv1.ListNamespacesResponse, error) {
	names, err := p.namespaces(ctx)
	if err != nil {
		return nil, err
	}
	everywhere, err := p.permitted(ctx, "", asked)
	if err != nil {
		return nil, err
	}
	left := slices.DeleteFunc(slices.Clone(asked), func(one Permission) bool {
		return slices.Contains(everywhere, one)
	})
	caller, err := callerOf(ctx)
	if err != nil {
		return nil, err
	}
	found := make([]*heliostatv1.Namespace, len(names))
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(namespacesAtOnce)
	for i, name := range names {
		group.Go(guard(func() error {
			here, err := p.permissions.find(asking{caller.Key(), name, setOf(everywhere)}, func() ([]Permission, error) {
				return p.permittedHere(inner, name, left, everywhere)
			})
			if err == nil {
				found[i] = &heliostatv1.Namespace{Name: name, Permissions: byResource(append(here, everywhere...))}
			}
			return err
		}))
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(one *heliostatv1.Namespace) bool { return !canList(one) })
	return &heliostatv1.ListNamespacesResponse{Namespaces: found}, nil
}

// permittedHere returns which of some permissions the caller has in a namespace. It asks once where the API server lists all
// rules of the caller there. Else it asks about each permission, and about all of them only where the caller can list or create
// something: of most namespaces a caller knows nothing.
func (v *reviewer) permittedHere(
	ctx context.Context, namespace string, left, everywhere []Permission,
) ([]Permission, error) {
	if len(left) == 0 {
		return nil, nil
	}
	caller, err := callerOf(ctx)
	if err != nil {
		return nil, err
	}
	switch rules, err := v.Access.Rules(ctx, caller, namespace); {
	case err == nil:
		return slices.DeleteFunc(slices.Clone(left), func(one Permission) bool {
			return !rules.Cover(one.attributes(namespace))
		}), nil
	case !errors.Is(err, access.ErrIncomplete):
		return nil, fmt.Errorf("ask what the caller may do in namespace %s: %w", namespace, err)
	}
	opens := func(one Permission) bool { return one.Verb == "list" || one.Verb == "create" }
	first := slices.DeleteFunc(slices.Clone(left), func(one Permission) bool { return !opens(one) })
	here, err := v.permitted(ctx, namespace, first)
	if err != nil || len(here) == 0 && !slices.ContainsFunc(everywhere, opens) {
		return nil, err
	}
	more, err := v.permitted(ctx, namespace, slices.DeleteFunc(slices.Clone(left), opens))
	return append(here, more...), err
}

// attributes returns what a permission in a namespace is to a review.
func (one Permission) attributes(namespace string) authorizationv1.ResourceAttributes {
	resource, subresource, _ := strings.Cut(one.Resource, "/")
	return attributes(one.Verb, resource, subresource, namespace, "")
}

// canList reports whether some kind can be listed or created in a namespace.
func canList(namespace *heliostatv1.Namespace) bool {
	return slices.ContainsFunc(namespace.GetPermissions(), func(one *heliostatv1.Permission) bool {
		return slices.Contains(one.GetVerbs(), "list") || slices.Contains(one.GetVerbs(), "create")
	})
}

// namespaces returns those that hold objects of ours, and those that the caller can list. Which of them it may know of is
// yet to be asked.
func (p *portal) namespaces(ctx context.Context) ([]string, error) {
	caller, err := callerOf(ctx)
	if err != nil {
		return nil, err
	}
	names := p.View.Namespaces()
	others, err := p.Access.Namespaces(ctx, caller)
	if err != nil && !isForbidden(err) {
		return nil, fmt.Errorf("list namespaces: %w", err)
	}
	names = append(names, others...)
	slices.Sort(names)
	return slices.Compact(names), nil
}

// permitted returns which of some permissions the caller has in a namespace; in all of them where that is empty.
func (v *reviewer) permitted(ctx context.Context, namespace string, all []Permission) ([]Permission, error) {
	var mutex sync.Mutex
	var found []Permission
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, one := range all {
		group.Go(guard(func() error {
			err := v.may(inner, one.attributes(namespace))
			if isForbidden(err) {
				return nil
			}
			mutex.Lock()
			defer mutex.Unlock()
			found = append(found, one)
			return err
		}))
	}
	err := group.Wait()
	return found, err
}

// byResource returns permissions as the protocol has them, in order.
func byResource(all []Permission) []*heliostatv1.Permission {
	slices.SortFunc(all, func(a, b Permission) int {
		if by := strings.Compare(a.Resource, b.Resource); by != 0 {
			return by
		}
		return strings.Compare(a.Verb, b.Verb)
	})
	var found []*heliostatv1.Permission
	for _, one := range all {
		if last := len(found) - 1; last >= 0 && found[last].GetResource() == one.Resource {
			found[last].Verbs = append(found[last].Verbs, one.Verb)
			continue
		}
		found = append(found, &heliostatv1.Permission{Resource: one.Resource, Verbs: []string{one.Verb}})
	}
	return found
}
