package integration

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"

	"github.com/heliostat-dev/heliostat/tests/internal/confined"
	"github.com/heliostat-dev/heliostat/tests/live"
)

// serverLimit is for a watch whose right is gone: 30 s are promised, and the API server keeps what it knows of a token.
const serverLimit = 45 * time.Second

// portal is a running server, and the API server beside it.
type portal struct {
	end
	direct end
	dir    string
	// metrics is the address of its metrics.
	metrics string
	log     lockedBuffer
	command *exec.Cmd
	stop    sync.Once
	// ended is closed when the program has ended.
	ended chan struct{}
	// group is the control group that it runs in, and env are variables beside those of the tests.
	group *confined.Group
	env   []string
	// where is the land that it runs in; nil is the machine.
	where *land
}

// auditLines are those of a server's log that say who did what.
var auditLines = regexp.MustCompile(`(?m)^.*"msg":"Audit".*\n`)

// terminate ends the server as Kubernetes does, and waits until it has ended.
func (p *portal) terminate(t *testing.T) {
	t.Helper()
	p.stop.Do(func() {
		if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
			t.Errorf("stop the server: %v: it had ended by itself", err)
		}
		<-p.ended
	})
}

// hasEnded reports whether the program has ended by itself.
func (p *portal) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// startServer starts the server, with the account of the chart. It ends with the test.
func startServer(t *testing.T, flags ...string) *portal {
	t.Helper()
	return (&portal{}).begin(t, freeAddress(t), flags...)
}

// begin starts the server at an address.
func (p *portal) begin(t *testing.T, address string, flags ...string) *portal {
	t.Helper()
	p.dir, p.metrics, p.ended = t.TempDir(), freeAddress(t), make(chan struct{})
	host, _, _ := strings.Cut(address, ":")
	p.url = "https://" + address
	certificate, key, err := cert.GenerateSelfSignedCertKey(host, []net.IP{net.ParseIP(host)}, nil)
	must(t, err)
	own, err := shared.tokenOf(t.Context(), live.ReleaseNamespace, live.ReleaseName+"-server")
	must(t, err)
	files := map[string][]byte{"tls.crt": certificate, "tls.key": key, "ca.crt": certificate, "api-server.crt": authorityOf(t), "token": []byte(own)}
	for name, text := range files {
		must(t, os.WriteFile(filepath.Join(p.dir, name), text, 0o600))
	}
	program := exec.Command
	if p.group != nil {
		program = p.group.Command
	}
	p.command = program(shared.server, append([]string{"--bind-address=" + address, "--grpc-address=0", "--metrics-bind-address=" + p.metrics, "--health-probe-bind-address=0",
		"--api-server=" + shared.Config.Host, "--namespace=" + live.ReleaseNamespace, "--account-token-file=" + filepath.Join(p.dir, "token"),
		"--tls-cert-file=" + filepath.Join(p.dir, "tls.crt"), "--tls-private-key-file=" + filepath.Join(p.dir, "tls.key"), "--api-server-ca-file=" + filepath.Join(p.dir, "api-server.crt")},
		flags...)...)
	p.command.Stderr, p.command.Env = &p.log, append(os.Environ(), p.env...)
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	must(t, p.inLand(p.command))
	go func() {
		_ = p.command.Wait() // how it ends by a signal is not judged
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.terminate(t)
		if t.Failed() {
			t.Logf("the server's log, without its audit lines:\n%s", auditLines.ReplaceAllString(p.log.String(), ""))
		}
	})
	p.client = trusting(files["ca.crt"])
	if p.where != nil {
		p.client.Transport.(*http.Transport).DialContext = func(_ context.Context, _, address string) (net.Conn, error) { return p.where.Dial(address) }
	}
	p.direct = end{shared.Config.Host, trusting(files["api-server.crt"])}
	eventually(t, "the server to answer", func(ctx context.Context) error {
		_, err := p.asks(ctx, "", mixture{method: http.MethodGet, path: "/version"})
		return err
	})
	return p
}

func authorityOf(t *testing.T) []byte {
	t.Helper()
	config := rest.CopyConfig(shared.Config)
	must(t, rest.LoadTLSFiles(config))
	return config.CAData
}

func trusting(authority []byte) *http.Client {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}}
}

// end is where requests go: the server, or the API server itself.
type end struct {
	url    string
	client *http.Client
}

// answer is what came, whole.
type answer struct {
	code int
	text []byte
}

