package access

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"
)

const (
	authorization = "Authorization"
	scheme        = "bearer "
	// maxToken is how many bytes a token may have. Tokens of OpenID Connect with hundreds of groups have 16 KiB.
	maxToken = 24 << 10
	// maxExpiry is the last second that is written with four digits for the year.
	maxExpiry = 253_402_300_799
)

// Token is the credential of a caller. What is printed of it, in any form, is the same for all.
type Token struct{ text string }

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
	for i := range len(body) { // by bytes: each request has a token of a thousand
		b := body[i]
		if !('a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9' || strings.IndexByte("-._~+/", b) >= 0) {
			return false
		}
	}
	return body != ""
}

// Key returns the token's hash.
func (t Token) Key() string {
	sum := sha256.Sum256([]byte(t.text))
	return hex.EncodeToString(sum[:])
}

// End returns when the token says that it ends; zero is that it does not say. Nobody has proven that.
func (t Token) End() time.Time {
	said, is := readClaims(t)
	if !is || said.Expiry <= 0 || said.Expiry > maxExpiry {
		return time.Time{}
	}
	return time.Unix(int64(said.Expiry), 0)
}

// Authorize puts the token into the headers of a request to the API server, in place of any other.
func (t Token) Authorize(header http.Header) { header.Set(authorization, "Bearer "+t.text) }

// Format keeps the token out of every text.
func (Token) Format(out fmt.State, _ rune) { _, _ = out.Write([]byte("[a token]")) }

// LogValue keeps the token out of logs.
func (Token) LogValue() slog.Value { return slog.StringValue("[a token]") }
