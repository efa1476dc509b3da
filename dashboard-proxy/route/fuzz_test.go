package route_test

import (
	"bufio"
	"bytes"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path"
	"strconv"
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
	f.Fuzz(func(t *testing.T, host, target string) { check(t, host, target) })
}

// check fails unless a request is refused, or read upstream as it was authorised. It returns the code of a refusal, and
// otherwise 200.
func check(t *testing.T, host, target string) int {
	t.Helper()
	got, err := site().Read(get(host, target))
	if err != nil {
		if codeOf(err) < 400 || codeOf(err) >= 500 {
			t.Fatalf("%q is refused by %v", target, err)
		}
		return codeOf(err)
	}
	whole, _, _ := strings.Cut(target, "?")
	if got.Prefix+got.Path != whole && !(got.HasNoSlash && got.Prefix == whole) {
		t.Fatalf("%q is split into %q and %q", target, got.Prefix, got.Path)
	}
	if got.Kind == route.Cluster || got.Kind == route.Service {
		compare(t, got)
	}
	return http.StatusOK
}

// Pieces of addresses. Servers read some of those that are ambiguous in several ways.
var (
	harmless  = []string{"/", "/", "/", "a", "team-a", "demo", "sort", "api/jobs", "x", "~", "a%20b", "%c3%bc", "?a=b", "&c=%2f", "@", ":", "+", "[x]", "worker/traceback"}
	ambiguous = []string{
		"//", ".", "..", "/../", "/./", ";", ";x=1", "\\", "%2f", "%2F", "%5c", "%00", "%0d%0a", "%2e", "%2e%2e", "%252e", "%25", "%25%32%66", "%zz", "%", "%u002f", "%c0%af", "%74ask",
		"#", "\x00", "\r\n", " ", "\t", "\xff", "ü", "http://h/", "//evil.example.com/", "?", "??", "%3f", "%23", "/-/", "/services/", "/-/clusters/",
	}
	begins = []string{"/team-a/demo/", "/services/team-a/sort/", "/-/clusters/services/demo/", "/team-a/demo", "/", ""}
	hosts  = []string{"h.example.com", "h.example.com", "demo--team-a.ray.example.com:8444", "sort-team-a-abc.ray.example.com:8444", "none--team-a.ray.example.com:8444", "a.b.ray.example.com:8444", ""}
)

// made is how many requests are made up; HELIOSTAT_REQUESTS asks for another number.
const made = 10_000

// TestRead_LeadsWhereItAuthorised makes up requests, half of them with ambiguous pieces.
func TestRead_LeadsWhereItAuthorised(t *testing.T) {
	count := made
	if text := os.Getenv("HELIOSTAT_REQUESTS"); text != "" {
		var err error
		if count, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	random := rand.New(rand.NewPCG(23, 1))
	pick := func(from []string) string { return from[random.IntN(len(from))] }
	codes := map[int]int{}
	for i := range count {
		target := pick(begins)
		for range random.IntN(8) {
			target += pick(harmless)
		}
		if i%2 == 0 {
			at := random.IntN(len(target) + 1)
			target = target[:at] + pick(ambiguous) + target[at:]
		}
		codes[check(t, pick(hosts), target)]++
	}
	t.Logf("%d requests: %d read upstream as they were authorised, %d refused by 400, %d by 404",
		count, codes[http.StatusOK], codes[http.StatusBadRequest], codes[http.StatusNotFound])
	if codes[http.StatusOK]+codes[http.StatusBadRequest]+codes[http.StatusNotFound] != count || min(codes[http.StatusOK], codes[http.StatusBadRequest]) < count/10 {
		t.Errorf("the answers are %v", codes)
	}
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
