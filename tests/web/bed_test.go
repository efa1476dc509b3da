package web

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient/fakehead"
	"github.com/heliostat-dev/heliostat/tests/internal/podnet"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// Where things are in the island.
const (
	serverAddress  = "10.0.0.1:8443"
	doorAddress    = "10.0.0.2:443"
	controlAddress = "10.0.0.3:80"

	pageURL       = "https://10.0.0.2"
	dashboardsURL = pageURL + ":" + dashboardsPort
	controlURL    = "http://10.0.0.3"

	dashboardsPort    = "8444"
	dashboardsAddress = "10.0.0.2:" + dashboardsPort
	metricsAddress    = "10.0.0.1:8082"
)

// front is where browsers reach the page and the dashboards, and by which settings of the chart.
type front struct {
	page, dashboards string
	settings         []string
}

// bed is a server with objects, in an island.
type bed struct {
	*live.Cluster
	front
	t      *testing.T
	island *podnet.Island
	dir    string
	// namespace has the objects; empty has none.
	namespace, empty string
	head             *fakehead.Head
	door             *door
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func makeBed(t *testing.T, at front) *bed {
	t.Helper()
	cluster, err := live.Open(t.Context())
	must(t, err)
	apart, err := podnet.New()
	must(t, err)
	t.Cleanup(apart.Close)
	b := &bed{Cluster: cluster, front: at, t: t, island: apart, dir: t.TempDir(), namespace: "team-a", empty: "team-b"}
	b.install()
	b.relay()
	b.certify()
	b.startServer()
	b.makeObjects()
	b.door = openDoor(b)
	return b
}

// install applies what the chart renders, all but the Deployments, and makes two namespaces.
func (b *bed) install() {
	b.t.Helper()
	out, err := live.Helm(b.t.Context(), "../..", append([]string{"template", live.ReleaseName, "../../helm-chart/heliostat",
		"--namespace", live.ReleaseNamespace, "--set", "server.enabled=true"}, b.settings...)...)
	must(b.t, err)
	objects, err := live.Decode([]byte(out))
	must(b.t, err)
	for _, name := range []string{live.ReleaseNamespace, b.namespace, b.empty} {
		must(b.t, b.Create(b.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	for _, object := range objects {
		if object.GetKind() != "Deployment" {
			must(b.t, b.ApplyObject(b.t.Context(), object))
		}
	}
	must(b.t, live.Until(b.t.Context(), 30*time.Second, "the kinds to be served", func(ctx context.Context) error {
		return b.List(ctx, &v1beta1.ClusterServiceList{})
	}))
}

// relay leads from the address of the API server in the island to the API server.
func (b *bed) relay() {
	b.t.Helper()
	address, err := url.Parse(b.Config.Host)
	must(b.t, err)
	listener, err := b.island.Listen(address.Host)
	must(b.t, err)
	b.t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			inside, err := listener.Accept()
			if err != nil {
				return
			}
			go join(inside, func() (net.Conn, error) { return net.Dial("tcp", address.Host) })
		}
	}()
}

// join passes bytes between a connection and another one until both end.
func join(one net.Conn, dial func() (net.Conn, error)) {
	defer func() { _ = one.Close() }()
	other, err := dial()
	if err != nil {
		return
	}
	defer func() { _ = other.Close() }()
	ended := make(chan struct{}, 2)
	pass := func(to, from net.Conn) {
		_, _ = io.Copy(to, from) // whichever breaks ends both
		ended <- struct{}{}
	}
	go pass(other, one)
	go pass(one, other)
	<-ended
}

func (b *bed) file(name string) string { return filepath.Join(b.dir, name) }

func (b *bed) write(name string, content []byte) {
	b.t.Helper()
	must(b.t, os.WriteFile(b.file(name), content, 0o600))
}

// certify writes a certificate for all addresses of the server that signs itself, and its key.
func (b *bed) certify() {
	b.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(b.t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "page"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(24 * time.Hour), BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(10, 0, 0, 1), net.IPv4(10, 0, 0, 2)}, DNSNames: []string{pageHost, clustersHost},
		IsCA: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(b.t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	must(b.t, err)
	b.write("tls.crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}))
	b.write("tls.key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))
}

// startServer builds the server with the page, and starts it in the island.
func (b *bed) startServer() {
	b.t.Helper()
	program, err := filepath.Abs("../../bin/server")
	must(b.t, err)
	build := exec.CommandContext(b.t.Context(), "go", "build", "-o", program, "../../apiserver/cmd/server")
	out, err := build.CombinedOutput()
	if err != nil {
		b.t.Fatalf("build the server: %v: %s", err, out)
	}
	config := rest.CopyConfig(b.Config)
	must(b.t, rest.LoadTLSFiles(config))
	b.write("api-server.crt", config.CAData)
	b.write("token", []byte(b.tokenOf(live.ReleaseNamespace, live.ReleaseName+"-server")))
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	b.write("keys", []byte(base64.StdEncoding.EncodeToString(key)+"\n"))
	b.write("links.yaml", []byte("- {name: Grafana, urlTemplate: 'https://grafana.example.com/d/ray?var-name=${name}'}\n"))
	log, err := os.Create(b.file("server.log"))
	must(b.t, err)
	command := exec.Command(program, "--bind-address="+serverAddress, "--grpc-address=0", "--metrics-bind-address="+metricsAddress,
		"--health-probe-bind-address=10.0.0.1:8081", "--api-server="+b.Config.Host, "--namespace="+live.ReleaseNamespace,
		"--account-token-file="+b.file("token"), "--tls-cert-file="+b.file("tls.crt"),
		"--tls-private-key-file="+b.file("tls.key"),
		"--api-server-ca-file="+b.file("api-server.crt"), "--output-directory="+b.dir, "--web-dir="+*webDir,
		"--page-url="+b.page, "--dashboards-address="+dashboardsAddress, "--dashboards-url="+b.dashboards,
		"--session-key-file="+b.file("keys"), "--links-file="+b.file("links.yaml"))
	command.Stderr = log
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	must(b.t, b.island.Do(command.Start))
	b.t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		_ = command.Wait() // how it ends by a signal is not judged
		if b.t.Failed() {
			text, _ := os.ReadFile(b.file("server.log"))
			b.t.Logf("the server's log:\n%s", text)
		}
	})
	must(b.t, live.Until(b.t.Context(), 60*time.Second, "the server to be ready", func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://10.0.0.1:8081/readyz", http.NoBody)
		if err != nil {
			return err
		}
		answer, err := b.inside().Do(request)
		if err != nil {
			return err
		}
		defer func() { _ = answer.Body.Close() }()
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("it is %d", answer.StatusCode)
		}
		return nil
	}))
}

// inside is a client whose connections are in the island.
func (b *bed) inside() *http.Client {
	dial := func(_ context.Context, _, address string) (net.Conn, error) { return b.island.Dial(address) }
	return &http.Client{Transport: &http.Transport{DialContext: dial}}
}

// tokenOf returns a token of an account.
func (b *bed) tokenOf(namespace, name string) string {
	b.t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(2 * 60 * 60))}}
	must(b.t, b.SubResource("token").Create(b.t.Context(), account, request))
	return request.Status.Token
}

// account makes an account with a role of Kubernetes' own in some namespaces, and returns a token of it.
func (b *bed) account(name, role string, namespaces ...string) string {
	b.t.Helper()
	at := metav1.ObjectMeta{Namespace: b.namespace, Name: name}
	must(b.t, b.Create(b.t.Context(), &corev1.ServiceAccount{ObjectMeta: at}))
	for _, namespace := range namespaces {
		must(b.t, b.Create(b.t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: b.namespace, Name: name}},
		}))
	}
	return b.tokenOf(b.namespace, name)
}
