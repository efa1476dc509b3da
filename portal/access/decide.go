package access

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
)

// For how long a decision holds.
const (
	keepAllowed = 10 * time.Second
	keepDenied  = 2 * time.Second
)

// May asks whether a caller may do something. It returns nil, ErrForbidden, ErrUnauthorized, or why nobody answered. It
// remembers decisions for a short while.
func (k *Kubernetes) May(ctx context.Context, c *Caller, what authorizationv1.ResourceAttributes) error {
	key, err := decisionKey(c, what)
	if err != nil {
		return err
	}
	return k.recallOrDecide(ctx, c, what, key)
}

// recallOrDecide is May for a decision that is remembered by a key.
func (k *Kubernetes) recallOrDecide(ctx context.Context, c *Caller, what authorizationv1.ResourceAttributes, key string) error {
	if err := k.isThere(ctx, c); err != nil {
		return err
	}
	if decision, is := k.decisions.find(key); is {
		return decision
	}
	return k.decide(ctx, c, what, key)
}

// Confirm asks as May does, whatever is remembered: of a stream, whose right must be there the whole time.
func (k *Kubernetes) Confirm(ctx context.Context, c *Caller, what authorizationv1.ResourceAttributes) error {
	if err := k.isThere(ctx, c); err != nil {
		return err
	}
	key, err := decisionKey(c, what)
	if err != nil {
		return err
	}
	return k.decide(ctx, c, what, key)
}

// isThere asks whether a caller is still who they were, where a review of rights does not say that.
func (k *Kubernetes) isThere(ctx context.Context, c *Caller) error {
	if c.isOver(k.clock.Now()) {
		return ErrExpired
	}
	if c.method != MethodAudience {
		return nil
	}
	_, err := k.identify(ctx, c.token)
	return err
}

// decide asks, and remembers the decision.
func (k *Kubernetes) decide(ctx context.Context, c *Caller, what authorizationv1.ResourceAttributes, key string) error {
	_, decision := k.may.ask(ctx, key, func(ctx context.Context) (struct{}, error) {
		decision := k.review(ctx, c, what)
		switch { // also where the caller has stopped waiting
		case decision == nil:
			k.decisions.put(key, nil, keepAllowed)
			k.permitted.put(key, struct{}{}, knownFor)
		case !isUnanswered(decision):
			k.decisions.put(key, decision, keepDenied)
			k.permitted.forget(key)
		}
		return struct{}{}, decision
	})
	return decision
}

// decisionKey returns what a decision is remembered by. Selectors may be long, and are hashed.
func decisionKey(c *Caller, what authorizationv1.ResourceAttributes) (string, error) {
	text, err := json.Marshal(what)
	if err != nil {
		return "", fmt.Errorf("write down what a caller may do: %w", err)
	}
	sum := sha256.Sum256(text)
	return c.key + string(sum[:]), nil
}

func (k *Kubernetes) review(ctx context.Context, c *Caller, what authorizationv1.ResourceAttributes) error {
	if c.method == MethodToken {
		return k.reviewSelf(ctx, c, what)
	}
	extra := map[string]authorizationv1.ExtraValue{}
	for name, values := range c.user.Extra {
		extra[name] = authorizationv1.ExtraValue(values)
	}
	review, err := k.rights.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		ResourceAttributes: &what, User: c.user.Username, Groups: c.user.Groups, UID: c.user.UID, Extra: extra,
	}}, metav1.CreateOptions{})
	switch {
	case err != nil:
		return fmt.Errorf("ask what a caller may do: %w", OfServer(err))
	case !review.Status.Allowed:
		return ErrForbidden
	}
	return nil
}

// reviewSelf asks with the caller's own token.
func (k *Kubernetes) reviewSelf(ctx context.Context, c *Caller, what authorizationv1.ResourceAttributes) error {
	client, err := authorizationclient.NewForConfigAndClient(k.settings(k.Transport(c)))
	if err != nil {
		return fmt.Errorf("make a client of a caller: %w", err)
	}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &what}}
	review, err = client.SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	switch {
	case apierrors.IsUnauthorized(err):
		return ErrUnauthorized
	case err != nil:
		return fmt.Errorf("ask what a caller may do: %w", err)
	case !review.Status.Allowed:
		return ErrForbidden
	}
	return nil
}
