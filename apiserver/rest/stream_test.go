package rest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/structpb"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/heliostat-dev/heliostat/portal/access"
	heliostatv1 "github.com/heliostat-dev/heliostat/proto/gen/heliostat/v1"
)

// serve serves a bed by HTTP until the test ends.
func (b *bed) serve(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request, err := b.api.Read(r)
		if err != nil {
			b.api.Refuse(w, err)
			return
		}
		b.api.Serve(w, r, request, &access.Caller{})
	}))
	t.Cleanup(server.Close)
	return server
}

// get asks for a path, which must be answered by 200, and returns the answer's body and headers. It ends with the test.
func get(t *testing.T, server *httptest.Server, path string, headers ...string) (io.Reader, http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = answer.Body.Close() })
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("%s is answered with %d", path, answer.StatusCode)
	}
	return answer.Body, answer.Header
}

// readEvents reads server-sent events up to one of a type. It returns their types and names, and the last ID.
func readEvents(t *testing.T, body io.Reader, last string) (all []string, id string) {
	t.Helper()
	lines := bufio.NewScanner(body)
	kind := ""
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "id":
			id = value
		case "event":
			kind = value
		case "data":
			if _, name, is := strings.Cut(strings.ReplaceAll(value, `" :`, `":`), `"name":`); is {
				kind += " " + strings.Split(name, `"`)[1]
			}
			all = append(all, kind)
			if strings.HasPrefix(kind, last) {
				return all, id
			}
		}
	}
	t.Fatalf("the stream ends after %q: %v", all, lines.Err())
	return nil, ""
}

func TestWatch_SendsTheStateAndGoesOn(t *testing.T) {
	b := newBed(t, "*")
	server := b.serve(t)
	body, header := get(t, server, "/v1/objects/watch?kinds=clusters")
	if kind := header.Get("Content-Type"); kind != eventStreamType {
		t.Fatalf("the watch is answered with %s", kind)
	}
	all, id := readEvents(t, body, "ready")
	if diff := cmp.Diff([]string{"sync", "put demo", "put other", "ready"}, all); diff != "" {
		t.Error(diff)
	}
	again, _ := get(t, server, "/v1/objects/watch?kinds=clusters", "Last-Event-ID", id)
	gone := cluster("team-b", "other")
	gone.ResourceVersion = "9"
	if err := b.view.Store("clusters", "").Delete(gone); err != nil {
		t.Fatal(err)
	}
	go b.api.portal.Feed.Run(t.Context())
	if all, _ := readEvents(t, again, "del"); len(all) != 1 || all[0] != "del other" {
		t.Errorf("a watch that goes on begins with %q", all)
	}
}

// TestWatch_AsksForNamespaces: a caller may have the right in one that holds no object yet, which nothing says.
func TestWatch_AsksForNamespaces(t *testing.T) {
	b := newBed(t, "watch clusterjobs team-new")
	for path, want := range map[string]bool{"?kinds=jobs": true, "?kinds=jobs&namespaces=team-b": false} {
		code, answer := b.send(t, "GET", "/v1/objects/watch"+path, "")
		if is := strings.Contains(fmt.Sprint(answer["remedy"]), "namespaces=NAME"); code != 403 || is != want {
			t.Errorf("%s is %d, %v", path, code, answer)
		}
	}
}

// counting keeps what is handed on of an answer at once.
type counting struct {
	http.ResponseWriter
	written string
	flushed []string
}

func (c *counting) Write(text []byte) (int, error) {
	c.written += string(text)
	return c.ResponseWriter.Write(text)
}

func (c *counting) FlushError() error {
	c.flushed, c.written = append(c.flushed, c.written), ""
	return http.NewResponseController(c.ResponseWriter).Flush()
}

func (c *counting) Unwrap() http.ResponseWriter { return c.ResponseWriter }

// TestWatch_SendsTogetherWhatIsThere: a flush for each event would cost more than the events.
func TestWatch_SendsTogetherWhatIsThere(t *testing.T) {
	b := newBed(t, "*")
	written := make(chan []string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request, err := b.api.Read(r)
		if err != nil {
			t.Error(err)
			return
		}
		out := &counting{ResponseWriter: w}
		b.api.Serve(out, r, request, &access.Caller{})
		written <- out.flushed
	}))
	t.Cleanup(server.Close)
	body, _ := get(t, server, "/v1/objects/watch?kinds=clusters")
	lines := bufio.NewReader(body)
	for line := ""; line != "event: ready\n"; {
		var err error
		if line, err = lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	b.api.portal.Feed.Run(ended)
	flushed := <-written
	if len(flushed) != 3 || strings.Count(flushed[1], "event: ") != 4 || strings.Count(flushed[2], "event: ") != 1 {
		t.Errorf("a comment, a full state and a bye are sent as %q", flushed)
	}
}

// dial serves a bed by gRPC until the test ends.
func (b *bed) dial(t *testing.T, around Around) heliostatv1.PortalClient {
	t.Helper()
	return heliostatv1.NewPortalClient(b.connect(t, around))
}

// connect returns a connection to a bed that is served by gRPC until the test ends.
func (b *bed) connect(t *testing.T, around Around) *grpc.ClientConn {
	t.Helper()
	listener := bufconn.Listen(1 << 20)
	server := b.api.NewGRPC(insecure.NewCredentials(), around)
	go func() { _ = server.Serve(listener) }() // ends with Stop
	connection, err := grpc.NewClient("passthrough:///bed", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return listener.Dial() }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = connection.Close()
		server.Stop()
	})
	return connection
}

