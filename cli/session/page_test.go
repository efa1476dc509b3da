package session

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/heliostat-dev/heliostat/cli/console"
	"github.com/heliostat-dev/heliostat/cli/outcome"
	"github.com/heliostat-dev/heliostat/portal/heads/headstest"
	"github.com/heliostat-dev/heliostat/ray-operator/api/v1beta1"
)

// withPage gives the console a job whose gang says that it has a page in a pod, and serves the page there.
func withPage(t *testing.T, c *console.Console, pod string) (asked chan *http.Request) {
	t.Helper()
	asked = make(chan *http.Request, 10)
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r
		fmt.Fprint(w, "stages")
	}))
	t.Cleanup(page.Close)
	objects, err := c.Connect()
	if err != nil {
		t.Fatal(err)
	}
	job := &v1beta1.ClusterJob{ObjectMeta: metav1.ObjectMeta{Namespace: headstest.Namespace, Name: "etl"}}
	job.Status.ClusterName = "demo"
	job.Status.Gang = &v1beta1.GangStatus{Page: &v1beta1.GangPage{PodName: pod, Port: 20007}}
	other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: headstest.Namespace, Name: "other"}}
	for _, object := range []client.Object{job, other} {
		if err := objects.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	c.Forward = func(ctx context.Context, to types.NamespacedName, port int) (net.Conn, error) {
		if to.Name != pod || port != 20007 {
			return nil, fmt.Errorf("nobody listens at %s:%d", to.Name, port)
		}
		return (&net.Dialer{}).DialContext(ctx, "tcp", page.Listener.Addr().String())
	}
	return asked
}

// headOf returns the name of the head's pod of cluster demo.
func headOf(t *testing.T, c *console.Console) string {
	t.Helper()
	objects, err := c.Connect()
	if err != nil {
		t.Fatal(err)
	}
	var pods corev1.PodList
	if err := objects.List(t.Context(), &pods); err != nil || len(pods.Items) != 1 {
		t.Fatalf("%d pods: %v", len(pods.Items), err)
	}
	return pods.Items[0].Name
}

// freePort returns a port of this machine that nothing listens at.
func freePort(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }() // nothing was promised
	return portOf(listener)
}

func TestOpen_ServesThePageOfAJobAtAPort(t *testing.T) {
	for name, place := range places() {
		t.Run(name, func(t *testing.T) {
			c, out := newConsole(t)
			c.Resolve = place.resolve
			asked := withPage(t, c, headOf(t, c))
			ctx, interrupt := context.WithCancel(t.Context())
			done := make(chan error, 1)
			port := freePort(t)
			go func() { done <- execute(ctx, c, "open", "job/etl", "--port", port) }()
			printed, err := url.Parse(out.first(t))
			if err != nil || printed.Port() != port {
				t.Fatalf("it prints %s: %v", printed, err)
			}
			code, body := answer(t, browser(t, true), printed.String(), does())
			if code != http.StatusOK || body != "stages" {
				t.Errorf("its page answers %d %q", code, body)
			}
			request := <-asked
			if prefix := request.Header.Get("X-Forwarded-Context"); prefix != strings.TrimSuffix(printed.Path, "/") {
				t.Errorf("links begin with %q, and the page is below %q", prefix, printed.Path)
			}
			if request.Header.Get("Authorization") != "" || request.Header.Get("Cookie") != "" {
				t.Errorf("the program finds %v", request.Header)
			}
			interrupt()
			if err := <-done; err != nil {
				t.Errorf("it ends with %v", err)
			}
		})
	}
}

func TestOpen_RefusesAPageThatMayNotBeServed(t *testing.T) {
	for name, test := range map[string]struct {
		pod, says string
		edit      func(*console.Console)
		args      []string
	}{
		"a pod of others":         {"other", "which is not of its cluster", nil, []string{"job/etl"}},
		"a pod that is not there": {"gone", "read pod gone of the page", nil, []string{"job/etl"}},
		"through the server":      {"other", "leave out --server", func(c *console.Console) { c.Server = console.Server{URL: "https://x", Token: "t"} }, []string{"job/etl"}},
		"no port":                 {"other", "--port 70000 is no port", nil, []string{"job/etl", "--port", "70000"}},
		"another kind":            {"other", "give a cluster or job", nil, []string{"service/etl"}},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := newConsole(t)
			withPage(t, c, test.pod)
			if test.edit != nil {
				test.edit(c)
			}
			if err := execute(t.Context(), c, "open", test.args...); err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("it ends with %v", err)
			}
		})
	}
	c, _ := newConsole(t)
	withPage(t, c, "other")
	objects, err := c.Connect()
	if err != nil {
		t.Fatal(err)
	}
	job := &v1beta1.ClusterJob{}
	if err := objects.Get(t.Context(), client.ObjectKey{Namespace: headstest.Namespace, Name: "etl"}, job); err != nil {
		t.Fatal(err)
	}
	job.Status.Gang.Page = nil
	if err := objects.Update(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	if err := execute(t.Context(), c, "open", "job/etl"); outcome.Code(err) != outcome.Refused || !strings.Contains(err.Error(), "has no page now") {
		t.Errorf("without a page it ends with %v", err)
	}
}

func TestOpen_SaysThatAPortIsTaken(t *testing.T) {
	c, _ := newConsole(t)
	withPage(t, c, headOf(t, c))
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }() // nothing was promised
	err = execute(t.Context(), c, "open", "job/etl", "--port", portOf(listener))
	if err == nil || !strings.Contains(err.Error(), "listen on a port of this machine") {
		t.Errorf("it ends with %v", err)
	}
}
