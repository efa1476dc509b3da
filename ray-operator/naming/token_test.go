package naming_test

import (
	"testing"

	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

func TestTokenHash(t *testing.T) {
	one, other := naming.TokenHash("one"), naming.TokenHash("other")
	if one == other || len(one) != 5 || one != naming.TokenHash("one") {
		t.Errorf("%q and %q, want two different hashes of 5 characters, always the same", one, other)
	}
	if empty := naming.TokenHash(""); empty != "" {
		t.Errorf("no token has the hash %q", empty)
	}
}
