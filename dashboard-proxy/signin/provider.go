package signin

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"golang.org/x/sync/singleflight"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/dashboard-proxy/session"
)

const (
	// askWithin is how long an issuer may take for one answer, and maxAnswer how many bytes that may have.
	askWithin = 4 * time.Second
	maxAnswer = 1 << 20
)

// Errors of an issuer.
var (
	// errAway is that the issuer gave no answer that helps.
	errAway = errors.New("the issuer cannot be asked")
	// errRefused is that the issuer does not sign the user in, or does not renew the session.
	errRefused = errors.New("the issuer refuses")
)

// provider is an issuer at which users sign in.
type provider struct {
	OIDC
	// returnTo is where the issuer sends users back to.
	returnTo string
	client   *http.Client
	clock    clock.PassiveClock
	log      *slog.Logger

	asking  singleflight.Group
	known   atomic.Pointer[description]
	renewed *outcomes
	// rotates: the issuer gives another refresh token at each renewal, and may take the former for stolen.
	rotates atomic.Bool
}

// description is what an issuer says of itself.
type description struct {
	verifier *oidc.IDTokenVerifier
	endpoint oauth2.Endpoint
}

func newProvider(of OIDC, returnTo string, now clock.PassiveClock, log *slog.Logger) (*provider, error) {
	trusted, err := readAuthority(of.CertificateAuthority)
	if err != nil {
		return nil, err
	}
	to := &http.Transport{
		TLSClientConfig:   &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: trusted},
		ForceAttemptHTTP2: true, IdleConnTimeout: 90 * time.Second,
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse } // a secret would go along
	return &provider{
		OIDC: of, returnTo: returnTo, clock: now, log: log, renewed: newOutcomes(now),
		client: &http.Client{Transport: bounded{to}, Timeout: askWithin, CheckRedirect: stay},
	}, nil
}

// readAuthority reads certificates in PEM; nil is those that the system trusts.
func readAuthority(text string) (*x509.CertPool, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // the standard library's own way to say so
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM([]byte(text)) {
		return nil, errors.New("it holds no certificate: write it in PEM")
	}
	return pool, nil
}

// bounded reads no more of an answer than it has to.
type bounded struct{ to http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	answer, err := b.to.RoundTrip(request)
	if err == nil {
		answer.Body = http.MaxBytesReader(nil, answer.Body, maxAnswer)
	}
	return answer, err
}

// describe returns what the issuer says of itself, which is asked once.
func (p *provider) describe(ctx context.Context) (*description, error) {
	if known := p.known.Load(); known != nil {
		return known, nil
	}
	asked, err, _ := p.asking.Do("description", func() (any, error) {
		made, err := oidc.NewProvider(p.with(context.WithoutCancel(ctx)), p.Issuer)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errAway, err)
		}
		var said struct {
			Ways []string `json:"token_endpoint_auth_methods_supported"`
		}
		if err := made.Claims(&said); err != nil {
			return nil, fmt.Errorf("%w: %w", errAway, err)
		}
		endpoint := made.Endpoint()
		endpoint.AuthStyle = oauth2.AuthStyleInHeader
		isInForm := !slices.Contains(said.Ways, "client_secret_basic") && slices.Contains(said.Ways, "client_secret_post")
		if p.ClientSecretFile == "" || isInForm {
			endpoint.AuthStyle = oauth2.AuthStyleInParams
		}
		known := &description{endpoint: endpoint,
			verifier: made.Verifier(&oidc.Config{ClientID: p.ClientID, Now: p.clock.Now})}
		p.known.Store(known)
		return known, nil
	})
	known, is := asked.(*description)
	if err != nil || !is {
		return nil, cmp.Or(err, errAway)
	}
	return known, nil
}

func (p *provider) with(ctx context.Context) context.Context {
	return oidc.ClientContext(ctx, p.client)
}

// settings returns those of one use: the secret's file may have changed.
func (p *provider) settings(known *description) (*oauth2.Config, error) {
	made := &oauth2.Config{ClientID: p.ClientID, Endpoint: known.endpoint, RedirectURL: p.returnTo, Scopes: p.Scopes}
	if p.ClientSecretFile == "" {
		return made, nil
	}
	text, err := os.ReadFile(p.ClientSecretFile)
	if err != nil {
		return nil, fmt.Errorf("%w: read the client's secret: %w", errAway, err)
	}
	made.ClientSecret = strings.TrimSpace(string(text))
	return made, nil
}

// begin returns where a browser goes to sign in.
func (p *provider) begin(ctx context.Context, f flow) (string, error) {
	known, err := p.describe(ctx)
	if err != nil {
		return "", err
	}
	settings, err := p.settings(known)
	if err != nil {
		return "", err
	}
	// Issuers that do not know access_type leave it out; Google gives no refresh token without.
	return settings.AuthCodeURL(f.State, oidc.Nonce(f.Nonce), oauth2.S256ChallengeOption(f.Verifier),
		oauth2.AccessTypeOffline), nil
}

// finish returns the session of a user who comes back with a code.
func (p *provider) finish(ctx context.Context, code string, f flow) (session.Session, error) {
	known, err := p.describe(ctx)
	if err != nil {
		return session.Session{}, err
	}
	settings, err := p.settings(known)
	if err != nil {
		return session.Session{}, err
	}
	gained, err := settings.Exchange(p.with(ctx), code, oauth2.VerifierOption(f.Verifier))
	if err != nil {
		return session.Session{}, explain(err)
	}
	token, text, err := p.verify(ctx, known, gained)
	switch {
	case err != nil:
		return session.Session{}, err
	case token.Nonce != f.Nonce:
		return session.Session{}, fmt.Errorf("%w: its ID token is of another sign-in", errRefused)
	}
	now := p.clock.Now()
	return session.Session{
		Kind: session.KindOIDC, Token: text, Since: now, TokenEnd: token.Expiry, End: now.Add(session.MaxLife),
		Refresh: gained.RefreshToken, Subject: token.Subject,
	}, nil
}

// verify returns the ID token of an answer.
func (p *provider) verify(ctx context.Context, known *description, of *oauth2.Token) (*oidc.IDToken, string, error) {
	text, _ := of.Extra("id_token").(string)
	if text == "" {
		return nil, "", fmt.Errorf("%w: its answer has no ID token: give the client the scope openid", errRefused)
	}
	token, err := known.verifier.Verify(p.with(ctx), text)
	if err != nil {
		return nil, "", fmt.Errorf("%w: its ID token: %w", errRefused, err)
	}
	return token, text, nil
}

// explain tells an answer of the issuer's about the user from all else. The body of an answer may hold tokens, and is
// not part of the error.
func explain(err error) error {
	var answered *oauth2.RetrieveError
	if !errors.As(err, &answered) {
		return fmt.Errorf("%w: %w", errAway, err)
	}
	what := errAway
	isOurs := answered.ErrorCode == "invalid_client" || answered.Response.StatusCode == http.StatusTooManyRequests
	if code := answered.Response.StatusCode; code >= 400 && code < 500 && !isOurs {
		what = errRefused
	}
	return fmt.Errorf("%w: it answered %s, %q", what, answered.Response.Status, answered.ErrorCode)
}
