package servercert

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/pki"
)

// began is when the first certificate of these tests is made.
var began = time.Date(2031, 5, 6, 7, 8, 9, 0, time.UTC)

var hosts = ReadHosts("heliostat-server.there.svc, *.ray.example.com,10.1.2.3, ::1")

// renew returns what a Secret holds after a look.
func renew(t *testing.T, held map[string][]byte, hosts Hosts, now time.Time) (map[string][]byte, string) {
	t.Helper()
	wanted, why, err := Renew(held, hosts, now)
	if err != nil {
		t.Fatal(err)
	}
	return wanted, why
}

// leaf returns the certificate that a Secret holds, if its key belongs to it.
func leaf(t *testing.T, held map[string][]byte) *x509.Certificate {
	t.Helper()
	pair, err := tls.X509KeyPair(held[pki.CertificateFile], held[pki.KeyFile])
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf
}

// TestRenew_MakesACertificateForAYear: who trusts ca.crt trusts the server, by each of its hosts and by no other.
func TestRenew_MakesACertificateForAYear(t *testing.T) {
	held, why := renew(t, nil, hosts, began)
	if why != "read the authority: the Secret is empty" || len(held) != 4 {
		t.Fatalf("of nothing it makes %d keys, because %q", len(held), why)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(held[pki.AuthorityCertificateFile])
	for name, at := range map[string]time.Time{
		"heliostat-server.there.svc": began, "demo.ray.example.com": began, "10.1.2.3": began.AddDate(0, 0, 364), "::1": began,
	} {
		if _, err := leaf(t, held).Verify(x509.VerifyOptions{Roots: trusted, DNSName: name, CurrentTime: at}); err != nil {
			t.Errorf("%s at %s: %v", name, at, err)
		}
	}
	for name, at := range map[string]time.Time{"example.com": began, "::1": began.AddDate(0, 0, 366)} {
		if _, err := leaf(t, held).Verify(x509.VerifyOptions{Roots: trusted, DNSName: name, CurrentTime: at}); err == nil {
			t.Errorf("%s at %s is trusted", name, at)
		}
	}
}

// TestRenew_KeepsWhatIsGood has a row for each reason to make another certificate, or another authority.
func TestRenew_KeepsWhatIsGood(t *testing.T) {
	good, _ := renew(t, nil, hosts, began)
	another, _ := renew(t, nil, hosts, began)
	with := func(key string, text []byte) map[string][]byte {
		changed := maps.Clone(good)
		changed[key] = text
		return changed
	}
	inEightMonths := began.Add(lifetime - renewBefore)
	for name, c := range map[string]struct {
		held           map[string][]byte
		hosts          Hosts
		now            time.Time
		because        string // "" is that all stays
		keepsAuthority bool
	}{
		"in its first minute":         {good, hosts, began.Add(time.Minute), "", true},
		"eight months old":            {good, hosts, inEightMonths, "", true},
		"four months before its end":  {good, hosts, inEightMonths.Add(time.Second), "it is valid from", true},
		"over":                        {good, hosts, began.AddDate(2, 0, 0), "it is valid from", true},
		"for the same in other order": {good, ReadHosts("::1,10.1.2.3,*.ray.example.com,heliostat-server.there.svc,::1"), began, "", true},
		"for one host too few":        {good, ReadHosts("heliostat-server.there.svc,*.ray.example.com,10.1.2.3,::1,more"), began, "for other hosts", true},
		"for one host too many":       {good, ReadHosts("heliostat-server.there.svc"), began, "for other hosts", true},
		"without a certificate":       {with(pki.CertificateFile, nil), hosts, began, "it is missing", true},
		"with another key":            {with(pki.KeyFile, another[pki.KeyFile]), hosts, began, "its key is that of another one", true},
		"of another authority": {
			map[string][]byte{pki.AuthorityCertificateFile: another[pki.AuthorityCertificateFile], pki.AuthorityKeyFile: another[pki.AuthorityKeyFile],
				pki.CertificateFile: good[pki.CertificateFile], pki.KeyFile: good[pki.KeyFile]}, hosts, began, "compare the certificate with its authority", true,
		},
		"without the authority's key":       {with(pki.AuthorityKeyFile, nil), hosts, began, "read the key of the authority", false},
		"without the authority":             {with(pki.AuthorityCertificateFile, nil), hosts, began, "read the certificate of the authority", false},
		"with a key of another authority":   {with(pki.AuthorityKeyFile, another[pki.AuthorityKeyFile]), hosts, began, "does not belong", false},
		"four months before authority ends": {good, hosts, began.AddDate(10, 0, 0).Add(1 - renewBefore), "the authority: it ends at", false},
		"half a year before authority ends": {good, hosts, began.AddDate(9, 6, 0), "it is valid from", true},
	} {
		t.Run(name, func(t *testing.T) {
			wanted, why := renew(t, c.held, c.hosts, c.now)
			if (wanted == nil) != (c.because == "") || !strings.Contains(why, c.because) {
				t.Fatalf("it is renewed: %t, because %q, want %q", wanted != nil, why, c.because)
			}
			if wanted == nil {
				return
			}
			if kept := bytes.Equal(wanted[pki.AuthorityCertificateFile], c.held[pki.AuthorityCertificateFile]); kept != c.keepsAuthority {
				t.Errorf("the authority is kept: %t", kept)
			}
			if again, why := renew(t, wanted, c.hosts, c.now); again != nil {
				t.Errorf("what was made is made again, because %s", why)
			}
		})
	}
}

// TestRenew_FailsByAWrongClock: a certificate of before its authority would be of no use.
func TestRenew_FailsByAWrongClock(t *testing.T) {
	good, _ := renew(t, nil, hosts, began)
	if wanted, _, err := Renew(good, hosts, began.Add(-2*time.Hour)); err == nil || wanted != nil {
		t.Errorf("two hours before it is %v", err)
	}
}

func TestRenew_KeepsWhatElseIsThere(t *testing.T) {
	held, _ := renew(t, map[string][]byte{"note": []byte("x")}, hosts, began)
	if string(held["note"]) != "x" {
		t.Error("what somebody put there is gone")
	}
}
