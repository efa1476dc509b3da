package access

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/client-go/transport"

	"github.com/heliostat-dev/heliostat/portal/limits"
)

// How the server learned who a caller is.
const (
	// MethodToken is a token that the API server knows. It goes along with all that is done for the caller.
	MethodToken = "Token"
	// MethodAudience is a token of a service account for the server's own audience.
	MethodAudience = "Audience"
	// MethodIssuer is a token of an issuer that the server knows.
	MethodIssuer = "Issuer"
	// MethodFrontProxy is a proxy that has signed the user in.
	MethodFrontProxy = "FrontProxy"
)

const (
	// reserved begins names that Kubernetes alone gives.
	reserved = "system:"
	// authenticated is the group that Kubernetes adds to every user who is not anonymous.
	authenticated = "system:authenticated"
	accounts      = "system:serviceaccount:"
)

// Caller is who a request is of. Nothing that is printed of it says who, or holds a credential.
type Caller struct {
	user           authenticationv1.UserInfo
	method, issuer string
	key            string
	// token is the caller's own. It goes along where the API server judges callers; one of the server's own audience is
	// reviewed again while it is used.
	token Token
	// until is when the credential ends by itself; zero is that nobody says.
	until time.Time
}

// User returns the name, groups, UID and extra of the caller. They are empty of a caller of whom
// nobody told CallerOf who they are.
func (c *Caller) User() authenticationv1.UserInfo { return *c.user.DeepCopy() }

// Method returns how the server learned who the caller is.
func (c *Caller) Method() string { return c.method }

// Issuer returns the URL of the issuer of the token, where the server itself verified it.
func (c *Caller) Issuer() string { return c.issuer }

// Key returns the identity of a caller, for caches. Where the API server judges tokens it is of the token, so another token is
// another caller; elsewhere it is of the identity.
func (c *Caller) Key() string { return c.key }

// Holder returns whose places a caller takes: those of the user, by name and UID, with whatever token. It is empty of a caller
// of whom nobody could say who they are.
func (c *Caller) Holder() limits.Holder {
	if c.user.Username == "" {
		return limits.Holder{}
	}
	holder := limits.Holder{User: c.user.Username + "\n" + c.user.UID}
	if account, is := strings.CutPrefix(c.user.Username, accounts); is {
		holder.Namespace, _, _ = strings.Cut(account, ":")
	}
	return holder
}

// Format keeps credentials and names out of every text.
func (Caller) Format(out fmt.State, _ rune) { _, _ = out.Write([]byte("[a caller]")) }

// LogValue keeps credentials and names out of logs.
func (Caller) LogValue() slog.Value { return slog.StringValue("[a caller]") }

// isOver reports whether the caller's credential has ended by itself.
func (c *Caller) isOver(now time.Time) bool { return !c.until.IsZero() && !now.Before(c.until) }

// impersonation returns what the server says to act as the caller. Kubernetes adds that group by itself, and lets a
// service account be impersonated by its name alone.
func (c *Caller) impersonation() transport.ImpersonationConfig {
	if strings.HasPrefix(c.user.Username, accounts) {
		return transport.ImpersonationConfig{UserName: c.user.Username}
	}
	extra := map[string][]string{}
	for name, values := range c.user.Extra {
		extra[name] = values
	}
	groups := slices.DeleteFunc(slices.Clone(c.user.Groups), func(group string) bool { return group == authenticated })
	return transport.ImpersonationConfig{UserName: c.user.Username, UID: c.user.UID, Groups: groups, Extra: extra}
}

// newCaller returns a caller from outside of Kubernetes, unless a name poses as one of Kubernetes' own.
func newCaller(method, issuer string, user authenticationv1.UserInfo, until time.Time) (*Caller, error) {
	user.Groups = slices.DeleteFunc(slices.Clone(user.Groups), func(group string) bool { return group == authenticated })
	for _, name := range append([]string{user.Username}, user.Groups...) {
		if err := checkName(name); err != nil {
			return nil, err
		}
	}
	user.Groups = append(user.Groups, authenticated)
	return (&Caller{user: user, method: method, issuer: issuer, until: until}).named(), nil
}

// named gives a caller the key of its identity.
func (c *Caller) named() *Caller {
	text, err := json.Marshal([]any{c.method, c.issuer, c.user})
	if err != nil { // texts and lists of texts always marshal
		text = []byte(c.user.Username)
	}
	sum := sha256.Sum256(text)
	c.key = hex.EncodeToString(sum[:])
	return c
}

// checkName refuses names that Kubernetes alone gives, and those that a header could change on its way.
func checkName(name string) error {
	switch {
	case name == "" || strings.TrimSpace(name) != name || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return ErrBadName
	case strings.HasPrefix(name, reserved):
		return ErrReservedName
	}
	return nil
}
