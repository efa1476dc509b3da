package pki

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

func encoded(t testing.TB, a *Authority) (certificate, key []byte) {
	t.Helper()
	certificate, key, err := a.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return certificate, key
}

// parse reads the certificate of a text.
func parse(t *testing.T, text []byte) *x509.Certificate {
	t.Helper()
	der, err := decode(text, certificateBlock)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

func TestNew_MakesAnAuthorityForTenYears(t *testing.T) {
	certificate, _ := encoded(t, authority(t))
	ca := parse(t, certificate)
	if ca.Subject.String() != "CN=demo" || ca.KeyUsage != x509.KeyUsageCertSign {
		t.Errorf("it is of %s, for use %b", ca.Subject, ca.KeyUsage)
	}
	if !ca.IsCA || ca.MaxPathLen != 0 || !ca.MaxPathLenZero {
		t.Errorf("it is a CA: %t, with at most %d below it", ca.IsCA, ca.MaxPathLen)
	}
	if !ca.NotBefore.Equal(began.Add(-time.Hour)) || !ca.NotAfter.Equal(began.AddDate(10, 0, 0)) {
		t.Errorf("valid from %s to %s", ca.NotBefore, ca.NotAfter)
	}
	for _, extension := range ca.Extensions {
		if id := extension.Id.String(); (id == "2.5.29.15" || id == "2.5.29.19") && !extension.Critical {
			t.Errorf("extension %s is not critical", id)
		}
	}
	if err := ca.CheckSignatureFrom(ca); err != nil {
		t.Error(err)
	}
}

func TestNew_CutsNames(t *testing.T) {
	long, err := New(strings.Repeat("a", 500), began)
	if err != nil || len(long.certificate.Subject.CommonName) != maxCommonName {
		t.Errorf("of a long name: %v", err)
	}
	if _, err := New("", began); err == nil {
		t.Error("an authority without a name is made")
	}
}

// issue returns a certificate.
func issue(t *testing.T, a *Authority, names []string, addresses ...netip.Addr) *x509.Certificate {
	t.Helper()
	text, key, err := a.Issue(names, addresses, began.AddDate(1, 0, 0))
	if err != nil {
		t.Fatal(err)
	}
	leaf := parse(t, text)
	if private, err := readKey(key); err != nil || !private.PublicKey.Equal(leaf.PublicKey) {
		t.Errorf("its key is another: %v", err)
	}
	return leaf
}

func TestIssue_NamesAndTimes(t *testing.T) {
	a := authority(t)
	names := []string{"demo-head.team.svc", "localhost"}
	leaf := issue(t, a, names, netip.MustParseAddr("::ffff:192.0.2.7"), netip.MustParseAddr("2001:db8::1"))
	if leaf.IsCA || !leaf.BasicConstraintsValid {
		t.Error("it could sign others")
	}
	if leaf.KeyUsage != x509.KeyUsageDigitalSignature || len(leaf.ExtKeyUsage) != 2 {
		t.Errorf("for use %b, %v", leaf.KeyUsage, leaf.ExtKeyUsage)
	}
	if !leaf.NotBefore.Equal(a.certificate.NotBefore) || !leaf.NotAfter.Equal(a.certificate.NotAfter) {
		t.Errorf("valid from %s to %s", leaf.NotBefore, leaf.NotAfter)
	}
	if !slices.Equal(leaf.DNSNames, names) || len(leaf.IPAddresses) != 2 || len(leaf.IPAddresses[0]) != net.IPv4len {
		t.Errorf("for %v, %v", leaf.DNSNames, leaf.IPAddresses)
	}
}

func TestIssue_MakesEachAnother(t *testing.T) {
	a, err := New("localhost", began)
	if err != nil {
		t.Fatal(err)
	}
	one, two := issue(t, a, []string{"localhost"}), issue(t, a, nil, address)
	if one.SerialNumber.Cmp(two.SerialNumber) == 0 || bytes.Equal(one.RawSubject, two.RawSubject) {
		t.Errorf("two are %s %s and %s %s", one.SerialNumber, one.Subject, two.SerialNumber, two.Subject)
	}
	if bytes.Equal(one.RawSubject, one.RawIssuer) {
		t.Error("it looks like one that signed itself")
	}
}

func TestIssue_RefusesWhatNobodyCouldVerify(t *testing.T) {
	a := authority(t)
	for name, row := range map[string]struct {
		names     []string
		addresses []netip.Addr
		now       time.Time
		want      string
	}{
		"nothing":              {nil, nil, began, "neither name nor address"},
		"an empty name":        {[]string{"a", ""}, nil, began, "a name is empty"},
		"a name with ü":        {[]string{"ü"}, nil, began, "issue a certificate"},
		"an empty address":     {nil, []netip.Addr{{}}, began, "an address is empty"},
		"before the authority": {[]string{"a"}, nil, began.Add(-2 * time.Hour), "is valid from 2031-05-06T06:08:09Z"},
		"after the authority":  {[]string{"a"}, nil, began.AddDate(10, 0, 1), "to 2041-05-06T07:08:09Z"},
	} {
		if _, _, err := a.Issue(row.names, row.addresses, row.now); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := a.ClientConfig(began.AddDate(11, 0, 0)); err == nil {
		t.Error("an authority that has ended lets an operator in")
	}
}

func TestRead_ReturnsWhatWasEncoded(t *testing.T) {
	a := authority(t)
	certificate, key := encoded(t, a)
	again, err := Read(certificate, key)
	if err != nil || !again.certificate.Equal(a.certificate) || !again.key.Equal(a.key) {
		t.Fatalf("another authority was read: %v", err)
	}
	if c, k := encoded(t, again); !bytes.Equal(c, certificate) || !bytes.Equal(k, key) {
		t.Error("what was read is encoded as something else")
	}
}

func TestRead_RefusesWhatIsNoAuthority(t *testing.T) {
	a := authority(t)
	certificate, key := encoded(t, a)
	_, anotherKey := encoded(t, authority(t))
	leaf, leafKey, err := a.Issue([]string{"a"}, nil, began)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string, der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}) }
	other := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	curve := must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader))
	const noCurve, tooLong = "no ECDSA key on the curve P-256", "at most 65536 are read"
	for name, row := range map[string]struct {
		certificate, key []byte
		want             string
	}{
		"no certificate":         {nil, key, "the certificate of the authority: it is not PEM"},
		"no key":                 {certificate, nil, "the key of the authority: it is not PEM"},
		"both exchanged":         {key, certificate, "of another type than CERTIFICATE"},
		"a key for a key's":      {certificate, certificate, "of another type than PRIVATE KEY"},
		"two certificates":       {append(bytes.Clone(certificate), leaf...), key, "something follows"},
		"two keys":               {certificate, append(bytes.Clone(key), key...), "something follows"},
		"half a certificate":     {block(certificateBlock, a.certificate.Raw[:100]), key, "the certificate of the authority: x509"},
		"no content":             {block(certificateBlock, nil), key, "the certificate of the authority: x509"},
		"half a key":             {certificate, block(keyBlock, []byte{0x30, 1}), "the key of the authority"},
		"another key":            {certificate, anotherKey, "it does not belong to the certificate"},
		"a leaf":                 {leaf, leafKey, "it may not sign certificates"},
		"one that may not sign":  {unsigning(t, a), key, "it may not sign certificates"},
		"a key on another curve": {certificate, private(t, curve), noCurve},
		"a key of another sort":  {certificate, private(t, other), noCurve},
		"a long certificate":     {append(bytes.Clone(certificate), make([]byte, maxPEM)...), key, tooLong},
		"a long key":             {certificate, append(bytes.Clone(key), bytes.Repeat([]byte("\n"), maxPEM)...), tooLong},
	} {
		_, err := Read(row.certificate, row.key)
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func private(t *testing.T, key any) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: der})
}

