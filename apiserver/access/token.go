package access

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
)

// Errors of requests whose caller did not say who they are. Their texts are for the caller, and hold nothing of what was
// sent.
var (
	ErrNoToken  = errors.New("the request has no bearer token: send the header Authorization: Bearer TOKEN")
	ErrBadToken = errors.New("the header Authorization holds no bearer token: send it once, as Bearer TOKEN")
)

const (
	authorization = "Authorization"
	scheme        = "bearer "
	// maxToken is how many bytes a token may have. Tokens of OpenID Connect with hundreds of groups have 16 KiB.
	maxToken = 24 << 10
)

// Token is the credential of a caller. What is printed of it, in any form, is the same for all.
type Token struct{ text string }

// Key is what remembers a token without being one.
type Key [sha256.Size]byte

// ParseToken returns the bearer token of a request.
func ParseToken(header http.Header) (Token, error) {
	values := header.Values(authorization)
	if len(values) == 0 {
		return Token{}, ErrNoToken
	}
	value := values[0]
	if len(values) > 1 || len(value) <= len(scheme) || !strings.EqualFold(value[:len(scheme)], scheme) {
		return Token{}, ErrBadToken
	}
	text := strings.Trim(value[len(scheme):], " ")
	if len(text) > maxToken || !isToken(text) {
		return Token{}, ErrBadToken
	}
	return Token{text: text}, nil
}

// isToken reports whether a text has the form b64token of RFC 6750.
func isToken(text string) bool {
	body := strings.TrimRight(text, "=")
	outside := func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-._~+/", r))
	}
	return body != "" && !strings.ContainsFunc(body, outside)
}

// Key returns the token's hash.
func (t Token) Key() Key { return sha256.Sum256([]byte(t.text)) }

// Authorize puts the token into the headers of a request to the API server, in place of any other.
func (t Token) Authorize(header http.Header) { header.Set(authorization, "Bearer "+t.text) }

// Format keeps the token out of every text.
func (Token) Format(out fmt.State, _ rune) { _, _ = out.Write([]byte("[a token]")) }

// LogValue keeps the token out of logs.
func (Token) LogValue() slog.Value { return slog.StringValue("[a token]") }

// bearer sends requests as the owner of a token.
type bearer struct {
	token Token
	to    http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (b bearer) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	b.token.Authorize(request.Header)
	request.Header.Set("User-Agent", agent)
	return b.to.RoundTrip(request)
}
