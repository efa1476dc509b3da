package headclient_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// answering is a job API that answers everything with a status and a text.
func answering(t *testing.T, status int, body string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		out.WriteHeader(status)
		_, _ = io.WriteString(out, body)
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// traceback is how Ray passes on what an agent said.
func traceback(words string) string {
	return "Traceback (most recent call last):\n  File \"job_head.py\", line 134, in _raise_error\nRuntimeError: " + words + "\n.\n"
}

func TestAnswersAreSorted(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		want   headclient.Kind
	}{
		{401, "Unauthorized: Missing authentication token", headclient.Unauthenticated},
		{403, "Forbidden: Invalid authentication token", headclient.Unauthenticated},
		{400, traceback("TypeError: metadata values must be strings"), headclient.Refused},
		{413, "too large", headclient.Refused},
		{404, "Job known does not exist", headclient.NotFound},
		{404, "404: Not Found", headclient.Protocol},
		{405, "Method not allowed", headclient.Protocol},
		{429, "slowly", headclient.Unavailable},
		{500, traceback("Request failed with status code 400: Job with submission_id a already exists. Please use a different submission_id."), headclient.Exists},
		{500, traceback("Request failed with status code 400: ValueError: Invalid label selector value"), headclient.Refused},
		{500, traceback("Request failed with status code 404: Job known does not exist"), headclient.NotFound},
		{500, traceback("Request failed with status code 500: Attempted to delete job 'a', but it is in a non-terminal state PENDING"), headclient.Refused},
		{500, "No available agent to submit job, please try again later.", headclient.Unavailable},
		{500, traceback("TimeoutError: Failed to get head node agent within 10 seconds. The last exception is None"), headclient.Unavailable},
		{500, traceback("aiohttp.client_exceptions.ClientConnectorError: Cannot connect to host 10.0.0.7:52365"), headclient.Unavailable},
		{500, "500 Internal Server Error\n\nServer got itself in trouble", headclient.Protocol},
		{502, "", headclient.Unavailable}, {503, "", headclient.Unavailable}, {504, "", headclient.Unavailable},
		{501, "", headclient.Protocol}, {204, "", headclient.Protocol}, {206, "{}", headclient.Protocol}, {302, "", headclient.Protocol},
		{200, "", headclient.Protocol}, {200, "<html>", headclient.Protocol}, {200, "[]", headclient.Protocol}, {200, "{}", headclient.Protocol},
	} {
		for name, ask := range asks(t, answering(t, c.status, c.body), headclient.Options{}) {
			err := ask(t.Context())
			want := c.want
			if name == "Forget" && c.status == 200 && c.body == "{}" {
				want = headclient.Refused // it says that nothing was deleted
			}
			if name == "List" && c.status == 200 && c.body == "[]" {
				continue // there are none
			}
			if headclient.KindOf(err) != want || len(err.Error()) > 512 {
				t.Errorf("%s, answered with %d %q: %v, want %s", name, c.status, c.body, err, want)
			}
		}
	}
}

func TestWhatRaySaidIsInTheError(t *testing.T) {
	address := answering(t, 500, traceback("Request failed with status code 400: Traceback\nValueError: The label \x1b[31mis\x00 bad."))
	err := converse(t, address, headclient.Options{}).Submit(t.Context(), headclient.Submission{ID: "a", Entrypoint: "x"})
	if want := "submit job a at " + address + ": Refused: status 500: ValueError: The label  [31mis  bad"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// raw is a job API that says some bytes on each connection, and closes it.
func raw(t *testing.T, say func(io.Writer)) (address string, connections *atomic.Int32) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	connections = &atomic.Int32{}
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			go func() {
				defer func() { _ = connection.Close() }()
				if _, err := http.ReadRequest(bufio.NewReader(connection)); err == nil {
					say(connection)
				}
			}()
		}
	}()
	return listener.Addr().String(), connections
}

func says(text string) func(io.Writer) {
	return func(w io.Writer) { _, _ = io.WriteString(w, text) }
}

const ok = "HTTP/1.1 200 OK\r\n"

