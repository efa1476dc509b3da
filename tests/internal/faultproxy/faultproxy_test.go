package faultproxy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/heliostat-dev/heliostat/tests/live"
)

// said is the reply of the server of these tests.
var said = strings.Repeat("taken ", 20)

// server notes what it was asked, and over which connections.
type server struct {
	mu     sync.Mutex
	bodies []string
	from   map[string]bool
	broken int
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.from[r.RemoteAddr] = true
	if err != nil {
		s.broken++
		return
	}
	s.bodies = append(s.bodies, string(body))
	_, _ = io.WriteString(w, said) // a client that is gone is part of the tests
}

func (s *server) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.bodies)
}

func begin(t *testing.T, seed uint64) (*Proxy, *server) {
	t.Helper()
	s := &server{from: map[string]bool{}}
	upstream := httptest.NewServer(s)
	t.Cleanup(upstream.Close)
	p, err := Listen("127.0.0.1:0", upstream.Listener.Addr().String(), seed)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p, s
}

// ask asks once over a connection of its own; the error is of the connection.
func ask(p *Proxy, timeout time.Duration) (status int, body string, err error) {
	ctx, stop := context.WithTimeout(context.Background(), timeout)
	defer stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+p.Address()+"/jobs", strings.NewReader("a request"))
	if err != nil {
		return 0, "", err
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	response, err := transport.RoundTrip(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

func TestWhatBefallsARequest(t *testing.T) {
	const times = 20
	for _, test := range []struct {
		fault Fault
		// least and most are how often the server may have been asked.
		least, most int
		answered    bool
	}{
		{Pass, times, times, true},
		{DropRequest, 0, 0, false},
		{TruncateRequest, 0, 0, false},
		{DelayRequest, times, times, true},
		{Duplicate, 2 * times, 2 * times, true},
		{DropReply, times, times, false},
		{TruncateReply, times, times, false},
		{DelayReply, times, times, true},
	} {
		t.Run(test.fault.String(), func(t *testing.T) {
			t.Parallel()
			p, s := begin(t, 1)
			p.Fail(Rates{test.fault: 1}, 5*time.Millisecond)
			for range times {
				status, body, err := ask(p, time.Minute)
				if answered := err == nil && status == http.StatusOK && body == said; answered != test.answered {
					t.Fatalf("status %d, body %q, error %v, want the reply: %t", status, body, err, test.answered)
				}
			}
			if n := s.asked(); n < test.least || n > test.most {
				t.Errorf("the server was asked %d times, want %d to %d", n, test.least, test.most)
			}
			if n := p.Counts()[test.fault]; n != times {
				t.Errorf("counted %d, want %d", n, times)
			}
			for _, body := range s.bodies {
				if body != "a request" {
					t.Errorf("the server was asked %q", body)
				}
			}
		})
	}
}

func TestNoAnswerOfItsOwnLooksLikeTheServers(t *testing.T) {
	for _, fault := range []Fault{Refuse, Garbage} {
		p, s := begin(t, 2)
		p.Fail(Rates{fault: 1}, 0)
		seen := map[string]bool{}
		for range 40 {
			status, body, err := ask(p, time.Minute)
			if err == nil && body == said {
				t.Fatalf("%s: the reply came", fault)
			}
			seen[fmt.Sprint(status, body)] = true
		}
		if len(seen) < 3 {
			t.Errorf("%s: only %v were seen", fault, slices.Collect(maps.Keys(seen)))
		}
		if n := s.asked(); fault == Refuse && n != 0 || fault == Garbage && n != 40 {
			t.Errorf("%s: the server was asked %d times", fault, n)
		}
	}
}

func TestAHungRequestIsDeliveredOrNot(t *testing.T) {
	p, s := begin(t, 3)
	p.Fail(Rates{Hang: 1}, 0)
	const times = 20
	var all sync.WaitGroup
	for range times {
		all.Go(func() {
			if _, _, err := ask(p, 200*time.Millisecond); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("it ended with %v", err)
			}
		})
	}
	all.Wait()
	if n := s.asked(); n == 0 || n == times {
		t.Errorf("%d of %d were delivered, want some", n, times)
	}
}

func TestAReplyIsCutAnywhere(t *testing.T) {
	p, _ := begin(t, 4)
	p.Fail(Rates{DropReply: 1}, 0)
	seen := map[int]bool{}
	for range 200 {
		connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", p.Address())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(connection, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(bufio.NewReader(connection)) // it ends by a reset
		seen[len(text)] = true
		_ = connection.Close()
	}
	if len(seen) < 50 {
		t.Errorf("replies were cut at %d places, want many", len(seen))
	}
}

func TestOneConnectionIsOneConnection(t *testing.T) {
	p, s := begin(t, 5)
	client := &http.Client{Transport: &http.Transport{MaxConnsPerHost: 1}}
	for range 5 {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+p.Address(), nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(io.Discard, response.Body)
		if err = errors.Join(err, response.Body.Close()); err != nil {
			t.Fatal(err)
		}
	}
	client.CloseIdleConnections()
	if _, _, err := ask(p, time.Minute); err != nil {
		t.Fatal(err)
	}
	if len(s.from) != 2 {
		t.Errorf("two connections came over %d", len(s.from))
	}
}

func TestASeedDecides(t *testing.T) {
	const of = 300
	draw := func(seed uint64) (chosen []Fault) {
		p, _ := begin(t, seed)
		p.Fail(Even(0.5), 0)
		for range of {
			chosen = append(chosen, p.choose())
		}
		return chosen
	}
	first, again, other := draw(6), draw(6), draw(7)
	if !slices.Equal(first, again) {
		t.Error("the same seed chose otherwise")
	}
	if slices.Equal(first, other) {
		t.Error("two seeds chose the same")
	}
	counts := map[Fault]int{}
	for _, f := range first {
		counts[f]++
	}
	if n := counts[Pass]; n < of/3 || n > of*2/3 || len(counts) != int(faults) {
		t.Errorf("with a half for all faults there were %v", counts)
	}
}

func TestAtReplyComesBeforeTheReply(t *testing.T) {
	p, s := begin(t, 8)
	done := make(chan struct{})
	p.AtReply(func(request *http.Request) {
		if s.asked() != 1 || request.Method != http.MethodPost {
			t.Errorf("%s: asked %d times", request.Method, s.asked())
		}
		close(done)
	})
	if _, body, err := ask(p, time.Minute); err != nil || body != said {
		t.Fatal(body, err)
	}
	select {
	case <-done:
	default:
		t.Error("the reply came first")
	}
}

func TestCloseEndsWhatHangs(t *testing.T) {
	p, _ := begin(t, 9)
	p.Fail(Rates{Hang: 1}, 0)
	ended := make(chan error, 1)
	go func() {
		_, _, err := ask(p, time.Minute)
		ended <- err
	}()
	if err := live.Until(t.Context(), time.Minute, "the request to hang", func(context.Context) error {
		if p.Counts()[Hang] == 0 {
			return errors.New("it has not come")
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	p.Close()
	if err := <-ended; err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("it ended with %v", err)
	}
}
