// Package pkitest makes certificates for tests that speak TLS on this machine.
//
// In: a test, and the time. Out: an authority, and the files of a pod that is at localhost, 127.0.0.1 and ::1.
//
// It must never be part of what users run.
package pkitest

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/pki"
)

// New returns a new authority.
func New(t testing.TB, now time.Time) *pki.Authority {
	t.Helper()
	a, err := pki.New("demo", now)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// Directory returns a directory with what pki.ReadFiles reads.
func Directory(t testing.TB, a *pki.Authority, now time.Time) string {
	t.Helper()
	ca, _, err := a.Encode()
	if err != nil {
		t.Fatal(err)
	}
	addresses := []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.IPv6Loopback()}
	certificate, key, err := a.Issue([]string{"localhost"}, addresses, now)
	if err != nil {
		t.Fatal(err)
	}
	directory := t.TempDir()
	for name, text := range map[string][]byte{
		pki.AuthorityCertificateFile: ca, pki.CertificateFile: certificate, pki.KeyFile: key,
	} {
		if err := os.WriteFile(filepath.Join(directory, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return directory
}
