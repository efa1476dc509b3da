package archivecert

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/heliostat-dev/heliostat/ray-operator/internal/kube"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/pki"
	"github.com/heliostat-dev/heliostat/ray-operator/internal/servercert"
)

var began = time.Date(2031, 5, 6, 7, 8, 9, 0, time.UTC)

const host = "heliostat-archiver-0.heliostat-archiver.there.svc"

// bed is a Keeper over a fake API server that has the chart's Secrets.
type bed struct {
	*Keeper
	api client.Client
	now *clocktesting.FakeClock
}

func newBed() *bed {
	names := SecretsOf("history")
	var objects []client.Object
	for _, name := range []string{names.Authority, names.Archiver, names.Server} {
		objects = append(objects, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "there", Name: name}})
	}
	api := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithObjects(objects...).Build()
	now := clocktesting.NewFakeClock(began)
	return &bed{
		Keeper: &Keeper{
			Live: api, Writer: &kube.Writer{Client: api, Live: api}, Clock: now, Namespace: "there", Secrets: names, Hosts: servercert.ReadHosts(host),
		}, api: api, now: now,
	}
}

// look has the keeper look once.
func (b *bed) look(t *testing.T) {
	t.Helper()
	if err := b.keep(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (b *bed) secret(t *testing.T, name string) map[string][]byte {
	t.Helper()
	secret := &corev1.Secret{}
	if err := b.api.Get(t.Context(), types.NamespacedName{Namespace: "there", Name: name}, secret); err != nil {
		t.Fatal(err)
	}
	return secret.Data
}

// shows returns an error where what a Secret has is not trusted by who has a certificate of the authority.
func shows(t *testing.T, held map[string][]byte, authority string, use x509.ExtKeyUsage, at time.Time) error {
	t.Helper()
	pair, err := tls.X509KeyPair(held[pki.CertificateFile], held[pki.KeyFile])
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM([]byte(authority))
	_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: trusted, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{use}})
	return err
}

// TestKeeper_IsTrustedByOldPods: for eleven years what archivers show is trusted by pods that are two years old, and the authority
// gets another certificate once.
func TestKeeper_IsTrustedByOldPods(t *testing.T) {
	b := newBed()
	var inPods []string
	for month := range 11 * 12 {
		b.look(t)
		inPods = append(inPods, b.Authority())
		for _, authority := range inPods[max(0, month-23):] {
			if err := shows(t, b.secret(t, b.Secrets.Archiver), authority, x509.ExtKeyUsageServerAuth, b.now.Now()); err != nil {
				t.Fatalf("in month %d: %v", month, err)
			}
		}
		b.now.Step(30 * 24 * time.Hour)
	}
	if inPods[0] == inPods[len(inPods)-1] {
		t.Error("the authority was never renewed")
	}
}

// TestKeeper_TellsClientsApart: names are what archivers tell roles by, a client's certificate is none of a server, and the key of the
// authority is in its own Secret alone.
func TestKeeper_TellsClientsApart(t *testing.T) {
	b := newBed()
	if _, err := b.ClientConfig(); err == nil || b.Authority() != "" {
		t.Error("before the first look there is an authority")
	}
	b.look(t)
	server := b.secret(t, b.Secrets.Server)
	pair, err := tls.X509KeyPair(server[pki.CertificateFile], server[pki.KeyFile])
	if err != nil {
		t.Fatal(err)
	}
	own, err := b.ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	if name := pair.Leaf.Subject.CommonName; name != "heliostat-server" {
		t.Errorf("the server is %q", name)
	}
	if name := own.Certificates[0].Leaf.Subject.CommonName; name != "heliostat-operator" {
		t.Errorf("the operator is %q", name)
	}
	if shows(t, server, b.Authority(), x509.ExtKeyUsageServerAuth, began) == nil {
		t.Error("the server's certificate would do for an archiver")
	}
	for _, name := range []string{b.Secrets.Archiver, b.Secrets.Server} {
		if held := b.secret(t, name); len(held[pki.AuthorityKeyFile]) > 0 || string(held[pki.AuthorityCertificateFile]) != b.Authority() {
			t.Errorf("%s has the key of the authority, or not its certificate", name)
		}
	}
}

// TestKeeper_RenewsEach: a year has three certificates of a holder, and other hosts have another one.
func TestKeeper_RenewsEach(t *testing.T) {
	b := newBed()
	b.look(t)
	first, authority := b.secret(t, b.Secrets.Archiver)[pki.CertificateFile], b.Authority()
	b.look(t)
	if !bytes.Equal(b.secret(t, b.Secrets.Archiver)[pki.CertificateFile], first) {
		t.Error("a good certificate was replaced")
	}
	b.now.Step(300 * 24 * time.Hour)
	b.look(t)
	second := b.secret(t, b.Secrets.Archiver)[pki.CertificateFile]
	if bytes.Equal(second, first) {
		t.Error("a certificate that ends was not replaced")
	}
	b.Hosts = servercert.ReadHosts(host + ",other")
	b.look(t)
	if bytes.Equal(b.secret(t, b.Secrets.Archiver)[pki.CertificateFile], second) || b.Authority() != authority {
		t.Error("other hosts have no certificate of the same authority")
	}
}