// asks sends a request with a token.
func (e end) asks(ctx context.Context, token string, m mixture) (answer, error) {
	request, err := http.NewRequestWithContext(ctx, m.method, e.url+m.path, bytes.NewReader(m.body))
	if err != nil {
		return answer{}, err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	if request.Header.Set("Content-Type", "application/json"); m.method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	came, err := e.client.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = came.Body.Close() }()
	text, err := io.ReadAll(came.Body)
	return answer{came.StatusCode, text}, err
}

// reads sends a GET, which must be answered by 200.
func (e end) reads(ctx context.Context, token, path string) ([]byte, error) {
	came, err := e.asks(ctx, token, mixture{method: http.MethodGet, path: path})
	if err == nil && came.code != http.StatusOK {
		err = fmt.Errorf("read %s: %d: %s", path, came.code, came.text)
	}
	return came.text, err
}

// hasStreams reports by nil that the server has so many watches open.
func (p *portal) hasStreams(ctx context.Context, want int) error {
	text, err := end{"http://" + p.metrics, http.DefaultClient}.reads(ctx, "", "/metrics")
	if err == nil && !bytes.Contains(text, fmt.Appendf(nil, "\nheliostat_server_streams %d\n", want)) {
		err = fmt.Errorf("it has not %d", want)
	}
	return err
}

// account makes a service account with a role of Kubernetes' own in a namespace, unless that is empty, and returns a token.
func account(t *testing.T, namespace, name, role string) string {
	t.Helper()
	made := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	must(t, shared.Create(t.Context(), made))
	if role != "" {
		must(t, shared.Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: name}},
		}))
	}
	request := &authenticationv1.TokenRequest{}
	must(t, shared.SubResource("token").Create(t.Context(), made, request))
	return request.Status.Token
}

// kubectlCommand is kubectl at the server, with a token and nothing else of ours.
func (p *portal) kubectlCommand(ctx context.Context, token, namespace string, args ...string) *exec.Cmd {
	args = append([]string{"--kubeconfig=/dev/null", "--cache-dir=" + filepath.Join(p.dir, "cache"), "--server=" + p.url,
		"--certificate-authority=" + filepath.Join(p.dir, "ca.crt"), "--token=" + token, "--namespace=" + namespace}, args...)
	return exec.CommandContext(ctx, os.Getenv("KUBECTL"), args...)
}

// TestServer_ServesKubectl as the API server does, for what is served, and says so of anything else.
func TestServer_ServesKubectl(t *testing.T) {
	t.Parallel()
	p, namespace := startServer(t), newNamespace(t)
	token := account(t, namespace, "editor", "edit")
	eventually(t, "the role to be in force", func(ctx context.Context) error {
		return p.kubectlCommand(ctx, token, namespace, "auth", "can-i", "create", "clusterjobs").Run()
	})
	manifest := filepath.Join(p.dir, "cluster.yaml")
	must(t, os.WriteFile(manifest, sample(t), 0o600))

	next := p.watches(t, token, namespace)
	run := func(want string, args ...string) string {
		t.Helper()
		text, err := p.kubectlCommand(t.Context(), token, namespace, args...).CombinedOutput()
		if (err == nil) != !strings.HasPrefix(want, "refused: ") || !strings.Contains(string(text), strings.TrimPrefix(want, "refused: ")) {
			t.Errorf("kubectl %s: %v, want %q:\n%s", strings.Join(args, " "), err, want, text)
		}
		return string(text)
	}
	run("demo serverside-applied (server dry run)", "apply", "--server-side", "--dry-run=server", "-f", manifest)
	run("demo created", "apply", "-f", manifest)
	next("EVENT") // the head of the table comes with the first event
	next("ADDED      demo")
	run("demo serverside-applied", "apply", "--server-side", "--force-conflicts", "-f", manifest)
	run("demo patched", "patch", "cc/demo", "--type=merge", "-p", `{"metadata":{"labels":{"a":"b"}}}`)
	next("MODIFIED   demo")
	run("demo", "get", "heliostat", "-l", "a=b", "-o", "name")
	run("READY", "get", "cc", "-o", "wide")
	run("Worker Groups", "describe", "cc", "demo")
	run("computeclusters", "api-resources", "--api-group=heliostat.dev")
	run("workerGroups", "explain", "cc.spec")
	run("system:serviceaccount:"+namespace+":editor", "auth", "whoami")
	run("computeclusters.heliostat.dev", "auth", "can-i", "--list")
	run("Server Version", "version")
	run("refused: unknown field", "apply", "--dry-run=server", "-f", misspelt(t, p.dir))
	run("refused: this server serves the kinds of heliostat.dev", "get", "secrets")
	run("refused: this server serves the kinds of heliostat.dev", "get", "pods")
	run("deleted", "delete", "cc/demo", "--wait=true", "--timeout=60s")
	next("DELETED    demo")
	lines := p.log.String()
	for _, want := range []string{`"verb":"create"`, `"verb":"patch"`, `"verb":"delete"`, `"user":"system:serviceaccount:` + namespace + `:editor"`, `"name":"demo"`} {
		if !strings.Contains(lines, want) {
			t.Errorf("no audit line has %s:\n%s", want, lines)
		}
	}
	if strings.Contains(lines, token) || strings.Contains(lines, strings.Split(token, ".")[2]) {
		t.Error("the token is in the log")
	}
}

