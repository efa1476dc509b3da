package attackers

import (
	"context"
	"fmt"
	"strings"
)

// Headers that say of which form a body is.
var (
	asJSON  = map[string]string{"Content-Type": "application/json"}
	asCall  = map[string]string{"Content-Type": "application/grpc", "Te": "trailers"}
	asZip   = map[string]string{"Content-Type": "application/grpc", "Te": "trailers", "Grpc-Encoding": "gzip"}
	asBytes = map[string]string{"Content-Type": "application/octet-stream"}
)

// What is asked for, in a namespace where no account has a right.
const (
	creates     = "/v1/namespaces/default/objects"
	converts    = "/v1/convert"
	createCall  = "/heliostat.v1.Portal/CreateObject"
	convertCall = "/heliostat.v1.Portal/ConvertManifests"
	watchCall   = "/heliostat.v1.Portal/WatchObjects"
	uploads     = "/default/none/api/packages/gcs/a.zip"
)

func post(path string, headers map[string]string, body string) request {
	return request{method: "POST", path: path, headers: headers, body: body}
}

// refused is the request of a calm attacker. It brings no token, and is answered so.
func refused(ctx context.Context, a *attacker) string {
	plain := *a
	plain.token = ""
	switch a.listener {
	case GRPC:
		return once(request{method: "POST", path: "/heliostat.v1.Portal/GetMe", headers: asCall, body: "an empty call"})(ctx, &plain)
	case Dashboards:
		return once(request{method: "GET", path: "/default/none/api/version"})(ctx, &plain)
	}
	return once(request{method: "GET", path: "/v1/me"})(ctx, &plain)
}

// withoutToken returns what callers without a token send to a listener: requests that end, and requests that do not.
func withoutToken(listener string) (ends, holds []attack) {
	switch listener {
	case GRPC:
		return anonymousCalls()
	case Dashboards:
		return []attack{
				{name: "dashboards: an upload without a token", send: once(post(uploads, asBytes, "upload"))},
				{name: "dashboards: garbage for a token", send: garbage(post(uploads, asBytes, "upload"))},
				{name: "dashboards: a WebSocket without a token", send: text(head("GET /default/none/api/jobs/a/logs/tail", "Connection: Upgrade", "Upgrade: websocket",
					"Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="), "")},
			}, []attack{
				{name: "dashboards: an upload without a token, a byte a minute", send: text(upload("default", "none"), "1\r\nx\r\n")},
				many("dashboards: uploads without a token, one byte short", short(post(uploads, asBytes, "upload"))),
				{name: "dashboards: headers that do not end", send: text(unended, "a")},
			}
	}
	return []attack{
			{name: "REST: empty lists without a token", send: once(post(creates, asJSON, "empty lists"))},
			{name: "REST: zeros without a token", send: once(post(creates, asJSON, "zeros"))},
			{name: "REST: empty objects without a token", send: once(post(creates, asJSON, "empty objects"))},
			{name: "REST: garbage for a token", send: garbage(post(creates, asJSON, "empty lists"))},
			{name: "REST: anchors without a token", send: once(post(converts, asJSON, "anchors"))},
			{name: "REST: long headers", send: text(head("GET /v1/me", "A: "+strings.Repeat("a", 60<<10), "Connection: close"), "")},
		}, []attack{
			many("REST: bodies without a token, one byte short", short(post(creates, asJSON, "empty lists"))),
			{name: "REST: a body without a token, a byte a minute", send: text(head("POST "+creates, "Content-Type: application/json", "Content-Length: 4000000"), " ")},
			{name: "REST: headers that do not end", send: text(unended, "a")},
			{name: "REST: pages that nobody reads", send: text(unread("/ui/"), "")},
		}
}

// anonymousCalls are those of gRPC.
func anonymousCalls() (ends, holds []attack) {
	return []attack{
			{name: "gRPC: values without a token", send: once(post(createCall, asCall, "values"))},
			{name: "gRPC: 1 MiB of values without a token", send: once(post(createCall, asCall, "some values"))},
			{name: "gRPC: names without a token", send: once(post(createCall, asCall, "names"))},
			{name: "gRPC: nested lists without a token", send: once(post(createCall, asCall, "nested"))},
			{name: "gRPC: a compressed message without a token", send: once(post(createCall, asZip, "zipped"))},
			{name: "gRPC: manifests without a token", send: once(post(convertCall, asCall, "manifests"))},
			{name: "gRPC: garbage for a token", send: garbage(post(createCall, asCall, "values"))},
		}, []attack{
			many("gRPC: messages without a token, one byte short", short(post(createCall, asCall, "values"))),
			many("gRPC: messages without a token, of which only the length comes", short(post(createCall, asCall, "a length"))),
			many("gRPC: messages of a watch without a token, one byte short", short(post(watchCall, asCall, "values"))),
		}
}

