package headclient_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// unread are logs that must not be asked for.
func unread(t *testing.T) http.HandlerFunc {
	return func(http.ResponseWriter, *http.Request) { t.Error("the log is asked for as a text") }
}

func TestLog_AsksTheDriversNodeForAll(t *testing.T) {
	jobs := logging(t, func(out http.ResponseWriter, request *http.Request) {
		if got, want := request.URL.RawQuery, "filename=job-driver-known.log&lines=-1&node_id="+node+"&timeout=600"; got != want {
			t.Errorf("it asks for %s, want %s", got, want)
		}
		text(http.StatusOK, "secret-token \xff\r\n")(out, request)
	}, unread(t))
	for offset, want := range []string{"secret-token \xff\r\n", "ecret-token \xff\r\n"} {
		var said bytes.Buffer
		if n, err := jobs.Log(t.Context(), "known", int64(offset), &said); err != nil || said.String() != want || n != int64(len(want)) {
			t.Errorf("from %d it is %d bytes %q, %v", offset, n, said.String(), err)
		}
	}
	if n, err := jobs.Log(t.Context(), "new", 0, io.Discard); n != 0 || err != nil {
		t.Errorf("before the driver began: %d, %v", n, err)
	}
	for _, offset := range []int64{-1, 1} {
		_, err := jobs.Log(t.Context(), "new", offset, io.Discard)
		if want := map[int64]headclient.Kind{-1: headclient.Invalid, 1: headclient.Gone}[offset]; headclient.KindOf(err) != want {
			t.Errorf("before the driver began, from %d: %v", offset, err)
		}
	}
}

