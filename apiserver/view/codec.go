package view

import (
	"encoding/base64"
	"errors"
	"slices"
	"strings"

	"github.com/fxamacker/cbor/v2"
)

// maxToken is how long the text of a mark or a cursor may be. With fifty watched namespaces a mark has about 1500
// characters.
const maxToken = 8 << 10

// errToken is that a text is none that a server made.
var errToken = errors.New("the text is not a token of this server")

// encodeToken returns numbers and texts as the text of a token. CBOR is short: each event of a watch has one.
func encodeToken(value any) string {
	content, _ := cbor.Marshal(value) // numbers and texts always marshal
	return base64.RawURLEncoding.EncodeToString(content)
}

// decodeToken reads the text of a token.
func decodeToken(token string, into any) error {
	if len(token) > maxToken || strings.ContainsAny(token, "\r\n") { // which the decoder would skip
		return errToken
	}
	content, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || cbor.Unmarshal(content, into) != nil {
		return errToken
	}
	return nil
}

// versionOf returns the version of a token, which is its first value whatever form the rest has. It reports whether there is one.
func versionOf(token string) (version uint64, is bool) {
	var values []cbor.RawMessage
	if decodeToken(token, &values) != nil || len(values) == 0 {
		return 0, false
	}
	err := cbor.Unmarshal(values[0], &version)
	return version, err == nil
}

// distances are a position as tokens have it: the largest number, and how far each is behind it, which are small numbers.
type distances []uint64

func distancesOf(p Position) distances {
	if len(p) == 0 {
		return nil
	}
	largest := slices.Max(p)
	all := distances{largest}
	for _, rv := range p {
		all = append(all, largest-rv)
	}
	return all
}

// position returns the position. It reports whether these are the distances of a position.
func (d distances) position() (p Position, is bool) {
	if len(d) < 2 {
		return nil, false
	}
	for _, behind := range d[1:] {
		if behind > d[0] {
			return nil, false
		}
		p = append(p, d[0]-behind)
	}
	return p, true
}