// accountEnds and accountHolds are what accounts without rights send.
var (
	accountEnds = []attack{
		{name: "REST: empty lists of an account", send: once(post(creates, asJSON, "empty lists"))},
		{name: "gRPC: values of an account", listener: GRPC, send: once(post(createCall, asCall, "values"))},
		{name: "REST: zeros of an account", send: once(post(creates, asJSON, "zeros"))},
		{name: "REST: 1 MiB of lists of an account", send: once(post(creates, asJSON, "some lists"))},
		{name: "gRPC: 1 MiB of values of an account", listener: GRPC, send: once(post(createCall, asCall, "some values"))},
		{name: "REST: 1 MiB of zeros of an account", send: once(post(creates, asJSON, "some zeros"))},
		{name: "REST: empty objects of an account", send: once(post(creates, asJSON, "empty objects"))},
		{name: "REST: anchors of an account", send: once(post(converts, asJSON, "anchors"))},
		{name: "REST: many documents of an account", send: once(post(converts, asJSON, "documents"))},
		{name: "gRPC: a compressed message of an account", listener: GRPC, send: once(post(createCall, asZip, "zipped"))},
		{name: "dashboards: an upload of an account", listener: Dashboards, send: once(post(uploads, asBytes, "upload"))},
		{name: "REST: presets of others", send: once(request{method: "GET", path: "/v1/namespaces/default/presets"})},
	}
	accountHolds = []attack{
		many("REST: bodies of an account, one byte short", short(post(creates, asJSON, "some lists"))),
		at(GRPC, many("gRPC: messages of an account, one byte short", short(post(createCall, asCall, "some values")))),
		at(Dashboards, many("dashboards: uploads of an account, one byte short", short(post(uploads, asBytes, "upload")))),
		many("REST: watches of an account", request{method: "GET", path: "/v1/objects/watch"}),
	}
	// tenantEnds and tenantHolds are what an editor sends, whose presets and heads are hostile.
	tenantEnds = []attack{
		{name: "REST: presets of anchors", send: func(ctx context.Context, a *attacker) string {
			return once(request{method: "GET", path: "/v1/namespaces/" + a.Namespace + "/presets"})(ctx, a)
		}},
	}
	tenantHolds = []attack{
		{name: "dashboards: an upload to an own head, a byte a minute", listener: Dashboards, send: text(func(a *attacker) string {
			return upload(a.Namespace, a.cluster())(a)
		}, "1\r\nx\r\n")},
		{name: "dashboards: answers of an own head that nobody reads", listener: Dashboards, send: text(func(a *attacker) string {
			return unread("/" + a.Namespace + "/" + a.cluster() + "/api/jobs/")(a)
		}, "")},
	}
)

// at sends an attack to a listener.
func at(listener string, one attack) attack {
	one.listener = listener
	return one
}

// cluster is one of the tenant's.
func (a *attacker) cluster() string {
	if len(a.Clusters) == 0 {
		return "none"
	}
	return a.Clusters[a.number%len(a.Clusters)]
}

// garbage sends a request with a token that nobody has signed, and that no request had before.
func garbage(r request) func(context.Context, *attacker) string {
	return func(ctx context.Context, a *attacker) string {
		other := *a
		a.mutex.Lock()
		other.token = fmt.Sprintf("e30.eyJpc3MiOiJ4In0.%08x", a.report.Requests)
		a.mutex.Unlock()
		return once(r)(ctx, &other)
	}
}

// short is a request whose last byte never comes.
func short(r request) request {
	r.isShort = true
	return r
}

// head is that of a request by HTTP/1.1.
func head(line string, headers ...string) func(*attacker) string {
	return func(a *attacker) string {
		return line + " HTTP/1.1\r\nHost: " + a.Addresses[a.listener] + "\r\n" + a.authorization() + strings.Join(headers, "\r\n") + "\r\n\r\n"
	}
}

// unended is the head of a request without its end.
func unended(a *attacker) string {
	return strings.TrimSuffix(head("GET /v1/me", "A: a")(a), "\r\n\r\n")
}

// unread is so many requests, one behind the other, that their answers fill a connection.
func unread(path string) func(*attacker) string {
	return func(a *attacker) string { return strings.Repeat(head("GET "+path)(a), 100) }
}

// upload is the beginning of an upload to a cluster that does not end.
func upload(namespace, cluster string) func(*attacker) string {
	return head("POST /"+namespace+"/"+cluster+"/api/packages/gcs/a.zip", "Content-Type: application/octet-stream", "Transfer-Encoding: chunked")
}
