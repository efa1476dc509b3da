package headclient_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
	"github.com/heliostat-dev/heliostat/ray-operator/headclient/fakehead"
)

func serve(t *testing.T, address string, options headclient.Options) *headclient.Serve {
	t.Helper()
	conversation, err := headclient.DialServe(address, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conversation.Close(); err != nil {
			t.Error(err)
		}
	})
	return conversation
}

// echo is a configuration of one application.
const echo = `{"applications": [{"name": "echo", "route_prefix": "/echo", "import_path": "echo:app"}]}`

// replica is a log that could be one.
func replica() headclient.Log {
	return headclient.Log{Node: node, File: "serve/replica_echo_Echo_r1.log"}
}

// serveAsks are all calls about Serve, so that each can be held to the same.
func serveAsks(t *testing.T, address string, options headclient.Options) map[string]func(context.Context) error {
	t.Helper()
	conversation := func() *headclient.Serve { return serve(t, address, options) } // one breaks with its first failure
	return map[string]func(context.Context) error{
		"Session":  func(ctx context.Context) error { _, err := conversation().Session(ctx); return err },
		"Serving":  func(ctx context.Context) error { _, err := conversation().Serving(ctx); return err },
		"Deploy":   func(ctx context.Context) error { return conversation().Deploy(ctx, json.RawMessage(echo)) },
		"LastLine": func(ctx context.Context) error { _, err := conversation().LastLine(ctx, replica()); return err },
	}
}

func TestMoodsOfServeAreToldApart(t *testing.T) {
	for mood, want := range map[fakehead.Mood]headclient.Kind{
		fakehead.Hung: headclient.Timeout, fakehead.Garbled: headclient.Protocol, fakehead.Passive: headclient.Unavailable,
		fakehead.Away: headclient.Unavailable, fakehead.Mute: headclient.Unavailable,
	} {
		head := start(t)
		head.Behave(mood)
		timeout := headclient.DefaultTimeout
		if want == headclient.Timeout {
			timeout = 20 * time.Millisecond
		}
		for name, ask := range serveAsks(t, head.JobsAddress(), headclient.Options{Timeout: timeout}) {
			if mood == fakehead.Garbled && name == "LastLine" || mood == fakehead.Passive && name != "Serving" && name != "Deploy" {
				continue // a line may be anything, and the others are not about Serve
			}
			err := ask(t.Context())
			var failure *headclient.Error
			if !errors.As(err, &failure) || failure.Kind != want || !strings.Contains(err.Error(), head.JobsAddress()) {
				t.Errorf("mood %d, %s: %v, want %s and the address", mood, name, err, want)
			}
		}
	}
}

