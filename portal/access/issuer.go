package access

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/utils/clock"
)

// How an issuer is asked: for its description once, and for its keys where a token has one that is not known.
const (
	issuerWithin = 4 * time.Second
	// issuerEach is how often an issuer is asked at most, whatever callers send for tokens.
	issuerEach  = time.Second
	issuerBurst = 2
	// maxAnswer is how many bytes an issuer may answer.
	maxAnswer = 1 << 20
)

// errIssuer is that an issuer gave no answer that helps.
var errIssuer = errors.New("the issuer of the token cannot be asked")

// issuer verifies tokens of a provider of OpenID Connect.
type issuer struct {
	Issuer
	clock  clock.PassiveClock
	client *http.Client

	// turn is of who asks for the issuer's description.
	turn     chan struct{}
	verifier atomic.Pointer[oidc.IDTokenVerifier]
}

func newIssuer(of Issuer, now clock.PassiveClock) (*issuer, error) {
	settings := &tls.Config{MinVersion: tls.VersionTLS12}
	if of.CertificateAuthority != "" {
		trusted, err := readAuthority(of.CertificateAuthority)
		if err != nil {
			return nil, err
		}
		settings.RootCAs = trusted
	}
	to := &http.Transport{TLSClientConfig: settings, ForceAttemptHTTP2: true, IdleConnTimeout: 90 * time.Second}
	return &issuer{Issuer: of, clock: now, client: &http.Client{Transport: &paced{to: to, clock: now}, Timeout: issuerWithin}, turn: make(chan struct{}, 1)}, nil
}

// identify returns whose a token is that says it is of this issuer.
func (i *issuer) identify(ctx context.Context, token Token) (*Caller, error) {
	verifier, err := i.ready(ctx)
	if err != nil {
		return nil, err
	}
	failed := &unanswered{}
	proven, err := verifier.Verify(context.WithValue(ctx, unansweredKey{}, failed), token.text)
	var expired *oidc.TokenExpiredError
	switch {
	case failed.err != nil:
		return nil, fmt.Errorf("%w: %w", errIssuer, failed.err)
	case errors.As(err, &expired):
		return nil, ErrExpired
	case err != nil:
		return nil, ErrUnknownToken
	case !slices.Contains(proven.Audience, i.Audience):
		return nil, ErrAudience
	}
	user, err := i.userOf(proven)
	if err != nil {
		return nil, err
	}
	return newCaller(MethodIssuer, i.URL, user, proven.Expiry)
}

// userOf reads the user out of a token that is verified.
func (i *issuer) userOf(token *oidc.IDToken) (authenticationv1.UserInfo, error) {
	said := map[string]any{}
	if err := token.Claims(&said); err != nil {
		return authenticationv1.UserInfo{}, ErrUnknownToken
	}
	name, _ := said[i.UsernameClaim].(string)
	if name == "" {
		return authenticationv1.UserInfo{}, ErrBadName
	}
	if verified, is := said["email_verified"]; i.UsernameClaim == "email" && is && verified != true {
		return authenticationv1.UserInfo{}, ErrUnverified
	}
	user := authenticationv1.UserInfo{Username: *i.Prefix + name}
	for _, group := range textsIn(said[i.GroupsClaim]) {
		if group == "" {
			return authenticationv1.UserInfo{}, ErrBadName
		}
		user.Groups = append(user.Groups, *i.Prefix+group)
	}
	return user, nil
}

// textsIn returns the texts of a claim that is one, or a list.
func textsIn(claim any) []string {
	switch claim := claim.(type) {
	case string:
		return []string{claim}
	case []any:
		var all []string
		for _, one := range claim {
			if text, is := one.(string); is {
				all = append(all, text)
			}
		}
		return all
	}
	return nil
}

// ready returns what verifies tokens. The issuer describes itself when the first of them comes.
func (i *issuer) ready(ctx context.Context) (*oidc.IDTokenVerifier, error) {
	if known := i.verifier.Load(); known != nil {
		return known, nil
	}
	select {
	case i.turn <- struct{}{}:
		defer func() { <-i.turn }()
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", errIssuer, ctx.Err())
	}
	if known := i.verifier.Load(); known != nil {
		return known, nil
	}
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, i.client), i.URL)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errIssuer, err)
	}
	var described struct {
		KeysURL    string   `json:"jwks_uri"`
		Algorithms []string `json:"id_token_signing_alg_values_supported"`
	}
	if err := provider.Claims(&described); err != nil {
		return nil, fmt.Errorf("%w: %w", errIssuer, err)
	}
	keys := oidc.NewRemoteKeySet(oidc.ClientContext(ctx, i.client), described.KeysURL)
	made := oidc.NewVerifier(i.URL, keySet{keys}, &oidc.Config{
		SkipClientIDCheck: true, // identify does it, once the signature is verified
		Now:               i.clock.Now, SupportedSigningAlgs: slices.DeleteFunc(described.Algorithms, isUnsigned),
	})
	i.verifier.Store(made)
	return made, nil
}

// isUnsigned reports whether an algorithm is none by which an issuer alone can sign.
func isUnsigned(algorithm string) bool {
	return !slices.Contains([]string{
		oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA,
	}, algorithm)
}

// unanswered is why no keys were had for a token.
type unanswered struct{ err error }

type unansweredKey struct{}

// keySet tells a signature that is wrong from keys that could not be had.
type keySet struct{ oidc.KeySet }

// VerifySignature implements oidc.KeySet.
func (k keySet) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	payload, err := k.KeySet.VerifySignature(ctx, token)
	if failed, is := ctx.Value(unansweredKey{}).(*unanswered); is && (errors.Is(err, errIssuer) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)) {
		failed.err = err
	}
	return payload, err
}

// paced asks an issuer only so often, so that garbage for tokens does not become requests to it.
type paced struct {
	to    http.RoundTripper
	clock clock.PassiveClock

	mutex sync.Mutex
	asked []time.Time
}

// RoundTrip implements http.RoundTripper. What helps nobody is an error here, so that it is never taken for a bad token.
func (p *paced) RoundTrip(request *http.Request) (*http.Response, error) {
	if !p.takeTurn() {
		return nil, fmt.Errorf("%w: it was asked a moment ago", errIssuer)
	}
	answer, err := p.to.RoundTrip(request)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errIssuer, err)
	}
	if answer.StatusCode != http.StatusOK {
		_ = answer.Body.Close() // nothing of it is read
		return nil, fmt.Errorf("%w: it answered %s", errIssuer, answer.Status)
	}
	answer.Body = http.MaxBytesReader(nil, answer.Body, maxAnswer)
	return answer, nil
}

func (p *paced) takeTurn() bool {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	now := p.clock.Now()
	p.asked = slices.DeleteFunc(p.asked, func(at time.Time) bool { return now.Sub(at) >= issuerEach })
	if len(p.asked) >= issuerBurst {
		return false
	}
	p.asked = append(p.asked, now)
	return true
}
