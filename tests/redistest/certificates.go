package redistest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"time"
)

// Authority signs certificates that hold for a hundred years.
type Authority struct {
	// Certificate is the authority's own, as PEM.
	Certificate []byte

	t      T
	parsed *x509.Certificate
	// chain leads from what it issues to one that others may know.
	chain []byte
	key   *ecdsa.PrivateKey
}

// NewAuthority makes an authority that nobody knows yet.
func NewAuthority(t T) *Authority {
	t.Helper()
	return (&Authority{t: t}).found(nil)
}

// Intermediate makes an authority whose certificate is by this one. What it issues comes
// with that certificate, as servers send it.
func (a *Authority) Intermediate() *Authority {
	a.t.Helper()
	return (&Authority{t: a.t}).found(a)
}

// found gives an authority its certificate, by another or by itself.
func (a *Authority) found(by *Authority) *Authority {
	a.t.Helper()
	template := a.template("authority.test")
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	if by == nil {
		a.parsed = template
		a.Certificate, a.key = a.sign(template, nil)
	} else {
		a.Certificate, a.key = by.sign(template, by.key)
		a.chain = append(append([]byte(nil), a.Certificate...), by.chain...)
	}
	block, _ := pem.Decode(a.Certificate)
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		a.t.Fatalf("read an authority's certificate: %v", err)
	}
	a.parsed = parsed
	return a
}

// Issue gives a certificate for a server or a client of this name, and its key, as PEM.
func (a *Authority) Issue(name string) (certificate, key []byte) {
	a.t.Helper()
	template := a.template(name)
	template.DNSNames, template.KeyUsage = []string{name}, x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	certificate, private := a.sign(template, a.key)
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		a.t.Fatalf("write a key: %v", err)
	}
	return append(certificate, a.chain...), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func (a *Authority) template(name string) *x509.Certificate {
	a.t.Helper()
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		a.t.Fatalf("choose a serial number: %v", err)
	}
	return &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2120, 1, 1, 0, 0, 0, 0, time.UTC),
	}
}

// sign signs with a key, or with the certificate's own where there is none.
func (a *Authority) sign(template *x509.Certificate, with *ecdsa.PrivateKey) ([]byte, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatalf("make a key: %v", err)
	}
	if with == nil {
		with = key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.parsed, &key.PublicKey, with)
	if err != nil {
		a.t.Fatalf("make a certificate: %v", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), key
}

// client trusts the authority and has a certificate by it.
func (a *Authority) client(t T) *tls.Config {
	t.Helper()
	pair, err := tls.X509KeyPair(a.Issue("tester.test"))
	if err != nil {
		t.Fatalf("make a certificate: %v", err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(a.parsed)
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: "redis.test", Certificates: []tls.Certificate{pair}}
}
