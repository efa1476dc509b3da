package session

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/portal/heads/headstest"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient/fakehead"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

// lines is what a command prints, which a test reads line by line while it runs.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
	came chan struct{}
}

func newLines() *lines { return &lines{came: make(chan struct{}, 100)} }

// Write implements io.Writer.
func (l *lines) Write(part []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer func() { l.came <- struct{}{} }()
	return l.text.Write(part)
}

// first waits for the first line.
func (l *lines) first(t *testing.T) string {
	t.Helper()
	select {
	case <-l.came:
	case <-time.After(time.Minute):
		t.Fatal("nothing is printed")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	line, _, _ := strings.Cut(l.text.String(), "\n")
	return line
}

// newConsole returns that of a user of cluster demo, whose head is a fake one on this machine.
func newConsole(t *testing.T) (c *console.Console, out *lines) {
	t.Helper()
	head, err := fakehead.Start(clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(head.Close)
	head.SetToken(headstest.Token)
	site := headstest.New()
	cluster := site.PutCluster("demo", nil)
	pod := headstest.Head(cluster, 1, "10.1.0.1")
	pod.Labels[v1beta1.LabelCluster] = "demo"
	secret := headstest.Secret(cluster, naming.TokenSecret("demo"), v1beta1.TokenKey, headstest.Token)
	made := fake.NewClientBuilder().WithScheme(kube.Scheme()).WithObjects(cluster, pod, secret).Build()
	out = newLines()
	return &console.Console{
		IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: newLines()}, Clock: clock.RealClock{},
		Connect: func() (*kube.Objects, error) {
			return &kube.Objects{WithWatch: made, Namespace: headstest.Namespace}, nil
		},
		Forward: func(ctx context.Context, to types.NamespacedName, port int) (net.Conn, error) {
			if to.Name != pod.Name || port != 8265 && port != portClient {
				return nil, fmt.Errorf("nobody listens at %s:%d", to.Name, port)
			}
			return (&net.Dialer{}).DialContext(ctx, "tcp", head.JobsAddress())
		},
		Resolve: resolves("127.0.0.1", "::1"),
	}, out
}

// execute runs a command of the package.
func execute(ctx context.Context, c *console.Console, name string, args ...string) error {
	for _, command := range Commands(c) {
		if command.Name() == name {
			command.SilenceErrors, command.SilenceUsage = true, true
			command.SetArgs(args)
			return command.ExecuteContext(ctx)
		}
	}
	return fmt.Errorf("there is no command %s", name)
}

func TestEnv_PrintsWhatSignsIn(t *testing.T) {
	c, out := newConsole(t)
	if err := execute(t.Context(), c, "env", "demo"); err != nil {
		t.Fatal(err)
	}
	if want := "export RAY_AUTH_MODE=token\nexport RAY_AUTH_TOKEN=" + headstest.Token + "\n"; out.text.String() != want {
		t.Errorf("it prints %q, want %q", out.text.String(), want)
	}
	if err := execute(t.Context(), c, "env", "demoo"); outcome.Code(err) != outcome.Usage {
		t.Errorf("a cluster that is not there: %v", err)
	}
}

// throughServer has the user reach the cluster through a server.
func throughServer(t *testing.T, c *console.Console) (url string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer it's mine" {
			w.WriteHeader(http.StatusUnauthorized)
		}
		fmt.Fprintf(w, `{"dashboard": "https://dashboards.example.com%s/"}`, r.URL.Path)
	}))
	t.Cleanup(server.Close)
	c.Server = console.Server{URL: server.URL, Token: "it's mine"}
	c.Forward = nil // nothing is forwarded
	return server.URL
}

func TestEnv_SignsInThroughTheServer(t *testing.T) {
	c, out := newConsole(t)
	url := throughServer(t, c)
	if err := execute(t.Context(), c, "env", "demo"); err != nil {
		t.Fatal(err)
	}
	const at = "https://dashboards.example.com/v1/namespaces/" + headstest.Namespace + "/clusters/demo"
	want := "export RAY_API_SERVER_ADDRESS=" + at + "\n" + `export RAY_JOB_HEADERS='{"Authorization": "Bearer it'\''s mine"}'` + "\n"
	if got := out.text.String(); got != want {
		t.Errorf("it prints %q, want %q", got, want)
	}
	out.text.Reset()
	if err := execute(t.Context(), c, "env", "demo", "-o", "json"); err != nil {
		t.Fatal(err)
	}
	var got environment
	if err := json.Unmarshal(out.text.Bytes(), &got); err != nil || got.Server != url || got.Token != "it's mine" ||
		len(got.Variables) != 2 || got.Variables[0] != "RAY_API_SERVER_ADDRESS="+at {
		t.Errorf("as JSON it is %+v, %v", got, err)
	}
	if err := execute(t.Context(), c, "env", "demo", "-o", "yaml"); outcome.Code(err) != outcome.Usage {
		t.Errorf("another format: %v", err)
	}
}