// watches starts kubectl get cc --watch, and returns what waits until it shows a line that begins with something.
func (p *portal) watches(t *testing.T, token, namespace string) func(want string) {
	t.Helper()
	watching := p.kubectlCommand(t.Context(), token, namespace, "get", "cc", "--watch", "--output-watch-events")
	out, err := watching.StdoutPipe()
	must(t, err)
	must(t, watching.Start())
	t.Cleanup(func() {
		_ = watching.Process.Kill()
		_ = watching.Wait() // it was killed
	})
	shown := bufio.NewReader(out)
	return func(want string) {
		t.Helper()
		for line := ""; !strings.HasPrefix(line, want); {
			var err error
			if line, err = shown.ReadString('\n'); err != nil {
				t.Fatalf("the watch shows no %q: %v", want, err)
			}
		}
	}
}

// misspelt writes a cluster with a field that there is not.
func misspelt(t *testing.T, dir string) string {
	t.Helper()
	file := filepath.Join(dir, "misspelt.yaml")
	must(t, os.WriteFile(file, append(bytes.TrimSpace(sample(t)), []byte("\n  rayVersionn: x\n")...), 0o600))
	return file
}

// TestServer_ConfinesEvents to those about our kinds, whatever a caller selects.
func TestServer_ConfinesEvents(t *testing.T) {
	t.Parallel()
	p, namespace := startServer(t), newNamespace(t)
	token := account(t, namespace, "viewer", "view")
	for kind, version := range map[string]string{"Pod": "v1", "ComputeCluster": "heliostat.dev/v1beta1"} {
		must(t, shared.Create(t.Context(), &corev1.Event{
			ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, Name: strings.ToLower(kind)},
			InvolvedObject: corev1.ObjectReference{APIVersion: version, Kind: kind, Namespace: namespace, Name: "x"}, Reason: "Test", Message: "m", Type: "Normal",
		}))
	}
	names := func(path string) []string {
		var list struct {
			Items []metav1.PartialObjectMetadata
		}
		eventually(t, "the right to "+path, func(ctx context.Context) error {
			text, err := p.reads(ctx, token, path)
			if err == nil {
				err = json.Unmarshal(text, &list)
			}
			return err
		})
		var found []string
		for _, item := range list.Items {
			found = append(found, item.Name)
		}
		return found
	}
	for _, group := range []struct{ path, field string }{{"/api/v1", "involvedObject"}, {"/apis/events.k8s.io/v1", "regarding"}} {
		path := group.path + "/namespaces/" + namespace + "/events"
		if got := names(path); !slices.Equal(got, []string{"computecluster"}) {
			t.Errorf("%s has %v", path, got)
		}
		if got := names(path + "?fieldSelector=" + group.field + ".kind%3DPod"); len(got) > 0 {
			t.Errorf("%s of pods has %v", path, got)
		}
		if got := names(path + "?fieldSelector=metadata.name%3Dcomputecluster"); len(got) != 1 {
			t.Errorf("%s of one name has %v", path, got)
		}
	}
	text, err := p.kubectlCommand(t.Context(), token, namespace, "get", "events").CombinedOutput()
	if err != nil || !strings.Contains(string(text), "computecluster/x") || strings.Contains(string(text), "pod/x") {
		t.Errorf("kubectl get events: %v\n%s", err, text)
	}
}

// TestServer_EndsAWatchWithItsRight where its binding or its account is taken away, and leaves another one be.
func TestServer_EndsAWatchWithItsRight(t *testing.T) {
	t.Parallel()
	p, namespace := startServer(t), newNamespace(t)
	tokens := map[string]string{}
	for _, name := range []string{"bound", "deleted", staying} {
		tokens[name] = account(t, namespace, name, "view")
	}
	endWatches(t, p, namespace, tokens, map[string]string{"bound": `"code":403`, "deleted": `"code":401`})
}

