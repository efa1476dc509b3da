package app

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/utils/clock"
)

// single is a listener with one connection.
type single struct{ connections chan net.Conn }

func (s single) Accept() (net.Conn, error) {
	if one, is := <-s.connections; is {
		return one, nil
	}
	return nil, net.ErrClosed
}

func (single) Addr() net.Addr { return &net.TCPAddr{} }

func (single) Close() error { return nil }

// TestEndUnread_AnswersWhoSendsNoBody: net/http waits for a body before it sends an answer, without an end of its own.
func TestEndUnread_AnswersWhoSendsNoBody(t *testing.T) {
	for name, c := range map[string]struct {
		head, body string
		read       int64
		code       int
		isReused   bool
	}{
		"a chunked body without a byte, refused":  {"Transfer-Encoding: chunked", "", 0, http.StatusUnauthorized, false},
		"a chunked body without a byte, answered": {"Transfer-Encoding: chunked", "", 0, http.StatusOK, false},
		"a length without a byte, refused":        {"Content-Length: 9", "", 0, http.StatusForbidden, false},
		"a length without a byte, led elsewhere":  {"Content-Length: 9", "", 0, http.StatusSeeOther, false},
		"a body that is read in part, refused":    {"Transfer-Encoding: chunked", "4\r\nbody\r\n", 4, http.StatusUnauthorized, false},
		"a body that is read, refused":            {"Content-Length: 4", "body", 4, http.StatusUnauthorized, true},
		"half a body, refused":                    {"Content-Length: 9", "half", 0, http.StatusTooManyRequests, false},
		"a body that is whole, refused":           {"Content-Length: 4", "body", 0, http.StatusUnauthorized, true},
		"no body":                                 {"Content-Length: 0", "", 0, http.StatusOK, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				answering := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.CopyN(io.Discard, r.Body, c.read) // it has as many
					w.WriteHeader(c.code)
				})
				server := &http.Server{Handler: endUnread(answering, clock.RealClock{})}
				accepted, client := net.Pipe()
				listener := single{connections: make(chan net.Conn, 1)}
				listener.connections <- accepted
				ended := make(chan error, 1)
				go func() { ended <- server.Serve(listener) }()
				go func() { _, _ = io.WriteString(client, "POST / HTTP/1.1\r\nHost: a\r\n"+c.head+"\r\n\r\n"+c.body) }()
				answer, err := http.ReadResponse(bufio.NewReader(client), nil)
				if err != nil {
					t.Fatal(err)
				}
				if answer.StatusCode != c.code || answer.Close == c.isReused {
					t.Errorf("the answer is %d, and the connection is closed: %v", answer.StatusCode, answer.Close)
				}
				_ = answer.Body.Close()
				_ = client.Close()
				close(listener.connections)
				if err := <-ended; err == nil || !strings.Contains(err.Error(), "closed") {
					t.Error(err)
				}
			})
		})
	}
}
