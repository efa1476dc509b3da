package route_test

import (
	"bufio"
	"bytes"
	"net/http"
	"net/url"
	"path"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/heliostat-dev/heliostat/dashboard-proxy/route"
)

// FuzzRoute: what was authorised is what an upstream reads from the wire, or the request was refused.
func FuzzRoute(f *testing.F) {
	for _, target := range []string{
		"/a/b/", "/a/b", "/services/a/b/x?y=z", "/-/clusters/services/x/y", "/a/b/%2e%2e/c", "/a/b/%252f", "/a/b/x;y", "//a/b", "/a/b/worker/traceback?pid=1", "/a/b/%c3%bc",
		"http://x/a/b/", "/a/b/%74ask", "/a/b/..%2f", "/a/b/%zz?%", "/a/b/[x]:@",
	} {
		f.Add("h.example.com", target)
		f.Add("demo--team-a.ray.example.com:8444", target)
	}
	f.Fuzz(func(t *testing.T, host, target string) {
		got, err := site().Read(get(host, target))
		if err != nil {
			if codeOf(err) < 400 || codeOf(err) >= 500 {
				t.Fatalf("%q is refused by %v", target, err)
			}
			return
		}
		whole, _, _ := strings.Cut(target, "?")
		if got.Prefix+got.Path != whole && !(got.HasNoSlash && got.Prefix == whole) {
			t.Fatalf("%q is split into %q and %q", target, got.Prefix, got.Path)
		}
		if got.Kind == route.Cluster || got.Kind == route.Service {
			compare(t, got)
		}
	})
}

// compare fails unless an upstream reads a target as it was authorised.
func compare(t *testing.T, got route.Target) {
	t.Helper()
	read := upstream(t, got)
	strict := decode(t, read.raw)
	switch {
	case read.raw != got.Path || read.query != got.Query:
		t.Fatalf("%q?%q is sent on as %q?%q", got.Path, got.Query, read.raw, read.query)
	case read.path != strict || !utf8.ValidString(strict) || strings.ContainsAny(strict, "\\\x00"):
		t.Fatalf("%q is read as %q and as %q", got.Path, read.path, strict)
	case strings.TrimSuffix(strict, "/") != strings.TrimSuffix(path.Clean(strict), "/"):
		t.Fatalf("%q leads elsewhere: %q", got.Path, strict)
	case len(strings.Split(strict, "/")) != len(strings.Split(got.Path, "/")):
		t.Fatalf("%q has other segments in %q", got.Path, strict)
	case got.Kind == route.Cluster:
		again, err := route.Site{}.Read(get("h", "/a/b"+(&url.URL{Path: strict}).EscapedPath()))
		if isCreate := err == nil && again.Verb == "create"; isCreate && got.Verb != "create" {
			t.Fatalf("%q needs %s, and is read as %q", got.Path, got.Verb, strict)
		}
	}
}

// read is what an upstream reads of a request.
type read struct{ raw, path, query string }

// upstream sends a request over a wire, and reads it there.
func upstream(t *testing.T, to route.Target) read {
	at, err := to.URL("10.0.0.1:8265")
	if err != nil {
		t.Fatal(err)
	}
	var wire bytes.Buffer
	if err := (&http.Request{Method: http.MethodGet, URL: at, Host: at.Host, Header: http.Header{}}).Write(&wire); err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(wire.String(), "\r\n")
	parts := strings.Split(line, " ")
	if len(parts) != 3 {
		t.Fatalf("the request line is %q", line)
	}
	request, err := http.ReadRequest(bufio.NewReader(&wire))
	if err != nil {
		t.Fatal(err)
	}
	raw, query, _ := strings.Cut(parts[1], "?")
	return read{raw: raw, path: request.URL.Path, query: query}
}

// decode reads escapes once, as a server does that knows no other rule.
func decode(t *testing.T, raw string) string {
	plain, err := url.PathUnescape(raw)
	if err != nil {
		t.Fatalf("%q is malformed: %v", raw, err)
	}
	return plain
}
