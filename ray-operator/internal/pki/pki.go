// Package pki makes the certificates of one authority, which is a cluster's or that of the server for portals, and from them
// what both ends of a TLS connection need.
//
// In: names, addresses, the time, and PEM that was made here before. Out: PEM, and a tls.Config for each end.
//
// It must never trust an authority other than that one, accept a client without a certificate of that
// authority, or put a key into an error.
package pki

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"time"
)

const (
	// years is how long an authority and what it issues are valid: Ray's servers read their certificates once.
	years = 10
	// backdate is how far the clocks of two machines may differ.
	backdate = time.Hour
	// maxPEM is how many bytes a certificate or a key may have. Ours have less than 1 KiB.
	maxPEM = 64 << 10
	// maxCommonName is how many bytes a common name may have by RFC 5280.
	maxCommonName = 64
)

// The types of PEM blocks.
const (
	certificateBlock = "CERTIFICATE"
	keyBlock         = "PRIVATE KEY"
)

// Authority is a certificate authority. It may be used by many goroutines.
type Authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// New returns a new authority. People who read its certificate see the name.
func New(name string, now time.Time) (*Authority, error) {
	if name == "" {
		return nil, errors.New("make an authority: it has no name")
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key of authority %s: %w", name, err)
	}
	return certify(name, key, now)
}

// Renewed returns the authority with the same name and key, and a certificate that is valid from now on. What either of them has
// issued is trusted by who has the certificate of the other: both sign with one key.
func (a *Authority) Renewed(now time.Time) (*Authority, error) {
	return certify(a.certificate.Subject.CommonName, a.key, now)
}

// certify returns the authority of a key.
func certify(name string, key *ecdsa.PrivateKey, now time.Time) (*Authority, error) {
	template := &x509.Certificate{
		Subject:   pkix.Name{CommonName: commonName(name)},
		NotBefore: now.Add(-backdate), NotAfter: now.AddDate(years, 0, 0),
		BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	certificate, err := sign(template, template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("make a certificate of authority %s: %w", name, err)
	}
	return &Authority{certificate: certificate, key: key}, nil
}

// Read returns the authority that was encoded as this certificate and this key.
func Read(certificate, key []byte) (*Authority, error) {
	parsed, err := readAuthority(certificate)
	if err != nil {
		return nil, err
	}
	private, err := readKey(key)
	if err != nil {
		return nil, fmt.Errorf("read the key of the authority: %w", err)
	}
	if !private.PublicKey.Equal(parsed.PublicKey) {
		return nil, errors.New("read the key of the authority: it does not belong to the certificate")
	}
	return &Authority{certificate: parsed, key: private}, nil
}

// Until returns when the authority ends, and with it all that it has issued.
func (a *Authority) Until() time.Time { return a.certificate.NotAfter }

// Encode returns the authority as PEM. The certificate is no secret, the key is.
func (a *Authority) Encode() (certificate, key []byte, err error) {
	return encode(a.certificate, a.key)
}

// readAuthority returns a certificate that may sign others.
func readAuthority(text []byte) (*x509.Certificate, error) {
	der, err := decode(text, certificateBlock)
	if err != nil {
		return nil, fmt.Errorf("read the certificate of the authority: %w", err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("read the certificate of the authority: %w", err)
	}
	if !certificate.BasicConstraintsValid || !certificate.IsCA || certificate.KeyUsage&x509.KeyUsageCertSign == 0 {
		return nil, errors.New("read the certificate of the authority: it may not sign certificates")
	}
	return certificate, nil
}

func readKey(text []byte) (*ecdsa.PrivateKey, error) {
	der, err := decode(text, keyBlock)
	if err != nil {
		return nil, err
	}
	parsed, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, err
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, errors.New("it is no ECDSA key on the curve P-256")
	}
	return key, nil
}

// decode returns the content of the only PEM block of a text, which must be of a type.
func decode(text []byte, kind string) ([]byte, error) {
	if len(text) > maxPEM {
		return nil, fmt.Errorf("it has %d bytes, at most %d are read", len(text), maxPEM)
	}
	block, rest := pem.Decode(text)
	if block == nil {
		return nil, errors.New("it is not PEM")
	}
	if block.Type != kind {
		return nil, fmt.Errorf("it is a PEM block of another type than %s", kind)
	}
	if len(bytes.TrimSpace(rest)) > 0 {
		return nil, errors.New("something follows its first PEM block")
	}
	return block.Bytes, nil
}

// encode returns a certificate and its key as PEM.
func encode(certificate *x509.Certificate, key *ecdsa.PrivateKey) (certificateText, keyText []byte, err error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("encode a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: certificate.Raw}),
		pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: der}), nil
}

// sign returns a certificate as others read it, so that what they could not read is an error here.
func sign(template, parent *x509.Certificate, of *ecdsa.PublicKey, by *ecdsa.PrivateKey) (*x509.Certificate, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, of, by)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// commonName returns as much of a name as fits.
func commonName(name string) string { return name[:min(len(name), maxCommonName)] }
