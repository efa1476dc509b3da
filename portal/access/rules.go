package access

import (
	"context"
	"errors"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/component-helpers/auth/rbac/validation"
)

// ErrIncomplete is that the API server cannot list the rules of a caller: an authorizer beside RBAC judges requests one by one.
var ErrIncomplete = errors.New("the API server cannot list all of the caller's rules")

// Rules are all that a caller may do in a namespace.
type Rules []rbacv1.PolicyRule

// Cover reports whether the rules allow what a review would be asked about, in their namespace.
func (r Rules) Cover(what authorizationv1.ResourceAttributes) bool {
	asked := rbacv1.PolicyRule{Verbs: []string{what.Verb}, APIGroups: []string{what.Group}, Resources: []string{what.Resource}}
	if what.Subresource != "" {
		asked.Resources[0] += "/" + what.Subresource
	}
	if what.Name != "" {
		asked.ResourceNames = []string{what.Name}
	}
	covered, _ := validation.Covers(r, []rbacv1.PolicyRule{asked})
	return covered
}

// Rules returns the rules of a caller in a namespace, or ErrIncomplete where each request must be asked about by itself.
func (k *Kubernetes) Rules(ctx context.Context, c *Caller, namespace string) (Rules, error) {
	if err := k.isThere(ctx, c); err != nil {
		return nil, err
	}
	client, err := authorizationclient.NewForConfigAndClient(k.settings(k.Transport(c)))
	if err != nil {
		return nil, fmt.Errorf("make a client of a caller: %w", err)
	}
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
	review, err = client.SelfSubjectRulesReviews().Create(ctx, review, metav1.CreateOptions{})
	switch {
	case apierrors.IsUnauthorized(err):
		return nil, ErrUnauthorized
	case apierrors.IsForbidden(err):
		return nil, ErrIncomplete
	case err != nil:
		return nil, fmt.Errorf("list the rules of a caller: %w", err)
	case review.Status.Incomplete || review.Status.EvaluationError != "":
		return nil, ErrIncomplete
	}
	rules := make(Rules, 0, len(review.Status.ResourceRules))
	for _, one := range review.Status.ResourceRules {
		rules = append(rules, rbacv1.PolicyRule{Verbs: one.Verbs, APIGroups: one.APIGroups, Resources: one.Resources,
			ResourceNames: one.ResourceNames})
	}
	return rules, nil
}
