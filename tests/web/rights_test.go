package web

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/heliostat-dev/heliostat/tests/live"
)

// sorts are callers of the dashboards, in the order of codes.
var sorts = []string{
	"nobody", "garbage", "an expired token", "another audience", "no rights", "rights elsewhere", "somebody else's name", "get alone", "edit",
}

// codes are what each request is answered to each sort of caller. What is let through reaches a head, which knows some of
// the paths, or a service without endpoints.
var codes = map[string]string{
	"GET /team-a/demo/api/version":            "401 401 401 401 403 403 403 200 200",
	"GET /team-a/demo/worker/traceback?pid=1": "401 401 401 401 403 403 403 403 404",
	"PUT /team-a/demo/api/packages/gcs/p.zip": "401 401 401 401 403 403 403 403 200",
	"PATCH /team-a/demo/x":                    "401 401 401 401 403 403 403 403 404",
	"DELETE /team-a/demo/api/jobs/none":       "401 401 401 401 403 403 403 403 404",
	"GET /team-a/none/":                       "401 401 401 401 403 403 403 403 403",
	"GET /services/team-a/sort/":              "401 401 401 401 403 403 403 503 503",
	"POST /services/team-a/sort/":             "401 401 401 401 403 403 403 403 503",
	"WebSocket /team-a/training/ws":           "403 401 401 401 403 403 403 101 101",
	"POST /-/resume":                          "401 401 401 401 403 403 403 403 303",
	"GET /":                                   "200 200 200 200 200 200 200 200 200",
	"GET /-/nothing":                          "404 404 404 404 404 404 404 404 404",
}

// expired is a token that says of itself that its time is over: {"iss":"x","exp":1}.
const expired = "e30.eyJpc3MiOiJ4IiwiZXhwIjoxfQ.c2ln"

// endsWithin is for a WebSocket whose right is gone: 30 s are promised, and the API server keeps what it knows of a token.
const endsWithin = 45 * time.Second

// holdRights holds what callers can open against the RBAC of a real API server.
func (b *bed) holdRights(t *testing.T, editor string) {
	b.startOther(http.HandlerFunc(keepOpen))
	client := b.client()
	callers := map[string]http.Header{"nobody": {}, "somebody else's name": bearer(b.tokenFor(t, "posing"))}
	callers["somebody else's name"].Set("Impersonate-User", "system:serviceaccount:"+b.namespace+":anna")
	callers["somebody else's name"].Set("X-Remote-User", "admin")
	for name, token := range map[string]string{
		"garbage": "garbage", "an expired token": expired, "another audience": b.tokenFor(t, "other", "another-audience"), "no rights": b.tokenFor(t, "nothing"),
		"rights elsewhere": b.account("elsewhere", "edit", b.empty), "get alone": b.account("reader", live.ReleaseName+"-dashboards-read", b.namespace), "edit": editor,
	} {
		callers[name] = bearer(token)
	}
	must(t, live.Until(t.Context(), 30*time.Second, "the roles to be in force", func(ctx context.Context) error {
		for _, name := range []string{"get alone", "edit"} {
			if code := b.send(t, client, "GET /team-a/demo/api/version", callers[name]); code != http.StatusOK {
				return fmt.Errorf("%s is answered %d", name, code)
			}
		}
		return ctx.Err()
	}))
	for what, want := range codes {
		for i, code := range strings.Fields(want) {
			if got := b.send(t, client, what, callers[sorts[i]]); fmt.Sprint(got) != code {
				t.Errorf("%s by %s: %d, want %s", what, sorts[i], got, code)
			}
		}
	}
	b.endSockets(t, client)
}

// startOther starts a head of training, which answers by a handler.
func (b *bed) startOther(answer http.Handler) {
	b.t.Helper()
	b.keepToken("training")
	listener, err := b.island.Listen(otherIP + ":8265")
	must(b.t, err)
	head := &http.Server{Handler: answer, ReadHeaderTimeout: time.Minute}
	go func() { _ = head.Serve(listener) }()
	b.t.Cleanup(func() { _ = head.Close() })
}