func TestLog_ThatCannotBeHad(t *testing.T) {
	tick := time.NewTicker(50 * time.Millisecond)
	t.Cleanup(tick.Stop) // after the server, whose handlers may wait for it
	for name, c := range map[string]struct {
		file http.HandlerFunc
		want headclient.Kind
		said string
	}{
		"about to be made":     {text(500, "A file is not found at: /tmp/ray/session_latest/logs/job-driver-known.log"), "", ""},
		"its node is gone":     {text(500, "Agent for node id: "+node+" doesn't exist."), headclient.Gone, ""},
		"its node hangs":       {text(500, "Failed to query the data source. It is either there's a network issue, or the source is down."), headclient.Unavailable, ""},
		"its node leaves":      {text(500, "<AioRpcError of RPC that terminated with:\n\tstatus = StatusCode.UNAVAILABLE\n\tdetails = \"x\"\n>"), headclient.Unavailable, ""},
		"its node is too slow": {text(500, "<AioRpcError of RPC that terminated with:\n\tstatus = StatusCode.DEADLINE_EXCEEDED\n>"), headclient.Timeout, ""},
		"too busy":             {text(429, "Max number of in-progress requests=100 reached."), headclient.Unavailable, ""},
		"its own fault":        {text(500, "KeyError: 'x'"), headclient.Protocol, ""},
		"a wrong token":        {text(403, "Forbidden: Invalid authentication token"), headclient.Unauthenticated, ""},
		"compressed": {func(out http.ResponseWriter, request *http.Request) {
			out.Header().Set("Content-Encoding", "gzip")
			text(http.StatusOK, "x")(out, request)
		}, headclient.Protocol, ""},
		"without an end": {func(out http.ResponseWriter, request *http.Request) {
			out.Header().Set("Transfer-Encoding", "identity")
			text(http.StatusOK, "x")(out, request)
		}, headclient.Protocol, ""},
		"broken off": {func(out http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(out, "some\n")
			_ = http.NewResponseController(out).Flush()
			panic(http.ErrAbortHandler)
		}, headclient.Unavailable, "some\n"},
		"stopped in the middle": {func(out http.ResponseWriter, request *http.Request) {
			_, _ = io.WriteString(out, "some\n")
			_ = http.NewResponseController(out).Flush()
			<-request.Context().Done()
		}, headclient.Timeout, "some\n"},
		"an error without end": {func(out http.ResponseWriter, request *http.Request) {
			out.WriteHeader(http.StatusInternalServerError)
			for request.Context().Err() == nil {
				_, _ = io.WriteString(out, "x")
				_ = http.NewResponseController(out).Flush()
				select {
				case <-tick.C:
				case <-request.Context().Done():
				}
			}
		}, headclient.Timeout, ""},
		"never begun": {func(_ http.ResponseWriter, request *http.Request) { <-request.Context().Done() }, headclient.Timeout, ""},
	} {
		var said bytes.Buffer
		jobs := logging(t, c.file, text(http.StatusOK, `{"logs": "x"}`), 300*time.Millisecond)
		n, err := jobs.Log(t.Context(), "known", 0, &said)
		if headclient.KindOf(err) != c.want || said.String() != c.said || n != int64(said.Len()) {
			t.Errorf("%s: %q, %d, %v, want %s", name, said.String(), n, err, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "secret-token") {
			t.Errorf("%s: the token is in %v", name, err)
		}
	}
}

// TestLog_OfAnEmptyFile: Ray 2.52 breaks on one, and others may take for one what is not there.
func TestLog_OfAnEmptyFile(t *testing.T) {
	trouble := text(500, "500 Internal Server Error\n\nServer got itself in trouble")
	for name, c := range map[string]struct {
		file, files http.HandlerFunc
		status      string
		from        int64
		want        headclient.Kind
	}{
		"there":               {text(200, ""), files("job-driver-a.log"), "FAILED", 0, ""},
		"there, of Ray 2.52":  {trouble, files("job-driver-a.log"), "FAILED", 0, ""},
		"beyond its end":      {trouble, files("job-driver-a.log"), "FAILED", 1, headclient.Gone},
		"not there":           {text(200, ""), files(), "FAILED", 0, headclient.Gone},
		"not there, Ray 2.52": {trouble, files("job-driver-a1.log"), "FAILED", 0, headclient.Gone},
		"not there yet":       {trouble, files(), "RUNNING", 0, ""},
		"nobody knows":        {text(200, ""), trouble, "FAILED", 0, headclient.Protocol},
		"no list":             {text(200, ""), text(200, `{"result": true}`), "FAILED", 0, headclient.Protocol},
		"too many":            {text(200, ""), text(429, "Max number"), "FAILED", 0, headclient.Unavailable},
	} {
		routes := http.NewServeMux()
		routes.HandleFunc("GET /api/jobs/a", text(200, `{"submission_id": "a", "status": "`+c.status+`", "driver_node_id": "`+node+`"}`))
		routes.HandleFunc("GET /api/v0/logs/file", c.file)
		routes.HandleFunc("GET /api/v0/logs", c.files)
		server := httptest.NewServer(routes)
		t.Cleanup(server.Close)
		jobs := converse(t, server.Listener.Addr().String(), headclient.Options{})
		if n, err := jobs.Log(t.Context(), "a", c.from, io.Discard); n != 0 || headclient.KindOf(err) != c.want {
			t.Errorf("%s: %d, %v", name, n, err)
		}
	}
}

// TestLog_OfRay252WithAToken: its dashboard knows no token when it asks a node for a file.
func TestLog_OfRay252WithAToken(t *testing.T) {
	file := text(500, "<AioRpcError of RPC that terminated with:\n\tstatus = StatusCode.UNAUTHENTICATED\n\tdetails = \"Invalid or missing authentication token\"\n>")
	for name, c := range map[string]struct {
		logs http.HandlerFunc
		want headclient.Kind
		said string
	}{
		"a text":           {text(200, `{"logs": "secret-token \u00fc\ud83c\udf1e\b\"\n"}`), "", "secret-token ü🌞\b\"\n"},
		"nothing":          {text(200, `{"logs": ""}`), "", ""},
		"no text":          {text(500, traceback("UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff in position 7: invalid start byte")), headclient.Unsupported, ""},
		"its node is gone": {text(500, traceback("aiohttp.client_exceptions.ClientConnectorError: Cannot connect to host 10.0.0.7:52365")), headclient.Unavailable, ""},
		"half of it":       {text(200, `{"logs": "some\n`), headclient.Protocol, "some\n"},
		"another JSON":     {text(200, `{"logs": null}`), headclient.Protocol, ""},
	} {
		var said bytes.Buffer
		n, err := logging(t, file, c.logs).Log(t.Context(), "known", 0, &said)
		if headclient.KindOf(err) != c.want || said.String() != c.said || n != int64(said.Len()) {
			t.Errorf("%s: %q, %d, %v, want %s", name, said.String(), n, err, c.want)
		}
	}
	jobs := logging(t, file, text(200, `{"logs": "one\ntwo\n"}`))
	for offset, want := range map[int64]string{4: "two\n", 8: ""} {
		var said bytes.Buffer
		if _, err := jobs.Log(t.Context(), "known", offset, &said); err != nil || said.String() != want {
			t.Errorf("from %d: %q, %v", offset, said.String(), err)
		}
	}
	if _, err := jobs.Log(t.Context(), "known", 9, io.Discard); headclient.KindOf(err) != headclient.Gone {
		t.Errorf("from 9: %v", err)
	}
	if _, err := jobs.Log(t.Context(), "known", 0, &slow{}); !errors.Is(err, errEnough) {
		t.Errorf("by a writer that has enough: %v", err)
	}
}

// slow is a writer that takes its time once, and takes only so many bytes.
type slow struct {
	said  int
	most  int
	pause <-chan time.Time
}

var errEnough = errors.New("it is enough")

func (s *slow) Write(part []byte) (int, error) {
	if s.pause != nil {
		<-s.pause
		s.pause = nil
	}
	if s.said += len(part); s.said > s.most {
		return 0, errEnough
	}
	return len(part), nil
}

// TestLog_IsNeverHeld: a log without end goes through little memory until the writer has had enough.
func TestLog_IsNeverHeld(t *testing.T) {
	jobs := logging(t, func(out http.ResponseWriter, _ *http.Request) { endless(out, "x") }, unread(t))
	before := allocated()
	out := &slow{most: 64 << 20}
	if n, err := jobs.Log(t.Context(), "known", 64<<20, out); !errors.Is(err, errEnough) || n > 64<<20 || out.said < 64<<20 {
		t.Errorf("%d bytes, %v", n, err)
	}
	var failure *headclient.Error
	if _, err := jobs.Log(t.Context(), "known", 0, out); !errors.As(err, &failure) || failure.Kind != headclient.Unavailable {
		t.Errorf("the conversation goes on: %v", err)
	}
	if grown := allocated() - before; grown > 8<<20 {
		t.Errorf("it took %d MiB", grown>>20)
	}
	runtime.KeepAlive(jobs)
}

// TestLog_MayTakeLongerThanATimeout: only a part that does not come is too late.
func TestLog_MayTakeLongerThanATimeout(t *testing.T) {
	const timeout = 400 * time.Millisecond
	tick := time.NewTicker(timeout / 4)
	t.Cleanup(tick.Stop) // after the server, whose handlers may wait for it
	jobs := logging(t, func(out http.ResponseWriter, _ *http.Request) {
		for range 8 {
			<-tick.C
			_, _ = io.WriteString(out, "line\n")
			_ = http.NewResponseController(out).Flush()
		}
	}, unread(t), timeout)
	if n, err := jobs.Log(t.Context(), "known", 0, io.Discard); n != 40 || err != nil {
		t.Errorf("of a slow head: %d, %v", n, err)
	}
	jobs = logging(t, text(http.StatusOK, strings.Repeat("x", 1<<20)), unread(t), timeout)
	if n, err := jobs.Log(t.Context(), "known", 0, &slow{most: 1 << 20, pause: time.After(2 * timeout)}); n != 1<<20 || err != nil {
		t.Errorf("by a slow reader: %d, %v", n, err)
	}
}

// story is a job API with one job and its log, as both are at each look; the last stays.
func story(t *testing.T, looks ...look) (*headclient.Jobs, *atomic.Int32) {
	t.Helper()
	var seen atomic.Int32
	at := func() look { return looks[min(int(seen.Load())-1, len(looks)-1)] }
	routes := http.NewServeMux()
	routes.HandleFunc("GET /api/jobs/a", func(out http.ResponseWriter, _ *http.Request) {
		seen.Add(1)
		_, _ = fmt.Fprintf(out, `{"submission_id": "a", "status": "%s", "start_time": %d, "driver_node_id": "%s", "driver_exit_code": %s}`,
			at().status, 1000+at().start, at().node, map[bool]string{true: "1", false: "null"}[at().status == "FAILED" && !at().died])
	})
	routes.HandleFunc("GET /api/v0/logs/file", func(out http.ResponseWriter, request *http.Request) {
		if said, missing := strings.CutPrefix(at().log, "missing: "); missing {
			text(500, said)(out, request)
			return
		}
		text(200, at().log)(out, request)
	})
	server := httptest.NewServer(routes)
	t.Cleanup(server.Close)
	return converse(t, server.Listener.Addr().String(), headclient.Options{}), &seen
}

type look struct {
	status, node, log string
	start             int
	died              bool // it failed without an exit code
}

func TestFollow_GoesToTheEnd(t *testing.T) {
	const (
		noFile  = "missing: A file is not found at: /tmp"
		noAgent = "missing: Agent for node id: x doesn't exist."
		silent  = "missing: Failed to query the data source. It is either"
	)
	for name, c := range map[string]struct {
		looks []look
		from  int64
		said  string
		want  headclient.Kind
		last  string
	}{
		"what came last too":         {[]look{{"RUNNING", node, "a", 0, false}, {"SUCCEEDED", node, "abc", 0, false}}, 0, "abc", "", "SUCCEEDED"},
		"it waits":                   {[]look{{"PENDING", "", "", 0, false}, {"STOPPED", node, "abc", 0, false}}, 0, "abc", "", "STOPPED"},
		"Ray's last words come late": {[]look{{"FAILED", node, "a", 0, true}, {"FAILED", node, "a. It died", 0, true}}, 0, "a. It died", "", "FAILED"},
		"it never began":             {[]look{{"FAILED", "", "", 0, true}}, 0, "", "", "FAILED"},
		"from an offset":             {[]look{{"RUNNING", node, "ab", 0, false}, {"FAILED", node, "abc", 0, false}}, 1, "bc", "", "FAILED"},
		"its log comes late":         {[]look{{"RUNNING", node, noFile, 0, false}, {"FAILED", node, "abc", 0, false}}, 0, "abc", "", "FAILED"},
		"its node dies":              {[]look{{"RUNNING", node, silent, 0, false}, {"RUNNING", node, noAgent, 0, false}, {"FAILED", node, noAgent, 0, true}}, 0, "", headclient.Gone, "FAILED"},
		"its file is deleted":        {[]look{{"SUCCEEDED", node, noFile, 0, false}}, 0, "", headclient.Gone, "SUCCEEDED"},
		"its file becomes shorter":   {[]look{{"RUNNING", node, "abc", 0, false}, {"RUNNING", node, "ab", 0, false}}, 0, "abc", headclient.Gone, "RUNNING"},
		"its ID is used again":       {[]look{{"RUNNING", node, "abc", 0, false}, {"RUNNING", node, "xyz1", 1, false}}, 0, "abc", headclient.Gone, "RUNNING"},
		"an offset that never was":   {[]look{{"PENDING", "", "", 0, false}}, 3, "", headclient.Gone, "PENDING"},
		"a status that cannot be":    {[]look{{"", node, "abc", 0, false}}, 0, "", headclient.Protocol, ""},
		"a status that is new":       {[]look{{"PAUSED", node, "a", 0, false}, {"FAILED", node, "ab", 0, false}}, 0, "ab", "", "FAILED"},
		"an answer in between fails": {[]look{{"RUNNING", node, "a", 0, false}, {"RUNNING", node, "missing: odd", 0, false}}, 0, "a", headclient.Protocol, "RUNNING"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var said bytes.Buffer
			jobs, seen := story(t, c.looks...)
			job, err := jobs.Follow(t.Context(), "a", c.from, &said)
			if headclient.KindOf(err) != c.want || said.String() != c.said || string(job.Status) != c.last || int(seen.Load()) != len(c.looks) {
				t.Errorf("after %d looks %q of %+v, %v", seen.Load(), said.String(), job, err)
			}
		})
	}
}

func TestFollow_EndsWithItsCaller(t *testing.T) {
	jobs, seen := story(t, look{status: "RUNNING", node: node, log: "abc"})
	if _, err := jobs.Follow(t.Context(), "a", -1, io.Discard); headclient.KindOf(err) != headclient.Invalid || seen.Load() != 0 {
		t.Errorf("before the beginning: %v", err)
	}
	if job, err := jobs.Follow(t.Context(), "a", 1, &slow{}); !errors.Is(err, errEnough) || job.Status != headclient.JobRunning {
		t.Errorf("of a writer that has enough: %+v, %v", job, err)
	}
	jobs, _ = story(t, look{status: "RUNNING", node: node, log: "abc"})
	ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer stop()
	if job, err := jobs.Follow(ctx, "a", 0, io.Discard); headclient.KindOf(err) != headclient.Timeout || job.Status != headclient.JobRunning {
		t.Errorf("of a caller without time: %+v, %v", job, err)
	}
}
