package passthrough_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/heliostat-dev/heliostat/apiserver/passthrough"
	"github.com/heliostat-dev/heliostat/portal/access"
	"github.com/heliostat-dev/heliostat/portal/access/accesstest"
	"github.com/heliostat-dev/heliostat/portal/limits"
)

const clusters = "/apis/heliostat.dev/v1beta1/namespaces/n/computeclusters"

// bed is a proxy between a client and a stand-in for an API server.
type bed struct {
	upstream *accesstest.Server
	access   *access.Kubernetes
	front    *httptest.Server
	proxy    *passthrough.Proxy
	streams  *limits.Limiter
	clock    *clocktesting.FakeClock
	end      context.CancelFunc
}

func newBed(t *testing.T, rest http.HandlerFunc) *bed {
	t.Helper()
	b := &bed{upstream: accesstest.Start(t, "alice-token", "alice", rest), clock: clocktesting.NewFakeClock(time.Now())}
	b.open(t, b.upstream.Kubernetes(t, b.clock))
	return b
}

func (b *bed) open(t *testing.T, kubernetes *access.Kubernetes) {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	b.end, b.streams, b.access = end, limits.NewStreams(), kubernetes
	b.proxy = passthrough.New(ctx, passthrough.Needs{
		Kubernetes: kubernetes, Streams: b.streams, Requests: limits.NewRequests(), Clock: b.clock, Log: slog.New(slog.DiscardHandler)})
	b.front = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller, err := kubernetes.CallerOf(r.Context(), r)
		request, refusal := passthrough.Read(r)
		if err != nil || refusal != nil {
			t.Errorf("%s %s is not handed on: %v, %v", r.Method, r.URL, err, refusal)
			return
		}
		b.proxy.Serve(w, r, request, caller)
	}))
	b.front.EnableHTTP2 = true
	b.front.StartTLS()
	t.Cleanup(func() {
		end()
		b.front.CloseClientConnections()
		b.front.Close()
	})
}

// reply is an answer whose body is closed with the test.
type reply struct {
	StatusCode, ProtoMajor int
	Header                 http.Header
	Body                   io.ReadCloser
}

// send sends a request as alice.
func (b *bed) send(t *testing.T, method, path string, body io.Reader, headers ...string) *reply {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, b.front.URL+path, body)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer alice-token")
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	answer, err := b.front.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	return &reply{StatusCode: answer.StatusCode, ProtoMajor: answer.ProtoMajor, Header: answer.Header, Body: answer.Body}
}

// refusalIn reads a Status, and checks that it is one of Kubernetes' form.
func refusalIn(t *testing.T, answer *reply) metav1.Status {
	t.Helper()
	var status metav1.Status
	if err := json.NewDecoder(answer.Body).Decode(&status); err != nil {
		t.Fatalf("%d is no Status: %v", answer.StatusCode, err)
	}
	if status.Kind != "Status" || int(status.Code) != answer.StatusCode || status.Reason == "" || status.Message == "" {
		t.Errorf("%d has the Status %+v", answer.StatusCode, status)
	}
	return status
}

func echo(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Warning", `299 - "from above"`)
	w.WriteHeader(http.StatusAccepted)
	_, _ = io.Copy(w, r.Body)
}

func TestServe_HandsOnWhatTheListHoldsAlone(t *testing.T) {
	b := newBed(t, echo)
	sent := []string{
		"Accept", "application/json;as=Table;v=v1;g=meta.k8s.io", "Content-Type", "application/merge-patch+json", "User-Agent", "kubectl/v1", "Traceparent", "00-a-b-01",
		"Impersonate-User", "canary", "Impersonate-Group", "canary", "Impersonate-Uid", "canary", "Impersonate-Extra-Scopes", "canary",
		"X-Remote-User", "canary", "X-Remote-Group", "canary", "X-Remote-Extra-A", "canary", "X-Forwarded-For", "canary", "X-Forwarded-Proto", "canary",
		"X-Forwarded-Client-Cert", "canary", "X-Real-Ip", "canary", "Forwarded", "for=canary", "Cookie", "a=canary", "X-My-User", "canary", "Audit-Id", "canary",
		"Proxy-Authorization", "canary", "Idempotency-Key", "canary", "X-Idempotency-Key", "canary", "Te", "trailers", "Origin", "https://canary",
		"X-HTTP-Method-Override", "DELETE",
	}
	answer := b.send(t, http.MethodPatch, clusters+"/c?fieldManager=m&dryRun=All", strings.NewReader("the body"), sent...)
	body, err := io.ReadAll(answer.Body)
	if err != nil || string(body) != "the body" || answer.StatusCode != http.StatusAccepted || answer.Header.Get("Warning") == "" || answer.ProtoMajor != 2 {
		t.Errorf("the answer is %d %q of HTTP/%d, %v", answer.StatusCode, body, answer.ProtoMajor, err)
	}
	seen := b.upstream.Seen()
	if len(seen) != 1 || seen[0].Method != http.MethodPatch || seen[0].Path != clusters+"/c" || seen[0].Query != "fieldManager=m&dryRun=All" {
		t.Fatalf("the API server got %+v", seen)
	}
	header := seen[0].Header
	if got := header["Authorization"]; !slices.Equal(got, []string{"Bearer alice-token"}) || header.Get("Traceparent") != "00-a-b-01" {
		t.Errorf("the API server got %v", header)
	}
	allowed := []string{"Accept", "Accept-Encoding", "Authorization", "Content-Length", "Content-Type", "Traceparent", "User-Agent"}
	for name, values := range header {
		if !slices.Contains(allowed, name) || strings.Contains(strings.Join(values, " "), "canary") {
			t.Errorf("the API server got %s: %v", name, values)
		}
	}
}

