package headclient_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

func TestProxiesAreJudgedByTheirStatus(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		want   headclient.Kind
	}{
		{200, "success", ""}, {204, "", ""}, {302, "", ""}, {401, "", ""}, {404, "Path '/x' not found.", ""}, {499, "", ""},
		{500, "Internal Server Error", headclient.Refused}, {503, "No replicas are available yet.", headclient.Refused}, {504, "", headclient.Refused},
		{200, strings.Repeat("x", 1<<20), ""}, {500, strings.Repeat("x\n", 1<<20), headclient.Refused},
	} {
		address := answering(t, c.status, c.body)
		if err := headclient.AskProxy(t.Context(), nil, address, "/-/healthz", false); headclient.KindOf(err) != c.want || err != nil && len(err.Error()) > 512 {
			t.Errorf("%d %.50q: %v, want %s", c.status, c.body, err, c.want)
		}
	}
	address := answering(t, 503, "No replicas are \x1b[31mavailable yet.\n")
	err := headclient.AskProxy(t.Context(), nil, address, "/-/healthz", false)
	want := "ask the proxy at " + address + " for /-/healthz: Refused: status 503: No replicas are  [31mavailable yet."
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestAskProxy_SpeaksTLS whatever certificate the proxy has.
func TestAskProxy_SpeaksTLS(t *testing.T) {
	for status, want := range map[int]headclient.Kind{200: "", 503: headclient.Refused} {
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		t.Cleanup(server.Close)
		if err := headclient.AskProxy(t.Context(), nil, server.Listener.Addr().String(), "/-/healthz", true); headclient.KindOf(err) != want {
			t.Errorf("status %d: %v, want %q", status, err, want)
		}
	}
	address := answering(t, 200, "success")
	if err := headclient.AskProxy(t.Context(), nil, address, "/-/healthz", true); err == nil {
		t.Error("a proxy that speaks no TLS is one that does")
	}
}

func TestHostileProxies(t *testing.T) {
	for name, c := range map[string]struct {
		say  func(io.Writer)
		want headclient.Kind
	}{
		"no HTTP":          {says("SSH-2.0-OpenSSH_9.2\r\n"), headclient.Protocol},
		"nothing":          {says(""), headclient.Unavailable},
		"half a header":    {says("HTTP/1.1 200 O"), headclient.Unavailable},
		"half a body":      {says(ok + "Content-Length: 100\r\n\r\n{"), headclient.Unavailable},
		"headers for ever": {func(w io.Writer) { says(ok)(w); endless(w, "A: b\r\n") }, headclient.Protocol},
		"a body for ever":  {func(w io.Writer) { says(ok + "\r\n")(w); endless(w, "x") }, ""},
		"a redirect":       {says("HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"), ""},
	} {
		address, connections := raw(t, c.say)
		before := allocated()
		for range 2 {
			if err := headclient.AskProxy(t.Context(), nil, address, "/", false); headclient.KindOf(err) != c.want {
				t.Errorf("%s: %v, want %s", name, err, c.want)
			}
		}
		if grown := allocated() - before; grown > 8<<20 {
			t.Errorf("%s: it took %d MiB", name, grown>>20)
		}
		if n := connections.Load(); n != 2 {
			t.Errorf("%s: two questions made %d connections", name, n)
		}
	}
	if err := headclient.AskProxy(t.Context(), nil, "127.0.0.1:1", "/", false); headclient.KindOf(err) != headclient.Unavailable {
		t.Errorf("where nobody listens: %v", err)
	}
}

func TestQuestionsToProxiesArePlain(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	seen := make(chan *http.Request, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) { seen <- request }))
	t.Cleanup(server.Close)
	address := server.Listener.Addr().String()
	for _, path := range []string{"/", "/-/healthz", "/a/b?c=d&e=%20", "//other:80/x", "/@other", "/%2e%2e/x"} {
		if err := headclient.AskProxy(t.Context(), nil, address, path, false); err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		request := <-seen
		header := http.Header{"User-Agent": {"heliostat"}, "Accept-Encoding": {"identity"}, "Connection": {"close"}}
		if diff := cmp.Diff(header, request.Header); diff != "" || request.Method != http.MethodGet || request.RequestURI != path || request.Host != address {
			t.Errorf("%s %s of %s, want %s: %s", request.Method, request.RequestURI, request.Host, path, diff)
		}
	}
	for _, path := range []string{"", "x", "http://other/", "/a b", "/a\r\nHost: other", "/ä", "/%zz", "/" + strings.Repeat("x", 1024)} {
		if err := headclient.AskProxy(t.Context(), nil, address, path, false); headclient.KindOf(err) != headclient.Invalid {
			t.Errorf("%q: %v", path, err)
		}
	}
	for _, address := range []string{"", "host", ":80"} {
		if err := headclient.AskProxy(t.Context(), nil, address, "/", false); headclient.KindOf(err) != headclient.Invalid {
			t.Errorf("%q: %v", address, err)
		}
	}
}

func TestCallersEndIsNotTheProxysFault(t *testing.T) {
	address, _ := raw(t, func(w io.Writer) { drip(w, ok+"Content-Length: 100\r\n\r\n") })
	short, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if err := headclient.AskProxy(short, nil, address, "/", false); headclient.KindOf(err) != headclient.Timeout || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
	why := errors.New("the operator stops")
	gone, leave := context.WithCancelCause(t.Context())
	leave(why)
	if err := headclient.AskProxy(gone, nil, address, "/", false); headclient.KindOf(err) != headclient.Unavailable || !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
}
