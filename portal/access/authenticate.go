package access

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
)

// For how long an identity is believed: a token that is withdrawn is known for as long.
const (
	keepCaller  = 10 * time.Second
	keepRefused = 2 * time.Second
)

// Identify returns whose a request is. An error that is ErrUnauthorized says to the caller why they are not believed; any
// other is that nobody could be asked.
func (k *Kubernetes) Identify(ctx context.Context, r *http.Request) (*Caller, error) {
	if k.proxy != nil {
		caller, err := k.proxy.callerOf(r)
		if err != nil || caller != nil {
			return caller, err
		}
	}
	token, err := ParseToken(r.Header)
	if err != nil {
		return nil, err
	}
	return k.identify(ctx, token)
}

// CallerOf returns the caller of a request that goes on to the API server. Where that judges the token itself, User is only for
// places and audit lines: it is empty of a token of nobody, which the API server refuses, and where nobody answers in time.
func (k *Kubernetes) CallerOf(ctx context.Context, r *http.Request) (*Caller, error) {
	if k.identity.Mode == Impersonate {
		return k.Identify(ctx, r)
	}
	soon, cancel := context.WithTimeout(ctx, waitKnown)
	defer cancel()
	if caller, err := k.IdentifyLately(soon, r); err == nil {
		return caller, nil
	}
	token, err := ParseToken(r.Header)
	if err != nil {
		return nil, err
	}
	return &Caller{method: MethodToken, key: token.Key(), token: token}, nil
}

// Name returns the name of a caller, which it asks for where CallerOf did not.
func (k *Kubernetes) Name(ctx context.Context, c *Caller) (string, error) {
	if c.user.Username != "" {
		return c.user.Username, nil
	}
	known, err := k.identify(ctx, c.token)
	if err != nil {
		return "", err
	}
	return known.user.Username, nil
}

// identify returns whose a token is. It remembers that for a short while, and errors never.
func (k *Kubernetes) identify(ctx context.Context, token Token) (*Caller, error) {
	return k.identifyBy(ctx, token, token.Key())
}

// identifyBy is identify for a token whose hash is known.
func (k *Kubernetes) identifyBy(ctx context.Context, token Token, key string) (*Caller, error) {
	if caller, is := k.callers.find(key); is {
		return caller, nil
	}
	if refused, is := k.refused.find(key); is {
		return nil, refused
	}
	return k.whose.ask(ctx, key, func(ctx context.Context) (*Caller, error) {
		caller, err := k.ask(ctx, token)
		switch { // also where the caller has stopped waiting
		case errors.Is(err, ErrUnauthorized):
			k.refused.put(key, err, keepRefused)
			k.lately.forget(key)
		case err == nil:
			keep := keepCaller
			if !caller.until.IsZero() {
				keep = min(keep, caller.until.Sub(k.clock.Now()))
			}
			k.callers.put(key, caller, keep)
			k.lately.put(key, caller, knownFor)
		}
		return caller, err
	})
}

// ask asks the issuer of a token, or the API server, whose it is.
func (k *Kubernetes) ask(ctx context.Context, token Token) (*Caller, error) {
	if k.identity.Mode != Impersonate {
		return k.askSelf(ctx, token)
	}
	said, is := readClaims(token)
	if !is {
		return nil, ErrUnknownToken
	}
	if one := k.issuers[said.Issuer]; one != nil {
		return one.identify(ctx, token)
	}
	// Those of another audience are refused here, so that not each becomes a request.
	if k.identity.Audience == "" || !slices.Contains(said.Audience, k.identity.Audience) {
		return nil, ErrAudience
	}
	return k.askTokens(ctx, token)
}

// askSelf asks with the token itself.
func (k *Kubernetes) askSelf(ctx context.Context, token Token) (*Caller, error) {
	caller := &Caller{method: MethodToken, key: token.Key(), token: token}
	client, err := authenticationclient.NewForConfigAndClient(k.settings(k.Transport(caller)))
	if err != nil {
		return nil, fmt.Errorf("make a client of a caller: %w", err)
	}
	review, err := client.SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	switch {
	case apierrors.IsUnauthorized(err):
		return nil, explainRefusal(token, k.account.claims(), k.clock.Now())
	case err != nil:
		return nil, fmt.Errorf("ask who a caller is: %w", err)
	}
	caller.user = review.Status.UserInfo
	return caller, nil
}

// askTokens asks whether a token is of a service account, for the server's own audience.
func (k *Kubernetes) askTokens(ctx context.Context, token Token) (*Caller, error) {
	audience := k.identity.Audience
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token.text, Audiences: []string{audience}}}
	review, err := k.tokens.Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("ask whose a token is: %w", OfServer(err))
	}
	if !review.Status.Authenticated || !slices.Contains(review.Status.Audiences, audience) {
		return nil, explainRefusal(token, claims{}, k.clock.Now())
	}
	name := review.Status.User.Username
	namespace, _, is := strings.Cut(strings.TrimPrefix(name, accounts), ":")
	if !is || !strings.HasPrefix(name, accounts) {
		return nil, ErrNoAccount
	}
	// Its UID and extra are left out: Kubernetes lets a service account be impersonated by its name alone, and both decisions
	// must be about the same identity.
	user := authenticationv1.UserInfo{Username: name, Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, authenticated}}
	return (&Caller{user: user, method: MethodAudience, token: token}).named(), nil
}
