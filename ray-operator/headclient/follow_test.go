package headclient_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/heliostat-dev/heliostat/ray-operator/headclient"
)

// flood is the job API of a head whose job writes so many bytes each second, for some time.
type flood struct {
	begin     time.Time
	writes    time.Duration
	perSecond int
	// sent is how many bytes of its log the head has sent.
	sent int
}

// size returns how much the job has written.
func (f *flood) size() int {
	return int(min(time.Since(f.begin), f.writes).Seconds() * float64(f.perSecond))
}

// ServeHTTP implements http.Handler.
func (f *flood) ServeHTTP(out http.ResponseWriter, request *http.Request) {
	if request.URL.Path == "/api/v0/logs/file" {
		f.sent += f.size()
		_, _ = out.Write(bytes.Repeat([]byte("x"), f.size()))
		return
	}
	status := headclient.JobRunning
	if time.Since(f.begin) >= f.writes {
		status = headclient.JobSucceeded
	}
	_, _ = fmt.Fprintf(out, `{"submission_id": "a", "status": "%s", "start_time": 1000, "driver_node_id": "%s"}`, status, node)
}

// single is a listener with one connection.
type single chan net.Conn

// Accept implements net.Listener.
func (s single) Accept() (net.Conn, error) {
	if connection, is := <-s; is {
		return connection, nil
	}
	return nil, net.ErrClosed
}

// Close implements net.Listener.
func (s single) Close() error { return nil }

// Addr implements net.Listener.
func (s single) Addr() net.Addr { return &net.TCPAddr{} }

func TestFollow_LooksSeldomAtAFastOutput(t *testing.T) {
	const mostSent, mostLate = 2.4, 3 * time.Second
	for name, f := range map[string]*flood{
		"much for long":  {perSecond: 4_000_000, writes: 15 * time.Second},
		"a lot at first": {perSecond: 20_000_000, writes: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f.begin = time.Now().Add(-500 * time.Millisecond) // so that there is some output
				here, there := net.Pipe()
				listener := make(single, 1)
				listener <- there
				go func() { _ = (&http.Server{Handler: f}).Serve(listener) }() // until the listener is closed
				jobs := converse(t, "10.0.0.1:8265", headclient.Options{Connect: func(context.Context, string) (net.Conn, error) { return here, nil }})
				job, err := jobs.Follow(t.Context(), "a", 0, io.Discard)
				if late := time.Since(f.begin) - f.writes; err != nil || !job.Status.Over() || late > mostLate {
					t.Errorf("it ends %s after the job, %+v, %v", late, job, err)
				}
				if sent := float64(f.sent) / float64(f.size()); sent > mostSent {
					t.Errorf("all of the output was sent %.1f times", sent)
				}
				close(listener)
				_ = here.Close() // so that the server ends
			})
		})
	}
}
