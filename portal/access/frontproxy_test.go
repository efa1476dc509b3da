package access_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/heliostat-dev/heliostat/portal/access"
)

// signer signs client certificates.
type signer struct {
	key         *ecdsa.PrivateKey
	certificate *x509.Certificate
}

func newSigner(t *testing.T) *signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s := &signer{key: key}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Unix(1_700_000_000, 0), NotAfter: time.Unix(1_900_000_000, 0), KeyUsage: x509.KeyUsageCertSign,
	}
	s.certificate = s.sign(t, template, template)
	return s
}

func (s *signer) sign(t *testing.T, template, parent *x509.Certificate) *x509.Certificate {
	t.Helper()
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, &s.key.PublicKey, s.key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}

// connection returns what a server knows of a connection from the owner of a certificate.
func (s *signer) connection(t *testing.T, name string, change func(*x509.Certificate)) *tls.ConnectionState {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		NotBefore: time.Unix(1_700_000_000, 0), NotAfter: time.Unix(1_800_000_100, 0),
	}
	if change != nil {
		change(template)
	}
	return &tls.ConnectionState{PeerCertificates: []*x509.Certificate{s.sign(t, template, s.certificate)}}
}

func (s *signer) authority() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.certificate.Raw}))
}

func newProxied(t *testing.T) (*impersonating, *signer) {
	t.Helper()
	s := newSigner(t)
	return newImpersonating(t, func(identity *access.Identity) {
		identity.FrontProxy = &access.FrontProxy{
			CertificateAuthority: s.authority(), Names: []string{"the-proxy"}, Extra: []string{"scopes", "example.com/dn"},
			UserHeader: "X-Remote-User", GroupHeader: "X-Remote-Group", UIDHeader: "X-Remote-Uid", ExtraHeaderPrefix: "X-Remote-Extra-",
		}
	}), s
}

func TestFrontProxy_SaysWhoTheUserIs(t *testing.T) {
	i, s := newProxied(t)
	proxy := s.connection(t, "the-proxy", nil)
	for name, c := range map[string]struct {
		header http.Header
		want   authenticationv1.UserInfo
		err    error
	}{
		"a name alone": {http.Header{"X-Remote-User": {"ana"}}, authenticationv1.UserInfo{Username: "ana", Groups: []string{"system:authenticated"}}, nil},
		"all of it, beside a token": {
			http.Header{
				"X-Remote-User": {"ana"}, "X-Remote-Group": {"ml", "system:authenticated", "ops"}, "X-Remote-Uid": {"7"},
				"X-Remote-Extra-Scopes": {"a", "b"}, "X-Remote-Extra-Example.com%2fdn": {"x"}, "Authorization": {"Bearer other"},
			},
			authenticationv1.UserInfo{
				Username: "ana", UID: "7", Groups: []string{"ml", "ops", "system:authenticated"},
				Extra: map[string]authenticationv1.ExtraValue{"scopes": {"a", "b"}, "example.com/dn": {"x"}},
			}, nil,
		},
		"two names":                  {http.Header{"X-Remote-User": {"ana", "bob"}}, authenticationv1.UserInfo{}, access.ErrProxyIdentity},
		"two UIDs":                   {http.Header{"X-Remote-User": {"ana"}, "X-Remote-Uid": {"1", "2"}}, authenticationv1.UserInfo{}, access.ErrProxyIdentity},
		"an empty name":              {http.Header{"X-Remote-User": {""}}, authenticationv1.UserInfo{}, access.ErrBadName},
		"an extra not in the list":   {http.Header{"X-Remote-User": {"ana"}, "X-Remote-Extra-More": {"a"}}, authenticationv1.UserInfo{}, access.ErrProxyIdentity},
		"an empty extra":             {http.Header{"X-Remote-User": {"ana"}, "X-Remote-Extra-Scopes": {""}}, authenticationv1.UserInfo{}, access.ErrProxyIdentity},
		"a name of Kubernetes":       {http.Header{"X-Remote-User": {"system:admin"}}, authenticationv1.UserInfo{}, access.ErrReservedName},
		"a group of Kubernetes":      {http.Header{"X-Remote-User": {"ana"}, "X-Remote-Group": {"system:masters"}}, authenticationv1.UserInfo{}, access.ErrReservedName},
		"one with a space before it": {http.Header{"X-Remote-User": {"ana"}, "X-Remote-Group": {" system:masters"}}, authenticationv1.UserInfo{}, access.ErrBadName},
		"no name, and no token":      {http.Header{"X-Remote-Group": {"ml"}}, authenticationv1.UserInfo{}, access.ErrNoToken},
	} {
		caller, err := i.Identify(t.Context(), &http.Request{Header: c.header, TLS: proxy})
		if !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
			t.Errorf("%s: %v, want %v", name, err, c.err)
			continue
		}
		if err != nil {
			continue
		}
		if diff := cmp.Diff(c.want, caller.User()); diff != "" || caller.Method() != access.MethodFrontProxy {
			t.Errorf("%s: by %s %s", name, caller.Method(), diff)
		}
	}
}

