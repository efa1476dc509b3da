package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/heliostat-dev/heliostat/portal/access"
	"github.com/heliostat-dev/heliostat/portal/access/accesstest"
)

const at = "/apis/heliostat.dev/v1beta1/namespaces/n/computeclusters"

// lines is a log that tests read.
type lines struct {
	mutex sync.Mutex
	text  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return l.text.String()
}

type bed struct {
	upstream *accesstest.Server
	server   *httptest.Server
	registry *prometheus.Registry
	log      *lines
}

func newBed(t *testing.T, rest http.HandlerFunc) *bed {
	t.Helper()
	return newBedOf(t, rest, access.Identity{Mode: access.PassThrough})
}

// newBedOf has its callers identified in some way.
func newBedOf(t *testing.T, rest http.HandlerFunc, identity access.Identity) *bed {
	t.Helper()
	b := &bed{upstream: accesstest.Start(t, "alice-token", "alice", rest), registry: newRegistry(), log: &lines{}}
	log := slog.New(slog.NewJSONHandler(b.log, nil))
	options := b.upstream.Options(clock.RealClock{})
	options.Identity = identity
	kubernetes, err := access.New(options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	front, _, err := newFront(ctx, Config{Log: log, Clock: clock.RealClock{}}, kubernetes, b.registry)
	if err != nil {
		t.Fatal(err)
	}
	b.server = httptest.NewUnstartedServer(nil)
	b.server.Config = newServer(front, nil, log, clock.RealClock{})
	b.server.EnableHTTP2 = true
	b.server.StartTLS()
	t.Cleanup(func() {
		end()
		b.server.Close()
	})
	return b
}

// client speaks HTTP/1.1, or HTTP/2 as well.
func (b *bed) client(version int) *http.Client {
	client := *b.server.Client()
	if version == 1 {
		plain := client.Transport.(*http.Transport).Clone()
		plain.ForceAttemptHTTP2, plain.TLSClientConfig.NextProtos = false, []string{"http/1.1"}
		client.Transport = plain
	}
	return &client
}

// send returns the code of an answer, its headers, and the Status in it if there is one.
func (b *bed) send(t *testing.T, client *http.Client, method, path string, headers ...string) (int, http.Header, metav1.Status) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, b.server.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Add(headers[i], headers[i+1])
	}
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	var status metav1.Status
	_ = json.Unmarshal(body, &status) // what is no JSON is no Status
	return answer.StatusCode, answer.Header, status
}

func fine(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Audit-Id", "the-audit-id")
	_, _ = fmt.Fprint(w, "{}")
}

// routes are those that pass, with a method that each has, and one that it has not; of the kinds it has all.
var routes = map[string][2]string{
	at: {"GET", ""}, at + "/c": {"DELETE", ""}, at + "/c/status": {"PATCH", ""}, "/apis/heliostat.dev/v1beta1/clusterjobs": {"POST", ""},
	"/apis/heliostat.dev/v1beta1/clusterservices": {"PUT", ""},
	"/api": {"GET", "POST"}, "/api/v1": {"GET", "PUT"}, "/apis": {"GET", "DELETE"}, "/version": {"GET", "PATCH"},
	"/apis/heliostat.dev": {"GET", "POST"}, "/apis/heliostat.dev/v1beta1": {"GET", "POST"}, "/apis/events.k8s.io": {"GET", "POST"},
	"/apis/events.k8s.io/v1": {"GET", "POST"}, "/openapi/v3": {"GET", "POST"}, "/openapi/v3/apis/heliostat.dev/v1beta1": {"GET", "POST"},
	"/api/v1/events": {"GET", "POST"}, "/api/v1/namespaces/n/events": {"GET", "DELETE"}, "/apis/events.k8s.io/v1/events": {"GET", "POST"},
	"/apis/events.k8s.io/v1/namespaces/n/events":             {"GET", "PATCH"},
	"/apis/authentication.k8s.io/v1/selfsubjectreviews":      {"POST", "GET"},
	"/apis/authorization.k8s.io/v1/selfsubjectaccessreviews": {"POST", "GET"},
	"/apis/authorization.k8s.io/v1/selfsubjectrulesreviews":  {"POST", "DELETE"},
}

