package proxy_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/heliostat-dev/heliostat/dashboard-proxy/proxy"
	"github.com/heliostat-dev/heliostat/portal/heads/headstest"
)

// recorder keeps the requests that come to an upstream.
type recorder struct {
	mu   sync.Mutex
	seen []*http.Request
	body []string
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen, r.body = append(r.seen, request), append(r.body, string(body))
	_, _ = io.WriteString(w, "fine")
}

func (r *recorder) last(t *testing.T) (*http.Request, string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.seen) == 0 {
		t.Fatal("nothing came")
	}
	return r.seen[len(r.seen)-1], r.body[len(r.body)-1]
}

// canaries are headers that no upstream gets.
func canaries() []string {
	var all []string
	for i, name := range []string{
		"X-Ray-Authorization", "Cookie", "Proxy-Authorization", "Impersonate-User", "Impersonate-Group", "Impersonate-Uid", "Impersonate-Extra-Scopes",
		"X-Remote-User", "X-Remote-Group", "X-Remote-Extra-Scopes", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Client-Cert",
		"X-Forwarded-User", "Forwarded", "X-Real-Ip", "X-My-User", "Referer", "User-Agent", "Origin", "Sec-Fetch-Site", "Sec-Fetch-Mode", "X-Auth-Request-Email", "Via",
	} {
		all = append(all, name, fmt.Sprintf("Mozilla session=alice; ray-authentication-token=canary-%d", i))
	}
	return all
}

func TestServe_KeepsCredentialsFromUpstreams(t *testing.T) {
	seen := &recorder{}
	b := newBed(t, seen.ServeHTTP, nil)
	sent := append(canaries(), "Connection", "X-Named", "X-Named", "canary", "Accept", "text/plain", "Content-Type", "application/json", "X-App", "mine")
	for path, isHead := range map[string]bool{"/team/demo/api/jobs/a%20b?q=canary-of-query": true, "/services/team/sort/api/jobs/a%20b?q=canary-of-query": false} {
		answer := b.send(t, http.MethodPost, path, strings.NewReader("the body"), sent...)
		request, body := seen.last(t)
		if answer.code != http.StatusOK || answer.body != "fine" || body != "the body" || request.RequestURI != "/api/jobs/a%20b?q=canary-of-query" {
			t.Errorf("%s: %+v of %s %q", path, answer, request.RequestURI, body)
		}
		holdsNoCanary(t, path, request.Header)
		var token []string
		if isHead {
			token = []string{"Bearer " + headstest.Token}
		}
		if !slices.Equal(request.Header["Authorization"], token) || !slices.Equal(request.Header["X-Ray-Authorization"], token) {
			t.Errorf("%s: the token is %v", path, request.Header["Authorization"])
		}
		if got := request.Header.Get("X-App") == "mine"; got == isHead || request.Header.Get("Accept") != "text/plain" || request.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: the upstream got %v", path, request.Header)
		}
	}
}

// TestServe_KeepsTheCallersTokenFromUpstreams wherever a caller has written it.
func TestServe_KeepsTheCallersTokenFromUpstreams(t *testing.T) {
	seen := &recorder{}
	b := newBed(t, seen.ServeHTTP, nil)
	signedIn := []string{"Authorization", "-", "Cookie", "session=alice", "Origin", b.front.URL, "Sec-Fetch-Site", "same-origin"}
	for _, below := range []string{"/team/demo", "/services/team/sort"} {
		for path, headers := range map[string][]string{
			"/x?access_token=alice-token": nil, "/x?a=b&t=%61lice%2Dtoken": nil, "/logs/alice-token/x": nil, "/x?token=alice-token": signedIn,
		} {
			if answer := b.get(t, below+path, headers...); answer.code != http.StatusBadRequest || !strings.Contains(answer.body, "the token of its caller") {
				t.Errorf("%s%s: %+v", below, path, answer)
			}
		}
		if len(seen.seen) > 0 {
			t.Fatalf("%s came", seen.seen[0].RequestURI)
		}
	}
	answer := b.get(t, "/services/team/sort/x?token=of-the-application", "X-Api-Key", "alice-token", "X-App", "alice")
	if request, _ := seen.last(t); answer.code != http.StatusOK || request.Header["X-Api-Key"] != nil || request.Header.Get("X-App") != "alice" {
		t.Errorf("%+v with %v", answer, request.Header)
	}
	if answer := b.get(t, "/team/demo/x?t=alice-token", "Authorization", "Bearer  alice-token"); answer.code != http.StatusBadRequest {
		t.Errorf("with two blanks: %+v", answer)
	}
	answer = b.get(t, "/team/demo/x", "Tracestate", "a=alice-token", "Accept", "text/plain")
	if request, _ := seen.last(t); answer.code != http.StatusOK || request.Header["Tracestate"] != nil || request.Header.Get("Accept") == "" {
		t.Errorf("%+v with %v", answer, request.Header)
	}
}