// endless repeats a text until nobody listens, or a GiB was said.
func endless(w io.Writer, text string) {
	block := []byte(strings.Repeat(text, 64<<10/len(text)+1))
	for said := 0; said < 1<<30; {
		n, err := w.Write(block)
		if err != nil {
			return
		}
		said += n
	}
}

// TestHostileAnswers: none takes memory or time beyond the limits, none panics.
func TestHostileAnswers(t *testing.T) {
	bomb := &bytes.Buffer{}
	zip := gzip.NewWriter(bomb)
	_, _ = zip.Write(make([]byte, 64<<20))
	_ = zip.Close()
	const short = 300 * time.Millisecond
	for name, c := range map[string]struct {
		say  func(io.Writer)
		want headclient.Kind
	}{
		"no HTTP":              {says("SSH-2.0-OpenSSH_9.2\r\n"), headclient.Protocol},
		"nothing":              {says(""), headclient.Unavailable},
		"half a header":        {says("HTTP/1.1 200 O"), headclient.Unavailable},
		"half a body":          {says(ok + "Content-Length: 100\r\n\r\n{"), headclient.Unavailable},
		"half a chunk":         {says(ok + "Transfer-Encoding: chunked\r\n\r\n64\r\n{"), headclient.Unavailable},
		"a chunk without size": {says(ok + "Transfer-Encoding: chunked\r\n\r\nxx\r\n{"), headclient.Protocol},
		"half of the JSON":     {says(ok + "\r\n" + `{"submission_id": "known", "stat`), headclient.Protocol},
		"deep JSON":            {says(ok + "\r\n" + strings.Repeat(`{"a":`, 100_000)), headclient.Protocol},
		"a field twice": {says(ok + "\r\n" + `{"submission_id": "known", "status": "RUNNING", "status": "FAILED", "submission_id": "another",
			"session_name": "a", "session_name": "b", "ray_version": "2", "stopped": true, "stopped": false, "deleted": true, "deleted": false}`), headclient.Protocol},
		"a redirect":          {says("HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"), headclient.Protocol},
		"a bomb of gzip":      {func(w io.Writer) { says(ok + "Content-Encoding: gzip\r\n\r\n")(w); _, _ = w.Write(bomb.Bytes()) }, headclient.Protocol},
		"headers for ever":    {func(w io.Writer) { says(ok)(w); endless(w, "A: b\r\n") }, headclient.Protocol},
		"a header for ever":   {func(w io.Writer) { says(ok + "A: ")(w); endless(w, "b") }, headclient.Protocol},
		"continue for ever":   {func(w io.Writer) { endless(w, "HTTP/1.1 100 Continue\r\n\r\n") }, headclient.Protocol},
		"a body for ever":     {func(w io.Writer) { says(ok + "\r\n")(w); endless(w, " ") }, headclient.Protocol},
		"an error for ever":   {func(w io.Writer) { says("HTTP/1.1 500 X\r\n\r\n")(w); endless(w, "Traceback\n") }, headclient.Protocol},
		"a byte now and then": {func(w io.Writer) { drip(w, ok+"Content-Length: 100\r\n\r\n") }, headclient.Timeout},
	} {
		t.Run(name, func(t *testing.T) {
			address, connections := raw(t, c.say)
			timeout := 20 * time.Second
			if c.want == headclient.Timeout {
				timeout = short
			}
			all := asks(t, address, headclient.Options{Timeout: timeout})
			before := allocated()
			for call, ask := range all {
				if err := ask(t.Context()); headclient.KindOf(err) != c.want || len(err.Error()) > 512 {
					t.Errorf("%s: %v, want %s", call, err, c.want)
				}
			}
			if grown := allocated() - before; grown > 128<<20 {
				t.Errorf("it took %d MiB", grown>>20)
			}
			// One whose time is up before the server accepts makes none.
			if n := int(connections.Load()); n > len(all) || n < len(all) && c.want != headclient.Timeout {
				t.Errorf("%d calls made %d connections", len(all), n)
			}
		})
	}
}