// unsigning is a certificate of an authority's key that calls itself a CA and may not sign.
func unsigning(t *testing.T, a *Authority) []byte {
	t.Helper()
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "a"}, NotBefore: began, NotAfter: began.AddDate(1, 0, 0),
		BasicConstraintsValid: true, IsCA: true, KeyUsage: x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: der})
}

// FuzzRead reads what a Secret may hold that others can write. What is read can be encoded, and is then the same.
func FuzzRead(f *testing.F) {
	a := authority(f)
	certificate, key := encoded(f, a)
	leaf, leafKey, err := a.Issue([]string{"a"}, []netip.Addr{address}, began)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(certificate, key)
	f.Add(leaf, leafKey)
	f.Add(key, certificate)
	for _, kind := range []string{certificateBlock, keyBlock} {
		empty := pem.EncodeToMemory(&pem.Block{Type: kind})
		f.Add(empty, empty)
	}
	f.Fuzz(func(t *testing.T, certificate, key []byte) {
		a, err := Read(certificate, key)
		if err != nil {
			return
		}
		c, k := encoded(t, a)
		again, err := Read(c, k)
		if err != nil || !again.certificate.Equal(a.certificate) || !again.key.Equal(a.key) {
			t.Errorf("what was read cannot be read again: %v", err)
		}
		from, to := a.certificate.NotBefore, a.certificate.NotAfter
		if _, err := a.ClientConfig(from); err != nil && !from.After(to) {
			t.Errorf("what was read issues nothing: %v", err)
		}
	})
}
