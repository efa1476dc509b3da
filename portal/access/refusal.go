package access

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// refusal is why a request has no caller. Each counts as ErrUnauthorized. Its text is for the caller, and holds nothing of
// what was sent.
type refusal struct{ text string }

// Error implements error.
func (r *refusal) Error() string { return r.text }

// Is makes every refusal one by which a request is answered 401.
func (r *refusal) Is(target error) bool { return target == ErrUnauthorized }

// Refusals of requests whose caller did not say who they are, or cannot be believed.
var (
	ErrNoToken  error = &refusal{"the request has no bearer token: send the header Authorization: Bearer TOKEN"}
	ErrBadToken error = &refusal{"the header Authorization holds no bearer token: send it once, as Bearer TOKEN"}
	// ErrUnknownToken is of a token that nobody has issued who is believed here.
	ErrUnknownToken error = &refusal{"the token is not one that is accepted here, or no longer: get another one"}
	ErrExpired      error = &refusal{"the token has expired: get a new one"}
	ErrAudience     error = &refusal{"the token is for another audience: get one for this server"}
	// ErrReservedName is of an identity from outside of Kubernetes that poses as one of its own.
	ErrReservedName  error = &refusal{"the name of the user or of a group begins with system:, which Kubernetes alone gives: rename it at the identity provider"}
	ErrBadName       error = &refusal{"the name of the user or of a group is empty, or holds white space at an end or control characters: rename it at the identity provider"}
	ErrUnverified    error = &refusal{"the e-mail address by which the user is named is not verified: verify it at the identity provider"}
	ErrNoAccount     error = &refusal{"the token is of no service account, and no others have tokens for this audience: sign in another way"}
	ErrProxyIdentity error = &refusal{"the headers of the front proxy do not say who the user is: have it send the user once, and no extra that is not configured"}
)

// claims are what a token says of itself.
type claims struct {
	Issuer   string    `json:"iss"`
	Audience audiences `json:"aud"`
	Expiry   float64   `json:"exp"`
}

// audiences are written as one text, or as a list.
type audiences []string

// UnmarshalJSON implements json.Unmarshaler.
func (a *audiences) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*a = audiences{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(a))
}

// readClaims returns what a token says of itself, and whether it says anything. Nothing of it is proven.
func readClaims(token Token) (claims, bool) {
	parts := strings.Split(token.text, ".")
	if len(parts) != 3 {
		return claims{}, false
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return claims{}, false
	}
	var said claims
	return said, json.Unmarshal(text, &said) == nil
}

// explainRefusal returns why a token was refused, by what it says of itself and what one says that is accepted. It was
// refused before, so nothing is lost where it lies.
func explainRefusal(token Token, like claims, now time.Time) error {
	said, is := readClaims(token)
	switch {
	case !is:
		return ErrUnknownToken
	case said.Expiry > 0 && said.Expiry <= float64(now.Unix()):
		return ErrExpired
	case said.Issuer == like.Issuer && len(like.Audience) > 0 && !slices.ContainsFunc(said.Audience, like.isFor):
		return ErrAudience
	}
	return ErrUnknownToken
}

func (c claims) isFor(audience string) bool { return slices.Contains(c.Audience, audience) }
