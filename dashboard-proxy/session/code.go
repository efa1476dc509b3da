package session

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"time"
)

// CodeLife is for how long a code can be handed in.
const CodeLife = 30 * time.Second

// ErrCode is of a code that does not fit its browser or its address, or that has ended.
var ErrCode = errors.New("the code is of another browser, or has ended: open the address again")

// Code hands a session from one origin to another.
type Code struct {
	// Session is what is handed over.
	Session Session `json:"session"`
	// Challenge is that of the verifier which the browser has a cookie of.
	Challenge string `json:"challenge"`
	// Origin takes the session, and Path is where the browser goes there.
	Origin string `json:"origin"`
	Path   string `json:"path"`
	// End is set by SealCode.
	End int64 `json:"end"`
}

const codePurpose = "code"

// NewVerifier returns a text that nobody can guess.
func NewVerifier() string { return rand.Text() + rand.Text() }

// Challenge returns by what a code is bound to the browser that has the verifier.
func Challenge(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// IsChallenge reports whether a text has the form of one.
func IsChallenge(text string) bool {
	read, err := base64.RawURLEncoding.Strict().DecodeString(text)
	return err == nil && len(read) == sha256.Size
}

// SealCode returns a code that can be handed in for CodeLife.
func (k *Keys) SealCode(c Code) (string, error) {
	c.End = k.clock.Now().Add(CodeLife).Unix()
	text, err := json.Marshal(c)
	if err != nil {
		return "", err
	}
	return k.Seal(codePurpose, text), nil
}

// OpenCode returns the code that a browser with a verifier hands in at an origin. A verifier is used once: the caller
// must take it from the browser, whatever comes back.
func (k *Keys) OpenCode(text, verifier, origin string) (Code, error) {
	opened, err := k.Open(codePurpose, text)
	if err != nil {
		return Code{}, ErrCode
	}
	var c Code
	if json.Unmarshal(opened, &c) != nil {
		return Code{}, ErrCode
	}
	isOf := verifier != "" && subtle.ConstantTimeCompare([]byte(Challenge(verifier)), []byte(c.Challenge)) == 1
	if !isOf || c.Origin != origin || k.clock.Now().Unix() >= c.End {
		return Code{}, ErrCode
	}
	return c, nil
}
