package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/heliostat-dev/heliostat/apiserver/view"
	"github.com/heliostat-dev/heliostat/portal/access"
	"github.com/heliostat-dev/heliostat/portal/problem"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// reviewer asks what callers may do, and waits for what they may see. All calls share one.
type reviewer struct{ Needs }

// How often a stream's right is asked about, and for how long each time. Three that go unanswered end it: 3 × 8 s and 4 s
// are less than the 30 s that are promised.
const (
	confirmEach   = 8 * time.Second
	confirmWithin = 4 * time.Second
	maxUnanswered = 3
)

// attributes returns what a verb on a resource of heliostat.dev is to a review.
func attributes(verb, resource, subresource, namespace, name string) authorizationv1.ResourceAttributes {
	return authorizationv1.ResourceAttributes{
		Group: v1beta1.GroupVersion.Group, Version: v1beta1.GroupVersion.Version, Resource: resource, Subresource: subresource,
		Verb: verb, Namespace: namespace, Name: name,
	}
}

// attributesOf returns what a call about an object needs, as reviews ask. The kind may be left out where the call's permissions name
// their resource.
func attributesOf(call, kind string, on place) []authorizationv1.ResourceAttributes {
	all := make([]authorizationv1.ResourceAttributes, 0, len(permissions[call]))
	needs := permissions[call]
	if kind != "" && slices.Equal(needs, filesOfKinds) {
		needs = slices.DeleteFunc(slices.Clone(needs), func(one Permission) bool { return !strings.HasPrefix(one.Resource, view.Resource(kind)+"/") })
	}
	for _, needed := range needs {
		resource, subresource, _ := strings.Cut(needed.Resource, "/")
		if resource == "" || resource+"/" == ofKind {
			resource = view.Resource(kind)
		}
		all = append(all, attributes(needed.Verb, resource, subresource, on.GetNamespace(), on.GetName()))
	}
	return all
}

// may returns nil where the caller may do a verb on a resource of heliostat.dev in a namespace; all of them where that is
// empty.
func (v *reviewer) may(ctx context.Context, what authorizationv1.ResourceAttributes) error {
	caller, err := callerOf(ctx)
	if err != nil {
		return err
	}
	err = v.Access.May(ctx, caller, what)
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

// mayAll returns nil where the caller may do everything of these.
func (v *reviewer) mayAll(ctx context.Context, all []authorizationv1.ResourceAttributes) error {
	for _, what := range all {
		if err := v.may(ctx, what); err != nil {
			return err
		}
	}
	return nil
}

// permit returns nil where the caller may do all that a call about an object needs.
func (v *reviewer) permit(ctx context.Context, call string, on target) error {
	if err := checkPath(map[string]string{"namespace": on.GetNamespace(), "kind": on.GetKind(),
		"name": on.GetName()}); err != nil {
		return err
	}
	return v.mayAll(ctx, attributesOf(call, on.GetKind(), on))
}

// permitAt returns nil where the caller may do all that a call needs, and the server knows what it is about. The permissions of
// such calls name their resource.
func (v *reviewer) permitAt(ctx context.Context, call string, on place, id string) error {
	if err := v.permitUnseen(ctx, call, on, id); err != nil {
		return err
	}
	kind := view.Clusters
	switch call {
	case "ReadLog", "ListRounds":
		kind = view.Jobs
	case "ListReplicas", "ReadReplicaLog":
		kind = view.Services
	}
	return v.await(ctx, view.Key{Kind: kind, Namespace: on.GetNamespace(), Name: on.GetName()})
}

// permitUnseen is permitAt for what the server need not know.
func (v *reviewer) permitUnseen(ctx context.Context, call string, on place, id string) error {
	values := map[string]string{"namespace": on.GetNamespace(), "name": on.GetName()}
	if _, isNamed := on.(interface{ GetId() string }); isNamed && (id != "" || call != "CreateSubmission") { // one is made for a new one
		values["id"] = id
	}
	if err := checkPath(values); err != nil {
		return err
	}
	return v.mayAll(ctx, attributesOf(call, "", on))
}

// whileMay returns a context that ends, with a Problem as its cause, when its caller no longer has rights that were asked for.
func (v *reviewer) whileMay(ctx context.Context, rights []authorizationv1.ResourceAttributes) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := v.Clock.NewTicker(confirmEach)
		defer ticker.Stop()
		for unanswered := 0; ; {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C():
			}
			switch err := v.confirm(ctx, rights); {
			case err == nil:
				unanswered = 0
			case errors.Is(err, access.ErrUnauthorized) || errors.Is(err, access.ErrForbidden):
				cancel(problem.Of(err))
				return
			default:
				if unanswered++; unanswered == maxUnanswered {
					cancel(problem.New(http.StatusServiceUnavailable, "ServiceUnavailable",
						"the right to this could not be checked for 24 s", "connect again from the last event"))
					return
				}
			}
		}
	}()
	return ctx, func() { cancel(nil); <-done }
}

// confirm asks whether the caller still has rights, whatever is remembered.
func (v *reviewer) confirm(ctx context.Context, rights []authorizationv1.ResourceAttributes) error {
	caller, err := callerOf(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, confirmWithin)
	defer cancel()
	for _, what := range rights {
		if err := v.Access.Confirm(ctx, caller, what); err != nil {
			return err
		}
	}
	return nil
}