// callers are headers of callers without a token that could be one.
var callers = map[string][]string{
	"none": nil, "garbage": {"Authorization", "Bearer ä"}, "basic": {"Authorization", "Basic YTpi"},
	"two": {"Authorization", "Bearer alice-token", "Authorization", "Bearer alice-token"},
}

var alice = []string{"Authorization", "Bearer alice-token"}

// TestFront_AnswersEachRoute sends every route without a token, with garbage, with one that nobody knows, and with one that
// is known, by a method that it has and one that it has not; in both versions of HTTP.
func TestFront_AnswersEachRoute(t *testing.T) {
	b := newBed(t, fine)
	for _, version := range []int{1, 2} {
		client := b.client(version)
		for path, method := range routes {
			b.checkRoute(t, client, path, method)
		}
		for path, want := range map[string]int{"/api/v1/namespaces/n/secrets": 404, "/metrics": 404, "/healthz": 404, "/apis//x": 400, "/apis/heliostat.dev/v1beta1/a%2fb": 400} {
			b.isRefused(t, client, "GET "+path, want)
			if code, _, _ := b.send(t, client, "GET", path); code != http.StatusUnauthorized {
				t.Errorf("GET %s without a token: %d", path, code)
			}
		}
	}
	for _, one := range b.upstream.All() {
		if got := one.Header.Get("Authorization"); got != "Bearer alice-token" && got != "Bearer unknown" {
			t.Errorf("%s %s came as %q", one.Method, one.Path, got)
		}
	}
	b.upstream.Deny("alice-token")
	if code, _, status := b.send(t, b.client(2), "GET", at, alice...); code != http.StatusForbidden || status.Reason != metav1.StatusReasonForbidden {
		t.Errorf("without the right: %d %+v", code, status)
	}
}

// checkRoute sends a path's method as every sort of caller, and one that it has not.
func (b *bed) checkRoute(t *testing.T, client *http.Client, path string, method [2]string) {
	t.Helper()
	for name, headers := range callers {
		code, header, status := b.send(t, client, method[0], path, headers...)
		if code != http.StatusUnauthorized || header.Get("Www-Authenticate") == "" || status.Reason != metav1.StatusReasonUnauthorized || header.Get("X-Request-Id") == "" {
			t.Errorf("%s %s with %s: %d %v %+v", method[0], path, name, code, header, status)
		}
	}
	if code, _, status := b.send(t, client, method[0], path, "Authorization", "Bearer unknown"); code != http.StatusUnauthorized || status.Kind != "Status" {
		t.Errorf("%s %s of nobody: %d", method[0], path, code)
	}
	if code, _, _ := b.send(t, client, method[0], path, alice...); code != http.StatusOK && code != http.StatusCreated {
		t.Errorf("%s %s: %d", method[0], path, code)
	}
	if method[1] != "" {
		b.isRefused(t, client, method[1]+" "+path, http.StatusMethodNotAllowed)
	}
}

// isRefused checks that alice is refused by the server itself.
func (b *bed) isRefused(t *testing.T, client *http.Client, what string, want int) {
	t.Helper()
	method, path, _ := strings.Cut(what, " ")
	before := len(b.upstream.Seen())
	code, _, status := b.send(t, client, method, path, alice...)
	if code != want || status.Kind != "Status" || status.Reason == "" || len(b.upstream.Seen()) != before {
		t.Errorf("%s: %d %+v, want %d", what, code, status, want)
	}
}

// TestFront_ServesThePage to callers without a token, and nothing beside it.
func TestFront_ServesThePage(t *testing.T) {
	b := newBed(t, fine)
	client := b.client(2)
	for path, isPage := range map[string]bool{"/": true, "/ui": true, "/ui/clusters/n/c": true, "/uix": false} {
		code, header, _ := b.send(t, client, "GET", path)
		if isPage != (header.Get("Content-Security-Policy") != "") || isPage == (code == http.StatusUnauthorized) || header.Get("X-Request-Id") == "" {
			t.Errorf("GET %s is %d %v", path, code, header)
		}
	}
	if code, _, _ := b.send(t, b.client(1), "GET", "/ui/", "Connection", "Upgrade", "Upgrade", "x"); code != http.StatusBadRequest {
		t.Errorf("an upgrade is answered %d", code)
	}
	if seen := b.upstream.Seen(); len(seen) > 0 {
		t.Errorf("the API server is asked for %v", seen)
	}
}