func TestAnswersOfServeAreSorted(t *testing.T) {
	type kinds map[string]headclient.Kind
	all := func(kind headclient.Kind) kinds { return kinds{"Serving": kind, "Deploy": kind, "LastLine": kind} }
	for _, c := range []struct {
		status int
		body   string
		want   kinds
	}{
		{401, "Unauthorized: Missing authentication token", all(headclient.Unauthenticated)},
		{403, "Forbidden: Invalid authentication token", all(headclient.Unauthenticated)},
		{400, "1 validation error for ServeDeploySchema\napplications\n  Field required [type=missing]", all(headclient.Refused)},
		{400, failedTask("ray.serve._private.storage.kv_store.KVStoreError: 14"), kinds{"Serving": headclient.Unavailable, "Deploy": headclient.Unavailable}},
		{400, failedTask("ray.exceptions.RpcError: Timed out while waiting for GCS to become available.\n  rpc_code: 4"), kinds{"Deploy": headclient.Unavailable}},
		{400, failedTask("TimeoutError"), kinds{"Deploy": headclient.Unavailable}},
		{400, failedTask("ray.serve.exceptions.RayServeException: \"KVStoreError: 14\" is no name"), kinds{"Deploy": headclient.Refused}},
		{400, failedTask("ValueError: TimeoutError: 1"), kinds{"Deploy": headclient.Refused}},
		{400, "1 validation error for ServeDeploySchema\napplications.0.name\n  Value error, x [type=value_error, input_value='\nKVStoreError: 14']\nKVStoreError: 14", kinds{"Deploy": headclient.Refused}},
		{404, "404: Not Found", all(headclient.Protocol)},
		{405, "'PUT' method not allowed for browser traffic.", all(headclient.Protocol)},
		{413, "too large", all(headclient.Refused)},
		{429, "Max number of in-progress requests=100 reached.", all(headclient.Unavailable)},
		{500, traceback("ray.exceptions.RpcError: Timed out while waiting for GCS"), kinds{"Serving": headclient.Unavailable, "Deploy": headclient.Unavailable}},
		{500, traceback("ray.exceptions.ActorDiedError: The actor died"), kinds{"Serving": headclient.Unavailable, "Deploy": headclient.Unavailable}},
		{500, traceback("TimeoutError: HTTP proxies not available after 60s."), kinds{"Deploy": headclient.Unavailable}},
		{500, traceback("json.decoder.JSONDecodeError: Expecting value"), all(headclient.Protocol)},
		{500, "A file is not found at: /tmp/ray/session_latest/logs/x", kinds{"LastLine": headclient.NotFound}},
		{500, "Agent for node id: b8e2 doesn't exist.", kinds{"LastLine": headclient.NotFound}},
		{501, "Serve dependencies are not installed. Please run `pip install \"ray[serve]\"`.", kinds{"Serving": headclient.Unsupported, "Deploy": headclient.Unsupported}},
		{502, "", all(headclient.Unavailable)},
		{503, "Failed to get a response from the controller. The GCS may be down, please retry later: x", all(headclient.Unavailable)},
		{302, "", all(headclient.Protocol)},
		{204, "", all(headclient.Protocol)},
		{200, "<html>", kinds{"Serving": headclient.Protocol, "Deploy": headclient.Protocol}},
		{200, "", kinds{"Serving": headclient.Protocol}},
		{200, "[]", kinds{"Serving": headclient.Protocol}},
		{200, "{}", kinds{"Serving": headclient.Protocol}}, // Ray's empty document has more in it
		{200, `{"applications": null, "controller_info": {}}`, kinds{"Serving": headclient.Protocol}},
	} {
		calls := serveAsks(t, answering(t, c.status, c.body), headclient.Options{})
		for name, want := range c.want {
			if err := calls[name](t.Context()); headclient.KindOf(err) != want || len(err.Error()) > 512 {
				t.Errorf("%s, answered with %d %q: %v, want %s", name, c.status, c.body, err, want)
			}
		}
	}
}

// failedTask is what Serve says with a status of 400 where the task failed that takes a configuration.
func failedTask(last string) string {
	return "\x1b[36mray::ServeController.apply_config()\x1b[39m (pid=123, ip=10.0.0.1, actor_id=abc)\n" +
		"  File \"/ray/serve/_private/storage/kv_store.py\", line 64, in put\n    return self.gcs_client.internal_kv_put(\n" +
		"ray.exceptions.RpcError: Deadline Exceeded\n\nDuring handling of the above exception, another exception occurred:\n\n" +
		"\x1b[36mray::ServeController.apply_config()\x1b[39m (pid=123, ip=10.0.0.1, actor_id=abc)\n" +
		"  File \"/ray/serve/_private/controller.py\", line 1290, in apply_config\n    self.kv_store.put(\n" + last + "\n"
}

