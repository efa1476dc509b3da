package signin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"golang.org/x/oauth2"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"

	"github.com/heliostat-dev/heliostat/dashboard-proxy/session"
)

// For how long the outcome of a renewal is known. Requests with the former cookie come at the same time, and an issuer
// may take a refresh token that is used twice for stolen. One that is away is asked again after a while.
const (
	keepRenewed = time.Minute
	keepAway    = 10 * time.Second
	maxOutcomes = 1000
)

// outcomes are what has become of renewals lately, by a hash of the refresh token.
type outcomes struct {
	clock clock.PassiveClock
	kept  *lru.Cache
}

type outcome struct {
	session session.Session
	err     error
	until   time.Time
}

func newOutcomes(now clock.PassiveClock) *outcomes {
	return &outcomes{clock: now, kept: lru.New(maxOutcomes)}
}

func (o *outcomes) find(key string) (outcome, bool) {
	kept, _ := o.kept.Get(key)
	one, is := kept.(outcome)
	return one, is && o.clock.Now().Before(one.until)
}

func (o *outcomes) put(key string, one outcome) {
	keep := keepRenewed
	if errors.Is(one.err, errAway) {
		keep = keepAway
	}
	one.until = o.clock.Now().Add(keep)
	o.kept.Add(key, one)
}

// renew returns a session with a new token. Of requests that come together, one asks the issuer.
func (p *provider) renew(ctx context.Context, of session.Session) (session.Session, error) {
	sum := sha256.Sum256([]byte(of.Refresh))
	key := hex.EncodeToString(sum[:])
	done, _, _ := p.asking.Do("renewal "+key, func() (any, error) {
		if known, is := p.renewed.find(key); is {
			return known, nil
		}
		// The others wait as well, so that the first one's browser may go.
		made, err := p.ask(context.WithoutCancel(ctx), of)
		if err != nil {
			p.log.Error("Cannot renew a session", "issuer", p.Issuer, "error", err)
		}
		one := outcome{session: made, err: err}
		p.renewed.put(key, one)
		return one, nil
	})
	one, is := done.(outcome)
	if !is { // it always is
		return session.Session{}, errAway
	}
	return one.session, one.err
}

// ask asks the issuer for a new token.
func (p *provider) ask(ctx context.Context, of session.Session) (session.Session, error) {
	known, err := p.describe(ctx)
	if err != nil {
		return session.Session{}, err
	}
	settings, err := p.settings(known)
	if err != nil {
		return session.Session{}, err
	}
	gained, err := settings.TokenSource(p.with(ctx), &oauth2.Token{RefreshToken: of.Refresh}).Token()
	if err != nil {
		return session.Session{}, explain(err)
	}
	token, text, err := p.verify(ctx, known, gained)
	switch {
	case err != nil:
		return session.Session{}, err
	case token.Subject != of.Subject:
		return session.Session{}, fmt.Errorf("%w: its new ID token is of another user", errRefused)
	}
	if gained.RefreshToken != of.Refresh {
		p.rotates.Store(true)
	}
	of.Token, of.Since, of.TokenEnd, of.Refresh = text, p.clock.Now(), token.Expiry, gained.RefreshToken
	return of, nil
}