func holdsNoCanary(t *testing.T, path string, header http.Header) {
	t.Helper()
	for name, values := range header {
		text := strings.Join(values, " ")
		if slices.ContainsFunc([]string{"canary", "alice", "Mozilla"}, func(part string) bool { return strings.Contains(text, part) }) {
			t.Errorf("%s: the upstream got %s: %s", path, name, text)
		}
	}
}

func TestServe_SendsNoTokenWithoutAuthentication(t *testing.T) {
	seen := &recorder{}
	b := newBed(t, seen.ServeHTTP, nil)
	b.PutCluster("demo", withoutAuthentication)
	if answer := b.get(t, "/team/demo/"); answer.code != http.StatusOK {
		t.Fatalf("%+v", answer)
	}
	if request, _ := seen.last(t); request.Header["Authorization"] != nil || request.Header["Transfer-Encoding"] != nil || request.TransferEncoding != nil {
		t.Errorf("the head got %v", request.Header)
	}
}

func TestServe_CleansAnswers(t *testing.T) {
	bad := []string{
		"Set-Cookie", "Service-Worker-Allowed", "Clear-Site-Data", "Alt-Svc", "Strict-Transport-Security", "Report-To", "Nel", "Www-Authenticate", "Refresh",
		"Access-Control-Allow-Origin", "Access-Control-Allow-Credentials", "X-Echo",
	}
	b := newBed(t, func(w http.ResponseWriter, r *http.Request) {
		for _, name := range bad {
			w.Header().Set(name, "of-the-head "+r.Header.Get("Authorization"))
		}
		w.Header().Set("X-Mine", "kept")
		w.Header().Set("Content-Security-Policy", "script-src 'self'")
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<p>")
	}, nil)
	answer := b.get(t, "/team/demo/")
	for _, name := range bad {
		if answer.header[name] != nil {
			t.Errorf("the answer has %s: %v", name, answer.header[name])
		}
	}
	if h := answer.header; h.Get("X-Mine") != "kept" || h.Get("X-Content-Type-Options") != "nosniff" || len(h["Content-Security-Policy"]) != 2 || h.Get("Content-Type") != "text/html" {
		t.Errorf("the answer has %v", h)
	}
}

func TestServe_KeepsRedirectsBelowThePrefix(t *testing.T) {
	b := newBed(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", r.URL.Query().Get("to"))
		w.WriteHeader(http.StatusFound)
	}, nil)
	for to, want := range map[string]string{
		"/x/?a=b%23c":                     "/team/demo/x/?a=b%23c",
		"y":                               "/team/demo/api/y",
		"../z":                            "/team/demo/z",
		"../../../z":                      "/team/demo/z",
		"http://" + headIP + ":8265/x":    "/team/demo/x",
		"?page=2":                         "/team/demo/api/jobs?page=2",
		"/\\evil.example.com":             "/team/demo/%5Cevil.example.com",
		"https://evil.example.com/":       "",
		"//evil.example.com/":             "",
		"/.//evil.example.com":            "",
		"http://" + headIP + ":8266/":     "",
		"http://a:b@" + headIP + ":8265/": "",
		"javascript:alert(1)":             "",
		"http://metadata.google.internal/computeM": "",
		"http://[::1": "",
	} {
		answer := b.get(t, "/team/demo/api/jobs?to="+escape(to))
		if got := answer.header.Get("Location"); got != want || (want == "") != (answer.code == http.StatusBadGateway) {
			t.Errorf("%s leads to %q by %d", to, got, answer.code)
		}
	}
	// Below the wildcard there is no prefix.
	wild := newBed(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "/.//evil.example.com")
		w.WriteHeader(http.StatusFound)
	}, withWildcard)
	if answer := wild.get(t, "/", "Host", "demo--team.ray.example.com"); answer.code != http.StatusBadGateway {
		t.Errorf("%+v", answer)
	}
}

