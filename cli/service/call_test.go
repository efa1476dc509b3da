package service

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/kube"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// callService runs the command on service translate, of which one pod is ready and echoes requests.
func callService(t *testing.T, change func(*v1beta1.ClusterService), args ...string) (out, said string, err error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/bad" {
			w.WriteHeader(http.StatusTeapot)
		}
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s %s %s", r.Method, r.Host, r.URL, r.Header.Get("X-Key"), body)
	}))
	t.Cleanup(server.Close)
	of := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "a", Name: name, Labels: map[string]string{"on": "true"}}
	}
	service := &v1beta1.ClusterService{ObjectMeta: of("translate")}
	service.Status.URL = "http://translate.a.svc:8000"
	change(service)
	front := &corev1.Service{ObjectMeta: of("translate"), Spec: corev1.ServiceSpec{Selector: map[string]string{"on": "true"},
		Ports: []corev1.ServicePort{{Name: "grpc", TargetPort: intstr.FromInt32(9000)}, {Name: "http", Port: 80, TargetPort: intstr.FromInt32(8123)}}}}
	starting, ready := &corev1.Pod{ObjectMeta: of("a-starting")}, &corev1.Pod{ObjectMeta: of("ready")}
	ready.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	made := fake.NewClientBuilder().WithScheme(kube.Scheme()).WithObjects(service, front, starting, ready).Build()
	var stdout, stderr bytes.Buffer
	command := Command(&console.Console{
		IOStreams: genericiooptions.IOStreams{In: strings.NewReader(""), Out: &stdout, ErrOut: &stderr}, Clock: clock.RealClock{},
		Connect: func() (*kube.Objects, error) { return &kube.Objects{WithWatch: made, Namespace: "a"}, nil },
		Forward: func(ctx context.Context, pod types.NamespacedName, port int) (net.Conn, error) {
			if pod.Name != "ready" || port != 8123 {
				return nil, fmt.Errorf("nobody listens at %s:%d", pod.Name, port)
			}
			return (&net.Dialer{}).DialContext(ctx, "tcp", server.Listener.Addr().String())
		},
	})
	command.SilenceErrors, command.SilenceUsage = true, true
	command.SetArgs(append([]string{"call"}, args...))
	err = command.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

func TestCall_GoesThroughTheServer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/namespaces/a/services/translate" {
			fmt.Fprintf(w, `{"dashboard": "http://%s/services/a/translate/"}`, r.Host)
			return
		}
		fmt.Fprintf(w, "%s %s", r.URL, r.Header.Get("Authorization"))
	}))
	t.Cleanup(server.Close)
	c := &console.Console{Server: console.Server{URL: server.URL, Token: "mine"}, IOStreams: genericiooptions.NewTestIOStreamsDiscard()}
	var out bytes.Buffer
	c.Out = &out
	service := &v1beta1.ClusterService{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "translate"}}
	service.Status.URL = "https://translate.a.svc:8000"
	if err := (&call{path: "/v1?x=1"}).send(t.Context(), c, nil, service); err != nil {
		t.Fatal(err)
	}
	if want := "/services/a/translate/v1?x=1 Bearer mine"; out.String() != want {
		t.Errorf("it prints %q, want %q", out.String(), want)
	}
}

func TestCall_PrintsTheAnswer(t *testing.T) {
	asItIs := func(*v1beta1.ClusterService) {}
	for name, c := range map[string]struct {
		change    func(*v1beta1.ClusterService)
		args      []string
		code      int
		out, says string
	}{
		"a GET":              {asItIs, []string{"translate", "/v1?x=1"}, outcome.Done, "GET translate.a.svc:8000 /v1?x=1  ", "200 OK"},
		"a POST":             {asItIs, []string{"translate", "/", "-d", "it's", "-H", "X-Key: secret"}, outcome.Done, "POST translate.a.svc:8000 / secret it's", `-d 'it'\''s' -H 'X-Key: …'`},
		"a refusal":          {asItIs, []string{"translate", "/bad"}, outcome.Failed, "GET translate.a.svc:8000 /bad  ", "418"},
		"no path":            {asItIs, []string{"translate", "v1"}, outcome.Usage, "", "write /v1"},
		"no header":          {asItIs, []string{"translate", "/", "-H", "x"}, outcome.Usage, "", "NAME: VALUE"},
		"another name":       {asItIs, []string{"translat", "/"}, outcome.Usage, "", `write "translate"`},
		"no address yet":     {func(s *v1beta1.ClusterService) { s.Status.URL = "" }, []string{"translate", "/"}, outcome.Refused, "", "has no address yet"},
		"a certificate":      {func(s *v1beta1.ClusterService) { s.Status.URL = "https://x:1" }, []string{"translate", "/"}, outcome.Refused, "", "speaks TLS"},
		"a control sequence": {asItIs, []string{"translate", "/\x1b"}, outcome.Usage, "", "invalid path"},
	} {
		t.Run(name, func(t *testing.T) {
			out, said, err := callService(t, c.change, c.args...)
			if err != nil {
				said += err.Error()
			}
			if outcome.Code(err) != c.code || out != c.out || !strings.Contains(said, c.says) {
				t.Errorf("it ends with %d, prints %q and says %q", outcome.Code(err), out, said)
			}
		})
	}
}