// endSockets takes rights away under open WebSockets.
func (b *bed) endSockets(t *testing.T, client *http.Client) {
	ended := map[string]chan error{}
	for _, name := range []string{"unbound", "deleted", "stays"} {
		token, end := b.account(name, "edit", b.namespace), make(chan error, 1)
		var connection *websocket.Conn
		must(t, live.Until(t.Context(), 30*time.Second, "the right of "+name, func(ctx context.Context) (err error) {
			connection, err = b.dial(ctx, client, "/team-a/training/ws", bearer(token))
			return err
		}))
		ended[name] = end
		go func() {
			_, _, err := connection.Read(t.Context())
			end <- err
		}()
	}
	at := metav1.ObjectMeta{Namespace: b.namespace, Name: "unbound"}
	must(t, b.Delete(t.Context(), &rbacv1.RoleBinding{ObjectMeta: at}))
	at.Name = "deleted"
	must(t, b.Delete(t.Context(), &corev1.ServiceAccount{ObjectMeta: at}))
	for name, says := range map[string]string{"unbound": "ask for the right", "deleted": "sign in again"} {
		select {
		case err := <-ended[name]:
			var closed websocket.CloseError
			if !errors.As(err, &closed) || closed.Code != websocket.StatusPolicyViolation || !strings.Contains(closed.Reason, says) {
				t.Errorf("the WebSocket of %s ends with %v", name, err)
			}
		case <-time.After(endsWithin):
			t.Errorf("the WebSocket of %s does not end", name)
		}
	}
	select {
	case err := <-ended["stays"]:
		t.Errorf("a WebSocket whose right is there ends with %v", err)
	default:
	}
}

// keepOpen opens WebSockets, and keeps them.
func keepOpen(w http.ResponseWriter, r *http.Request) {
	connection, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer func() { _ = connection.CloseNow() }()
	_, _, _ = connection.Read(context.WithoutCancel(r.Context())) // until it ends
}

func bearer(token string) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }

// tokenFor makes an account without rights, and returns a token of it for audiences, or for the API server.
func (b *bed) tokenFor(t *testing.T, name string, audiences ...string) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}}
	must(t, b.Create(t.Context(), account))
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: audiences}}
	must(t, b.SubResource("token").Create(t.Context(), account, request))
	return request.Status.Token
}

// client returns one that trusts the server, from within the island.
func (b *bed) client() *http.Client {
	b.t.Helper()
	authority := x509.NewCertPool()
	trusted, err := os.ReadFile(b.file("tls.crt"))
	must(b.t, err)
	authority.AppendCertsFromPEM(trusted)
	dial := func(_ context.Context, _, address string) (net.Conn, error) { return b.island.Dial(address) }
	return &http.Client{
		Transport:     &http.Transport{DialContext: dial, TLSClientConfig: &tls.Config{RootCAs: authority, MinVersion: tls.VersionTLS12}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// dial opens a WebSocket at the dashboards' address. The error of one that is refused is its code.
func (b *bed) dial(ctx context.Context, client *http.Client, path string, header http.Header) (*websocket.Conn, error) {
	//nolint:bodyclose // the answer that opens a WebSocket has none, and that of a refusal is read
	connection, answer, err := websocket.Dial(ctx, b.dashboards+path, &websocket.DialOptions{HTTPClient: client, HTTPHeader: header})
	switch {
	case err == nil:
		b.t.Cleanup(func() { _ = connection.CloseNow() })
		return connection, nil
	case answer == nil:
		return nil, err
	}
	return nil, refused(answer.StatusCode)
}

// refused is the code by which a WebSocket is refused.
type refused int

// Error implements error.
func (r refused) Error() string { return fmt.Sprintf("it is answered %d", int(r)) }

// send sends a request, given as method and path, and returns the code of its answer.
func (b *bed) send(t *testing.T, client *http.Client, what string, header http.Header) int {
	t.Helper()
	method, path, _ := strings.Cut(what, " ")
	if method == "WebSocket" {
		_, err := b.dial(t.Context(), client, path, header)
		var code refused
		if errors.As(err, &code) {
			return int(code)
		}
		must(t, err)
		return http.StatusSwitchingProtocols
	}
	body := ""
	if method == http.MethodPost {
		body = "kind=computeclusters&namespace=" + b.namespace + "&name=notebook"
	}
	request, err := http.NewRequestWithContext(t.Context(), method, b.dashboards+path, strings.NewReader(body))
	must(t, err)
	request.Header = header.Clone()
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := client.Do(request)
	must(t, err)
	must(t, answer.Body.Close())
	return answer.StatusCode
}
