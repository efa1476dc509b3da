package proxy_test

import (
	"context"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/heliostat-dev/heliostat/dashboard-proxy/proxy"
	"github.com/heliostat-dev/heliostat/dashboard-proxy/route"
	"github.com/heliostat-dev/heliostat/dashboard-proxy/serve"
	"github.com/heliostat-dev/heliostat/portal/access"
	"github.com/heliostat-dev/heliostat/portal/access/accesstest"
	"github.com/heliostat-dev/heliostat/portal/heads"
	"github.com/heliostat-dev/heliostat/portal/heads/headstest"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/naming"
)

const (
	headIP = "10.1.0.1"
	podIP  = "10.1.0.7"
)

// bed is a namespace with cluster demo and service sort, and a proxy before them.
type bed struct {
	*headstest.Site
	kubernetes *accesstest.Server
	network    *headstest.Network
	cluster    *v1beta1.ComputeCluster
	head       *corev1.Pod
	service    *v1beta1.ClusterService
	owner      *v1beta1.ComputeCluster
	pod        *corev1.Pod
	proxy      *proxy.Proxy
	front      *httptest.Server
	clock      *clocktesting.FakeClock
	end        context.CancelFunc
	known      chan proxy.Request

	mu      sync.Mutex
	resumed []string
	log     strings.Builder
}

// newBed has the head and the pod of the service answer by a handler.
func newBed(t *testing.T, answer http.HandlerFunc, change func(*proxy.Needs)) *bed {
	t.Helper()
	b := &bed{
		known: make(chan proxy.Request, 10_000),
		Site:  headstest.New(), network: headstest.NewNetwork(), clock: clocktesting.NewFakeClock(time.Now()),
		kubernetes: accesstest.Start(t, "alice-token", "alice", nil),
	}
	b.cluster = b.PutCluster("demo", nil)
	b.head = headstest.Head(b.cluster, 1, headIP)
	b.PutPod(b.head)
	b.makeService()
	for _, address := range []string{headIP + ":8265", podIP + ":8000"} {
		b.listen(t, b.network.Listen(address), answer)
	}
	b.open(t, change)
	return b
}

func (b *bed) listen(t *testing.T, on net.Listener, answer http.HandlerFunc) {
	t.Helper()
	server := &http.Server{Handler: answer, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(on) }()
	t.Cleanup(func() { _ = server.Close() })
}

func (b *bed) makeService() {
	b.service = &v1beta1.ClusterService{ObjectMeta: metav1.ObjectMeta{Namespace: headstest.Namespace, Name: "sort", UID: "uid-of-sort"}}
	b.service.Spec.ServeConfig.Raw = []byte(`{}`)
	b.owner = b.PutCluster(naming.ServiceCluster("sort", "uid-of-sort", 1), func(c *v1beta1.ComputeCluster) {
		c.Labels, c.Annotations = map[string]string{v1beta1.LabelService: "sort"}, map[string]string{v1beta1.AnnotationRevisionCluster: "1"}
		c.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(b.service, v1beta1.GroupVersion.WithKind("ClusterService"))}
	})
	at := naming.Place{Group: "cpu", Epoch: 1}
	b.pod = headstest.Head(b.owner, 1, podIP)
	b.pod.Name, b.pod.UID, b.pod.Labels = naming.Pod(b.owner.Name, b.owner.UID, at), "uid-of-pod", naming.PodLabels(b.owner.Name, at)
	b.pod.Labels[naming.ServeLabel("sort")] = v1beta1.ServeOn
	b.PutPod(b.pod)
}

// The bed is what services are read from.
func (b *bed) FindService(namespace, name string) (*v1beta1.ClusterService, bool) {
	return b.service, namespace == headstest.Namespace && name == "sort"
}
func (b *bed) ClustersOf(string, string) []*v1beta1.ComputeCluster {
	return []*v1beta1.ComputeCluster{b.owner}
}
func (b *bed) PodsOf(cluster types.UID) []*corev1.Pod {
	return b.HeadPods(headstest.Namespace, cluster)
}

// The bed is how objects are.
func (b *bed) Phases(route.Kind, string, string) []proxy.Phase {
	return []proxy.Phase{{Name: "Accepted", State: "Done"}, {Name: "HeadReady", State: "Current", WaitsFor: "the image <of> pod"}}
}
func (b *bed) Resume(_ context.Context, _ *access.Caller, kind route.Kind, namespace, name string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if name == "stuck" {
		return &proxy.Refusal{Code: http.StatusConflict, Text: "it cannot be resumed"}
	}
	b.resumed = append(b.resumed, string(kind)+" "+namespace+"/"+name)
	return nil
}

