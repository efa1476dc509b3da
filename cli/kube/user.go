package kube

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
)

// User returns who the API server takes the user for.
func (o *Objects) User(ctx context.Context) (authenticationv1.UserInfo, error) {
	review := &authenticationv1.SelfSubjectReview{}
	if err := o.Create(ctx, review); err != nil {
		return authenticationv1.UserInfo{}, Because(fmt.Errorf("ask who you are: %w", err))
	}
	return review.Status.UserInfo, nil
}

// UserName returns the user's name, or "" where the API server does not say it.
func (o *Objects) UserName(ctx context.Context) string {
	user, err := o.User(ctx)
	if err != nil {
		return ""
	}
	return user.Username
}

// May reports whether the user has a right.
func (o *Objects) May(ctx context.Context, right authorizationv1.ResourceAttributes) (bool, error) {
	review := &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &right}}
	if err := o.Create(ctx, review); err != nil {
		return false, Because(fmt.Errorf("ask what you may do: %w", err))
	}
	return review.Status.Allowed, nil
}
