// Package session seals who is signed in into cookies, and opens them again.
//
// In: keys from a file, and the cookies of requests. Out: a Session, sealed with AES-256-GCM and split over cookies
// that a browser keeps; a code by which one origin hands a session to another; any other text, sealed for one purpose.
//
// It keeps no list, so each replica opens what another has sealed. It must never open what was sealed for another
// cookie, origin or purpose, let a session outlive its bound, or put a token into an error or a log.
package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// How a user signed in.
const (
	// KindToken is by a token of Kubernetes.
	KindToken = "Token"
	// KindOIDC is at an issuer by OpenID Connect.
	KindOIDC = "OIDC"
)

// MaxLife is after how long a user signs in again, whatever the token says.
const MaxLife = 8 * time.Hour

// renewWithin is how long before the end of a token it is renewed, at most.
const renewWithin = 5 * time.Minute

// Why there is no session.
var (
	// ErrNone is that a request has no cookie of a session.
	ErrNone = errors.New("the request has no session: sign in")
	// ErrBroken is of cookies that were not sealed here, or not by a key that is known, or not all of one session.
	ErrBroken = errors.New("the session's cookies cannot be opened: sign in again")
	// ErrOver is of a session that has ended.
	ErrOver = errors.New("the session has ended: sign in again")
	// ErrTooLong is of a session for which browsers keep too few bytes.
	ErrTooLong = errors.New("the token has more bytes than a session's cookies can hold, about 16 KiB: " +
		"have the identity provider put fewer groups into it, or ask for fewer scopes")
)

// Session is who is signed in. Its zero value is nobody. Nothing that is printed of it holds a token.
type Session struct {
	// Kind is how the user signed in.
	Kind string
	// Token goes along with what is done for the user. It was gained at Since, and ends at TokenEnd; zero is that it says
	// nothing about its end.
	Token           string
	Since, TokenEnd time.Time
	// End is when the user signs in again.
	End time.Time
	// Refresh renews the token at its issuer, where it is not empty, for the user whom the issuer calls Subject.
	Refresh, Subject string
}

// Format keeps tokens out of every text.
func (Session) Format(out fmt.State, _ rune) { _, _ = out.Write([]byte("[a session]")) }

// LogValue keeps tokens out of logs.
func (Session) LogValue() slog.Value { return slog.StringValue("[a session]") }

// HasToken reports whether the token has not ended by itself.
func (s Session) HasToken(now time.Time) bool { return s.TokenEnd.IsZero() || now.Before(s.TokenEnd) }

// NeedsRenewal reports whether the token can be renewed and ends soon: within five minutes, or a third of its life.
func (s Session) NeedsRenewal(now time.Time) bool {
	if s.Refresh == "" || s.TokenEnd.IsZero() {
		return false
	}
	return !now.Before(s.TokenEnd.Add(-min(renewWithin, s.TokenEnd.Sub(s.Since)/3)))
}

// Until returns when requests with the session's token end: with the token or the session, whichever is first.
func (s Session) Until() time.Time {
	if !s.TokenEnd.IsZero() && s.TokenEnd.Before(s.End) {
		return s.TokenEnd
	}
	return s.End
}

// Expires returns when the user signs in again: with a token that cannot be renewed, or after MaxLife.
func (s Session) Expires() time.Time {
	if s.Refresh != "" {
		return s.End
	}
	return s.Until()
}

// sealed is a session as it is written. Fields are only added: a replica of the version before reads it in an update.
type sealed struct {
	Kind     string `json:"k"`
	Token    string `json:"t"`
	Since    int64  `json:"s"`
	TokenEnd int64  `json:"x,omitempty"`
	End      int64  `json:"e"`
	Refresh  string `json:"r,omitempty"`
	Subject  string `json:"u,omitempty"`
}

// MarshalJSON implements json.Marshaler: for what is sealed.
func (s Session) MarshalJSON() ([]byte, error) {
	text, err := json.Marshal(sealed{
		Kind: s.Kind, Token: s.Token, Since: s.Since.Unix(), TokenEnd: seconds(s.TokenEnd), End: s.End.Unix(),
		Refresh: s.Refresh, Subject: s.Subject,
	})
	if err != nil {
		return nil, fmt.Errorf("write a session: %w", err)
	}
	return text, nil
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *Session) UnmarshalJSON(text []byte) error {
	var read sealed
	if json.Unmarshal(text, &read) != nil || read.Token == "" {
		return ErrBroken
	}
	*s = Session{
		Kind: read.Kind, Token: read.Token, Since: time.Unix(read.Since, 0), End: time.Unix(read.End, 0),
		Refresh: read.Refresh, Subject: read.Subject,
	}
	if read.TokenEnd != 0 {
		s.TokenEnd = time.Unix(read.TokenEnd, 0)
	}
	return nil
}

func seconds(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.Unix()
}
