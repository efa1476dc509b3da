package proxy_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// passes lets time pass until something has ended, at most so many seconds.
func (b *bed) passes(t *testing.T, seconds int, ended <-chan error) error {
	t.Helper()
	for range seconds {
		for range 20 { // what a second brings about has some time of the world's
			select {
			case err := <-ended:
				return err
			case <-time.After(5 * time.Millisecond):
			}
		}
		b.clock.Step(time.Second)
	}
	select {
	case err := <-ended:
		return err
	case <-time.After(10 * time.Second):
		t.Fatalf("it has not ended after %d s", seconds)
		return nil
	}
}

// echo is a head that answers each message with it, and says so first.
func echo(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/refused" {
		http.Error(w, "no such job", http.StatusNotFound)
		return
	}
	connection, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"log"}})
	if err != nil {
		return
	}
	connection.SetReadLimit(-1)
	defer func() { _ = connection.CloseNow() }()
	for {
		kind, message, err := connection.Read(r.Context())
		if err != nil {
			return
		}
		if string(message) == "bye" {
			_ = connection.Close(websocket.StatusNormalClosure, "bye")
			return
		}
		if connection.Write(r.Context(), kind, message) != nil {
			return
		}
	}
}

// socket opens a WebSocket as alice. Pings are counted.
func (b *bed) socket(t *testing.T, path string, pings chan struct{}) *websocket.Conn {
	t.Helper()
	return b.socketBy(t, path, pings, http.Header{"Authorization": {"Bearer alice-token"}, "X-Forwarded-For": {"canary"}})
}

func (b *bed) socketBy(t *testing.T, path string, pings chan struct{}, header http.Header) *websocket.Conn {
	t.Helper()
	//nolint:bodyclose // the answer that opens a WebSocket has none
	connection, _, err := websocket.Dial(t.Context(), "wss"+strings.TrimPrefix(b.front.URL, "https")+path, &websocket.DialOptions{
		HTTPClient: b.client(), HTTPHeader: header, Subprotocols: []string{"log"},
		OnPingReceived: func(context.Context, []byte) bool {
			if pings != nil {
				pings <- struct{}{}
			}
			return true
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.CloseNow() })
	connection.SetReadLimit(-1)
	if connection.Subprotocol() != "log" {
		t.Errorf("the protocol is %q", connection.Subprotocol())
	}
	return connection
}

func say(t *testing.T, connection *websocket.Conn, message string) {
	t.Helper()
	if err := connection.Write(t.Context(), websocket.MessageBinary, []byte(message)); err != nil {
		t.Fatal(err)
	}
}

func hear(t *testing.T, connection *websocket.Conn, want string) {
	t.Helper()
	if _, got, err := connection.Read(t.Context()); err != nil || string(got) != want {
		t.Fatalf("it hears %d bytes, %v", len(got), err)
	}
}

func TestSocket_CarriesMessages(t *testing.T) {
	b := newBed(t, echo, nil)
	for _, at := range []string{"/team/demo/api/jobs/x/logs/tail", "/services/team/sort/ws"} {
		connection := b.socket(t, at, nil)
		for _, size := range []int{0, 1, 125, 126, 4096, 65535, 65536, 1 << 20} {
			message := strings.Repeat("x", size)
			say(t, connection, message)
			hear(t, connection, message)
		}
		say(t, connection, "bye")
		var closed websocket.CloseError
		if _, _, err := connection.Read(t.Context()); !errors.As(err, &closed) || closed.Code != websocket.StatusNormalClosure || closed.Reason != "bye" {
			t.Errorf("%s ends with %v", at, err)
		}
	}
	if known := <-b.known; !known.IsStream || known.Code != http.StatusSwitchingProtocols || known.Verb != "get" {
		t.Errorf("it is known as %+v", known)
	}
	if answer := b.raw(t, "GET /team/demo/refused HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer alice-token\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"); !strings.HasPrefix(answer, "HTTP/1.1 404 ") || !strings.Contains(answer, "no such job") {
		t.Errorf("a head that opens none: %q", answer)
	}
}

func TestSocket_SendsPings(t *testing.T) {
	b := newBed(t, echo, nil)
	pings := make(chan struct{}, 10)
	connection := b.socket(t, "/team/demo/ws", pings)
	ended := make(chan error, 1)
	go func() {
		<-pings
		ended <- nil
	}()
	read := make(chan error, 1)
	go func() {
		_, _, err := connection.Read(t.Context()) // which answers pings
		read <- err
	}()
	if err := b.passes(t, 30, ended); err != nil {
		t.Fatal(err)
	}
	say(t, connection, "still there")
	if err := <-read; err != nil {
		t.Error(err)
	}
}

// closes waits for the end of a socket whose time passes.
func (b *bed) closes(t *testing.T, connection *websocket.Conn, seconds int) websocket.CloseError {
	t.Helper()
	ended := make(chan error, 1)
	go func() {
		_, _, err := connection.Read(t.Context())
		ended <- err
	}()
	var closed websocket.CloseError
	if err := b.passes(t, seconds, ended); !errors.As(err, &closed) {
		t.Fatalf("it ends with %v", err)
	}
	return closed
}

func TestSocket_EndsWithTheRight(t *testing.T) {
	for name, c := range map[string]struct {
		take func(b *bed)
		says string
	}{
		"a right that is taken away": {func(b *bed) { b.kubernetes.Deny("alice") }, "ask for the right"},
		"a token that is withdrawn":  {func(b *bed) { b.kubernetes.Withdraw("alice-token") }, "sign in again"},
		"nobody who answers":         {func(b *bed) { b.kubernetes.Break(true) }, "connect again"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, echo, nil)
			connection := b.socket(t, "/team/demo/ws", nil)
			say(t, connection, "x")
			hear(t, connection, "x")
			c.take(b)
			if closed := b.closes(t, connection, 30); closed.Code != websocket.StatusPolicyViolation || !strings.Contains(closed.Reason, c.says) {
				t.Errorf("it ends with %+v", closed)
			}
			b.proxy.Wait()
			if b.proxy.Sockets() != 0 {
				t.Errorf("%d are open", b.proxy.Sockets())
			}
		})
	}
}