func TestGRPC_AnswersAsREST(t *testing.T) {
	b := newBed(t, "list computeclusters team-a", "watch computeclusters", "get computeclusters team-a")
	var seen []string
	client := b.dial(t, func(ctx context.Context, call *Call, answer func(context.Context) error) error {
		defer func() {
			seen = append(seen, fmt.Sprint(call.Request.Label(), " ", call.Request.Namespace, "/", call.Request.Kind, "/", call.Request.Name))
		}()
		return answer(ctx)
	})
	list, err := client.ListObjects(t.Context(), &heliostatv1.ListObjectsRequest{})
	if err != nil || len(list.GetLines()) != 1 || list.GetLines()[0].GetName() != "demo" {
		t.Errorf("the list is %v (%v)", list, err)
	}
	_, err = client.GetObject(t.Context(), &heliostatv1.GetObjectRequest{Namespace: "team-b", Kind: "clusters", Name: "x"})
	said, _ := status.FromError(err)
	if said.Code() != codes.PermissionDenied || len(said.Details()) != 1 {
		t.Fatalf("without a right it says %v", err)
	}
	if why, is := said.Details()[0].(*heliostatv1.Problem); !is || why.GetReason() != "Forbidden" || why.GetRemedy() == "" {
		t.Errorf("the detail is %v", said.Details()[0])
	}
	if _, err := client.GetObject(t.Context(), &heliostatv1.GetObjectRequest{Namespace: "../a", Kind: "clusters", Name: "x"}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a namespace that is none is %v", err)
	}
	watch, err := client.WatchObjects(t.Context(), &heliostatv1.WatchObjectsRequest{Kinds: []string{"clusters"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"sync ", "put demo", "put other", "ready "} {
		change, err := watch.Recv()
		if got := change.GetType() + " " + change.GetLine().GetName(); err != nil || got != want {
			t.Errorf("the watch says %q (%v), want %q", got, err, want)
		}
	}
	// What cannot be a name is noted of no call. The watch is still open.
	if want := "ListObjects // GetObject team-b/clusters/x GetObject /clusters/x"; strings.Join(seen, " ") != want {
		t.Errorf("around the calls is %q, want %q", strings.Join(seen, " "), want)
	}
}

func TestGRPC_FailsAloneWhereACallPanics(t *testing.T) {
	client := newBed(t, "*").dial(t, func(context.Context, *Call, func(context.Context) error) error { panic("secret") })
	if _, err := client.GetMe(t.Context(), &heliostatv1.GetMeRequest{}); status.Code(err) != codes.Internal || strings.Contains(err.Error(), "secret") {
		t.Errorf("the call is %v", err)
	}
}

func TestGRPC_SaysOfNobodyWhatRESTSays(t *testing.T) {
	b := newBed(t, "*")
	client := b.dial(t, func(ctx context.Context, _ *Call, answer func(context.Context) error) error { return answer(ctx) })
	for cause, want := range map[error]codes.Code{
		access.ErrNoToken: codes.Unauthenticated,
		apierrors.NewForbidden(schema.GroupResource{Resource: "selfsubjectreviews"}, "", errors.New("secret")): codes.Unavailable,
		errors.New("secret"): codes.Unavailable,
	} {
		b.unidentified = cause
		_, err := client.GetMe(t.Context(), &heliostatv1.GetMeRequest{})
		if status.Code(err) != want || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v is %v, want %s", cause, err, want)
		}
	}
}

// TestGRPC_TakesNoDeeperObjectsThanREST: a body of REST is one level itself, as a message is.
func TestGRPC_TakesNoDeeperObjectsThanREST(t *testing.T) {
	b := newBed(t, "*")
	client := b.dial(t, func(ctx context.Context, _ *Call, answer func(context.Context) error) error { return answer(ctx) })
	for levels, want := range map[int]string{MaxDepth: "values deeper", MaxDepth - 1: "is not served"} {
		text := strings.Repeat(`{"a":`, levels-2) + "[]" + strings.Repeat("}", levels-2)
		object := &structpb.Struct{}
		if err := object.UnmarshalJSON([]byte(`{"a":` + text + `}`)); err != nil {
			t.Fatal(err)
		}
		_, byGRPC := client.CreateObject(t.Context(), &heliostatv1.CreateObjectRequest{Namespace: "team-a", Object: object})
		_, byREST := b.send(t, http.MethodPost, "/v1/namespaces/team-a/objects", `{"object":{"a":`+text+`}}`)
		said, _ := status.FromError(byGRPC)
		if said.Code() != codes.InvalidArgument || !strings.Contains(said.Message(), want) {
			t.Fatalf("%d levels in an object are %v by gRPC, want %q", levels, byGRPC, want)
		}
		why, is := said.Details()[0].(*heliostatv1.Problem)
		if !is || why.GetDetail() != byREST["detail"] || why.GetRemedy() != byREST["remedy"] || why.GetReason() != byREST["reason"] {
			t.Errorf("%d levels in an object are %v by gRPC, and %v by REST", levels, why, byREST)
		}
	}
}

func TestGRPC_RefusesCallsThatItDoesNotHave(t *testing.T) {
	b := newBed(t, "*")
	var seen []Request
	connection := b.connect(t, func(ctx context.Context, call *Call, answer func(context.Context) error) error {
		seen = append(seen, call.Request)
		return answer(ctx)
	})
	err := connection.Invoke(t.Context(), "/heliostat.v1.Portal/DropObjects", &heliostatv1.GetMeRequest{}, &heliostatv1.GetMeResponse{})
	if status.Code(err) != codes.Unimplemented || len(seen) != 1 || seen[0].Label() != "" || seen[0].IsChange() {
		t.Errorf("it is %v, seen as %+v", err, seen)
	}
}
