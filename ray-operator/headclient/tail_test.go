package headclient_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/heliostat-dev/heliostat/proto/gen/ray/rpc"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// node is where the driver of the job "known" ran.
const node = "b8e2ad48d7f453fac3166b107a42c6e7b044b9d103f05ccb05e0f907"

// logging is a job API with one job; file and logs answer where its output is asked for.
func logging(t *testing.T, file, logs http.HandlerFunc, timeout ...time.Duration) *headclient.Jobs {
	t.Helper()
	routes := http.NewServeMux()
	routes.HandleFunc("GET /api/jobs/known", func(out http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(out, `{"submission_id": "known", "status": "RUNNING", "entrypoint": "x", "driver_node_id": "`+node+`"}`)
	})
	routes.HandleFunc("GET /api/jobs/new", func(out http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(out, `{"submission_id": "new", "status": "PENDING", "entrypoint": "x", "driver_node_id": null}`)
	})
	routes.HandleFunc("GET /api/v0/logs/file", file)
	routes.HandleFunc("GET /api/v0/logs", files("job-driver-known.log"))
	routes.HandleFunc("GET /api/jobs/known/logs", logs)
	server := httptest.NewServer(routes)
	t.Cleanup(server.Close)
	options := headclient.Options{Token: func(context.Context) (string, error) { return "secret-token", nil }}
	if len(timeout) > 0 {
		options.Timeout = timeout[0]
	}
	return converse(t, server.Listener.Addr().String(), options)
}

// files are those of the node.
func files(names ...string) http.HandlerFunc {
	listed, _ := json.Marshal(names)
	return text(http.StatusOK, `{"result": true, "msg": "", "data": {"result": {"internal": `+string(listed)+`}}}`)
}

func text(status int, body string) http.HandlerFunc {
	return func(out http.ResponseWriter, _ *http.Request) {
		out.WriteHeader(status)
		_, _ = io.WriteString(out, body)
	}
}

func TestTailAsksForItsLinesAlone(t *testing.T) {
	file := func(out http.ResponseWriter, request *http.Request) {
		// One more than is wanted, which may be the one in which Ray repeats the entrypoint.
		if got, want := request.URL.RawQuery, "filename=job-driver-known.log&lines=3&node_id="+node; got != want {
			t.Errorf("it asks for %s, want %s", got, want)
		}
		text(http.StatusOK, "token=secret-token\nRunning entrypoint for job known: x\nlast\n")(out, request)
	}
	jobs := logging(t, file, func(http.ResponseWriter, *http.Request) { t.Error("the whole log is asked for") })
	tail, err := jobs.Tail(t.Context(), "known", 2)
	if err != nil || tail.Truncated || !slices.Equal(tail.Lines, []string{"token=[token]", "last"}) {
		t.Errorf("%+v, %v", tail, err)
	}
	if tail, err := jobs.Tail(t.Context(), "new", 2); err != nil || len(tail.Lines) != 0 || tail.Truncated {
		t.Errorf("before the driver began: %+v, %v", tail, err)
	}
}

func TestTailOfAWholeLog(t *testing.T) {
	whole, err := json.Marshal(map[string]string{"logs": "first\n" + strings.Repeat("grün\n", 100_000) + "secret-token \"last\"\n"})
	if err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string]http.HandlerFunc{
		"no such file":  text(500, "A file is not found at: /tmp/ray/session_latest/logs/job-driver-known.log"),
		"too busy":      text(429, "Max number of in-progress requests reached"),
		"an older Ray":  text(404, "404: Not Found"),
		"its own fault": text(500, "500 Internal Server Error\n\nServer got itself in trouble"),
	} {
		tail, err := logging(t, file, text(http.StatusOK, string(whole))).Tail(t.Context(), "known", 2)
		if err != nil || tail.Truncated || !slices.Equal(tail.Lines, []string{"grün", `[token] "last"`}) {
			t.Errorf("%s: %+v, %v", name, tail, err)
		}
	}
}