func TestOpen_PrintsTheAddressAtTheServer(t *testing.T) {
	c, out := newConsole(t)
	throughServer(t, c)
	if err := execute(t.Context(), c, "open", "demo"); err != nil {
		t.Fatal(err)
	}
	if got := out.text.String(); !strings.HasPrefix(got, "https://dashboards.example.com/") || strings.Contains(got, "mine") {
		t.Errorf("it prints %q", got)
	}
}

// TestSession_RunsACommandWithTheCluster runs a shell, which sees the variables and whose exit code counts.
func TestSession_RunsACommandWithTheCluster(t *testing.T) {
	c, out := newConsole(t)
	c.Environ = []string{"PATH=/usr/bin:/bin"}
	err := execute(t.Context(), c, "session", "demo", "--", "sh", "-c", "echo $RAY_API_SERVER_ADDRESS $RAY_ADDRESS $RAY_AUTH_MODE $RAY_AUTH_TOKEN; exit 7")
	if outcome.Code(err) != 7 {
		t.Errorf("it ends with %v, want exit code 7", err)
	}
	words := strings.Fields(out.text.String())
	if len(words) != 4 || !strings.HasPrefix(words[0], "http://127.0.0.1:") || !strings.HasPrefix(words[1], "ray://127.0.0.1:") ||
		words[2] != "token" || words[3] != headstest.Token {
		t.Errorf("the command sees %q", words)
	}
	if err := execute(t.Context(), c, "session", "demo", "sh"); outcome.Code(err) != outcome.Usage {
		t.Errorf("a command without --: %v", err)
	}
}

// answer asks an address, and returns the code and the body.
func answer(t *testing.T, client *http.Client, address string, edit func(*http.Request)) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	if edit != nil {
		edit(request)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

// TestDirect_KeepsTheTokenFromAProxy has programs that would go to this machine by way of a proxy.
func TestDirect_KeepsTheTokenFromAProxy(t *testing.T) {
	for name, c := range map[string]struct {
		environ []string
		want    string
	}{
		"no proxy":                {[]string{"PATH=/bin", "http_proxy=", "no_proxy=x"}, ""},
		"a proxy":                 {[]string{"http_proxy=http://p"}, "no_proxy=127.0.0.1 NO_PROXY=127.0.0.1"},
		"a proxy for everything":  {[]string{"ALL_PROXY=http://p"}, "no_proxy=127.0.0.1 NO_PROXY=127.0.0.1"},
		"a proxy of gRPC":         {[]string{"grpc_proxy=http://p"}, "no_proxy=127.0.0.1 NO_PROXY=127.0.0.1"},
		"a proxy with exceptions": {[]string{"NO_PROXY=a,b", "HTTP_PROXY=http://p"}, "no_proxy=127.0.0.1,a,b NO_PROXY=127.0.0.1,a,b"},
		"a proxy that is off":     {[]string{"no_proxy=*", "HTTP_PROXY=http://p"}, ""},
	} {
		if got := strings.Join(direct(c.environ, here), " "); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	user, out := newConsole(t)
	user.Environ = []string{"PATH=/usr/bin:/bin", "http_proxy=http://192.0.2.1:1"}
	if err := execute(t.Context(), user, "session", "demo", "--", "sh", "-c", "echo $no_proxy $NO_PROXY"); err != nil || out.text.String() != "127.0.0.1 127.0.0.1\n" {
		t.Errorf("a command of a session sees %q (%v)", out.text.String(), err)
	}
	out.text.Reset()
	asked := throughDashboard(t, user, "2.60.0")
	if err := execute(t.Context(), user, "env", "demo"); err != nil || asked.Load() == 0 || !strings.HasSuffix(out.text.String(), "export no_proxy=127.0.0.1\nexport NO_PROXY=127.0.0.1\n") {
		t.Errorf("env prints %q (%v)", out.text.String(), err)
	}
}

func TestSession_LeadsPortsUntilInterrupted(t *testing.T) {
	c, out := newConsole(t)
	ctx, interrupt := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- execute(ctx, c, "session", "demo") }()
	address := strings.TrimPrefix(out.first(t), "export RAY_API_SERVER_ADDRESS=")
	if code, _ := answer(t, http.DefaultClient, address+"/api/jobs/", nil); code != http.StatusUnauthorized {
		t.Errorf("without the token the head answers %d, want 401", code)
	}
	code, _ := answer(t, http.DefaultClient, address+"/api/jobs/", func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+headstest.Token) })
	if code != http.StatusOK {
		t.Errorf("with the token the head answers %d, want 200", code)
	}
	http.DefaultClient.CloseIdleConnections()
	interrupt()
	if err := <-done; err != nil {
		t.Errorf("it ends with %v", err)
	}
}
