package accesstest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// Issuer stands in for a provider of OpenID Connect.
type Issuer struct {
	*httptest.Server

	mutex  sync.Mutex
	key    *ecdsa.PrivateKey
	keyID  int
	broken bool
	asked  int

	client    Client
	codes     map[string]grant
	refreshes map[string]bool
	renewals  int
}

// StartIssuer starts an issuer that ends with the test.
func StartIssuer(t testing.TB) *Issuer {
	t.Helper()
	return StartIssuerAt(t, net.IPv4(127, 0, 0, 1))
}

// StartIssuerAt starts an issuer at an address of this machine, which its certificate names. It ends with the test.
func StartIssuerAt(t testing.TB, at net.IP) *Issuer {
	t.Helper()
	i := &Issuer{}
	i.Renew(t)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", net.JoinHostPort(at.String(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	i.Server = &httptest.Server{Listener: listener, Config: &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { i.answer(t, w, r) }),
		ReadHeaderTimeout: time.Minute,
	}}
	i.TLS = &tls.Config{Certificates: []tls.Certificate{certificate(t, at)}, MinVersion: tls.VersionTLS12}
	i.StartTLS()
	t.Cleanup(i.Close)
	return i
}

// certificate returns one for an address that is its own authority.
func certificate(t testing.TB, at net.IP) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{at}, NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<32, 0),
		IsCA: true, BasicConstraintsValid: true,
	}
	text, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{text}, PrivateKey: key}
}

// Authority returns the certificate that the issuer shows, in PEM.
func (i *Issuer) Authority() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.Certificate().Raw}))
}

// Renew replaces the issuer's key.
func (i *Issuer) Renew(t testing.TB) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i.mutex.Lock()
	defer i.mutex.Unlock()
	i.key, i.keyID = key, i.keyID+1
}

// Break makes the issuer fail at everything, or heals it.
func (i *Issuer) Break(broken bool) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	i.broken = broken
}

// Asked returns how many requests came.
func (i *Issuer) Asked() int {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	return i.asked
}

// Token returns a token with some claims beside the issuer's own, which may be replaced.
func (i *Issuer) Token(t testing.TB, claims map[string]any) string {
	t.Helper()
	all := map[string]any{"iss": i.URL}
	maps.Copy(all, claims)
	body, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	i.mutex.Lock()
	defer i.mutex.Unlock()
	head := fmt.Appendf(nil, `{"alg":"ES256","typ":"JWT","kid":"%d"}`, i.keyID)
	text := encode(head) + "." + encode(body)
	sum := sha256.Sum256([]byte(text))
	r, s, err := ecdsa.Sign(rand.Reader, i.key, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	s.FillBytes(signature[32:])
	return text + "." + encode(signature)
}

func encode(text []byte) string { return base64.RawURLEncoding.EncodeToString(text) }

func (i *Issuer) answer(t testing.TB, w http.ResponseWriter, r *http.Request) {
	i.mutex.Lock()
	i.asked++
	broken, key, keyID := i.broken, i.key, i.keyID
	i.mutex.Unlock()
	if broken {
		http.Error(w, "broken", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	var answer any
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		answer = map[string]any{
			"issuer": i.URL, "jwks_uri": i.URL + "/keys", "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token",
			"id_token_signing_alg_values_supported": []string{"ES256", "none", "HS256"},
		}
	case "/authorize":
		i.offer(t, w, r)
		return
	case "/token":
		i.exchange(t, w, r)
		return
	case "/keys":
		point, err := key.PublicKey.Bytes()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		answer = map[string]any{"keys": []any{map[string]any{
			"kty": "EC", "use": "sig", "alg": "ES256", "crv": "P-256", "kid": fmt.Sprint(keyID), "x": encode(point[1:33]), "y": encode(point[33:]),
		}}}
	default:
		http.NotFound(w, r)
		return
	}
	_ = json.NewEncoder(w).Encode(answer) // who asks and goes needs no answer
}