// The bed knows one session.
func (b *bed) Open(w http.ResponseWriter, r *http.Request) (*http.Request, bool) {
	switch cookie, err := r.Cookie("session"); {
	case err == nil && cookie.Value == "alice":
		ctx, cancel := context.WithDeadline(r.Context(), b.clock.Now().Add(15*time.Second))
		context.AfterFunc(r.Context(), cancel)
		r = r.Clone(ctx)
		r.Header.Set("Authorization", "Bearer alice-token")
	case r.Header.Get("Sec-Fetch-Mode") == "navigate":
		http.Redirect(w, r, "/-/signin", http.StatusSeeOther)
		return nil, true
	}
	return r, false
}

// FindLabel knows those of the bed's objects.
func (b *bed) FindLabel(label string) (kind route.Kind, namespace, name string, found bool) {
	switch label {
	case naming.ClusterHost(headstest.Namespace, "demo"):
		return route.Cluster, headstest.Namespace, "demo", true
	case naming.ServiceHost(headstest.Namespace, "sort"):
		return route.Service, headstest.Namespace, "sort", true
	}
	return "", "", "", false
}

// Write takes what is logged.
func (b *bed) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.log.Write(text)
}

func (b *bed) open(t *testing.T, change func(*proxy.Needs)) {
	t.Helper()
	kubernetes := b.kubernetes.Kubernetes(t, b.clock)
	ctx, end := context.WithCancel(t.Context())
	b.end = end
	b.front = httptest.NewUnstartedServer(nil)
	needs := proxy.Needs{
		Access: kubernetes, Objects: b, Sessions: b, PageURL: "https://page.example.com/", MaxUpload: 8 << 20, MaxSockets: 10_000, Clock: b.clock,
		Heads:    heads.New(heads.Settings{Clusters: b, Reader: b, Options: headclient.Options{Connect: b.network.Connect}}),
		Services: serve.New(b, b.network.Connect, b.clock), Origin: &url.URL{Scheme: "https", Host: b.front.Listener.Addr().String()},
		Log:             slog.New(slog.NewJSONHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug})),
		IdentityHeaders: []string{"X-My-User"}, Site: route.Site{Labels: b},
	}
	if change != nil {
		change(&needs)
	}
	b.proxy = proxy.New(ctx, needs)
	b.front.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var known proxy.Request
		defer func() { b.known <- known }()
		b.proxy.Serve(w, r, &known)
	})
	b.front.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug)
	b.front.StartTLS()
	t.Cleanup(func() {
		end()
		b.front.CloseClientConnections()
		b.front.Close()
		b.proxy.Wait()
	})
}

// reply is an answer that was read.
type reply struct {
	code   int
	header http.Header
	body   string
}

// send sends a request as alice, unless headers say otherwise; a value "-" takes a header away.
func (b *bed) send(t *testing.T, method, path string, body io.Reader, headers ...string) reply {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, b.front.URL+path, body)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer alice-token")
	for i := 0; i < len(headers); i += 2 {
		switch {
		case headers[i] == "Host":
			request.Host = headers[i+1]
		case headers[i+1] == "-":
			request.Header.Del(headers[i])
		default:
			request.Header.Set(headers[i], headers[i+1])
		}
	}
	answer, err := b.client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{answer.StatusCode, answer.Header, string(text)}
}

func (b *bed) get(t *testing.T, path string, headers ...string) reply {
	t.Helper()
	return b.send(t, http.MethodGet, path, nil, headers...)
}

// client follows no redirect.
func (b *bed) client() *http.Client {
	client := *b.front.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &client
}

// raw sends bytes, then what each of more returns, and returns the answer to them as text.
func (b *bed) raw(t *testing.T, text string, more ...func() string) string {
	t.Helper()
	settings := b.front.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	settings.NextProtos = []string{"http/1.1"}
	connection, err := (&tls.Dialer{Config: settings}).DialContext(t.Context(), "tcp", b.front.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	if _, err := io.WriteString(connection, text); err != nil {
		t.Fatal(err)
	}
	for _, next := range more {
		if _, err := io.WriteString(connection, next()); err != nil {
			t.Fatal(err)
		}
	}
	answer, err := io.ReadAll(connection)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

// page are the headers of a navigation with the session.
func page(site string) []string {
	return []string{
		"Authorization", "-", "Cookie", "session=alice", "Sec-Fetch-Site", site, "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document", "Accept", "text/html",
	}
}

// dials is how often something was dialled.
func (b *bed) dials() int { return b.network.Dials(headIP+":8265") + b.network.Dials(podIP+":8000") }
