package accesstest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"github.com/heliostat-dev/heliostat/portal/access"
)

// NewFrontProxy returns the certificate of a proxy that signs users in, and what a server is told of it.
func NewFrontProxy(t testing.TB) (*access.FrontProxy, tls.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "the-proxy"}, IsCA: true, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		NotBefore:   time.Unix(1_700_000_000, 0), NotAfter: time.Unix(2_500_000_000, 0),
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return &access.FrontProxy{
		CertificateAuthority: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})),
		Names:                []string{"the-proxy"},
		UserHeader:           "X-Remote-User", GroupHeader: "X-Remote-Group", UIDHeader: "X-Remote-Uid",
		ExtraHeaderPrefix: "X-Remote-Extra-",
	}, tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key, Leaf: leaf}
}