func TestFront_RefusesUpgrades(t *testing.T) {
	b := newBed(t, fine)
	client := b.client(1)
	for _, headers := range [][]string{
		{"Connection", "Upgrade", "Upgrade", "websocket"}, {"Connection", "keep-alive, UPGRADE", "Upgrade", "SPDY/3.1"}, {"Connection", "Upgrade, HTTP2-Settings", "Upgrade", "h2c", "HTTP2-Settings", "AAMAAABk"},
		{"Upgrade", "HTTP/2.0"}, {"Connection", "upgrade"}, {"Upgrade", "TLS/1.2, foo"}, {"Upgrade", ""},
	} {
		code, _, status := b.send(t, client, "GET", at+"?watch=true", append(headers, "Authorization", "Bearer alice-token")...)
		if code != http.StatusBadRequest || status.Reason != metav1.StatusReasonBadRequest {
			t.Errorf("%q: %d %+v", headers, code, status)
		}
	}
	if seen := b.upstream.Seen(); len(seen) > 0 {
		t.Errorf("the API server got %v", seen)
	}
}

func TestFront_BoundsHeaders(t *testing.T) {
	b := newBed(t, fine)
	request := httptest.NewRequest(http.MethodGet, at, nil)
	request.Host, request.Header = strings.TrimPrefix(b.server.URL, "https://"), http.Header{"Authorization": {"Bearer alice-token"}, "User-Agent": {"t"}, "Accept-Encoding": {"gzip"}, "X": {""}}
	room := MaxHeader - sizeOf(request)
	for size, want := range map[int]int{room: http.StatusOK, room + 1: http.StatusRequestHeaderFieldsTooLarge, 10 * room: http.StatusRequestHeaderFieldsTooLarge} {
		for _, version := range []int{1, 2} {
			if version == 2 && size > 2*room {
				continue // its connection ends
			}
			if version == 2 && size == room {
				size -= 2 // the name of the version is longer
			}
			code, _, status := b.send(t, b.client(version), "GET", at, "Authorization", "Bearer alice-token", "User-Agent", "t", "X", strings.Repeat("x", size))
			if code != want || want != http.StatusOK && size < 2*room && status.Kind != "Status" {
				t.Errorf("%d bytes by HTTP/%d: %d %+v, want %d", size, version, code, status, want)
			}
		}
	}
}

func TestFront_GivesEachRequestAnID(t *testing.T) {
	b := newBed(t, fine)
	client, ids := b.client(2), map[string]bool{}
	for given, taken := range map[string]bool{"portal-1.a_B": true, strings.Repeat("a", 64): true, strings.Repeat("a", 65): false, "a b": false, "": false, `a"b`: false, "a\tb": false} {
		_, header, _ := b.send(t, client, "GET", at, "Authorization", "Bearer alice-token", "X-Request-Id", given)
		seen := b.upstream.Seen()
		got := header.Get("X-Request-Id")
		if (got == given) != taken || !wellFormed.MatchString(got) || ids[got] || seen[len(seen)-1].Header.Get("X-Request-Id") != got {
			t.Errorf("%q becomes %q, and for the API server %q", given, got, seen[len(seen)-1].Header.Get("X-Request-Id"))
		}
		ids[got] = true
	}
}

