package wire

import (
	"crypto/hmac"
	"crypto/sha256"
)

// NonceSize is how long a nonce is, in bytes.
const NonceSize = 32

// purpose is what a proof is for, so that none is of use elsewhere.
const purpose = "heliostat.scalelink.v1.Follow\x00"

// Prove returns the proof that the caller knows the token of a head's cluster. It counts on the connection of the nonce alone.
func Prove(token string, nonce []byte, head string) []byte {
	mac := hmac.New(sha256.New, []byte(token))
	for _, part := range [][]byte{[]byte(purpose), nonce, []byte(head)} {
		_, _ = mac.Write(part) // a hash never fails
	}
	return mac.Sum(nil)
}
