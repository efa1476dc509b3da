package app

import (
	"errors"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

// pipes is a listener whose connections hold nothing of what was written.
type pipes struct {
	connections chan net.Conn
	ended       chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case one := <-p.connections:
		return one, nil
	case <-p.ended:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.ended); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{} }

// TestLimited_EndsWhereNobodyReads has callers who read the head of an answer at most.
func TestLimited_EndsWhereNobodyReads(t *testing.T) {
	many := strings.Repeat("x", 1<<20)
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter) error
		want   error
		after  time.Duration
	}{
		"a large answer": {func(w http.ResponseWriter) error {
			_, err := w.Write([]byte(many))
			return err
		}, os.ErrDeadlineExceeded, unreadFor},
		"a stream that is handed on": {func(w http.ResponseWriter) error {
			_, _ = w.Write([]byte("one"))
			return http.NewResponseController(w).Flush()
		}, os.ErrDeadlineExceeded, unreadFor},
		"a stream that was quiet before": {func(w http.ResponseWriter) error {
			<-time.After(10 * unreadFor)
			_, _ = w.Write([]byte("one"))
			return http.NewResponseController(w).Flush()
		}, os.ErrDeadlineExceeded, 11 * unreadFor},
		"what the connection holds at the end": {func(w http.ResponseWriter) error {
			_, err := w.Write([]byte("one"))
			return err
		}, nil, unreadFor},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &front{clock: clock.RealClock{}}
			ended, closed := make(chan error, 1), make(chan time.Time, 1)
			server := &http.Server{
				ReadHeaderTimeout: time.Minute,
				Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					out := f.limit(w, r)
					defer out.finish()
					ended <- c.answer(out)
				}),
				ConnState: func(_ net.Conn, state http.ConnState) {
					if state == http.StateClosed {
						closed <- time.Now()
					}
				},
			}
			listener := &pipes{make(chan net.Conn), make(chan struct{})}
			go func() { _ = server.Serve(listener) }()
			began := time.Now()
			caller, other := net.Pipe()
			listener.connections <- other
			if _, err := caller.Write([]byte("GET / HTTP/1.1\r\nHost: h\r\n\r\n")); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want %v", name, err, c.want)
			}
			if took := (<-closed).Sub(began); took != c.after {
				t.Errorf("%s: the connection ends after %v, want %v", name, took, c.after)
			}
			_, _ = caller.Close(), server.Close()
		})
	}
}

// TestLimited_BeginsWithoutADeadline: a connection that is kept goes on after a long pause, and one that is taken over too.
func TestLimited_BeginsWithoutADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &front{clock: clock.RealClock{}}
		server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			out := f.limit(w, r)
			defer out.finish()
			if r.URL.Path != "/taken" {
				_, _ = out.Write([]byte("x"))
				return
			}
			connection, _, err := http.NewResponseController(out).Hijack()
			if err != nil {
				t.Errorf("take the connection: %v", err)
				return
			}
			go func() {
				<-time.After(10 * unreadFor)
				_, _ = connection.Write([]byte("HTTP/1.1 299 \r\nContent-Length: 0\r\n\r\n"))
				_ = connection.Close()
			}()
		})}
		listener := &pipes{make(chan net.Conn), make(chan struct{})}
		go func() { _ = server.Serve(listener) }()
		caller, other := net.Pipe()
		listener.connections <- other
		answers := make([]byte, 4<<10)
		for _, path := range []string{"/", "/", "/taken"} {
			if _, err := caller.Write([]byte("GET " + path + " HTTP/1.1\r\nHost: h\r\n\r\n")); err != nil {
				t.Fatal(err)
			}
			n, err := caller.Read(answers)
			if err != nil || !strings.HasPrefix(string(answers[:n]), "HTTP/1.1 2") {
				t.Errorf("%s: %q, %v", path, answers[:n], err)
			}
			<-time.After(2 * unreadFor)
		}
		_, _ = caller.Close(), server.Close()
	})
}