func TestTailThatCannotBeHad(t *testing.T) {
	gone := traceback("aiohttp.client_exceptions.ClientConnectorError: Cannot connect to host 10.0.0.7:52365")
	jobs := logging(t, text(500, "Agent for node id: "+node+" doesn't exist."), text(500, gone))
	if _, err := jobs.Tail(t.Context(), "known", 2); headclient.KindOf(err) != headclient.Unavailable || !strings.Contains(err.Error(), "Cannot connect to host") {
		t.Errorf("the node is gone: %v", err)
	}
	refused := logging(t, text(403, "Forbidden: Invalid authentication token"), func(http.ResponseWriter, *http.Request) { t.Error("it asks again") })
	if _, err := refused.Tail(t.Context(), "known", 2); headclient.KindOf(err) != headclient.Unauthenticated {
		t.Errorf("the token is wrong: %v", err)
	}
}

// TestTailOfOneEndlessLine: no more than 64 MiB are read, in little memory.
func TestTailOfOneEndlessLine(t *testing.T) {
	jobs := logging(t, func(out http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(out, "first\n")
		endless(out, "x")
	}, func(http.ResponseWriter, *http.Request) { t.Error("it asks again") })
	before := allocated()
	tail, err := jobs.Tail(t.Context(), "known", 20)
	if err != nil || !tail.Truncated || len(tail.Lines) != 2 || tail.Lines[0] != "first" || tail.Lines[1] != strings.Repeat("x", 1024) {
		t.Errorf("%d lines, truncated %t, %v", len(tail.Lines), tail.Truncated, err)
	}
	if grown := allocated() - before; grown > 8<<20 {
		t.Errorf("it took %d MiB", grown>>20)
	}
	if _, err := jobs.Session(t.Context()); headclient.KindOf(err) != headclient.Unavailable {
		t.Errorf("the conversation goes on: %v", err)
	}
}

// naming is a GCS that knows one actor, whatever it is asked for.
type naming struct {
	rpc.UnimplementedActorInfoGcsServiceServer
	actor *rpc.ActorTableData
	gone  bool
}

func (n naming) GetNamedActorInfo(context.Context, *rpc.GetNamedActorInfoRequest) (*rpc.GetNamedActorInfoReply, error) {
	return &rpc.GetNamedActorInfoReply{Status: &rpc.GcsStatus{}, ActorTableData: n.actor}, nil
}

func (n naming) KillActorViaGcs(context.Context, *rpc.KillActorViaGcsRequest) (*rpc.KillActorViaGcsReply, error) {
	if n.gone {
		return &rpc.KillActorViaGcsReply{Status: &rpc.GcsStatus{Code: 17, Message: []byte("Could not find actor")}}, nil
	}
	return &rpc.KillActorViaGcsReply{Status: &rpc.GcsStatus{}}, nil
}

func TestOnlyTheActorOfTheJobIsKilled(t *testing.T) {
	id := make([]byte, 16)
	right := []byte("_ray_internal_job_actor_a")
	for name, c := range map[string]struct {
		gcs    naming
		killed bool
		want   headclient.Kind
	}{
		"it is there":            {naming{actor: &rpc.ActorTableData{Name: right, ActorId: id}}, true, ""},
		"it ends in between":     {naming{actor: &rpc.ActorTableData{Name: right, ActorId: id}, gone: true}, false, ""},
		"an actor of another":    {naming{actor: &rpc.ActorTableData{Name: []byte("_ray_internal_job_actor_b"), ActorId: id}}, false, headclient.Protocol},
		"an actor without an ID": {naming{actor: &rpc.ActorTableData{Name: right}}, false, headclient.Protocol},
		"no actor":               {naming{}, false, headclient.Protocol},
	} {
		server := grpc.NewServer()
		rpc.RegisterActorInfoGcsServiceServer(server, c.gcs)
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = server.Serve(listener) }()
		t.Cleanup(server.Stop)
		killed, err := dial(t, listener.Addr().String(), headclient.Options{}).KillSubmission(t.Context(), "a")
		if killed != c.killed || headclient.KindOf(err) != c.want {
			t.Errorf("%s: killed %t, %v", name, killed, err)
		}
	}
}