// TestFrontProxy_IsKnownByItsCertificateAlone: headers of any other peer are no more than text.
func TestFrontProxy_IsKnownByItsCertificateAlone(t *testing.T) {
	i, s := newProxied(t)
	other := newSigner(t)
	for name, state := range map[string]*tls.ConnectionState{
		"without TLS": nil, "without a certificate": {}, "another name": s.connection(t, "other", nil), "another authority": other.connection(t, "the-proxy", nil),
		"a certificate of servers": s.connection(t, "the-proxy", func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }),
		"one that has expired":     s.connection(t, "the-proxy", func(c *x509.Certificate) { c.NotAfter = time.Unix(1_750_000_000, 0) }),
	} {
		request := &http.Request{Header: http.Header{"X-Remote-User": {"ana"}}, TLS: state}
		if caller, err := i.Identify(t.Context(), request); !errors.Is(err, access.ErrNoToken) {
			t.Errorf("%s: %v, %v", name, caller, err)
		}
		request.Header.Set("Authorization", "Bearer "+i.token(t, nil))
		if caller, err := i.Identify(t.Context(), request); err != nil || caller.User().Username != "sso:ana@example.com" {
			t.Errorf("%s, with a token: %v", name, err)
		}
	}
	settings := &tls.Config{}
	if i.ConfigureTLS(settings); settings.ClientAuth != tls.RequestClientCert || settings.ClientCAs == nil {
		t.Error("listeners do not ask for the certificate")
	}
}

// TestFrontProxy_IsImpersonatedWithAllOfIt and no longer than its certificate lasts.
func TestFrontProxy_IsImpersonatedWithAllOfIt(t *testing.T) {
	i, s := newProxied(t)
	caller, err := i.CallerOf(t.Context(), &http.Request{TLS: s.connection(t, "the-proxy", nil), Header: http.Header{
		"X-Remote-User": {"ana"}, "X-Remote-Group": {"ml"}, "X-Remote-Uid": {"7"}, "X-Remote-Extra-Example.com%2fdn": {"x", "y"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	answer, err := i.Transport(caller).RoundTrip(request(t, i.upstream.URL))
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	seen := i.upstream.Seen()
	want := http.Header{
		"Impersonate-User": {"ana"}, "Impersonate-Group": {"ml"}, "Impersonate-Uid": {"7"}, "Impersonate-Extra-Example.com%2fdn": {"x", "y"},
	}
	got := identityOf(seen[0].Header)
	got.Del("Authorization")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	i.now.SetTime(time.Unix(1_800_000_101, 0))
	if err := i.May(t.Context(), caller, watching); !errors.Is(err, access.ErrExpired) {
		t.Errorf("after its certificate: %v", err)
	}
}

// TestFrontProxy_IsKnownByItsCertificate alone: who shows another one, or none, is not the proxy, whatever headers say.
func TestFrontProxy_IsKnownByItsCertificate(t *testing.T) {
	i, s := newProxied(t)
	others := newSigner(t)
	for name, row := range map[string]struct {
		state *tls.ConnectionState
		want  bool
	}{
		"the proxy":                       {s.connection(t, "the-proxy", nil), true},
		"another name":                    {s.connection(t, "a-robot", nil), false},
		"the name, by another authority":  {others.connection(t, "the-proxy", nil), false},
		"a connection without one":        {&tls.ConnectionState{}, false},
		"a connection without encryption": {nil, false},
	} {
		r := &http.Request{TLS: row.state, Header: http.Header{"Authorization": {"Bearer x"}}}
		if got := i.IsFromProxy(r); got != row.want || i.IsProxied(r) {
			t.Errorf("%s: %v", name, got)
		}
		if r.Header.Set("X-Remote-User", "ana"); i.IsProxied(r) != row.want {
			t.Errorf("%s names a user: %v", name, !row.want)
		}
	}
}