// TestServe_DropsWhatComesBefore replays a head that says much before its answer, and one that changes the protocol.
func TestServe_DropsWhatComesBefore(t *testing.T) {
	b := newBed(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/switch" {
			connection, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_, _ = io.WriteString(connection, "HTTP/1.1 101 Switching Protocols\r\n\r\nsmuggled")
				_ = connection.Close()
			}
			return
		}
		w.Header().Set("Link", "</canary>; rel=preload")
		w.Header().Set("Set-Cookie", "canary=1")
		for range 3 {
			w.WriteHeader(http.StatusEarlyHints)
		}
		w.Header().Del("Link")
		_, _ = io.WriteString(w, "fine")
	}, nil)
	ask := func(path string) string {
		return b.raw(t, "GET "+path+" HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer alice-token\r\nConnection: close\r\n\r\n")
	}
	if got := ask("/team/demo/"); !strings.HasPrefix(got, "HTTP/1.1 200 OK\r\n") || strings.Contains(got, "canary") {
		t.Errorf("the answer is %q", got)
	}
	if got := ask("/team/demo/switch"); !strings.HasPrefix(got, "HTTP/1.1 502 ") || strings.Contains(got, "smuggled") {
		t.Errorf("the answer is %q", got)
	}
}

// TestServe_ReplaysAttacksOnProxies has what other proxies have handed on wrongly. What comes to a head is one request, as it
// was authorised.
func TestServe_ReplaysAttacksOnProxies(t *testing.T) {
	seen := &recorder{}
	b := newBed(t, seen.ServeHTTP, nil)
	const fields = " HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer alice-token\r\n"
	for name, c := range map[string]struct {
		request, came string
		code          int
	}{
		"CVE-2019-16276, a space before a colon":       {"GET /team/demo/x" + strings.Replace(fields, "n:", "n :", 1) + "Connection: close\r\n\r\n", "", 400},
		"CVE-2021-33197, an empty Connection before":   {"GET /services/team/sort/x" + fields + "Connection: \r\nConnection: close, X-App\r\nX-App: canary\r\n\r\n", "GET /x", 200},
		"CVE-2022-1705, an unknown Transfer-Encoding":  {"POST /team/demo/x" + fields + "Connection: close\r\nContent-Length: 1\r\nTransfer-Encoding: xchunked\r\n\r\nx", "", 501},
		"CVE-2022-2880, a query that cannot be parsed": {"GET /team/demo/x?a=1&a=%zz" + fields + "Connection: close\r\n\r\n", "", 400},
		"CVE-2022-2880, a query with a semicolon":      {"GET /team/demo/x?a=1;a=2" + fields + "Connection: close\r\n\r\n", "GET /x?a=1;a=2", 200},
		"CVE-2022-41721, h2c with a body": {"POST /team/demo/x" + fields + "Connection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n" +
			"Content-Length: 24\r\n\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "", 400},
		"two lengths, and a request behind the shorter one": {"POST /team/demo/x" + fields + "Content-Length: 100\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" +
			"GET /team/demo/smuggled HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n", "POST /x", 200},
	} {
		seen.seen, seen.body = nil, nil
		answer, err := http.ReadResponse(bufio.NewReader(strings.NewReader(b.raw(t, c.request))), nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_ = answer.Body.Close() // what it says is shown elsewhere
		var came []string
		for _, one := range seen.seen {
			came = append(came, one.Method+" "+one.RequestURI)
			holdsNoCanary(t, name, one.Header)
		}
		if answer.StatusCode != c.code || strings.Join(came, ", ") != c.came {
			t.Errorf("%s: %d, and %v came", name, answer.StatusCode, came)
		}
	}
}

func withWildcard(n *proxy.Needs) { n.Site.Wildcard = "ray.example.com" }
