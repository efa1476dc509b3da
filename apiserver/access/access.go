// Package access reads who a caller is, and acts for callers.
//
// In: headers of requests, and where the API server is. Out: the caller's token, a transport to the API server that
// holds no credential, and what the API server says of a token: whom it is of, and what they may do.
//
// No other package of the server makes clients of Kubernetes. Each is made of the caller's own token, for one question.
// It must never use a credential of its own, remember that somebody is refused, or put a token into a text.
package access

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// agent is the server's name in requests that are its own: reviews with a caller's token.
const agent = "heliostat-server"

// Errors of a review.
var (
	// ErrUnauthorized is that the API server does not accept the token.
	ErrUnauthorized = errors.New("the API server does not accept the token, or no longer")
	// ErrForbidden is that the token's owner may not do what was asked about.
	ErrForbidden = errors.New("the token's owner has no right to it, or no longer")
)

// Kubernetes is the API server, asked with tokens of callers. It may be used by many goroutines.
type Kubernetes struct {
	address   *url.URL
	transport http.RoundTripper
	names     *recent[string]
}

// New returns the API server at an https address, whose certificate is of an authority in caFile. That file is read for
// each connection, as authorities are replaced.
func New(address, caFile string, now clock.PassiveClock) (*Kubernetes, error) {
	parsed, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("read the address of the API server: %w", err)
	}
	if parsed.Scheme != "https" || parsed.Host == "" || parsed.User != nil || parsed.RawQuery != "" || (parsed.Path != "" && parsed.Path != "/") {
		return nil, fmt.Errorf("read the address of the API server: %q is not https://HOST:PORT", parsed.Redacted())
	}
	parsed.Path = ""
	if _, err := authorities(caFile); err != nil {
		return nil, err
	}
	return &Kubernetes{address: parsed, transport: newLanes(caFile, now), names: newRecent[string](now, keepName, maxNames)}, nil
}

// Address returns where the API server is.
func (k *Kubernetes) Address() *url.URL { return k.address }

// Transport returns what carries requests to the API server. It adds no credential: each request must have a token.
func (k *Kubernetes) Transport() http.RoundTripper { return k.transport }

// client returns the settings of a client that acts for a token's owner. It follows no redirect, as the token would go
// along.
func (k *Kubernetes) client(token Token) (*rest.Config, *http.Client) {
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &rest.Config{Host: k.address.String(), QPS: -1},
		&http.Client{Transport: bearer{token: token, to: k.transport}, CheckRedirect: stay}
}

// May asks whether a token's owner may do something. It returns nil, ErrForbidden, ErrUnauthorized, or why nobody
// answered.
func (k *Kubernetes) May(ctx context.Context, token Token, what authorizationv1.ResourceAttributes) error {
	client, err := authorizationclient.NewForConfigAndClient(k.client(token))
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

// Name asks for the name of a token's owner. It remembers names for a short while, and errors never.
func (k *Kubernetes) Name(ctx context.Context, token Token) (string, error) {
	if name, is := k.names.find(token.Key()); is {
		return name, nil
	}
	client, err := authenticationclient.NewForConfigAndClient(k.client(token))
	if err != nil {
		return "", fmt.Errorf("make a client of a caller: %w", err)
	}
	review, err := client.SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	switch {
	case apierrors.IsUnauthorized(err):
		return "", ErrUnauthorized
	case err != nil:
		return "", fmt.Errorf("ask who a caller is: %w", err)
	}
	k.names.put(token.Key(), review.Status.UserInfo.Username)
	return review.Status.UserInfo.Username, nil
}

// Bounds of what is remembered.
const (
	// keepName is for how long a name is believed: a token that is withdrawn is named for as long.
	keepName = 10 * time.Second
	maxNames = 1000
)
