package app

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/heliostat-dev/heliostat/portal/access"
	"github.com/heliostat-dev/heliostat/portal/access/accesstest"
)

// newSignedIn is a server that impersonates the users of an issuer.
func newSignedIn(t *testing.T) (*bed, *accesstest.Issuer) {
	t.Helper()
	issuer, prefix := accesstest.StartIssuer(t), "sso:"
	return newBedOf(t, fine, access.Identity{Mode: access.Impersonate, Issuers: []access.Issuer{{
		URL: issuer.URL, Audience: "portal", UsernameClaim: "sub", GroupsClaim: "groups", Prefix: &prefix, CertificateAuthority: issuer.Authority(),
	}}}), issuer
}

func tokenFor(t *testing.T, issuer *accesstest.Issuer, audience string) string {
	t.Helper()
	return issuer.Token(t, map[string]any{"sub": "ana", "groups": []string{"ml"}, "aud": audience, "exp": time.Now().Add(time.Hour).Unix()})
}

// TestFront_ActsAsItsCaller: the server's credential goes along with the caller's name, and nothing that the caller says of it.
func TestFront_ActsAsItsCaller(t *testing.T) {
	b, issuer := newSignedIn(t)
	code, _, _ := b.send(t, b.client(2), "DELETE", at+"/c", "Authorization", "Bearer "+tokenFor(t, issuer, "portal"), "Impersonate-User", "canary", "Impersonate-Group", "system:masters",
		"Impersonate-Extra-A", "canary", "Impersonate-Uid", "canary", "X-Remote-User", "canary", "X-Remote-Group", "system:masters", "X-Remote-Extra-A", "canary")
	seen := b.upstream.Seen()
	if code != http.StatusOK || len(seen) != 1 {
		t.Fatalf("the answer is %d after %v", code, seen)
	}
	for name, want := range map[string]string{
		"Authorization": "Bearer " + accesstest.Account(), "Impersonate-User": "sso:ana", "Impersonate-Group": "sso:ml", "Impersonate-Uid": "", "Impersonate-Extra-A": "", "X-Remote-User": "",
	} {
		if got := strings.Join(seen[0].Header.Values(name), " "); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if lines := b.log.String(); !strings.Contains(lines, `"user":"sso:ana"`) || strings.Contains(lines, "canary") {
		t.Errorf("the log is %s", lines)
	}
}

func TestFront_SaysWhyNobodyIsSignedIn(t *testing.T) {
	b, issuer := newSignedIn(t)
	send := func(token string) (int, string) {
		code, header, status := b.send(t, b.client(2), "GET", at, "Authorization", "Bearer "+token)
		if (code == http.StatusUnauthorized) != (header.Get("WWW-Authenticate") != "") || int(status.Code) != code {
			t.Errorf("%d has the headers %v and the Status %+v", code, header, status)
		}
		return code, status.Message
	}
	if code, text := send(tokenFor(t, issuer, "other")); code != http.StatusUnauthorized || !strings.Contains(text, "another audience") {
		t.Errorf("another audience: %d %s", code, text)
	}
	if code, text := send("alice-token"); code != http.StatusUnauthorized || !strings.Contains(text, "not one that is accepted") {
		t.Errorf("a token of the API server's: %d %s", code, text)
	}
	broken, away := newSignedIn(t)
	away.Break(true)
	b = broken
	if code, text := send(tokenFor(t, away, "portal")); code != http.StatusServiceUnavailable || !strings.Contains(text, "was not executed") {
		t.Errorf("an issuer that is away: %d %s", code, text)
	}
	if len(b.upstream.Seen()) > 0 {
		t.Error("the API server got a request of nobody")
	}
}
