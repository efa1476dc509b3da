package integration

import (
	"context"
	"errors"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/tests/live"
)

// TestKubernetesOwnRolesHoldClusters asks the API server what people may do who have one of
// its own roles in a namespace.
func TestKubernetesOwnRolesHoldClusters(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	changes := []string{"create", "update", "patch", "delete", "deletecollection"}
	for _, c := range []struct {
		role        string
		may, mayNot []string
		status      bool
	}{
		{role: "view", may: []string{"get", "list", "watch"}, mayNot: changes},
		{role: "edit", may: append([]string{"get", "list", "watch"}, changes...)},
		{role: "admin", may: append([]string{"get", "list", "watch"}, changes...), status: true},
	} {
		t.Run(c.role, func(t *testing.T) {
			must(t, shared.Create(t.Context(), &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: c.role},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: c.role},
				Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: c.role}},
			}))
			// The roles are put together, and bindings seen, a moment later.
			must(t, live.Until(t.Context(), limit, "the role "+c.role+" to hold clusters", func(ctx context.Context) error {
				if !may(ctx, t, c.role, namespace, c.may[len(c.may)-1]+" computeclusters") {
					return errors.New("it does not yet")
				}
				return nil
			}))
			want := map[string]bool{
				"get computeclusters/status": true, "update computeclusters/status": c.status, "patch computeclusters/status": c.status,
				// Who has it is taken for the operator at admission.
				"update computeclusters/finalizers": false,
			}
			for _, verb := range c.may {
				want[verb+" computeclusters"] = true
			}
			for _, verb := range c.mayNot {
				want[verb+" computeclusters"] = false
			}
			for what, allowed := range want {
				if got := may(t.Context(), t, c.role, namespace, what); got != allowed {
					t.Errorf("%s may %s: %t, want %t", c.role, what, got, allowed)
				}
			}
			if may(t.Context(), t, c.role, live.ReleaseNamespace, "get computeclusters") {
				t.Errorf("%s holds in another namespace too", c.role)
			}
		})
	}
}

// may asks whether a user may do something, given as "verb resource/subresource", with
// clusters in a namespace.
func may(ctx context.Context, t *testing.T, user, namespace, what string) bool {
	t.Helper()
	verb, resource, _ := strings.Cut(what, " ")
	resource, sub, _ := strings.Cut(resource, "/")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: verb, Group: "heliostat.dev", Resource: resource, Subresource: sub,
		},
	}}
	must(t, shared.Create(ctx, review))
	return review.Status.Allowed
}
