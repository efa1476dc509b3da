package proxy_test

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/heliostat-dev/heliostat/dashboard-proxy/proxy"
	"github.com/heliostat-dev/heliostat/portal/access"
)

// onlyProxy lets callers do nothing but open dashboards.
type onlyProxy struct{ proxy.Access }

func (o onlyProxy) MayLately(ctx context.Context, c *access.Caller, what authorizationv1.ResourceAttributes) error {
	if what.Subresource != "proxy" {
		return access.ErrForbidden
	}
	return o.Access.MayLately(ctx, c, what)
}

func TestServe_BoundsBodies(t *testing.T) {
	seen := &recorder{}
	b := newBed(t, seen.ServeHTTP, func(n *proxy.Needs) { n.MaxUpload = 2 << 20 })
	for name, c := range map[string]struct {
		size int
		body func(text string) io.Reader
		code int
	}{
		"of a length":            {2 << 20, func(text string) io.Reader { return strings.NewReader(text) }, 200},
		"in chunks":              {2 << 20, func(text string) io.Reader { return io.MultiReader(strings.NewReader(text)) }, 200},
		"of a length, too large": {2<<20 + 1, func(text string) io.Reader { return strings.NewReader(text) }, 413},
		"in chunks, too large":   {2<<20 + 1, func(text string) io.Reader { return io.MultiReader(strings.NewReader(text)) }, 413},
	} {
		answer := b.send(t, http.MethodPut, "/team/demo/api/packages/gcs/p.zip", c.body(strings.Repeat("x", c.size)))
		if answer.code != c.code || c.code == 413 && !strings.Contains(answer.body, "2097152 bytes") {
			t.Errorf("%s: %+v", name, answer)
		}
	}
	if len(seen.seen) != 2 {
		t.Errorf("%d came whole", len(seen.seen))
	}
}

// TestServe_TellsWhoReadsLast has a client, as Python's are, that sends all before it reads.
func TestServe_TellsWhoReadsLast(t *testing.T) {
	const size = 32 << 20 // more than the buffers of a connection hold
	b := newBed(t, fine, nil)
	answer := b.raw(t, "PUT /team/demo/api/packages/gcs/p.zip HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer alice-token\r\nContent-Length: "+
		strconv.Itoa(size)+"\r\n\r\n"+strings.Repeat("x", size)+"GET /team/demo/x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
	if !strings.HasPrefix(answer, "HTTP/1.1 413 ") || !strings.Contains(answer, "8388608 bytes") || !strings.Contains(answer, "HTTP/1.1 401 ") {
		t.Errorf("it hears %q", answer)
	}
}

// TestServe_RefusesTheUploadThatIsOneTooMany has as many as one user may that do not end.
func TestServe_RefusesTheUploadThatIsOneTooMany(t *testing.T) {
	came := make(chan struct{}, 64)
	b := newBed(t, func(w http.ResponseWriter, r *http.Request) {
		came <- struct{}{}
		_, _ = io.Copy(io.Discard, r.Body)
	}, nil)
	b.kubernetes.Know("another-of-alice", "alice")
	b.kubernetes.Know("bob-token", "bob")
	var pipes []*io.PipeWriter
	ended := make(chan int, 64)
	client := b.client() // made here, as it is not for many goroutines
	for range 4 {
		reader, writer := io.Pipe()
		pipes = append(pipes, writer)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, b.front.URL+"/team/demo/x", reader)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer alice-token")
		go func() {
			answer, err := client.Do(request)
			if err != nil {
				ended <- 0
				return
			}
			_ = answer.Body.Close()
			ended <- answer.StatusCode
		}()
		<-came
	}
	chunked := func() io.Reader { return io.MultiReader(strings.NewReader("x")) }
	for _, token := range []string{"alice-token", "another-of-alice"} {
		answer := b.send(t, http.MethodPut, "/team/demo/x", chunked(), "Authorization", "Bearer "+token)
		if answer.code != http.StatusServiceUnavailable || answer.header.Get("Retry-After") == "" || !strings.Contains(answer.body, "the caller has") {
			t.Errorf("the fifth, with %s, gets %+v", token, answer)
		}
	}
	if answer := b.send(t, http.MethodPost, "/team/demo/x", strings.NewReader("small")); answer.code != http.StatusOK {
		t.Errorf("a small body gets %+v", answer)
	}
	if answer := b.send(t, http.MethodPut, "/team/demo/x", chunked(), "Authorization", "Bearer bob-token"); answer.code != http.StatusOK {
		t.Errorf("an upload of another user gets %+v", answer)
	}
	for _, writer := range pipes {
		_ = writer.Close()
	}
	for range pipes {
		if code := <-ended; code != http.StatusOK {
			t.Errorf("an upload ended with %d", code)
		}
	}
	if answer := b.send(t, http.MethodPut, "/team/demo/x", chunked()); answer.code != http.StatusOK {
		t.Errorf("the places are not given back: %+v", answer)
	}
}