func allocated() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.TotalAlloc
}

// drip says a text, and then a byte at a time.
func drip(w io.Writer, text string) {
	says(text)(w)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for range tick.C {
		if _, err := io.WriteString(w, " "); err != nil {
			return
		}
	}
}

// TestRequestsAreRays: what Ray takes for a browser's it refuses, and what the environment
// says about proxies is not for us.
func TestRequestsAreRays(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("ALL_PROXY", "http://127.0.0.1:1")
	seen := make(chan *http.Request, 1)
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, request *http.Request) {
		body, _ = io.ReadAll(request.Body)
		_, _ = io.WriteString(out, `{"submission_id": "id-1", "new": {"a": [1]}}`)
		seen <- request
	}))
	t.Cleanup(server.Close)
	jobs := converse(t, server.Listener.Addr().String(), headclient.Options{Token: func(context.Context) (string, error) { return "the-token", nil }})
	submit := func(s headclient.Submission, want string) {
		t.Helper()
		if err := jobs.Submit(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		request := <-seen
		header := http.Header{
			"Authorization": {"Bearer the-token"}, "Content-Type": {"application/json"}, "User-Agent": {"heliostat"},
			"Accept-Encoding": {"identity"}, "Content-Length": {fmt.Sprint(len(body))},
		}
		if diff := cmp.Diff(header, request.Header); diff != "" || request.Method != http.MethodPost || request.RequestURI != "/api/jobs/" {
			t.Errorf("%s %s: %s", request.Method, request.RequestURI, diff)
		}
		if string(body) != want {
			t.Errorf("it sent %s, want %s", body, want)
		}
	}
	submit(headclient.Submission{ID: "id-1", Entrypoint: "echo 'ä'"}, `{"submission_id":"id-1","entrypoint":"echo 'ä'"}`)
	submit(headclient.Submission{
		ID: "id-1", Entrypoint: "x", RuntimeEnv: []byte(`{"pip": ["a"], "n": 12345678901234567890}`), Metadata: map[string]string{"k": "v"},
		CPUs: 0.5, GPUs: 1, Memory: 1 << 30, Resources: map[string]float64{"lens": 2}, LabelSelector: map[string]string{"zone": "a"},
	}, `{"submission_id":"id-1","entrypoint":"x","runtime_env":{"pip":["a"],"n":12345678901234567890},"metadata":{"k":"v"},`+
		`"entrypoint_num_cpus":0.5,"entrypoint_num_gpus":1,"entrypoint_memory":1073741824,"entrypoint_resources":{"lens":2},"entrypoint_label_selector":{"zone":"a"}}`)
}

// TestTokenIsInNoError: a server knows the token from the request, and may repeat it in its answer.
func TestTokenIsInNoError(t *testing.T) {
	const token = "the-token-of-this-cluster"
	options := headclient.Options{Token: func(context.Context) (string, error) { return token, nil }}
	for _, say := range []string{
		"HTTP/1.1 400 " + token + "\r\n\r\n" + strings.Repeat("x", 240) + token,
		"HTTP/1.1 401 X\r\n\r\n" + token + "\x1b" + token, token + "\r\n\r\n", ok + token + "\r\n\r\n",
		ok + "Content-Encoding: " + token + "\r\n\r\n", ok + "\r\n{\"" + token + "\": 1, \"" + token + "\": 2}",
		ok + "\r\n{\"submission_id\": \"" + token + "\"}", ok + "\r\n{\"submission_id\": \"known\", \"status\": \"\\n" + token + "\"}",
		ok + "\r\n{\"session_name\": \"\\n" + token + "\", \"ray_version\": \"" + token + "\"}",
		ok + "Transfer-Encoding: " + token + "\r\n\r\n", ok + "Content-Length: " + token + "\r\n\r\n",
	} {
		address, _ := raw(t, says(say))
		for name, ask := range asks(t, address, options) {
			if err := ask(t.Context()); err == nil || strings.Contains(err.Error(), token[:8]) {
				t.Errorf("%s, told %q: %v", name, say, err)
			}
		}
	}
}