// TestFront_WritesAnAuditLineForEachChange and for nothing else.
func TestFront_WritesAnAuditLineForEachChange(t *testing.T) {
	b := newBed(t, fine)
	client := b.client(2)
	for _, row := range []string{
		"POST " + at + "?dryRun=All", "PUT " + at + "/c/status", "PATCH " + at + "/c?fieldManager=m", "DELETE " + at + "/c", "DELETE " + at,
		"GET " + at, "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "POST /version", "GET /apis",
	} {
		method, path, _ := strings.Cut(row, " ")
		b.send(t, client, method, path, "Authorization", "Bearer alice-token", "X-Request-Id", "the-id")
	}
	b.send(t, client, "DELETE", at+"/d", "Authorization", "Bearer unknown", "X-Request-Id", "the-id")
	b.send(t, client, "DELETE", at+"/d")
	var got []string
	for line := range strings.Lines(b.log.String()) {
		var one struct {
			Msg, RequestID, User, From, Verb, Resource, Namespace, Name, AuditID string
			Code                                                                 int
			Milliseconds                                                         *int
		}
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatal(err)
		}
		if one.Msg != "Audit" || one.RequestID != "the-id" || one.From != "127.0.0.1" || one.Namespace != "n" || one.Milliseconds == nil || (one.Code == 200) != (one.AuditID == "the-audit-id") {
			t.Errorf("a line is %s", line)
		}
		got = append(got, fmt.Sprint(one.User, " ", one.Verb, " ", one.Resource, " ", one.Name, " ", one.Code))
	}
	want := []string{
		"alice create computeclusters  200", "alice update computeclusters/status c 200", "alice patch computeclusters c 200",
		"alice delete computeclusters c 200", "alice deletecollection computeclusters  200", "unauthenticated delete computeclusters d 401",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the lines are %q, want %q", got, want)
	}
}

// TestFront_SaysNoSecret sends canaries wherever there is room for one, and looks for them in logs, answers and metrics.
func TestFront_SaysNoSecret(t *testing.T) {
	b := newBed(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			panic(http.ErrAbortHandler)
		}
		fine(w, r)
	})
	client := b.client(2)
	var answers []string
	for path, method := range routes {
		for _, token := range []string{"Bearer alice-token", "Bearer canary-token", "Bearer canary ä", "Basic canary", "canary"} {
			for _, query := range []string{"", "?a=canary", "?canary;", "?watch=canary-not&timeoutSeconds=1"} {
				_, header, status := b.send(t, client, method[0], path+query, "Authorization", token, "Cookie", "canary", "X-Request-Id", "canary ä", "X-Other", "canary")
				answers = append(answers, fmt.Sprint(header, status))
			}
		}
	}
	families, err := b.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for what, text := range map[string]string{"logs": b.log.String(), "answers": strings.Join(answers, "\n"), "metrics": fmt.Sprint(families)} {
		if strings.Contains(text, "canary") || strings.Contains(text, "alice-token") {
			t.Errorf("a canary is in the %s: %.2000s", what, text)
		}
	}
	if len(b.log.String()) == 0 {
		t.Error("there is no log to look at")
	}
}

// TestFront_CountsWhatItAnswers by route and code, and a caller that goes as one.
func TestFront_CountsWhatItAnswers(t *testing.T) {
	hang := make(chan struct{})
	b := newBed(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == at+"/hang" {
			close(hang)
			<-r.Context().Done()
			return
		}
		fine(w, r)
	})
	client := b.client(2)
	b.send(t, client, "GET", at, "Authorization", "Bearer alice-token")
	b.send(t, client, "GET", "/version", "Authorization", "Bearer alice-token")
	b.send(t, client, "GET", "/nothing", "Authorization", "Bearer alice-token")
	b.send(t, client, "GET", "/version")
	ctx, cancel := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, b.server.URL+at+"/hang", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer alice-token")
	go func() {
		<-hang
		cancel()
	}()
	if answer, err := client.Do(request); err == nil {
		_ = answer.Body.Close()
		t.Error("who goes has an answer")
	}
	want := []string{"discovery 200 1", "none 401 1", "none 404 1", "objects 200 1", "objects 499 1"}
	var got []string
	for end := time.Now().Add(20 * time.Second); !slices.Equal(got, want) && time.Now().Before(end); <-time.After(5 * time.Millisecond) {
		got = counted(t, b.registry)
	}
	if !slices.Equal(got, want) {
		t.Errorf("counted are %q, want %q", got, want)
	}
}

func counted(t *testing.T, registry *prometheus.Registry) []string {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, family := range families {
		if family.GetName() != "heliostat_server_requests_total" {
			continue
		}
		for _, one := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range one.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			found = append(found, fmt.Sprint(labels["route"], " ", labels["code"], " ", one.GetCounter().GetValue()))
		}
	}
	slices.Sort(found)
	return found
}