// TestHostileServe: none of these takes memory or time beyond the limits, none panics.
func TestHostileServe(t *testing.T) {
	for name, c := range map[string]struct {
		say  func(io.Writer)
		want headclient.Kind
	}{
		"no HTTP":          {says("SSH-2.0-OpenSSH_9.2\r\n"), headclient.Protocol},
		"nothing":          {says(""), headclient.Unavailable},
		"half a body":      {says(ok + "Content-Length: 100\r\n\r\n{"), headclient.Unavailable},
		"a redirect":       {says("HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"), headclient.Protocol},
		"compressed":       {says(ok + "Content-Encoding: gzip\r\n\r\nx"), headclient.Protocol},
		"headers for ever": {func(w io.Writer) { says(ok)(w); endless(w, "A: b\r\n") }, headclient.Protocol},
		"a body for ever":  {func(w io.Writer) { says(ok + "\r\n")(w); endless(w, `{"applications": {`) }, headclient.Protocol},
		"an error for ever": {func(w io.Writer) {
			says("HTTP/1.1 400 X\r\n\r\n9 validation errors for S\n")(w)
			endless(w, "applications\n")
		}, headclient.Protocol},
	} {
		t.Run(name, func(t *testing.T) {
			address, connections := raw(t, c.say)
			all := serveAsks(t, address, headclient.Options{Timeout: 20 * time.Second})
			before := allocated()
			for call, ask := range all {
				if err := ask(t.Context()); headclient.KindOf(err) != c.want || len(err.Error()) > 512 {
					t.Errorf("%s: %v, want %s", call, err, c.want)
				}
			}
			if grown := allocated() - before; grown > 128<<20 {
				t.Errorf("it took %d MiB", grown>>20)
			}
			if n := int(connections.Load()); n != len(all) {
				t.Errorf("%d calls made %d connections", len(all), n)
			}
		})
	}
}

// TestHostileDetails: what is within the limit of bytes does not become much more in memory.
func TestHostileDetails(t *testing.T) {
	fill := func(before, each, after string) string {
		return before + strings.Repeat(each, (8<<20-len(before)-len(after)-1)/len(each)) + after
	}
	for name, body := range map[string]string{
		"replicas of nothing": fill(`{"controller_info": {"a": 1}, "applications": {"a": {"status": "RUNNING", "deployments": {"d": {"status": "HEALTHY", "replicas": [{}`, `,{}`, `]}}}}}`),
		"targets of nothing":  fill(`{"controller_info": {"a": 1}, "applications": {}, "target_groups": [{"targets": [{}`, `,{}`, `]}]}`),
		"groups of nothing":   fill(`{"controller_info": {"a": 1}, "applications": {}, "target_groups": [{}`, `,{}`, `]}`),
		"one long message":    fill(`{"controller_info": {"a": 1}, "applications": {"a": {"status": "`, "x", `"}}}`),
	} {
		conversation := serve(t, answering(t, http.StatusOK, body), headclient.Options{})
		before := allocated()
		serving, err := conversation.Serving(t.Context())
		if headclient.KindOf(err) != headclient.Protocol {
			t.Errorf("%s: %+v, %v", name, serving, err)
		}
		if grown := allocated() - before; grown > 64<<20 {
			t.Errorf("%s: it took %d MiB", name, grown>>20)
		}
	}
}