// TestSocket_EndsWithItsSession: the bed's lasts 15 s, and the token longer.
func TestSocket_EndsWithItsSession(t *testing.T) {
	b := newBed(t, echo, nil)
	connection := b.socketBy(t, "/team/demo/ws", nil, http.Header{"Cookie": {"session=alice"}, "Origin": {b.front.URL}})
	if closed := b.closes(t, connection, 20); closed.Code != websocket.StatusPolicyViolation || !strings.Contains(closed.Reason, "sign in again") {
		t.Errorf("it ends with %+v", closed)
	}
}

func TestSocket_EndsWithTheServer(t *testing.T) {
	b := newBed(t, echo, nil)
	connection, tail := b.socket(t, "/team/demo/ws", nil), b.socket(t, "/team/demo/api/jobs/x/logs/tail", nil)
	if b.proxy.Sockets() != 2 {
		t.Errorf("%d are open", b.proxy.Sockets())
	}
	b.end()
	hear(t, tail, "\nHeliostat dashboard proxy: the server was replaced, and the job goes on: ask for its log again\n")
	if closed := b.closes(t, tail, 1); closed.Code != websocket.StatusGoingAway {
		t.Errorf("a job's log ends with %+v", closed)
	}
	if closed := b.closes(t, connection, 1); closed.Code != websocket.StatusGoingAway {
		t.Errorf("it ends with %+v", closed)
	}
	b.proxy.Wait()
}

// TestSocket_ParsesNoRequestAsOne replays CVE-2018-1002105: what follows a refused upgrade on a connection is a request of its own, and is judged.
func TestSocket_ParsesNoRequestAsOne(t *testing.T) {
	seen := &recorder{}
	b := newBed(t, seen.ServeHTTP, nil)
	answer := b.raw(t, "GET /team/demo/ HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer alice-token\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\nGET /team/demo/secret HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
	if !strings.Contains(answer, " 401 ") || len(seen.seen) != 1 {
		t.Errorf("%d came: %q", len(seen.seen), answer)
	}
}

// TestSocket_KeepsNothingOfAStuckClient: one that reads nothing is let go when the socket must end.
func TestSocket_KeepsNothingOfAStuckClient(t *testing.T) {
	b := newBed(t, func(w http.ResponseWriter, r *http.Request) {
		connection, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer func() { _ = connection.CloseNow() }()
		for connection.Write(r.Context(), websocket.MessageBinary, make([]byte, 1<<20)) == nil {
			continue
		}
	}, nil)
	//nolint:bodyclose // the answer that opens a WebSocket has none
	connection, _, err := websocket.Dial(t.Context(), "wss"+strings.TrimPrefix(b.front.URL, "https")+"/team/demo/ws", &websocket.DialOptions{
		HTTPClient: b.client(), HTTPHeader: http.Header{"Authorization": {"Bearer alice-token"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = connection.CloseNow() }()
	b.end()
	b.proxy.Wait() // it takes 5 s, whatever the client does
	if b.proxy.Sockets() != 0 {
		t.Errorf("%d are open", b.proxy.Sockets())
	}
}