// TestServe_DropsWhatConnectionNames sends by HTTP/1.1 what only that has, trailers with names of identity among it.
func TestServe_DropsWhatConnectionNames(t *testing.T) {
	b := newBed(t, echo)
	client := b.front.Client()
	plain := client.Transport.(*http.Transport).Clone()
	plain.ForceAttemptHTTP2, plain.TLSClientConfig.NextProtos = false, []string{"http/1.1"}
	client.Transport = plain
	answer := b.send(t, http.MethodPost, clusters, io.MultiReader(strings.NewReader("x")), "Connection", "Accept, Authorization, X-Request-Id", "Accept", "canary", "X-Request-Id", "canary",
		"Trailer", "Impersonate-User")
	if answer.ProtoMajor != 1 || answer.StatusCode != http.StatusAccepted {
		t.Errorf("the answer is %d of HTTP/%d", answer.StatusCode, answer.ProtoMajor)
	}
	for name, values := range b.upstream.Seen()[0].Header {
		if strings.Contains(strings.Join(values, " "), "canary") || name == "Trailer" {
			t.Errorf("the API server got %s: %v", name, values)
		}
	}
	if got := b.upstream.Seen()[0].Header.Get("Authorization"); got != "Bearer alice-token" {
		t.Errorf("the token is %q", got)
	}
}

func TestServe_BoundsBodies(t *testing.T) {
	b := newBed(t, func(w http.ResponseWriter, r *http.Request) { _, _ = fmt.Fprint(w, "fine") })
	for size, want := range map[int]int{passthrough.MaxBody: http.StatusOK, passthrough.MaxBody + 1: http.StatusRequestEntityTooLarge} {
		text := strings.Repeat("x", size)
		for name, body := range map[string]io.Reader{"of a length": strings.NewReader(text), "in chunks": io.MultiReader(strings.NewReader(text))} {
			answer := b.send(t, http.MethodPost, clusters, body)
			if answer.StatusCode != want {
				t.Errorf("%d bytes %s are answered by %d, want %d", size, name, answer.StatusCode, want)
			}
			if want != http.StatusOK {
				refusalIn(t, answer)
			}
		}
	}
	for _, one := range b.upstream.Seen() {
		if len(one.Body) > passthrough.MaxBody {
			t.Errorf("the API server got %d bytes", len(one.Body))
		}
	}
}

func TestServe_SaysWithin5sThatTheAPIServerIsAway(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections, and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	b := newBed(t, echo)
	options := b.upstream.Options(b.clock)
	options.Address = "https://" + silent.Addr().String()
	kubernetes, err := access.New(options)
	if err != nil {
		t.Fatal(err)
	}
	b.open(t, kubernetes)
	for _, path := range []string{clusters, clusters + "?watch=true"} {
		began := time.Now()
		answer := b.send(t, http.MethodGet, path, nil)
		if status := refusalIn(t, answer); status.Code != http.StatusServiceUnavailable || !strings.Contains(status.Message, "nothing was done") {
			t.Errorf("%s: %+v", path, status)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%s took %v", path, took)
		}
	}
}

// TestServe_SendsNothingTwice: a connection that breaks after the request was read is no reason to send it again.
func TestServe_SendsNothingTwice(t *testing.T) {
	b := newBed(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	for i, method := range []string{http.MethodPost, http.MethodDelete, http.MethodPatch, http.MethodPut} {
		answer := b.send(t, method, clusters+"/c", strings.NewReader("x"), "Idempotency-Key", "k")
		if status := refusalIn(t, answer); status.Code != http.StatusServiceUnavailable || !strings.Contains(status.Message, "may have been made") || answer.Header.Get("Retry-After") != "" {
			t.Errorf("%s: %+v", method, status)
		}
		if seen := len(b.upstream.Seen()); seen != i+1 {
			t.Errorf("%s came %d times", method, seen-i)
		}
	}
}

// TestServe_IsNotHeldUpByGarbage: the API server ends connections on which it refuses tokens, and honest callers must not
// notice. What it has not looked at is sent again, and nothing else.
func TestServe_IsNotHeldUpByGarbage(t *testing.T) {
	b := newBed(t, echo)
	var group sync.WaitGroup
	send := func(token, text string, want int) {
		group.Go(func() {
			for range 20 {
				answer := b.send(t, http.MethodPost, clusters, strings.NewReader(text), "Authorization", "Bearer "+token)
				if answer.StatusCode != want {
					t.Errorf("%s with %d bytes is answered by %d, want %d: %v", token, len(text), answer.StatusCode, want, refusalIn(t, answer).Message)
				}
			}
		})
	}
	b.send(t, http.MethodGet, clusters, nil) // from here on the token is known to be good
	for range 5 {
		send("garbage", "{}", http.StatusUnauthorized)
		send("alice-token", "{}", http.StatusAccepted)
		send("alice-token", strings.Repeat("x", 100<<10), http.StatusAccepted)
	}
	group.Wait()
	honest := 0
	for _, one := range b.upstream.Seen() {
		if one.Method == http.MethodPost && one.Header.Get("Authorization") == "Bearer alice-token" {
			honest++
		}
	}
	if honest != 200 {
		t.Errorf("200 requests came %d times", honest)
	}
}