// staying is whose right and account stay when endWatches takes those of others.
const staying = "left"

// endWatches opens a watch of a namespace for each token, deletes the binding bound and the account deleted, and checks the words
// with which watches end. The one of who is staying goes on.
func endWatches(t *testing.T, p *portal, namespace string, tokens, ends map[string]string) {
	t.Helper()
	path := "/apis/heliostat.dev/v1beta1/namespaces/" + namespace + "/computeclusters"
	ended := map[string]chan string{}
	for name, token := range tokens {
		over := make(chan string, 1)
		ended[name] = over
		eventually(t, "the right of "+name, func(ctx context.Context) error {
			_, err := p.reads(ctx, token, path)
			return err
		})
		go func() {
			text, err := p.reads(t.Context(), token, path+"?watch=true")
			over <- fmt.Sprint(string(text), err)
		}()
	}
	eventually(t, "all watches to be open", func(ctx context.Context) error { return p.hasStreams(ctx, len(ended)) })
	must(t, shared.Delete(t.Context(), &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "bound"}}))
	must(t, shared.Delete(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "deleted"}}))
	for name, want := range ends {
		select {
		case text := <-ended[name]:
			if !strings.HasPrefix(text, `{"object":`) || !strings.Contains(text, want) || !strings.Contains(text, `"type":"ERROR"`) || !strings.HasSuffix(text, "<nil>") {
				t.Errorf("the watch of %s ends with %s", name, text)
			}
		case <-time.After(serverLimit):
			t.Errorf("the watch of %s does not end", name)
		}
	}
	select {
	case text := <-ended[staying]:
		t.Errorf("a watch whose right is there ends with %s", text)
	default:
	}
}

// TestOperator_KeepsTheServersCertificate with the chart's rights: it fills the Secret, leaves it at an upgrade, and replaces a
// certificate that is near its end by one of the same authority.
func TestOperator_KeepsTheServersCertificate(t *testing.T) {
	t.Parallel()
	i := newInstallation(t, "certified", "--set", "watchNamespaces={"+newNamespace(t)+"}", "--set", "watchNodes=false,server.enabled=true,rbac.aggregate=false")
	name := types.NamespacedName{Namespace: i.namespace, Name: "certified-server-tls"}
	startOperator(t, i.login(t)...)
	first := certificateOf(t, name, nil)
	empty := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
		"metadata": map[string]any{"namespace": name.Namespace, "name": name.Name}}}
	must(t, shared.ApplyObject(t.Context(), empty))
	near := certificateOf(t, name, nil)
	if !reflect.DeepEqual(near.Data, first.Data) {
		t.Error("an upgrade changes the Secret")
	}
	near.Data["tls.crt"] = endingTomorrow(t, first)
	must(t, shared.Update(t.Context(), near))
	renewed := certificateOf(t, name, near.Data["tls.crt"])
	pair, err := tls.X509KeyPair(renewed.Data["tls.crt"], renewed.Data["tls.key"])
	must(t, err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(first.Data["ca.crt"])
	host := "certified-server." + name.Namespace + ".svc"
	if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: host, CurrentTime: time.Now().AddDate(0, 11, 0)}); err != nil {
		t.Errorf("a client that has the ca.crt of before says %v", err)
	}
}

// endingTomorrow returns the certificate of a Secret as its authority would have issued it eleven months ago.
func endingTomorrow(t *testing.T, secret *corev1.Secret) []byte {
	t.Helper()
	authority, err := tls.X509KeyPair(secret.Data["ca.crt"], secret.Data["ca.key"])
	must(t, err)
	own, err := tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"])
	must(t, err)
	template := *own.Leaf
	template.NotAfter = time.Now().AddDate(0, 0, 1)
	der, err := x509.CreateCertificate(rand.Reader, &template, authority.Leaf, own.Leaf.PublicKey, authority.PrivateKey)
	must(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// certificateOf waits until a Secret has a certificate that is another one than some, and returns it. The operator looks each
// minute.
func certificateOf(t *testing.T, name types.NamespacedName, former []byte) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{}
	must(t, live.Until(t.Context(), 2*time.Minute, "the operator to fill "+name.String(), func(ctx context.Context) error {
		if err := shared.Get(ctx, name, secret); err != nil {
			return err
		}
		if bytes.Equal(secret.Data["tls.crt"], former) {
			return errors.New("it has not")
		}
		return nil
	}))
	return secret
}