func TestWhatMustNotBeDeployedIsNot(t *testing.T) {
	address, connections := raw(t, says(""))
	for name, config := range map[string]string{
		"nothing": "", "null": "null", "a list": "[]", "no applications": "{}", "applications of nothing": `{"applications": null}`,
		"an object of applications": `{"applications": {}}`, "applications of texts": `{"applications": ["a"]}`,
		"applications twice": `{"applications": [], "applications": []}`, "half of it": `{"applications": [`, "more behind it": echo + "{}",
		"bytes": `{"applications": [{"name": "` + "\xff" + `"}]}`, "too much": `{"applications": [], "x": "` + strings.Repeat("x", 4<<20) + `"}`,
	} {
		if err := serve(t, address, headclient.Options{}).Deploy(t.Context(), json.RawMessage(config)); headclient.KindOf(err) != headclient.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, log := range []headclient.Log{
		{}, {Node: node}, {Node: "b8", File: "a.log"}, {Node: strings.Repeat("0", 56), File: "a.log"}, {Node: node, File: "/etc/passwd"},
		{Node: node, File: "../a.log"}, {Node: node, File: "serve/../../a.log"}, {Node: node, File: "serve/"}, {Node: node, File: "serve//a.log"},
		{Node: node, File: ".hidden"}, {Node: node, File: "a\n.log"}, {Node: node, File: "a\x1b[31m.log"}, {Node: node, File: "\xff"}, {Node: node, File: strings.Repeat("x", 2000)},
	} {
		if _, err := serve(t, address, headclient.Options{}).LastLine(t.Context(), log); headclient.KindOf(err) != headclient.Invalid {
			t.Errorf("%+v: %v", log, err)
		}
	}
	if n := connections.Load(); n != 0 {
		t.Errorf("%d connections were made", n)
	}
	for _, address := range []string{"", "host", ":80", "host:"} {
		if _, err := headclient.DialServe(address, headclient.Options{}); headclient.KindOf(err) != headclient.Invalid {
			t.Errorf("%q: %v", address, err)
		}
	}
}

// TestRequestsOfServeAreRays: what Ray takes for a browser's it refuses, or answers without
// the environment of runtimes.
func TestRequestsOfServeAreRays(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	type request struct {
		Method, URI, Body string
		Header            http.Header
	}
	seen := make(chan request, 1)
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, got *http.Request) {
		body, _ := io.ReadAll(got.Body)
		if got.Method == http.MethodGet {
			_, _ = io.WriteString(out, `{"controller_info": {}, "proxies": {}, "applications": {}, "target_capacity": null}`)
		}
		seen <- request{got.Method, got.RequestURI, string(body), got.Header}
	}))
	t.Cleanup(server.Close)
	for name, want := range map[string]request{
		"Serving":  {Method: "GET", URI: "/api/serve/applications/"},
		"Deploy":   {Method: "PUT", URI: "/api/serve/applications/", Body: echo, Header: http.Header{"Content-Type": {"application/json"}, "Content-Length": {"88"}}},
		"LastLine": {Method: "GET", URI: "/api/v0/logs/file?filename=serve%2Freplica_echo_Echo_r1.log&lines=20&node_id=" + node},
	} {
		options := headclient.Options{Token: func(context.Context) (string, error) { return "the-token", nil }}
		if err := serveAsks(t, server.Listener.Addr().String(), options)[name](t.Context()); err != nil {
			t.Error(err)
		}
		if want.Header == nil {
			want.Header = http.Header{}
		}
		for key, value := range map[string]string{"Authorization": "Bearer the-token", "User-Agent": "heliostat", "Accept-Encoding": "identity"} {
			want.Header.Set(key, value)
		}
		if diff := cmp.Diff(want, <-seen); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestServeTellsNoToken: a server knows the token from the request, and may repeat it in its answer.
func TestServeTellsNoToken(t *testing.T) {
	const token = "the-token-of-this-cluster"
	options := headclient.Options{Token: func(context.Context) (string, error) { return token, nil }}
	for _, say := range []string{
		"HTTP/1.1 400 X\r\n\r\n1 validation error for S\n" + strings.Repeat("x", 370) + token + "\n  " + token + " [type=x]",
		"HTTP/1.1 400 X\r\n\r\n1 validation error for S\napplications\n  Value error, " + strings.Repeat("x", 360) + token,
		"HTTP/1.1 500 X\r\n\r\n" + token + "\nray.exceptions.RpcError: " + strings.Repeat("x", 220) + token, ok + token + "\r\n\r\n",
		ok + "\r\n{\"controller_info\": {\"a\": 1}, \"applications\": {\"" + token + "\\n\": {\"status\": \"\"}}}",
	} {
		address, _ := raw(t, says(say))
		for name, ask := range serveAsks(t, address, options) {
			if err := ask(t.Context()); err != nil && strings.Contains(err.Error(), token[:8]) {
				t.Errorf("%s, told %q: %v", name, say, err)
			}
		}
	}
	conversation := serve(t, answering(t, http.StatusOK, "first\nRAY_AUTH_TOKEN="+token+"\n\n"), options)
	if line, err := conversation.LastLine(t.Context(), replica()); err != nil || line != "RAY_AUTH_TOKEN=[token]" {
		t.Errorf("%q, %v", line, err)
	}
}

// TestDeploymentHasPatience: the first one starts Serve, which takes longer than a question.
func TestDeploymentHasPatience(t *testing.T) {
	head := start(t)
	head.Delay(300 * time.Millisecond)
	options := headclient.Options{Timeout: 100 * time.Millisecond}
	if err := serve(t, head.JobsAddress(), options).Deploy(t.Context(), json.RawMessage(echo)); err != nil {
		t.Error(err)
	}
	if _, err := serve(t, head.JobsAddress(), options).Serving(t.Context()); headclient.KindOf(err) != headclient.Timeout {
		t.Errorf("%v", err)
	}
}