// TestServe_EndsBodiesThatStandStill: once a part has arrived the clock is more than a minute behind, so that the time for the
// part after the next one is over before it begins.
func TestServe_EndsBodiesThatStandStill(t *testing.T) {
	const part = "6\r\na part\r\n"
	arrived := make(chan struct{})
	b := newBed(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadFull(r.Body, make([]byte, len("a part")))
		close(arrived)
		_, _ = io.Copy(io.Discard, r.Body)
	}, nil)
	answer := b.raw(t, "PUT /team/demo/x HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer alice-token\r\nTransfer-Encoding: chunked\r\n\r\n"+part, func() string {
		<-arrived
		b.clock.SetTime(time.Now().Add(-2 * time.Minute))
		return part
	})
	if !strings.HasPrefix(answer, "HTTP/1.1 408 ") || !strings.Contains(answer, "stood still") {
		t.Errorf("%q", answer)
	}
}

// TestServe_EndsAnswersWithTheRight: an answer that is not whole does not look as if it were.
func TestServe_EndsAnswersWithTheRight(t *testing.T) {
	b := newBed(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "line\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}, nil)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.front.URL+"/team/demo/api/v0/logs/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer alice-token")
	answer, err := b.client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	line := make([]byte, len("line\n"))
	if _, err := io.ReadFull(answer.Body, line); err != nil {
		t.Fatalf("the line does not come at once: %v", err)
	}
	b.kubernetes.Deny("alice")
	ended := make(chan error, 1)
	go func() {
		_, err := io.ReadAll(answer.Body)
		ended <- err
	}()
	if err := b.passes(t, 30, ended); err == nil {
		t.Error("the answer looks whole")
	}
}

// ofProxy takes all requests for those of the front proxy.
type ofProxy struct {
	proxy.Access
	is bool
}

func (o ofProxy) IsFromProxy(*http.Request) bool { return o.is }

// TestServe_JudgesWhatTheFrontProxySigns: a token that it adds for its cookie is no proof that a program asks.
func TestServe_JudgesWhatTheFrontProxySigns(t *testing.T) {
	for is, code := range map[bool]int{true: http.StatusForbidden, false: http.StatusOK} {
		b := newBed(t, fine, func(n *proxy.Needs) { n.Access = ofProxy{n.Access, is} })
		answer := b.send(t, http.MethodPost, "/team/demo/api/jobs/", nil, "Origin", "https://evil.example.com", "Sec-Fetch-Site", "cross-site")
		if answer.code != code {
			t.Errorf("of the front proxy %v: %d %s", is, answer.code, answer.body)
		}
	}
}

// TestSocketsFor_LeavesFilesForAllElse: a server without a file to open answers nobody.
func TestSocketsFor_LeavesFilesForAllElse(t *testing.T) {
	for files, want := range map[uint64]int{0: 10_000, 1_000: 0, 1_024: 12, 20_000: 9_500, 21_000: 10_000, 1 << 63: 10_000} {
		if got := proxy.SocketsFor(files); got != want {
			t.Errorf("%d files are enough for %d, want %d", files, got, want)
		}
	}
}

// TestServe_TellsWhatChangesSomething as opposed to work of a service's application, which the log must not be full of.
func TestServe_TellsWhatChangesSomething(t *testing.T) {
	b := newBed(t, fine, nil)
	for _, c := range []struct {
		name, method, path  string
		isDenied, isChanged bool
	}{
		{"a read of a cluster", http.MethodGet, "/team/demo/api/version", false, false},
		{"a read that runs code", http.MethodGet, "/team/demo/worker/traceback?pid=1", false, true},
		{"a write to a cluster", http.MethodPost, "/team/demo/api/jobs/", false, true},
		{"a write to an application", http.MethodPost, "/services/team/sort/x", false, false},
		{"a write to an application that is refused", http.MethodPost, "/services/team/sort/x", true, true},
	} {
		if c.isDenied {
			b.kubernetes.Deny("alice")
			b.clock.Step(time.Minute)
		}
		if answer := b.send(t, c.method, c.path, nil); (answer.code == http.StatusForbidden) != c.isDenied {
			t.Errorf("%s: %+v", c.name, answer)
		}
		if known := <-b.known; known.IsChange != c.isChanged {
			t.Errorf("%s is known as %+v", c.name, known)
		}
	}
}

// TestServe_EndsFormsThatStandStill: of callers who are known, and of those who sign in.
func TestServe_EndsFormsThatStandStill(t *testing.T) {
	b := newBed(t, fine, func(n *proxy.Needs) {
		n.SignIn = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.ParseForm() != nil {
				w.WriteHeader(http.StatusBadRequest)
			}
		})
		n.Clock = clocktesting.NewFakeClock(time.Now().Add(-time.Hour)) // each deadline is over at once
	})
	for path, by := range map[string]string{"/-/resume": "Authorization: Bearer alice-token\r\nOrigin: " + b.front.URL + "\r\n", "/-/callback": ""} {
		answer := b.raw(t, "POST "+path+" HTTP/1.1\r\nHost: "+b.front.Listener.Addr().String()+"\r\n"+by+
			"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\nkind=")
		if !strings.HasPrefix(answer, "HTTP/1.1 400 ") {
			t.Errorf("%s: it hears %q", path, answer)
		}
	}
}
