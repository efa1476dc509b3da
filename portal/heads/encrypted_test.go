package heads_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/portal/heads/headstest"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient/fakehead"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// authority makes an authority, and a certificate of it for the head's address.
func authority(t *testing.T) (ca []byte, certificate tls.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "demo"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, root, root, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "head"}, NotBefore: root.NotBefore, NotAfter: root.NotAfter,
		IPAddresses: []net.IP{net.ParseIP(headIP)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	signed, err := x509.CreateCertificate(rand.Reader, leaf, root, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: der}); err != nil {
		t.Fatal(err)
	}
	return text.Bytes(), tls.Certificate{Certificate: [][]byte{signed}, PrivateKey: key}
}

// encrypted is a bed whose head takes TLS, and listens on no other port.
func encrypted(t *testing.T) (b *bed, ca []byte) {
	t.Helper()
	b = newBed(t, nil)
	ca, certificate := authority(t)
	listener := b.network.Listen(headIP + ":8266")
	b.network.Lead(headIP+":8265", nil)
	b.fake = fakehead.StartOn(clock.RealClock{}, b.network.Listen("gcs:2"),
		tls.NewListener(listener, &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}}))
	t.Cleanup(b.fake.Close)
	b.fake.SetToken(headstest.Token)
	b.pod.Annotations[v1beta1.AnnotationEncryption] = string(v1beta1.Enabled)
	b.PutPod(b.pod)
	return b, ca
}

func TestConverse_Encrypted(t *testing.T) {
	b, ca := encrypted(t)
	name := naming.AuthoritySecret("demo")
	unavailable(t, b.asked(t.Context()), "CAMissing")
	b.PutSecret(headstest.Secret(b.cluster, name, v1beta1.AuthorityCertificateKey, "nonsense"))
	unavailable(t, b.asked(t.Context()), "CAMissing")
	foreign := headstest.Secret(b.cluster, name, v1beta1.AuthorityCertificateKey, string(ca))
	foreign.OwnerReferences[0].UID = "other"
	b.PutSecret(foreign)
	unavailable(t, b.asked(t.Context()), "CAMissing")
	another, _ := authority(t)
	b.PutSecret(headstest.Secret(b.cluster, name, v1beta1.AuthorityCertificateKey, string(another)))
	unavailable(t, b.asked(t.Context()), "HeadUnreachable")
	if b.fake.Calls("GET /api/version") != 0 {
		t.Error("it was asked before it was known")
	}
	b.PutSecret(headstest.Secret(b.cluster, name, v1beta1.AuthorityCertificateKey, string(ca)))
	if err := b.asked(t.Context()); err != nil {
		t.Error(err)
	}
	if b.network.Dials(headIP+":8265") != 0 {
		t.Error("it was asked without encryption")
	}
}
